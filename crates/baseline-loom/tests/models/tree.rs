//! `kernel-rw` and `lustre-ex`: requests in an interval tree, counted down.

use crate::world::World;
use prim::clock::{Duration, Instant};
use prim::model;
use spanlock::range::raw::{RawRangeMutex, Wait};
use spanlock_baseline_loom::{KernelRw, LustreEx};

fn two_writers<L: RawRangeMutex + Send + Sync + 'static>(lock: L) {
    let world = World::new(lock);
    let other = world.spawn(|world| world.write(0..2).done());
    world.write(1..3).done();
    other.join().unwrap();
}

#[test]
fn two_writers_overlapping() {
    model(Some(3), || two_writers(KernelRw::new()));
}

#[test]
fn exclusive_lock_two_overlapping() {
    model(Some(3), || two_writers(LustreEx::new()));
}

#[test]
fn a_reader_and_a_writer() {
    model(Some(3), || {
        let world = World::new(KernelRw::new());
        let reader = world.spawn(|world| world.read(0..2).done());
        world.write(1..3).done();
        reader.join().unwrap();
    });
}

#[test]
fn overlapping_readers_coexist() {
    model(Some(2), || {
        let world = World::new(KernelRw::new());
        let mine = world.read(0..3);
        let other = world.spawn(|world| world.read(1..4).done());
        // Joined while the range is held: a lock that excluded the other would not end.
        other.join().unwrap();
        mine.done();
    });
}

#[test]
fn disjoint_holders_coexist() {
    model(Some(2), || {
        let world = World::new(LustreEx::new());
        let mine = world.write(0..2);
        let other = world.spawn(|world| world.write(2..4).done());
        other.join().unwrap();
        mine.done();
    });
}

/// The last counts one that waits for two.
#[test]
fn one_behind_two() {
    model(Some(2), || {
        let world = World::new(KernelRw::new());
        let first = world.write(0..1);
        let second = world.write(2..3);
        let behind = world.spawn(|world| world.write(0..3).done());
        first.done();
        second.done();
        behind.join().unwrap();
    });
}

#[test]
fn downgrade_lets_waiting_readers_in() {
    model(Some(2), || {
        let world = World::new(KernelRw::new());
        let mine = world.write(0..2);
        let reader = world.spawn(|world| world.read(1..3).done());
        mine.touch();
        let mine = mine.downgrade();
        // Joined while the range is held.
        reader.join().unwrap();
        mine.done();
    });
}

#[test]
fn downgrade_keeps_writers_out() {
    model(Some(2), || {
        let world = World::new(KernelRw::new());
        let mine = world.write(0..2);
        let writer = world.spawn(|world| world.write(1..3).done());
        mine.touch();
        mine.downgrade().done();
        writer.join().unwrap();
    });
}

/// Who gives up may be granted just then: either way nothing is left, and nobody counts down what is gone.
#[test]
fn giving_up_races_with_being_granted() {
    model(Some(3), || {
        let world = World::new(KernelRw::new());
        let other = world.spawn(|world| {
            let soon = Wait::Until(Instant::now() + Duration::from_micros(3));
            if let Some(hold) = world.write_within(0..2, soon) {
                hold.done();
            }
        });
        world.write(1..3).done();
        other.join().unwrap();
        assert!(world.write_within(0..8, Wait::Never).is_some());
    });
}
