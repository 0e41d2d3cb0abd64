//! Models of the address space, run by loom under every schedule up to a bound on preemptions.
//!
//! Each of the races that P1 §5 has, and each edge that the space adds, has a model. `mutants.rs` weakens each named
//! edge in turn, and expects the model named with it to fail.

mod mutants;
mod world;

use prim::Model;
use spanlock_structures_loom::vm::{
    Access, ChangeRange, FaultRange, Limits, Mapping, PAGE, Placement, Protection, Refinement,
    StructureRange, VmError,
};
use world::*;

/// P1's Listing 4 for `mprotect`, and changes of the structure side by side with it.
const SPECULATING: Refinement = Refinement {
    fault: FaultRange::Page,
    change: ChangeRange::Speculate,
    structure: StructureRange::Whole,
};

fn check(f: impl Fn() + Sync + Send + 'static) {
    Model::new(Some(3)).check(f);
}

/// The first write to an area looks at its neighbour, which another thread changes.
#[test]
fn a_fault_in_a_fresh_area_beside_one_that_changes() {
    check(|| {
        let space = refined(&[(2, 4, RW), (4, 8, RW)]);
        fault(&space, 2, Access::Write).unwrap();
        protect(&space, 2, 4, READ).unwrap();
        // Two areas now: a fresh one beside one with a family.
        unmap(&space, 4, 8).unwrap();
        map(&space, 4, 8, RW).unwrap();
        let other = spawn(&space, |space| protect(space, 2, 4, NONE).unwrap());
        fault(&space, 7, Access::Write).unwrap();
        other.join().unwrap();
        let families: Vec<_> = space.maps().iter().map(|area| area.family).collect();
        assert_eq!(families, [1, 1]);
    });
}

/// Two threads write first to one area, which gets one family.
#[test]
fn two_first_writes() {
    check(|| {
        let space = refined(&[(2, 8, RW)]);
        let other = spawn(&space, |space| {
            fault(space, 2, Access::Write).unwrap();
            space.maps()[0].family
        });
        fault(&space, 6, Access::Write).unwrap();
        let mine = space.maps()[0].family;
        assert_eq!(other.join().unwrap(), mine);
    });
}

/// A fault deep in an area whose beginning moves: Linux's case 4.
#[test]
fn a_fault_in_an_area_that_takes_the_end_of_another() {
    check(|| {
        let space = refined(&[(2, 6, RW), (6, 10, READ)]);
        let other = spawn(&space, |space| protect(space, 4, 6, READ).unwrap());
        fault(&space, 9, Access::Read).unwrap();
        assert_eq!(fault(&space, 2, Access::Execute), Err(VmError::Denied));
        other.join().unwrap();
        assert_eq!(areas(&space), [(2, 4, RW), (4, 10, READ)]);
    });
}

/// Two changes within one area, each of which splits it: P1 §5.1's example of two `mprotect` calls in disjoint ranges.
fn two_changes_in_one_area(refinement: Refinement) {
    check(move || {
        let space = space(&[(2, 12, RW)], refinement, Limits::default());
        let other = spawn(&space, |space| protect(space, 4, 5, READ).unwrap());
        protect(&space, 9, 10, NONE).unwrap();
        other.join().unwrap();
        assert_eq!(
            areas(&space),
            [
                (2, 4, RW),
                (4, 5, READ),
                (5, 9, RW),
                (9, 10, NONE),
                (10, 12, RW)
            ]
        );
        assert_eq!((space.areas(), space.pages().data), (5, 8));
    });
}

#[test]
fn two_changes_in_one_area_refined() {
    two_changes_in_one_area(Refinement::REFINED);
}

#[test]
fn two_changes_in_one_area_speculating() {
    two_changes_in_one_area(SPECULATING);
}

/// Both boundaries of an area move, away from each other's pages.
#[test]
fn both_boundaries_of_an_area_move() {
    check(|| {
        let space = refined(&[(1, 3, RW), (3, 9, NONE), (9, 11, READ)]);
        let other = spawn(&space, |space| protect(space, 3, 4, RW).unwrap());
        protect(&space, 8, 9, READ).unwrap();
        other.join().unwrap();
        assert_eq!(areas(&space), [(1, 4, RW), (4, 8, NONE), (8, 11, READ)]);
    });
}

