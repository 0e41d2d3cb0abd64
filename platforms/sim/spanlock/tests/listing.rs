//! Where a slot lock's narrow requests look, by the steps that they take on the simulated machine: a step is an access
//! to what threads share. A request that looks at all slots takes a step for each.

use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::{Machine, Setup, cost, futex, run, thread};
use spanlock_sim::range::RangeLock;
use spanlock_sim::range::slots::{Builder, RawSlots};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

type Lock = RangeLock<RawSlots>;

/// So many threads have used the lock, and so it has as many slots.
const CROWD: u32 = 64;

/// A narrow range in a place of its own, for each number.
fn narrow(number: u32) -> Range<u64> {
    let start = u64::from(number) << 20;
    start..start + 100
}

/// A wide range behind all narrow ones, for each number.
fn wide(number: u32) -> Range<u64> {
    let start = 1 << 60 | u64::from(number) << 40;
    start..start + (1 << 30)
}

/// Starts so many threads, which call `act`, each with its number, and then sleep. Waits until they sleep.
fn crowd(lock: &Arc<Lock>, count: u32, act: fn(u32, &Lock)) {
    let done = Arc::new(AtomicU32::new(0));
    for number in 0..count {
        let (lock, done) = (Arc::clone(lock), Arc::clone(&done));
        thread::spawn(move || {
            act(number, &lock);
            done.fetch_add(1, Relaxed);
            futex::wait(&AtomicU32::new(0), 0, None);
        });
    }
    while done.load(Relaxed) < count {
        thread::yield_now();
    }
}

/// All steps on a machine of as many processors as there are threads.
fn steps(work: impl FnOnce() + Send + 'static) -> u64 {
    let machine = Machine::find("epyc-1x64x2").expect("it is built in");
    let ended = run(&Setup::new(machine), work);
    ended
        .unwrap_or_else(|failure| panic!("{failure}"))
        .operations
}

/// The steps of each of the last requests of a scene, which makes as many of them as it is told.
fn steps_of_one(scene: fn(u32)) -> u64 {
    const LAST: u32 = 256;
    let [without, with] = [0, LAST].map(|last| steps(move || scene(last)));
    (with - without) / u64::from(LAST)
}

fn lock(built: Builder) -> Arc<Lock> {
    Arc::new(RangeLock::from_raw(built.build()))
}

/// A thread alone in its buckets, beside so many threads that hold wide ranges.
fn beside_wide_ranges<const WIDE: u32>(last: u32) {
    let lock = lock(RawSlots::builder().buckets_at_once(100));
    crowd(&lock, CROWD, |number, lock| {
        drop(lock.write(narrow(number)))
    });
    crowd(&lock, WIDE, |number, lock| {
        mem::forget(lock.write(wide(number)))
    });
    (0..256 + last).for_each(|number| drop(lock.write(narrow(number))));
}

/// It looks at the slot of one wide range, and at no other. Beside several it looks at all, and little is lost because
/// it is listed besides.
#[test]
fn narrow_ranges_look_at_one_wide_range_and_at_all_slots_beside_several() {
    let [none, one, two] = [
        beside_wide_ranges::<0>,
        beside_wide_ranges::<1>,
        beside_wide_ranges::<2>,
    ]
    .map(steps_of_one);
    assert!(
        one < none + 8,
        "{one} steps beside one wide range, {none} beside none"
    );
    let all = none + u64::from(CROWD);
    assert!(
        two < all + 24,
        "{two} steps beside two wide ranges, {none} beside none"
    );
}

/// A thread of long ranges that are far apart, then threads of narrow ones, each of which holds one at last.
fn after_long_ranges(last: u32) {
    let lock = lock(RawSlots::builder().slots_at_once());
    crowd(&lock, 1, |_, lock| {
        (0..32).for_each(|number| drop(lock.write(wide(number))))
    });
    (0..4096).for_each(|number| drop(lock.write(narrow(number))));
    crowd(&lock, CROWD, |number, lock| {
        mem::forget(lock.write(narrow(number)))
    });
    (0..256 + last).for_each(|number| drop(lock.write(narrow(CROWD + number))));
}

