//! Sleeping, being woken, giving up, and who gives way to whom.

use crate::world::{World, rw};
use prim::clock::{Duration, Instant};
use prim::model;
use spanlock_loom::range::list::{Fairness, Preference};
use spanlock_loom::range::raw::Wait;
use std::sync::Arc;

/// Every request that sleeps has a claim at once.
const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

const FAIRNESS: [Fairness; 2] = [AT_ONCE, Fairness::Unfair];

/// Three for one range: the second that sleeps is put behind the first, and inherits its wake-up.
#[test]
fn sleepers_are_woken_one_after_another() {
    for fairness in FAIRNESS {
        model(Some(2), move || {
            let world = World::new(rw().fairness(fairness).build());
            let mine = world.write(0..2);
            let first = world.spawn(|world| world.write(0..2).done());
            let second = world.spawn(|world| world.write(0..2).done());
            drop(mine);
            first.join().unwrap();
            second.join().unwrap();
        });
    }
}

#[test]
fn a_writer_and_a_reader_sleep_behind_one_holder() {
    for fairness in FAIRNESS {
        model(Some(2), move || {
            let world = World::new(rw().fairness(fairness).build());
            let mine = world.write(0..2);
            let reader = world.spawn(|world| world.read(0..1).done());
            let writer = world.spawn(|world| world.write(0..2).done());
            drop(mine);
            reader.join().unwrap();
            writer.join().unwrap();
        });
    }
}

/// A reader that has to wait for a writer at one end of its range must not block, meanwhile, that writer's second
/// request at the other end. The reader at 1 is there so that the waiting reader is inserted before it meets the
/// writer.
#[test]
fn a_waiting_reader_blocks_nobody() {
    for preference in [Preference::Readers, Preference::Writers] {
        model(Some(2), move || {
            let world = World::new(
                rw().fairness(Fairness::Unfair)
                    .preference(preference)
                    .build(),
            );
            let between = world.read(1..2);
            let far = world.write(4..6);
            let reader = world.spawn(|world| world.read(0..5).done());
            world.write(2..3).done();
            drop(far);
            reader.join().unwrap();
            drop(between);
        });
    }
}

/// Four disjoint ranges: each writer reads up to the other's start (a deadlock if neighbours counted as overlap).
#[test]
fn neighbours_do_not_wait_for_each_other() {
    model(Some(2), || {
        let world = World::new(rw().build());
        let other = world.spawn(|world| {
            let write = world.write(2..4);
            world.read(4..6).done();
            write.touch();
        });
        let write = world.write(6..8);
        world.read(0..2).done();
        write.touch();
        drop(write);
        other.join().unwrap();
    });
}

/// A timed request gives up, perhaps just when it was woken and another sleeps behind it.
#[test]
fn giving_up_passes_the_turn_on() {
    for fairness in FAIRNESS {
        model(Some(2), move || {
            let world = World::new(rw().fairness(fairness).build());
            let mine = world.write(0..2);
            let hasty = world.spawn(|world| {
                let soon = Wait::Until(Instant::now() + Duration::from_micros(1));
                if let Some(hold) = world.write_within(0..2, soon) {
                    hold.touch();
                }
            });
            let patient = world.spawn(|world| world.write(0..2).done());
            drop(mine);
            hasty.join().unwrap();
            patient.join().unwrap();
        });
    }
}

/// One that was woken finds another holder in its way and sleeps again: those asleep behind it must not stay so.
#[test]
fn going_back_to_sleep_passes_the_turn_on() {
    model(Some(2), || {
        let world = World::new(rw().fairness(Fairness::Unfair).build());
        let low = world.write(0..2);
        let wide = world.spawn(|world| world.write(0..6).done());
        let narrow = world.spawn(|world| world.write(0..1).done());
        drop(low);
        if let Some(high) = world.write_within(5..6, Wait::Never) {
            // Held until the narrow one is through: it overlaps the wide one only.
            narrow.join().unwrap();
            drop(high);
        } else {
            narrow.join().unwrap();
        }
        wide.join().unwrap();
    });
}

/// A writer that slept, with a reader asleep behind it, arrives and shares its range.
#[test]
fn a_downgrade_after_an_inheritance() {
    for fairness in FAIRNESS {
        model(Some(2), move || {
            let world = World::new(rw().fairness(fairness).build());
            let mine = world.write(0..2);
            let writer = world.spawn(|world| {
                let hold = world.write(0..2);
                hold.touch();
                hold.downgrade().done();
            });
            let reader = world.spawn(|world| world.read(0..1).done());
            drop(mine);
            reader.join().unwrap();
            writer.join().unwrap();
        });
    }
}
