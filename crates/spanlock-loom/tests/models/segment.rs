//! Segment locks: entering and leaving words, growing the tree, sleeping, giving way.

use crate::world::World;
use prim::atomic::{AtomicBool, Ordering};
use prim::clock::{Duration, Instant};
use prim::{model, thread};
use spanlock_loom::range::RangeLock;
use spanlock_loom::range::raw::{RawRangeLock, Wait};
use spanlock_loom::range::segment::{ArrayBuilder, Fairness, SrlArray, SrlTree};
use std::sync::Arc;

/// Every request that sleeps has a claim at once.
const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

const FAIRNESS: [Fairness; 2] = [AT_ONCE, Fairness::Unfair];

/// Eight segments of one position. (With a patience between the two a sleeper would rise again and again: its
/// timeouts take no time here.)
fn array() -> ArrayBuilder {
    SrlArray::builder().segments(8).fairness(AT_ONCE)
}

fn tree() -> SrlTree {
    let tree = SrlTree::builder().fan_out(2).depth(3);
    tree.fairness(AT_ONCE).build()
}

fn soon() -> Wait {
    Wait::Until(Instant::now() + Duration::from_micros(2))
}

fn two_writers<L: RawRangeLock + Send + Sync + 'static>(lock: L) {
    let world = World::new(lock);
    let other = world.spawn(|world| world.write(0..2).done());
    world.write(1..3).done();
    other.join().unwrap();
}

#[test]
fn two_writers_overlapping() {
    model(None, || two_writers(array().build()));
}

/// Their positions are disjoint, their segments are not.
#[test]
fn two_writers_in_one_segment() {
    model(Some(3), || {
        let world = World::new(array().segment(2).segments(4).build());
        let other = world.spawn(|world| world.write(1..3).done());
        world.write(3..4).done();
        other.join().unwrap();
    });
}

/// Two ranges of one segment in one call, beside somebody else in the segment.
#[test]
fn many_in_one_segment() {
    model(Some(3), || {
        let lock = Arc::new(RangeLock::from_raw(array().segment(4).segments(2).build()));
        let theirs = Arc::clone(&lock);
        let other = thread::spawn(move || drop(theirs.write(1..2)));
        drop(lock.write_many([0..1, 2..3]));
        other.join().unwrap();
    });
}

#[test]
fn a_reader_and_a_writer() {
    for fairness in FAIRNESS {
        model(Some(4), move || {
            let world = World::new(array().fairness(fairness).build());
            let reader = world.spawn(|world| world.read(0..2).done());
            world.write(1..3).done();
            reader.join().unwrap();
        });
    }
}