/// Long ranges of one thread do not make the buckets so long that the requests of others fill them.
#[test]
fn long_ranges_leave_the_buckets_to_others() {
    let one = steps_of_one(after_long_ranges);
    assert!(
        one < u64::from(CROWD),
        "{one} steps, so it looks at all slots"
    );
}

/// Narrow ranges that a thread asks for while it holds a wide one, in a lock that has yet to get buckets.
fn beside_an_own_hold(last: u32) {
    let lock = lock(RawSlots::builder().slots_at_once());
    crowd(&lock, CROWD, |number, lock| {
        drop(lock.write(narrow(number)))
    });
    let _held = lock.write(wide(0));
    (0..2048 + last).for_each(|number| drop(lock.write(narrow(number))));
}

/// The thread learns from all of its requests, in whichever of its slots they are announced: they bring the buckets,
/// and are listed.
#[test]
fn narrow_ranges_are_listed_beside_an_own_hold() {
    let one = steps_of_one(beside_an_own_hold);
    assert!(
        one < u64::from(CROWD),
        "{one} steps, so it looks at all slots"
    );
}

/// Threads of narrow ranges that hold them most of the time. Two threads of wide ranges stop when the others have given
/// the listing up.
fn after_wide_ranges(last: u32) {
    const NARROW: u32 = 4;
    let lock = lock(RawSlots::builder().buckets_at_once(100));
    crowd(&lock, CROWD, |number, lock| {
        drop(lock.write(narrow(number)))
    });
    let turn = Arc::new(AtomicU32::new(0));
    let wide = [0, 1].map(|thread| {
        let (lock, turn) = (Arc::clone(&lock), Arc::clone(&turn));
        thread::spawn(move || {
            let held = lock.write(wide(thread));
            while turn.load(Relaxed) < NARROW {
                cost::work(10_000);
            }
            drop(held);
        })
    });
    let narrow = [0, 1, 2, 3].map(|thread| {
        let (lock, turn) = (Arc::clone(&lock), Arc::clone(&turn));
        thread::spawn(move || {
            for count in 0..2048 + last / NARROW {
                let held = lock.write(narrow(CROWD + NARROW * count + thread));
                cost::work(10_000);
                drop(held);
                if count == 256 {
                    turn.fetch_add(1, Relaxed);
                }
            }
        })
    });
    let threads = wide.into_iter().chain(narrow);
    threads.for_each(|thread| thread.join().expect("no panic elsewhere"));
}

/// Threads that are not listed do not keep each other from the listing, once wide ranges come no more.
#[test]
fn narrow_ranges_are_listed_again() {
    let one = steps_of_one(after_wide_ranges);
    assert!(
        one < u64::from(CROWD),
        "{one} steps, so it looks at all slots"
    );
}

/// Requests in a bucket in which as many ranges are held as it has room for.
fn in_a_full_bucket(last: u32) {
    beside_held_ranges(last, |number| {
        let start = u64::from(number % 2) * 10 + 100;
        start..start + 5
    });
}

/// Wide requests at the same place: those look at all slots, and in no bucket.
fn beside_a_full_bucket(last: u32) {
    beside_held_ranges(last, wide);
}

fn beside_held_ranges(last: u32, range: fn(u32) -> Range<u64>) {
    let lock = lock(RawSlots::builder().buckets_at_once(100));
    crowd(&lock, 8, |number, lock| {
        let start = u64::from(number) * 10;
        mem::forget(lock.write(start..start + 5));
    });
    (0..16 * (256 + last)).for_each(|number| drop(lock.write(range(number))));
}

/// They are not listed for most of the time: what they would try in vain costs a step for each word.
#[test]
fn requests_that_crowd_are_not_listed() {
    let [crowded, wide] = [in_a_full_bucket, beside_a_full_bucket].map(steps_of_one);
    assert!(
        crowded < wide + 16 * 4,
        "{crowded} steps in sixteen crowded requests, {wide} in others"
    );
}
