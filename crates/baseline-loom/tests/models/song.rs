//! The skip list under a spin lock.

use crate::world::World;
use prim::clock::{Duration, Instant};
use prim::model;
use spanlock::range::raw::Wait;
use spanlock_baseline_loom::Song;

#[test]
fn two_writers_overlapping() {
    model(Some(3), || {
        let world = World::new(Song::new(2));
        let other = world.spawn(|world| world.write(0..2).done());
        world.write(1..3).done();
        other.join().unwrap();
    });
}

/// A node that is freed is used again at once.
#[test]
fn nodes_come_and_go_under_a_search() {
    model(Some(2), || {
        let world = World::new(Song::new(2));
        let other = world.spawn(|world| world.write(0..4).done());
        for at in 0..2 {
            world.write(at..at + 2).done();
        }
        other.join().unwrap();
    });
}

#[test]
fn disjoint_holders_coexist() {
    model(Some(2), || {
        let world = World::new(Song::new(2));
        let mine = world.write(0..2);
        let other = world.spawn(|world| world.write(2..4).done());
        // Joined while the range is held: a lock that excluded the other would not end.
        other.join().unwrap();
        mine.done();
    });
}

#[test]
fn who_gives_up_leaves_nothing() {
    model(Some(2), || {
        let world = World::new(Song::new(2));
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
