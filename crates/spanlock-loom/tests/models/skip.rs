//! The index above a list: entering it, leaving it, and beginning a walk at a node found there.
//!
//! Every node has a tower here, as high as the lock allows, unless a model says how heights differ: a height of two is
//! one level above the list.

use crate::world::{Hold, World};
use prim::{Model, model};
use spanlock_loom::range::list::{Builder, ExclusiveOnly, FastPath, Levels, SharedExclusive};
use spanlock_loom::range::raw::{RawRangeLock, RawRangeMutex, Wait};
use spanlock_loom::range::skip::{SkipEx, SkipRw};

fn ex() -> Builder<ExclusiveOnly, Levels> {
    SkipEx::builder().height(2).fast_path(FastPath::Off)
}

fn rw() -> Builder<SharedExclusive, Levels> {
    SkipRw::builder().height(2).fast_path(FastPath::Off)
}

fn two_writers<L: RawRangeMutex + Send + Sync + 'static>(lock: L) {
    let world = World::new(lock);
    let other = world.spawn(|world| world.write(0..2).done());
    world.write(1..3).done();
    other.join().unwrap();
}

#[test]
fn two_writers_overlapping() {
    model(Some(3), || two_writers(ex().build()));
    model(Some(3), || two_writers(rw().build()));
}

/// Two levels, and the fast path.
#[test]
fn two_writers_overlapping_in_a_higher_lock() {
    model(Some(2), || two_writers(ex().height(3).build()));
    model(Some(2), || {
        two_writers(ex().fast_path(FastPath::On).build());
    });
}

#[test]
fn a_reader_and_a_writer() {
    model(Some(3), || {
        let world = World::new(rw().build());
        let reader = world.spawn(|world| world.read(0..2).done());
        world.write(1..3).done();
        reader.join().unwrap();
    });
}

/// Two newcomers that overlap find no holder in their way and begin at different nodes, one of which leaves: they meet
/// in one gap of the list.
#[test]
fn separated_insertions_meet_in_one_gap() {
    model(Some(2), || {
        let world = World::new(ex().build());
        let first = world.write(0..1);
        let second = world.write(1..2);
        let left = world.spawn(|world| world.write(2..4).done());
        drop(second);
        world.write(3..5).done();
        drop(first);
        left.join().unwrap();
    });
}

/// A node enters a level behind one that is leaving it.
#[test]
fn entering_behind_one_that_leaves() {
    model(Some(3), || {
        let world = World::new(ex().build());
        let first = world.write(0..1);
        let second = world.spawn(|world| world.write(1..2).done());
        drop(first);
        world.write(2..3).done();
        second.join().unwrap();
    });
}

/// Nodes leave a level side by side while somebody searches it.
#[test]
fn searching_past_neighbours_that_leave() {
    model(Some(3), || {
        let world = World::new(ex().build());
        let first = world.write(0..1);
        let second = world.write(1..2);
        let search = world.spawn(|world| world.write(3..4).done());
        drop(first);
        drop(second);
        world.write(2..3).done();
        search.join().unwrap();
    });
}

/// P1's Figure 1 with a waypoint between the places where the reader and the writer are inserted: the writer must
/// not begin there.
#[test]
fn figure_one_with_a_waypoint_as_separator() {
    model(Some(3), || {
        let world = World::new(rw().build());
        let between = world.read(2..3);
        let reader = world.spawn(|world| world.read(1..6).done());
        world.write(4..5).done();
        reader.join().unwrap();
        drop(between);
    });
}

/// The same with a waypoint before all of them, which comes when the reader is there: it must lead the writer's second
/// look to the reader.
#[test]
fn figure_one_with_a_late_waypoint() {
    model(Some(2), || {
        let world = World::new(rw().build());
        let between = world.read(3..4);
        let reader = world.spawn(|world| {
            let reader = world.read(2..6);
            let waypoint = world.read(0..1);
            reader.touch();
            drop(waypoint);
        });
        world.write(4..5).done();
        reader.join().unwrap();
        drop(between);
    });
}

/// A holder by the fast path, which is no waypoint, reaches over a reader that is one. (A thread's first acquisition, in
/// any lock, is not by the fast path.)
fn reaches_over_a_waypoint(
    hold: impl Fn(&World<SkipRw>) -> Hold<'_, SkipRw> + Sync + Send + 'static,
) {
    model(Some(2), move || {
        World::new(rw().build()).write(0..1).done();
        let world = World::new(rw().fast_path(FastPath::On).build());
        let wide = hold(&world);
        let inside = world.spawn(|world| {
            let inside = world.read(1..2);
            assert!(world.write_within(3..4, Wait::Never).is_none());
            drop(inside);
        });
        inside.join().unwrap();
        wide.done();
    });
}

#[test]
fn a_reader_by_the_fast_path_reaches_over_waypoints() {
    reaches_over_a_waypoint(|world| world.read(0..4));
}

/// A writer that shares its range now.
#[test]
fn a_downgraded_writer_reaches_over_waypoints() {
    reaches_over_a_waypoint(|world| world.write(0..4).downgrade());
}