/// An area is unmapped between a speculation's look and its lock.
#[test]
fn an_area_is_unmapped_under_a_speculation() {
    check(|| {
        let space = space(&[(2, 4, NONE), (8, 9, RW)], SPECULATING, Limits::default());
        let other = spawn(&space, |space| unmap(space, 2, 4).unwrap());
        let changed = protect(&space, 2, 4, RW);
        assert!(matches!(changed, Ok(()) | Err(VmError::Hole)));
        other.join().unwrap();
        assert_eq!(areas(&space), [(8, 9, RW)]);
        assert_eq!(space.pages().data, 1);
    });
}

/// A speculation in a range of several areas looks at none that it does not hold.
#[test]
fn a_speculation_over_two_areas_beside_a_change() {
    check(|| {
        let space = space(&[(2, 4, RW), (4, 8, NONE)], SPECULATING, Limits::default());
        let other = spawn(&space, |space| protect(space, 4, 8, READ).unwrap());
        protect(&space, 3, 6, RW).unwrap();
        other.join().unwrap();
        let (after, before) = ([(2, 6, RW), (6, 8, READ)], [(2, 4, RW), (4, 8, READ)]);
        assert!(areas(&space) == after || areas(&space) == before);
    });
}

/// Pages are dropped beside an area that changes.
#[test]
fn pages_are_dropped_beside_a_change() {
    check(|| {
        let space = refined(&[(2, 4, RW), (4, 8, NONE)]);
        let other = spawn(&space, |space| protect(space, 2, 4, READ).unwrap());
        space.madvise_dontneed(4 * PAGE, 2 * PAGE).unwrap();
        other.join().unwrap();
        assert_eq!(areas(&space), [(2, 4, READ), (4, 8, NONE)]);
    });
}

/// The pages counted are those that are there.
#[test]
fn counts_of_changes_side_by_side() {
    check(|| {
        let space = refined(&[(2, 3, NONE), (6, 7, NONE)]);
        let other = spawn(&space, |space| protect(space, 2, 3, RW).unwrap());
        protect(&space, 6, 7, RW).unwrap();
        other.join().unwrap();
        assert_eq!(space.pages().data, 2);
    });
}

/// Two changes, which together exceed a limit: one is refused.
fn one_is_refused(
    limits: Limits,
    areas: &[(u64, u64, Protection)],
    change: impl Fn(&Space, u64) -> Result<(), VmError> + Copy + Send + 'static,
    [theirs, mine]: [u64; 2],
    is_right: impl Fn(&Space) -> bool,
) {
    let space = space(areas, Refinement::REFINED, limits);
    let other = spawn(&space, move |space| change(space, theirs));
    let results = [change(&space, mine), other.join().unwrap()];
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(is_right(&space));
}

/// A limit on pages.
#[test]
fn a_limit_on_pages() {
    check(|| {
        let limits = Limits {
            data: 1,
            ..Limits::default()
        };
        let areas = [(2, 3, NONE), (6, 7, NONE)];
        let change = |space: &Space, at| protect(space, at, at + 1, RW);
        one_is_refused(limits, &areas, change, [2, 6], |space| {
            space.pages().data == 1
        });
    });
}

/// The same with a limit on areas.
#[test]
fn a_limit_on_areas() {
    check(|| {
        let limits = Limits {
            areas: 3,
            ..Limits::default()
        };
        let areas = [(1, 4, RW), (6, 9, RW)];
        let change = |space: &Space, at| unmap(space, at, at + 1);
        one_is_refused(limits, &areas, change, [2, 7], |space| space.areas() == 3);
    });
}

/// An area goes, and its pages with it. Another one is refused for its pages before that, and not at all afterwards.
#[test]
fn both_limits_at_one_moment() {
    check(|| {
        let limits = Limits {
            areas: 1,
            data: 1,
            ..Limits::default()
        };
        let space = space(&[(2, 3, RW), (5, 6, NONE)], Refinement::REFINED, limits);
        let other = spawn(&space, |space| unmap(space, 2, 3).unwrap());
        let mapped = map(&space, 8, 9, RW).map(|_| ());
        assert!(
            matches!(mapped, Ok(()) | Err(VmError::OverLimit)),
            "{mapped:?}"
        );
        other.join().unwrap();
    });
}

