//! Words of segments, as published.

use crate::world::World;
use prim::clock::{Duration, Instant};
use prim::model;
use spanlock::range::raw::Wait;
use spanlock_baseline_loom::Pnova;

fn pnova() -> Pnova {
    Pnova::new(8, 1)
}

#[test]
fn two_writers_overlapping() {
    model(Some(3), || {
        let world = World::new(pnova());
        let other = world.spawn(|world| world.write(0..2).done());
        world.write(1..3).done();
        other.join().unwrap();
    });
}

#[test]
fn a_reader_and_a_writer() {
    model(Some(3), || {
        let world = World::new(pnova());
        let reader = world.spawn(|world| world.read(0..2).done());
        world.write(1..3).done();
        reader.join().unwrap();
    });
}

#[test]
fn overlapping_readers_coexist() {
    model(Some(2), || {
        let world = World::new(pnova());
        let mine = world.read(0..3);
        // Joined while the range is held.
        let other = world.spawn(|world| world.read(1..4).done());
        other.join().unwrap();
        mine.done();
    });
}

/// Each is refused at a word behind one that it has entered, and leaves nothing behind.
#[test]
fn who_gives_up_rolls_back() {
    model(Some(2), || {
        let world = World::new(pnova());
        let held = world.write(1..2);
        let other = world.spawn(|world| {
            let soon = Wait::Until(Instant::now() + Duration::from_micros(2));
            world.read_within(0..2, soon).is_some()
        });
        assert!(world.write_within(0..3, Wait::Never).is_none());
        assert!(!other.join().unwrap());
        held.done();
        world.write_within(0..8, Wait::Never).unwrap().done();
    });
}

#[test]
fn a_downgrade_lets_readers_in() {
    model(Some(2), || {
        let world = World::new(pnova());
        let mine = world.write(0..2);
        let reader = world.spawn(|world| world.read(1..3).done());
        mine.touch();
        let mine = mine.downgrade();
        reader.join().unwrap();
        mine.done();
    });
}