/// Two readers in a word: the writer comes after both, though the last of them alone lets it in.
#[test]
fn two_readers_and_a_writer() {
    model(Some(2), || {
        let world = World::new(array().build());
        let reader = world.spawn(|world| world.read(0..2).done());
        let writer = world.spawn(|world| world.write(1..2).done());
        world.read(1..3).done();
        reader.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn overlapping_readers_coexist() {
    model(Some(2), || {
        let world = World::new(array().build());
        let mine = world.read(0..3);
        let other = world.spawn(|world| world.read(1..4).done());
        // Joined while the range is held: a lock that excluded the other would deadlock here.
        other.join().unwrap();
        mine.touch();
    });
}

/// Both make the nodes that they find missing: at the root, and in the leaf that they share.
#[test]
fn writers_race_to_grow_the_tree() {
    model(Some(3), || two_writers(tree()));
}

#[test]
fn readers_and_a_writer_race_to_grow_the_tree() {
    model(Some(2), || {
        let world = World::new(tree());
        let reader = world.spawn(|world| world.read(0..3).done());
        world.write(2..4).done();
        reader.join().unwrap();
        world.write(0..8).done();
    });
}

/// Three for one segment: each that leaves wakes one, whoever sleeps behind that one inherits its wake-up.
#[test]
fn sleepers_are_woken_one_after_another() {
    for fairness in FAIRNESS {
        model(Some(2), move || {
            let world = World::new(array().fairness(fairness).build());
            let mine = world.write(0..2);
            let first = world.spawn(|world| world.write(0..1).done());
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
            let world = World::new(array().fairness(fairness).build());
            let mine = world.write(0..1);
            let reader = world.spawn(|world| world.read(0..1).done());
            let writer = world.spawn(|world| world.write(0..1).done());
            drop(mine);
            reader.join().unwrap();
            writer.join().unwrap();
        });
    }
}

/// A request that sleeps behind the far end of its range has not kept the near one.
#[test]
fn a_sleeper_has_empty_hands() {
    for fairness in FAIRNESS {
        model(Some(2), move || {
            let world = World::new(array().fairness(fairness).build());
            let far = world.write(2..3);
            let wide = world.spawn(|world| world.write(0..3).done());
            world.until_asleep(1);
            // Held by nobody, and this thread, who holds something, need not give way.
            world.write(0..1).done();
            drop(far);
            wide.join().unwrap();
        });
    }
}

/// A try that is refused leaves nothing behind, and nobody asleep behind what it held for a moment.
#[test]
fn a_refused_try_rolls_back() {
    model(Some(3), || {
        let world = World::new(array().build());
        let far = world.read(1..2);
        let hasty = world.spawn(|world| {
            assert!(world.write_within(0..2, Wait::Never).is_none());
        });
        let patient = world.spawn(|world| world.write(0..1).done());
        hasty.join().unwrap();
        patient.join().unwrap();
        drop(far);
        assert!(world.write_within(0..8, Wait::Never).is_some());
    });
}

/// A timed request gives up, perhaps just when it was woken and another sleeps behind it.
#[test]
fn giving_up_passes_the_turn_on() {
    for fairness in FAIRNESS {
        model(Some(2), move || {
            let world = World::new(array().fairness(fairness).build());
            let mine = world.write(0..1);
            let hasty = world.spawn(|world| {
                if let Some(hold) = world.write_within(0..1, soon()) {
                    hold.touch();
                }
            });
            let patient = world.spawn(|world| world.write(0..1).done());
            drop(mine);
            hasty.join().unwrap();
            patient.join().unwrap();
        });
    }
}

/// Nobody wakes a writer that sleeps among readers: it is given way to all the same when it has waited enough.
#[test]
fn a_sleeping_writer_ages() {
    model(Some(2), || {
        let patience = Fairness::After(Duration::from_micros(3));
        let world = World::new(array().fairness(patience).build());
        let mine = world.read(0..1);
        let writer = world.spawn(|world| world.write(0..1).done());
        let reader = world.spawn(|world| {
            while world.read_within(0..1, Wait::Never).is_some() {
                thread::yield_now();
            }
        });
        reader.join().unwrap();
        drop(mine);
        writer.join().unwrap();
    });
}

/// A writer that gave way to a reader sleeps behind the segment when the reader has it: there, too, it ages, though it
/// has not waited for the segment before.
#[test]
fn a_writer_that_gave_way_ages() {
    model(Some(2), || {
        let world = World::new(array().fairness(AT_ONCE).build());
        let mine = world.write(0..1);
        let again = Arc::clone(&world);
        let was_in = Arc::new(AtomicBool::new(false));
        let is_in = Arc::clone(&was_in);
        let first = world.spawn(move |world| {
            let hold = world.read(0..1);
            // Until the writer has its claim, or was faster, there is always a reader inside.
            let reader = again.spawn(move |world| {
                while world.read_within(0..1, Wait::Never).is_some()
                    && !was_in.load(Ordering::Relaxed)
                {
                    thread::yield_now();
                }
            });
            reader.join().unwrap();
            hold.done();
        });
        world.until_asleep(1);
        let writer = world.spawn(move |world| {
            world.write(0..1).done();
            is_in.store(true, Ordering::Relaxed);
        });
        world.until_asleep(2);
        drop(mine);
        first.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn downgrade_lets_waiting_readers_in() {
    model(Some(3), || {
        let world = World::new(array().build());
        let mine = world.write(0..2);
        let reader = world.spawn(|world| world.read(1..3).done());
        mine.touch();
        let mine = mine.downgrade();
        // Joined while the range is held.
        reader.join().unwrap();
        mine.touch();
    });
}

/// Readers and a writer sleep behind one word: the downgrade wakes the former, the release the latter.
#[test]
fn downgrade_keeps_writers_out_and_does_not_forget_them() {
    for fairness in FAIRNESS {
        model(Some(2), move || {
            let world = World::new(array().fairness(fairness).build());
            let mine = world.write(0..1);
            let reader = world.spawn(|world| world.read(0..1).done());
            let writer = world.spawn(|world| world.write(0..1).done());
            mine.touch();
            mine.downgrade().done();
            reader.join().unwrap();
            writer.join().unwrap();
        });
    }
}
