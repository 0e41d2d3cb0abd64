//! Real threads on one space. Each owns some pages, between those of others, so that areas are merged and split across
//! the borders all the time; and each knows what its own pages are.

use fastrand::Rng;
use spanlock_structures::vm::{
    Access, AddressSpace, Mapping, PAGE, PageTable, Placement, Protection, RawRangeLock, VmError,
};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::setting;
use spanlock_workbench::vm::variants::{self, Table, Variant};
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

const BASE: u64 = 0x1000_0000;
const PAGES: u64 = 8;
const THREADS: u64 = 4;

/// A thread's own pages, and what it knows of them.
struct Owner<'a, L: RawRangeLock> {
    space: &'a AddressSpace<L>,
    first: u64,
    pages: [Option<Protection>; PAGES as usize],
    rng: Rng,
    /// The place of an area of its own that the space has chosen.
    elsewhere: Option<(u64, u64)>,
}

impl<L: RawRangeLock> Owner<'_, L> {
    fn step(&mut self) {
        let (a, b) = (self.rng.u64(..PAGES), self.rng.u64(..PAGES));
        let (from, to) = (a.min(b), a.max(b) + 1);
        let (start, length) = (self.first + from * PAGE, (to - from) * PAGE);
        let some = [
            Protection::READ_WRITE,
            Protection::READ_WRITE,
            Protection::NONE,
            Protection::READ,
        ];
        let protection = self.rng.choice(some).expect("some");
        let own = from as usize..to as usize;
        match self.rng.u32(..10) {
            0..2 => {
                let mapped = self.space.mmap(
                    Placement::Fixed(start),
                    length,
                    Mapping::anonymous(protection),
                );
                assert_eq!(mapped, Ok(start));
                self.pages[own].fill(Some(protection));
            }
            2 => {
                self.space.munmap(start, length).unwrap();
                self.pages[own].fill(None);
            }
            3..6 => {
                let hole = self.pages[own.clone()].iter().position(Option::is_none);
                let expected = hole.map_or(Ok(()), |_| Err(VmError::Hole));
                assert_eq!(self.space.mprotect(start, length, protection), expected);
                let done = hole.unwrap_or(own.len());
                self.pages[own][..done].fill(Some(protection));
            }
            6 => match self.elsewhere.take() {
                Some((start, length)) => self.space.munmap(start, length).unwrap(),
                None => {
                    let length = self.rng.u64(1..6) * PAGE;
                    let start = self.space.mmap(
                        Placement::Anywhere,
                        length,
                        Mapping::anonymous(protection),
                    );
                    self.elsewhere = Some((start.expect("there is room"), length));
                }
            },
            _ => self.check(from),
        }
    }

    /// A page of one's own is what one has made of it.
    fn check(&self, page: u64) {
        let address = self.first + page * PAGE;
        let is = self.pages[page as usize];
        let found = self.space.find(address);
        assert_eq!(found.map(|area| area.protection), is);
        assert!(found.is_none_or(|area| area.contains(address)));
        let expected = match is {
            None => Err(VmError::Unmapped),
            Some(protection) if protection.allows(Protection::WRITE) => Ok(()),
            Some(_) => Err(VmError::Denied),
        };
        assert_eq!(self.space.fault(address, Access::Write), expected);
    }
}

struct Stress;

impl Table for Stress {
    fn variant<L: variants::Lock>(&mut self, variant: Variant, make: fn() -> L) {
        let builder = AddressSpace::builder()
            .refinement(variant.refinement)
            .recorded();
        let space = &builder.build(make(), PageTable::new());
        let steps = setting("SPANLOCK_STRESS_OPS", 4000);
        let owners: Vec<_> = thread::scope(|scope| {
            let own = |number| {
                move || {
                    let first = BASE + number * PAGES * PAGE;
                    let pages = [None; PAGES as usize];
                    let mut owner = Owner {
                        space,
                        first,
                        pages,
                        rng: Rng::with_seed(number),
                        elsewhere: None,
                    };
                    for _ in 0..steps {
                        owner.step();
                    }
                    owner
                }
            };
            let threads: Vec<_> = (0..THREADS)
                .map(|number| scope.spawn(own(number)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect(variant.name))
                .collect()
        });
        for (owner, page) in owners
            .iter()
            .flat_map(|owner| (0..PAGES).map(move |page| (owner, page)))
        {
            owner.check(page);
        }
        let maps = space.maps();
        assert!(
            maps.is_sorted_by(|a, b| a.end <= b.start),
            "{}: areas overlap",
            variant.name
        );
        let total: u64 = maps.iter().map(|area| area.len() / PAGE).sum();
        assert_eq!(
            (space.pages().total, space.areas()),
            (total, maps.len() as u64),
            "{}",
            variant.name
        );
    }
}

#[test]
fn every_thread_finds_its_pages_as_it_left_them() {
    variants::all(&mut Stress);
}