/// The waypoint that a writer's second look begins at leaves meanwhile, and a reader comes in its place.
#[test]
fn a_waypoint_leaves() {
    model(Some(3), || {
        let world = World::new(rw().build());
        let waypoint = world.read(0..1);
        let between = world.read(2..3);
        let reader = world.spawn(move |world| {
            world.read(1..4).done();
        });
        drop(waypoint);
        world.write(3..4).done();
        drop(between);
        reader.join().unwrap();
    });
}

/// Nodes are unlinked at both levels by different threads, and used again under another thread's walk.
fn nodes_return_under_a_walk<L: RawRangeMutex + Send + Sync + 'static>(lock: fn() -> L) {
    model(Some(2), move || {
        let world = World::new(lock());
        let walker = world.spawn(|world| world.write(3..4).done());
        for at in 0..4 {
            world.write(at..at + 1).done();
        }
        walker.join().unwrap();
    });
}

/// One thread removes a node from the level, another from the list and uses it again, while a third still finds it in
/// the level. The tries are refused, and so change nothing else.
#[test]
fn the_last_link_is_removed_by_another_thread() {
    model(prim::one_more_in_mutants(1), || {
        let world = World::new(ex().build());
        let last = world.write(5..6);
        world.write(1..2).done();
        let is_refused = |world: &World<SkipEx>| {
            assert!(world.write_within(5..6, Wait::Never).is_none());
        };
        let third = world.spawn(is_refused);
        let one = world.spawn(is_refused);
        let other = world.spawn(move |world| {
            let _held = (world.write(3..4), world.write(4..5));
            is_refused(world);
        });
        for thread in [one, other, third] {
            thread.join().unwrap();
        }
        drop(last);
    });
}

#[test]
fn nodes_return_only_after_all_links_are_gone() {
    nodes_return_under_a_walk(|| ex().build());
}

#[test]
fn nodes_return_only_after_all_links_are_gone_in_the_reader_writer_lock() {
    nodes_return_under_a_walk(|| rw().build());
}

/// None is lost when a lock is dropped with nodes in its list and levels, some gone and one leaked.
#[test]
fn a_dropped_lock_leaks_nothing() {
    fn leave_behind<L: RawRangeLock + Send + Sync + 'static>(lock: L) {
        let world = World::new(lock);
        let other = world.spawn(|world| std::mem::forget(world.write(0..1)));
        world.write(2..3).done();
        world.read(1..2).done();
        other.join().unwrap();
    }
    model(Some(2), || leave_behind(rw().build()));
    model(Some(2), || leave_behind(rw().height(3).build()));
}

/// How high towers are, for models in which they differ: levels for the first thread's nodes in turn, and from the
/// second on for the second thread's.
const HEIGHTS: [&[u32]; 3] = [&[2, 1], &[0, 2], &[2, 0, 1]];

/// Nodes of two levels leave while somebody searches both. Whoever finds the lower rung marked starts over, and must
/// not come by the same node again, however late it learns of the upper mark.
#[test]
fn a_search_that_starts_over_does_not_come_to_the_same_node() {
    Model::new(Some(2)).check(|| {
        let world = World::new(ex().height(3).build());
        let first = world.write(0..1);
        let search = world.spawn(|world| world.write(2..3).done());
        drop(first);
        search.join().unwrap();
    });
}

#[test]
fn searching_past_neighbours_of_different_heights_that_leave() {
    for wins in HEIGHTS {
        Model::new(Some(2)).wins(wins).check(|| {
            let world = World::new(ex().height(3).build());
            let first = world.write(0..1);
            let second = world.write(1..2);
            let search = world.spawn(|world| world.write(3..4).done());
            drop(first);
            drop(second);
            world.write(2..3).done();
            search.join().unwrap();
        });
    }
}

#[test]
fn entering_behind_one_of_another_height_that_leaves() {
    for wins in HEIGHTS {
        Model::new(Some(2)).wins(wins).check(|| {
            let world = World::new(ex().height(3).build());
            let first = world.write(0..1);
            let second = world.spawn(|world| world.write(1..2).done());
            drop(first);
            world.write(2..3).done();
            second.join().unwrap();
        });
    }
}

/// A short node, in no level, between the places where the reader and the writer are inserted, and tall ones around it.
#[test]
fn figure_one_among_nodes_of_different_heights() {
    for wins in HEIGHTS {
        Model::new(Some(2)).wins(wins).check(|| {
            let world = World::new(rw().height(3).build());
            let between = world.read(2..3);
            let reader = world.spawn(|world| {
                let waypoint = world.read(0..1);
                world.read(1..6).done();
                drop(waypoint);
            });
            world.write(4..5).done();
            reader.join().unwrap();
            drop(between);
        });
    }
}

/// Nodes of all heights are unlinked by different threads and used again under another thread's walk.
#[test]
fn nodes_of_different_heights_return_under_a_walk() {
    Model::new(Some(1)).wins(&[2, 0, 1]).check(|| {
        let world = World::new(rw().height(3).build());
        let walker = world.spawn(|world| world.write(3..4).done());
        for at in 0..4 {
            world.write(at..at + 1).done();
        }
        walker.join().unwrap();
    });
}
