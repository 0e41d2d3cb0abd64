//! What one thread pays for a fault and an `mprotect`: nanoseconds in each variant, beside the same work on a
//! `BTreeMap` under one `RwLock`.
//!
//! `cargo run --release -p spanlock-structures --example vm_costs [AREAS]`, of which there are 100 otherwise, as in a
//! process with a few libraries.

use spanlock_structures::vm::{
    Access, AddressSpace, Area, Backing, Mapping, PAGE, PageTable, Placement, Protection,
    RawRangeLock,
};
use spanlock_workbench::vm::variants::{self, Table, Variant};
use std::collections::BTreeMap;
use std::env;
use std::hint::black_box;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::process::ExitCode;
use std::sync::RwLock;
use std::time::Instant;

const BASE: u64 = 0x1000_0000;
/// Pages of the reserve.
const RESERVE: u64 = 64;
/// From one area to the one that the next fault is in.
const STRIDE: u64 = 7;
/// Operations of a turn: tens of microseconds.
const OPERATIONS: u64 = 400;
/// Turns of each subject.
const TURNS: u32 = 1000;

/// A space, or what takes its place.
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

/// What is measured.
#[derive(Clone, Copy)]
enum Work {
    /// Faults in one area.
    One,
    /// Faults in areas in a fixed order, which processors learn to predict.
    Order,
    /// Faults in areas drawn by lot.
    Lots,
    /// `mprotect` of a page at the beginning of a reserve, to and fro.
    Protect,
}

impl Work {
    /// Does it so often.
    fn go(self, subject: &dyn Subject, areas: u64, operations: u64) {
        match self {
            Self::One => {
                for _ in 0..operations {
                    subject.fault(of_area(black_box(areas / 2)));
                }
            }
            Self::Order => {
                for round in 0..operations {
                    subject.fault(of_area(black_box(round * STRIDE % areas)));
                }
            }
            Self::Lots => {
                for _ in 0..operations {
                    subject.fault(of_area(fastrand::u64(..areas)));
                }
            }
            Self::Protect => {
                let page = arena(areas) + PAGE;
                for _ in 0..operations / 2 {
                    subject.protect(page, PAGE, Protection::READ_WRITE);
                    subject.protect(page, PAGE, Protection::NONE);
                }
            }
        }
    }
}

/// Nanoseconds of an operation on each subject.
///
/// The subjects take turns of a few operations each, and the shortest turn of each counts: what disturbs a turn only
/// makes it longer, and turns are so short that many are not disturbed.
fn measure(work: Work, subjects: &[(&str, Box<dyn Subject>)], areas: u64) -> Vec<f64> {
    let mut shortest = vec![f64::INFINITY; subjects.len()];
    for _ in 0..TURNS {
        for ((_, subject), shortest) in subjects.iter().zip(&mut shortest) {
            // So that the caches have what the turn needs.
            work.go(&**subject, areas, OPERATIONS);
            let begin = Instant::now();
            work.go(&**subject, areas, OPERATIONS);
            let took = begin.elapsed().as_nanos() as f64 / OPERATIONS as f64;
            *shortest = shortest.min(took);
        }
    }
    shortest
}

/// Where an area begins.
const fn of_area(area: u64) -> u64 {
    BASE + 4 * area * PAGE
}

/// Where the reserve begins: some pages that may be used, and others behind that may not.
const fn arena(areas: u64) -> u64 {
    of_area(areas)
}

fn fill(space: &AddressSpace<impl RawRangeLock>, areas: u64) {
    for area in 0..areas {
        let at = Placement::Fixed(of_area(area));
        space
            .mmap(at, 2 * PAGE, Mapping::anonymous(Protection::READ_WRITE))
            .expect("it is free");
    }
    let reserve = Mapping::anonymous(Protection::NONE);
    space
        .mmap(Placement::Fixed(arena(areas)), RESERVE * PAGE, reserve)
        .expect("it is free");
    space
        .mprotect(arena(areas), PAGE, Protection::READ_WRITE)
        .expect("it is mapped");
}

/// A space of each variant.
struct Spaces {
    areas: u64,
    subjects: Vec<(&'static str, Box<dyn Subject>)>,
}

impl Table for Spaces {
    fn variant<L: variants::Lock>(&mut self, variant: Variant, make: fn() -> L) {
        let space = AddressSpace::builder()
            .refinement(variant.refinement)
            .build(make(), PageTable::new());
        fill(&space, self.areas);
        self.subjects.push((variant.name, Box::new(space)));
    }
}

fn main() -> ExitCode {
    let areas = match env::args().nth(1).map_or(Ok(100), |areas| areas.parse()) {
        Ok(areas @ 1..=60_000) => areas,
        _ => {
            eprintln!("usage: costs [AREAS], a number from 1 to 60000");
            return ExitCode::FAILURE;
        }
    };
    let space = AddressSpace::new();
    fill(&space, areas);
    let found = space.maps().into_iter().map(|area| (area.start, area));
    let simple = Simple {
        areas: RwLock::new((found.collect(), 0)),
        pages: PageTable::new(),
    };
    let subjects: Vec<(_, Box<dyn Subject>)> = vec![("BTreeMap", Box::new(simple))];
    let mut spaces = Spaces { areas, subjects };
    variants::all(&mut spaces);
    let works = [Work::One, Work::Order, Work::Lots, Work::Protect];
    let times = works.map(|work| measure(work, &spaces.subjects, areas));
    let head = ["one area", "in order", "by lot", "mprotect"]
        .map(|work| format!("{work:>9} {:>6}", "ratio"));
    println!("{:<16} {}", "ns", head.join("  "));
    for (at, (name, _)) in spaces.subjects.iter().enumerate() {
        let cell = |times: &Vec<f64>| format!("{:>9.1} {:>6.2}", times[at], times[at] / times[0]);
        println!("{name:<16} {}", times.each_ref().map(cell).join("  "));
    }
    ExitCode::SUCCESS
}