/// A fault searches past an area that is just mapped.
#[test]
fn a_search_past_an_area_that_comes() {
    check(|| {
        let space = refined(&[(8, 9, RW)]);
        let other = spawn(&space, |space| map(space, 2, 3, RW).unwrap());
        fault(&space, 8, Access::Read).unwrap();
        other.join().unwrap();
        assert_eq!(areas(&space), [(2, 3, RW), (8, 9, RW)]);
    });
}

/// The same when the area does not fit into the chunk of the others.
#[test]
fn a_search_past_two_areas_that_come() {
    check(|| {
        let space = refined(&[(5, 6, RW), (8, 9, RW)]);
        let other = spawn(&space, |space| map(space, 2, 3, RW).unwrap());
        fault(&space, 8, Access::Read).unwrap();
        other.join().unwrap();
        assert_eq!(areas(&space), [(2, 3, RW), (5, 6, RW), (8, 9, RW)]);
    });
}

/// The hint that a fault follows is old, because a boundary has moved, and the area that it leads to is unmapped.
#[test]
fn a_search_by_an_old_hint_beside_an_area_that_goes() {
    check(|| {
        let space = refined(&[(2, 4, RW), (4, 10, READ)]);
        protect(&space, 4, 7, RW).unwrap();
        // So that the next search does not end where this one did.
        fault(&space, 9, Access::Read).unwrap();
        let other = spawn(&space, |space| unmap(space, 7, 10).unwrap());
        fault(&space, 5, Access::Read).unwrap();
        other.join().unwrap();
        assert_eq!(areas(&space), [(2, 7, RW)]);
    });
}

/// A fault searches past areas that are unmapped, and freed.
#[test]
fn a_search_past_areas_that_go() {
    check(|| {
        let space = refined(&[(2, 3, RW), (4, 5, RW), (8, 9, RW)]);
        let other = spawn(&space, |space| {
            unmap(space, 2, 3).unwrap();
            unmap(space, 4, 5).unwrap();
        });
        fault(&space, 8, Access::Read).unwrap();
        other.join().unwrap();
        assert_eq!(areas(&space), [(8, 9, RW)]);
    });
}

/// Two areas are mapped and unmapped side by side.
#[test]
fn disjoint_changes_of_the_structure() {
    // One preemption less than elsewhere: both threads copy chunks and directories, which takes many steps.
    Model::new(Some(2)).check(|| {
        let space = refined(&[(2, 3, RW)]);
        let other = spawn(&space, |space| unmap(space, 2, 3).unwrap());
        map(&space, 5, 6, RW).unwrap();
        other.join().unwrap();
        assert_eq!(areas(&space), [(5, 6, RW)]);
    });
}

/// An area that may go anywhere goes to the highest range that is free when it comes into being.
#[test]
fn a_higher_range_gets_free() {
    check(|| {
        let space = refined(&[(10, 12, RW)]);
        let other = spawn(&space, |space| {
            unmap(space, 11, 12).unwrap();
            space.find(9 * PAGE).is_none()
        });
        let what = Mapping::anonymous(READ);
        let mine = space.mmap(Placement::Anywhere, PAGE, what).unwrap();
        if other.join().unwrap() {
            assert_eq!(
                mine,
                11 * PAGE,
                "the lower range was still free when the higher one was"
            );
        }
    });
}

/// Two areas that may go anywhere do not go to the same place.
#[test]
fn two_areas_go_anywhere() {
    check(|| {
        let space = refined(&[]);
        let anywhere = |space: &Space| {
            space
                .mmap(Placement::Anywhere, PAGE, Mapping::anonymous(RW))
                .unwrap()
        };
        let other = spawn(&space, move |space| anywhere(space));
        let mine = anywhere(&space);
        let theirs = other.join().unwrap();
        assert_eq!(mine.max(theirs), 11 * PAGE);
        assert_eq!(areas(&space), [(10, 12, RW)]);
    });
}
