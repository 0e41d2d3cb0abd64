//! How long, and to whom, a request gives way that could be granted.
//!
//! A lock that claims fairness lets every request in, also among others that hold ranges elsewhere or go hand over
//! hand. A lock in which giving way is bounded eventually grants every request whose range is free, whichever requests
//! wait.

use crate::suite::Scenario;
use crate::support::{Exclusive, Shared, await_sleepers, elsewhere};
use spanlock::range::{RangeLock, RangeMutex};
use std::iter;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Longer than the patience of every lock under test.
const PATIENCE: Duration = Duration::from_millis(5);
/// How long a range is held at a time.
const HOLD: Duration = Duration::from_millis(3);
/// How often one that might starve has to get in.
const TIMES: usize = 4;

/// A holder waits for threads that hold nothing and ask for free parts of what another waits for, which waits for the
/// holder.
fn a_holder_joins_workers<L: Exclusive>(lock: &RangeMutex<L>) {
    thread::scope(|scope| {
        let early = lock.lock(0..5);
        let mine = lock.lock(10..20);
        scope.spawn(|| drop(lock.lock(..)));
        await_sleepers(lock.raw(), 1);
        thread::sleep(PATIENCE);
        // Woken, it finds the rest taken, and has waited too long.
        drop(early);
        // One after another: if each gave way for as long as the one before, and as long again, it would take ages.
        for at in 0..30 {
            elsewhere(|| drop(lock.lock(50 + at..60 + at)));
        }
        drop(mine);
    });
}

/// The same, where the worker sleeps behind a holder, and is woken when the other has waited too long.
fn a_holder_joins_a_worker_that_sleeps<L: Exclusive>(lock: &RangeMutex<L>) {
    let all_asleep = Barrier::new(2);
    let all_asleep = &all_asleep;
    thread::scope(|scope| {
        let early = lock.lock(0..5);
        let far = lock.lock(50..60);
        scope.spawn(move || {
            let mine = lock.lock(10..20);
            scope.spawn(|| drop(lock.lock(..)));
            await_sleepers(lock.raw(), 1);
            let worker = scope.spawn(|| drop(lock.lock(50..60)));
            await_sleepers(lock.raw(), 2);
            all_asleep.wait();
            worker.join().unwrap();
            drop(mine);
        });
        all_asleep.wait();
        thread::sleep(PATIENCE);
        drop(early);
        // Long enough for the one who was woken to fall asleep again.
        thread::sleep(PATIENCE);
        drop(far);
    });
}

/// Threads that come and go, such that there is nearly always one inside, until `wanted` was granted several times.
/// `step` is one visit, by the thread of that number.
fn gets_in(threads: usize, step: impl Fn(usize) + Sync, wanted: impl Fn()) {
    let satisfied = AtomicBool::new(false);
    let visits = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (satisfied, visits, step) = (&satisfied, &visits, &step);
            scope.spawn(move || {
                while !satisfied.load(Relaxed) {
                    step(thread);
                    visits.fetch_add(1, Relaxed);
                }
            });
        }
        for _ in 0..TIMES {
            let before = visits.load(Relaxed);
            crate::support::until(|| visits.load(Relaxed) > before);
            wanted();
        }
        satisfied.store(true, Relaxed);
    });
}

/// Writers of parts, each of which holds a range of another lock all the time, and one of everything.
fn holders_of_another_lock_give_way<L: Exclusive>(lock: &RangeMutex<L>) {
    let other = RangeMutex::new();
    gets_in(
        3,
        |thread| {
            let at = 10 * thread as u64;
            let _elsewhere = other.lock(at..at + 1);
            for _ in 0..3 {
                let _held = lock.lock(at..at + 10);
                thread::sleep(HOLD);
            }
        },
        || drop(lock.lock(0..100)),
    );
}

/// The same with a range of the same lock that the starving one does not ask for.
fn holders_of_another_range_give_way<L: Exclusive>(lock: &RangeMutex<L>) {
    gets_in(
        3,
        |thread| {
            let at = 10 * thread as u64;
            let _elsewhere = lock.lock(500 + at..501 + at);
            for _ in 0..3 {
                let _held = lock.lock(at..at + 10);
                thread::sleep(HOLD);
            }
        },
        || drop(lock.lock(0..100)),
    );
}

/// Places in a ring. Nobody who goes round lets go of one before it has the next.
const RING: u64 = 12;

fn place(at: u64) -> Range<u64> {
    let at = 10 * (at % RING);
    at..at + 10
}

/// Goes round from the place of that number, hand over hand, as long as `goes_on` says.
fn go_round<G>(start: u64, hold: impl Fn(Range<u64>) -> G, goes_on: impl Fn() -> bool) {
    let mut at = start;
    let mut held = hold(place(at));
    while goes_on() {
        at += 1;
        let next = hold(place(at));
        drop(held);
        held = next;
        thread::sleep(HOLD / 10);
    }
}

