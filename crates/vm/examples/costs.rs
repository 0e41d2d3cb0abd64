//! What one thread pays for a fault and an `mprotect`: nanoseconds in each variant, beside the same work on a
//! `BTreeMap` under one `RwLock`.
//!
//! `cargo run --release -p spanlock-vm --example costs`

use spanlock_vm::variants::{self, Table, Variant};
use spanlock_vm::{
    Access, AddressSpace, Area, Backing, Mapping, PAGE, PageTable, Placement, Protection,
    RawRangeLock,
};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::RwLock;
use std::time::Instant;

const BASE: u64 = 0x1000_0000;
/// Areas beside those that are worked on, as of a process with a few libraries.
const AREAS: u64 = 100;
/// The beginning of an arena: some pages that may be used, and a reserve behind.
const ARENA: u64 = BASE + 4 * AREAS * PAGE;
const RESERVE: u64 = 64;
const ROUNDS: u64 = 200_000;
/// Each figure is the median of so many.
const REPEATS: usize = 7;

/// What is measured, on a space or its like.
trait Subject {
    fn fault(&self, address: u64);
    fn protect(&self, start: u64, length: u64, protection: Protection);
}

impl<L: RawRangeLock> Subject for AddressSpace<L> {
    fn fault(&self, address: u64) {
        AddressSpace::fault(self, address, Access::Read).expect("it is mapped");
    }

    fn protect(&self, start: u64, length: u64, protection: Protection) {
        self.mprotect(start, length, protection)
            .expect("it is mapped");
    }
}

/// The same work under one lock, as much of it as the measurement needs: changes at the beginning of an area.
struct Simple {
    areas: RwLock<(BTreeMap<u64, Area>, u64)>,
    pages: PageTable,
}

impl Subject for Simple {
    fn fault(&self, address: u64) {
        let areas = self.areas.read().expect("nobody panics");
        let (_, area) = areas.0.range(..=address).next_back().expect("it is mapped");
        assert!(area.contains(address) && area.protection.allows(Protection::READ));
        self.pages
            .populate(address & !(PAGE - 1), area, Access::Read)
            .expect("it never fails");
    }

    fn protect(&self, start: u64, length: u64, protection: Protection) {
        let mut areas = self.areas.write().expect("nobody panics");
        let (areas, data) = &mut *areas;
        let end = start + length;
        let (&first, area) = areas.range(..=start).next_back().expect("it is mapped");
        let (mut area, before) = (*area, area.protection);
        if area.start == start {
            // The beginning of an area goes to the one before.
            let (_, previous) = areas
                .range_mut((Unbounded, Excluded(first)))
                .next_back()
                .expect("an arena");
            assert!(previous.end == start && previous.protection == protection && area.end > end);
            previous.end = end;
            areas.remove(&first);
            area.start = end;
            areas.insert(end, area);
        } else {
            // The end of an area goes to the one after.
            assert_eq!(area.end, end);
            let (&second, next) = areas
                .range((Included(end), Unbounded))
                .next()
                .expect("an arena");
            let mut next = *next;
            assert!(next.start == end && next.protection == protection);
            areas.get_mut(&first).expect("it was found").end = start;
            areas.remove(&second);
            next.start = start;
            areas.insert(start, next);
        }
        let count = |protection: Protection| {
            u64::from(protection.allows(Protection::WRITE)) * length / PAGE
        };
        *data = *data + count(protection) - count(before);
        self.pages
            .protect(start..end, protection)
            .expect("it never fails");
    }
}

/// Nanoseconds of a fault and of an `mprotect`.
fn measure(subject: &impl Subject) -> [f64; 2] {
    let time = |work: &dyn Fn()| {
        let begin = Instant::now();
        work();
        begin.elapsed().as_nanos() as f64 / ROUNDS as f64
    };
    let faults = || {
        for round in 0..ROUNDS {
            subject.fault(black_box(BASE + 4 * PAGE * (round * 7 % AREAS)));
        }
    };
    let protects = || {
        for _ in 0..ROUNDS / 2 {
            subject.protect(ARENA + PAGE, PAGE, Protection::READ_WRITE);
            subject.protect(ARENA + PAGE, PAGE, Protection::NONE);
        }
    };
    faults();
    protects();
    [&faults as &dyn Fn(), &protects].map(|work| {
        let mut times: Vec<_> = (0..REPEATS).map(|_| time(work)).collect();
        times.sort_by(f64::total_cmp);
        times[REPEATS / 2]
    })
}

fn fill(space: &AddressSpace<impl RawRangeLock>) {
    for area in 0..AREAS {
        let at = Placement::Fixed(BASE + 4 * area * PAGE);
        space
            .mmap(at, 2 * PAGE, Mapping::anonymous(Protection::READ_WRITE))
            .expect("it is free");
    }
    let arena = Mapping::anonymous(Protection::NONE);
    space
        .mmap(Placement::Fixed(ARENA), RESERVE * PAGE, arena)
        .expect("it is free");
    space
        .mprotect(ARENA, PAGE, Protection::READ_WRITE)
        .expect("it is mapped");
}

struct Rows {
    base: [f64; 2],
}

fn print(name: &str, [fault, protect]: [f64; 2], base: [f64; 2]) {
    let ratios = [fault / base[0], protect / base[1]];
    println!(
        "{name:<16} {fault:>9.1} {:>6.2} {protect:>12.1} {:>6.2}",
        ratios[0], ratios[1]
    );
}

impl Table for Rows {
    fn variant<L: variants::Lock>(&mut self, variant: Variant, make: fn() -> L) {
        let space = AddressSpace::builder()
            .refinement(variant.refinement)
            .build(make(), PageTable::new());
        fill(&space);
        print(variant.name, measure(&space), self.base);
    }
}

fn main() {
    let space = AddressSpace::new();
    fill(&space);
    let areas = space
        .maps()
        .into_iter()
        .map(|area| (area.start, area))
        .collect();
    let simple = Simple {
        areas: RwLock::new((areas, 0)),
        pages: PageTable::new(),
    };
    let base = measure(&simple);
    println!(
        "{:<16} {:>9} {:>6} {:>12} {:>6}",
        "ns", "fault", "ratio", "mprotect", "ratio"
    );
    print("BTreeMap", base, base);
    variants::all(&mut Rows { base });
}