/// Threads that go round in a ring, and some that each ask for one part of it: nearly always somebody is there.
fn get_in_among_requests_that_go_round<G>(
    threads: u64,
    hold: impl Fn(Range<u64>) -> G + Sync,
    wanted: impl IntoIterator<Item = Range<u64>>,
    get: impl Fn(Range<u64>) + Sync,
) {
    let wanted: Vec<_> = wanted.into_iter().collect();
    let starving = AtomicUsize::new(wanted.len());
    let goes_on = || starving.load(Relaxed) > 0;
    thread::scope(|scope| {
        for thread in 0..threads {
            let (hold, goes_on) = (&hold, &goes_on);
            scope.spawn(move || go_round(thread * RING / threads, hold, goes_on));
        }
        for part in &wanted {
            let (get, starving) = (&get, &starving);
            scope.spawn(move || {
                for _ in 0..TIMES {
                    thread::sleep(HOLD);
                    get(part.clone());
                }
                starving.fetch_sub(1, Relaxed);
            });
        }
    });
}

fn get_in_hand_over_hand<L: Exclusive>(
    lock: &RangeMutex<L>,
    parts: impl IntoIterator<Item = Range<u64>>,
) {
    let (hold, get_in) = (
        |place: Range<u64>| lock.lock(place),
        |part: Range<u64>| drop(lock.lock(part)),
    );
    get_in_among_requests_that_go_round(5, hold, parts, get_in);
}

/// The rest of the ring has room for all of them.
fn hand_over_hand<L: Exclusive>(lock: &RangeMutex<L>) {
    get_in_hand_over_hand(lock, iter::once(0..70));
}

/// Those in the way of one do not give way to the other, or neither would ever get in.
fn hand_over_hand_between_two<L: Exclusive>(lock: &RangeMutex<L>) {
    get_in_hand_over_hand(lock, [0..60, 60..120]);
}

/// Three readers of the same, each of which holds a range of another lock all the time, and a writer.
fn readers_that_hold_something_elsewhere_give_way<L: Shared>(lock: &RangeLock<L>) {
    let other = RangeLock::new();
    gets_in(
        3,
        |thread| {
            let at = thread as u64;
            let _elsewhere = other.write(at..at + 1);
            for _ in 0..4 {
                let _held = lock.read(0..100);
                thread::sleep(HOLD);
            }
        },
        || drop(lock.write(0..100)),
    );
}

/// The same with a range of the same lock that the writer does not ask for.
fn readers_that_hold_another_range_give_way<L: Shared>(lock: &RangeLock<L>) {
    gets_in(
        3,
        |_| {
            let _elsewhere = lock.read(500..501);
            for _ in 0..4 {
                let _held = lock.read(0..100);
                thread::sleep(HOLD);
            }
        },
        || drop(lock.write(0..100)),
    );
}

fn get_in_among_readers<L: Shared>(
    lock: &RangeLock<L>,
    readers: u64,
    parts: impl IntoIterator<Item = Range<u64>>,
) {
    let (hold, get_in) = (
        |place: Range<u64>| lock.read(place),
        |part: Range<u64>| drop(lock.write(part)),
    );
    get_in_among_requests_that_go_round(readers, hold, parts, get_in);
}

fn readers_hand_over_hand<L: Shared>(lock: &RangeLock<L>) {
    get_in_among_readers(lock, 12, iter::once(0..80));
}

fn readers_hand_over_hand_between_two<L: Shared>(lock: &RangeLock<L>) {
    get_in_among_readers(lock, 8, [0..60, 60..120]);
}

/// One waits for a holder, which joins a worker, which has to get in among readers: these must not overtake it for ever
/// although it has to give way itself.
fn a_worker_gets_in_among_readers_while_its_parent_is_waited_for<L: Shared>(lock: &RangeLock<L>) {
    for _ in 0..TIMES {
        let early = lock.read(0..5);
        let parent = lock.read(10..20);
        thread::scope(|scope| {
            scope.spawn(|| drop(lock.write(..)));
            await_sleepers(lock.raw(), 1);
            thread::sleep(PATIENCE);
            drop(early);
            gets_in(
                4,
                |_| {
                    let _held = lock.read(50..60);
                    thread::sleep(HOLD);
                },
                || elsewhere(|| drop(lock.write(50..60))),
            );
            drop(parent);
        });
    }
}

/// A guard that was leaked does not exempt its thread from giving way in other locks.
fn a_thread_that_leaked_a_guard_gives_way<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.read(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(0..30)));
        elsewhere(|| {
            let leaky = RangeLock::new();
            std::mem::forget(leaky.read(0..1));
            std::mem::forget(leaky.read(2..3));
            crate::support::until(|| lock.try_read(5..8).is_none());
        });
        drop(held);
    });
}

/// The scenarios of this file, exclusive ranges.
pub fn scenarios<L: Exclusive>() -> Vec<Scenario<RangeMutex<L>>> {
    scenarios![
        a_holder_joins_workers needs Bounded,
        a_holder_joins_a_worker_that_sleeps needs Bounded,
        holders_of_another_lock_give_way needs Fair,
        holders_of_another_range_give_way needs Fair,
        hand_over_hand needs Fair Bounded,
        hand_over_hand_between_two needs Fair Bounded,
    ]
}

/// The scenarios of this file that have readers.
pub fn shared_scenarios<L: Shared>() -> Vec<Scenario<RangeLock<L>>> {
    scenarios![
        readers_that_hold_something_elsewhere_give_way needs Fair,
        readers_that_hold_another_range_give_way needs Fair,
        readers_hand_over_hand needs Fair Bounded,
        readers_hand_over_hand_between_two needs Fair Bounded,
        a_worker_gets_in_among_readers_while_its_parent_is_waited_for needs Fair Bounded,
        a_thread_that_leaked_a_guard_gives_way needs GivingWay,
    ]
}
