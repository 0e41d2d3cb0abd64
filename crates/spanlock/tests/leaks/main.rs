//! Memory: none is allocated where none should be, and none is kept.
//!
//! One test, since the allocator counts for the whole process.

#[path = "../common/mod.rs"]
#[macro_use]
mod common;
#[path = "../common/counting.rs"]
mod counting;
mod keys;
mod owners;
mod segments;

use counting::{ALLOCATIONS, Counting, LIVE_BYTES};
use spanlock::deadlock::Deadlocks;
use spanlock::range::list::ListRw;
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::skip::{SkipEx, SkipRw};
use spanlock::range::{RangeLock, RangeMutex, WriteGuard};
use spanlock_testkit::watchdog::{HANG, watched};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting = Counting(spanlock_testkit::exact::Exact);

fn repeat(times: u64, mut f: impl FnMut()) {
    for _ in 0..times {
        f();
    }
}

/// Measurements that have begun.
static MEASUREMENTS: AtomicU64 = AtomicU64::new(0);

/// How many allocations there are once `f` was called often.
fn allocations_when_warm(mut f: impl FnMut()) -> u64 {
    MEASUREMENTS.fetch_add(1, Relaxed);
    repeat(5_000, &mut f);
    let before = ALLOCATIONS.get();
    repeat(100_000, &mut f);
    ALLOCATIONS.get() - before
}

/// What more is kept after `f` was called often than after it was called a few times.
fn growth(times: u64, mut f: impl FnMut()) -> i64 {
    MEASUREMENTS.fetch_add(1, Relaxed);
    repeat(times / 10, &mut f);
    let before = LIVE_BYTES.load(Relaxed);
    repeat(times, &mut f);
    LIVE_BYTES.load(Relaxed) - before
}

/// A lock that threads can share, and one can leave to another.
trait Lock: common::Shared + Send + 'static {}
impl<L: common::Shared + Send + 'static> Lock for L {}

/// A few pools' worth of nodes. What leaks with each call is far more.
const FLAT: i64 = 64 << 10;

fn uncontended_use_allocates_nothing<L: RawRangeLock>(lock: &RangeLock<L>) {
    assert_eq!(allocations_when_warm(|| drop(lock.write(10..20))), 0);
    assert_eq!(allocations_when_warm(|| drop(lock.read(..))), 0);
    let nested = || drop((lock.write(10..20), lock.read(30..40)));
    assert_eq!(allocations_when_warm(nested), 0);
    let refused = || {
        let _held = lock.write(10..20);
        assert!(lock.try_read(15..16).is_none());
    };
    assert_eq!(allocations_when_warm(refused), 0);
    assert_eq!(
        allocations_when_warm(|| drop(lock.write(10..20).downgrade())),
        0
    );
    let many = || drop(lock.write_many([0..10, 60..70, 20..30, 40..50]));
    assert_eq!(allocations_when_warm(many), 0);
}

fn threads_that_come_and_go_leave_nothing<L: Lock>(make: fn() -> L) {
    let lock = RangeLock::from_raw(make());
    let grown = growth(2_000, || {
        common::elsewhere(|| {
            for at in 0..5 {
                drop((lock.write(at..at + 2), lock.read(10..20)));
            }
        });
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

fn locks_that_come_and_go_leave_nothing<L: Lock>(make: fn() -> L) {
    let grown = growth(20_000, || {
        let lock = RangeLock::from_raw(make());
        drop((lock.write(0..10), lock.read(20..30)));
        mem::forget((lock.write(0..10), lock.read(20..30)));
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// The thread that drops the locks is not the one that filled them.
fn locks_dropped_elsewhere_leave_nothing<L: Lock>(make: fn() -> L) {
    let grown = growth(2_000, || {
        let lock = RangeLock::from_raw(make());
        mem::forget([lock.write(0..10), lock.write(20..30)]);
        common::elsewhere(move || drop(lock));
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// They look once in a day, and a request has slept in each.
fn locks_that_are_looked_at_leave_nothing() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let grown = growth(2_000, || {
        let builder = ListRw::builder().deadlocks(Deadlocks::report().every(DAY));
        let lock = RangeLock::from_raw(builder.build());
        let held = lock.write(0..10);
        let mut request = pin!(lock.write_async(0..10));
        let polled = request
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        drop(held);
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// Many locks, as long as they live.
const LOCKS: i64 = 100_000;

/// A board without slots: the documentation of the slot lock says so.
const BOARD: i64 = 256;

/// A board, and its first slots.
const BOARD_OF_FOUR: i64 = BOARD + 4 * 256;

/// What is live, less what was live before.
fn kept_since(before: i64) -> i64 {
    LIVE_BYTES.load(Relaxed) - before
}

/// Threads that use them one after the other do not meet there.
fn locks_that_threads_use_in_turn_keep_nothing() {
    let locks: Vec<_> = (0..LOCKS).map(|_| RangeLock::new()).collect();
    let before = LIVE_BYTES.load(Relaxed);
    for _ in 0..3 {
        common::elsewhere(|| locks.iter().for_each(|lock| drop(lock.write(0..1))));
    }
    let kept = kept_since(before);
    assert!(kept < FLAT, "{kept} bytes are kept");
}

/// Each has a board, with two slots of each of two threads. Threads that have used them keep nothing of those that are
/// dropped.
fn locks_that_have_moved_keep_what_they_say() {
    let start = LIVE_BYTES.load(Relaxed);
    let make = |_| RangeLock::from_raw(common::slots_at_once());
    let locks: Arc<Vec<_>> = Arc::new((0..LOCKS).map(make).collect());
    let before = LIVE_BYTES.load(Relaxed);
    let is_over = Arc::new(Barrier::new(3));
    let threads = [(); 2].map(|()| {
        let (locks, is_over) = (Arc::clone(&locks), Arc::clone(&is_over));
        thread::spawn(move || {
            for lock in locks.iter() {
                drop((lock.write(0..1), lock.read(10..20)));
            }
            drop(locks);
            is_over.wait();
        })
    });
    while Arc::strong_count(&locks) != 1 {
        thread::yield_now();
    }
    // Beside what the threads keep for themselves: less than half a slot more for each lock.
    let kept = kept_since(before);
    assert!(
        kept < LOCKS * (BOARD_OF_FOUR + 256 / 2),
        "{kept} bytes are kept"
    );
    drop(locks);
    let kept = kept_since(start);
    assert!(kept < FLAT, "{kept} bytes are kept without locks");
    is_over.wait();
    for thread in threads {
        thread.join().expect("no panic elsewhere");
    }
    let kept = kept_since(start);
    assert!(
        kept < BOARD_OF_FOUR,
        "{kept} bytes are kept without threads"
    );
}

/// Takes so many ranges at a time. The first are in slots of their own, and the others in the annex.
fn hold_many<L: Lock>(lock: &RangeLock<L>, ranges: u64) {
    let held: Vec<_> = (0..ranges).map(|at| lock.read(at * 2..=at * 2)).collect();
    drop(held);
}

/// It has used no other lock since.
fn the_only_user_of_a_lock_keeps_nothing<L: Lock>(make: fn() -> L) {
    let in_use = || {
        let lock = RangeLock::from_raw(make());
        hold_many(&lock, 2_000);
        LIVE_BYTES.load(Relaxed)
    };
    in_use(); // The thread's own records, and whatever else is made once.
    let before = LIVE_BYTES.load(Relaxed);
    let used = in_use() - before;
    assert!(used > 32 * 256, "{used} bytes: it has not moved");
    // Nodes of the annex are in the thread's pool.
    let kept = kept_since(before);
    assert!(kept < FLAT / 4, "{kept} bytes are kept");
}

/// Threads that have used many locks, which others have used more, and have been idle since.
fn idle_threads_keep_little_of_locks_that_are_dropped<L: Lock>(make: fn() -> L) {
    let locks: Arc<Vec<_>> = Arc::new((0..40).map(|_| RangeLock::from_raw(make())).collect());
    let before = LIVE_BYTES.load(Relaxed);
    let (are_used, is_over) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
    let threads = [(); 2].map(|()| {
        let (locks, are_used, is_over) = (
            Arc::clone(&locks),
            Arc::clone(&are_used),
            Arc::clone(&is_over),
        );
        thread::spawn(move || {
            locks.iter().for_each(|lock| drop(lock.write(0..1)));
            drop(locks);
            are_used.wait();
            is_over.wait();
        })
    });
    are_used.wait();
    locks.iter().for_each(|lock| hold_many(lock, 1_000));
    assert!(kept_since(before) > 40 * 32 * 256, "they have not moved");
    drop(locks);
    let kept = kept_since(before);
    assert!(kept < FLAT / 4, "{kept} bytes are kept");
    is_over.wait();
    for thread in threads {
        thread.join().expect("no panic elsewhere");
    }
}

/// One thread's refused requests, and another's hold that never moves.
fn refused_requests_leave_nothing<L: Lock>(make: fn() -> L) {
    let lock = RangeLock::from_raw(make());
    let _held = (lock.write(10..20), lock.read(50..60));
    let grown = common::elsewhere(|| {
        growth(100_000, || {
            assert!(lock.try_write(15..25).is_none());
            assert!(lock.try_write(30..55).is_none());
            assert!(lock.try_read(0..15).is_none());
        })
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

fn timed_out_requests_leave_nothing<L: Lock>(make: fn() -> L) {
    let lock = RangeLock::from_raw(make());
    let _held = (lock.write(10..20), lock.read(50..60));
    let timeout = Duration::from_micros(1);
    let grown = common::elsewhere(|| {
        growth(3_000, || {
            assert!(lock.try_write_for(30..55, timeout).is_none());
            assert!(lock.try_read_for(0..15, timeout).is_none());
        })
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// One thread releases, another unlinks: nodes wander from pool to pool, and must not pile up in one.
///
/// A thread that loses the processor in the midst of a walk holds back what others retire until it goes on, so what
/// is live goes up and down; were each operation's node lost it would be a hundred megabytes.
fn threads_that_work_together_keep_little<L: Lock>(make: fn() -> L) {
    let lock = RangeLock::from_raw(make());
    let work = |thread: u64| {
        for at in 0..20_000 {
            let start = (at * 7 + thread * 13) % 50;
            drop(lock.read(start..start + 20));
            drop(lock.write(start..start + 1));
        }
    };
    let work = &work;
    let grown = growth(10, || {
        thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || work(thread));
            }
        });
        // Nobody holds back what they have left any more.
        common::elsewhere(|| work(4));
    });
    assert!(grown < 8 << 20, "{grown} bytes are kept");
}

/// A thread that only ever unlinks what others released does not keep it all.
fn a_thread_that_unlinks_for_others_keeps_little<L: Lock>(make: fn() -> L) {
    let lock = RangeLock::from_raw(make());
    let _held = lock.read(0..1);
    let grown = growth(300, || {
        common::elsewhere(|| {
            for _ in 0..100 {
                drop(lock.read(10..20));
            }
            drop([(); 100].map(|()| lock.read(10..20)));
        });
        assert!(lock.try_write(0..20).is_none());
        assert!(lock.try_write(15..30).is_some());
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// Readers who hand over to one another, so that the whole is never free: what they leave behind must not pile up.
fn readers_that_hand_over_leave_nothing<L: Lock>(lock: &RangeLock<L>) {
    let mut held = lock.read(..);
    let grown = growth(20_000, || held = lock.read(..));
    drop(held);
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// More than what is left between sweeps. Of a long way without any it would be several megabytes.
const BETWEEN_SWEEPS: i64 = 4 * FLAT;

/// How long a way of ranges is.
const STEPS: u64 = 30_000;

/// Ranges taken hand over hand from high to low, `width` of them held at a time: nobody ever passes what was released
/// behind them.
fn descent<G>(width: usize, acquire: impl Fn(u64) -> G) -> impl FnMut() {
    let mut held = VecDeque::with_capacity(width);
    let mut at = u64::MAX;
    move || {
        at -= 1;
        let next = acquire(at);
        if held.len() == width {
            held.pop_front();
        }
        held.push_back(next);
    }
}

fn descents_leave_nothing<G>(width: usize, acquire: impl Fn(u64) -> G) {
    let grown = growth(STEPS, descent(width, acquire));
    assert!(
        grown < BETWEEN_SWEEPS,
        "{grown} bytes are kept, with {width} held"
    );
}

fn descents_of_all_kinds_leave_nothing<L: Lock>(make: fn() -> L) {
    for width in [1, 7] {
        let lock = RangeLock::from_raw(make());
        descents_leave_nothing(width, |at| lock.write(at..=at));
        descents_leave_nothing(width, |at| lock.read(at..=at));
        // What is held for long, before the way and behind it.
        let _ends = (lock.write(0..10), lock.write(u64::MAX..));
        descents_leave_nothing(width, |at| lock.write(at - 1..at));
        // By turns: where it is noticed that too few nodes come back is not always the same lock.
        let other = RangeLock::from_raw(make());
        descents_leave_nothing(width, |at| (lock.write(at - 1..at), other.read(at..=at)));
    }
}

fn exclusive_descents_leave_nothing<L: RawRangeMutex>(make: fn() -> L) {
    for width in [1, 7] {
        let lock = RangeMutex::from_raw(make());
        descents_leave_nothing(width, |at| lock.lock(at..=at));
    }
}

/// One thread goes down, another comes and goes elsewhere in the list, and may hold nodes back in the midst of a walk.
/// Once it has ended there is no reason to keep them.
fn a_descent_beside_another_thread_leaves_nothing<L: Lock>(make: fn() -> L) {
    let lock = RangeLock::from_raw(make());
    let done = AtomicBool::new(false);
    let mut step = descent(7, |at| lock.write(at..=at));
    repeat(STEPS / 10, &mut step);
    let before = LIVE_BYTES.load(Relaxed);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            while !done.load(Relaxed) {
                drop((lock.read(0..5), lock.read(3..7)));
            }
        });
        repeat(STEPS, &mut step);
        done.store(true, Relaxed);
        other.join().expect("no panic elsewhere");
    });
    repeat(STEPS / 10, &mut step);
    let grown = LIVE_BYTES.load(Relaxed) - before;
    assert!(grown < BETWEEN_SWEEPS, "{grown} bytes are kept");
}

thread_local! {
    static KEPT: RefCell<Vec<WriteGuard<'static>>> = const { RefCell::new(Vec::new()) };
}

/// Guards that thread-local destructors drop, after the library has given up what it kept for the thread.
fn threads_that_exit_with_guards_leave_nothing() {
    static LOCK: RangeLock = RangeLock::new();
    let grown = growth(4_000, || {
        common::elsewhere(|| {
            // Used first, so destroyed after the library's.
            KEPT.with_borrow_mut(Vec::clear);
            KEPT.with_borrow_mut(|kept| kept.push(LOCK.write(0..10)));
        });
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

#[test]
fn memory() {
    let slow: RangeLock<ListRw> = RangeLock::from_raw(common::slow_path());
    // Before there is a watchdog, which allocates a little while it looks. What a thread keeps is there by then.
    uncontended_use_allocates_nothing(&RangeLock::from_raw(common::srl_array()));
    uncontended_use_allocates_nothing(&RangeLock::from_raw(common::srl_tree()));
    segments::segment_locks_use_what_they_say();
    let progress = || MEASUREMENTS.load(Relaxed);
    let report = |begun: &u64| format!("in measurement {begun}");
    watched(HANG, progress, report, || {
        uncontended_use_allocates_nothing(&RangeLock::new());
        uncontended_use_allocates_nothing(&slow);
        uncontended_use_allocates_nothing(&RangeLock::from_raw(common::skip()));
        uncontended_use_allocates_nothing(&RangeLock::from_raw(common::slots()));
        uncontended_use_allocates_nothing(&RangeLock::from_raw(common::slots_at_once()));
        uncontended_use_allocates_nothing(&RangeLock::from_raw(common::slots_buckets()));
        uncontended_use_allocates_nothing(&RangeLock::from_raw(common::slots_annex()));
        uncontended_use_allocates_nothing(&RangeLock::from_raw(common::keys()));
        uncontended_use_allocates_nothing(&RangeLock::from_raw(common::keys_slow_path()));
        keys::warm_threads_allocate_nothing();
        keys::many_keys_leave_nothing();
        keys::large_keys_leave_nothing();
        owners::allocate_nothing(&slow);
        owners::allocate_nothing(&RangeLock::from_raw(common::keys_slow_path()));
        owners::allocate_nothing(&RangeLock::from_raw(common::skip()));
        owners::allocate_nothing(&RangeLock::new());
        owners::allocate_nothing(&RangeLock::from_raw(common::slots_at_once()));
        owners::wakers_that_panic_keep_little(&slow);
        owners::wakers_that_panic_keep_little(&RangeLock::new());
        owners::wakers_that_panic_keep_little(&RangeLock::from_raw(common::slots_at_once()));
        owners::released_elsewhere_keep_little(ListRw::new);
        owners::released_elsewhere_keep_little(common::skip);
        owners::released_elsewhere_keep_little(common::slots);
        owners::released_elsewhere_keep_little(common::slots_at_once);
        locks_that_are_looked_at_leave_nothing();
        segments::trees_that_come_and_go_leave_nothing();
        threads_that_exit_with_guards_leave_nothing();
        locks_that_threads_use_in_turn_keep_nothing();
        locks_that_have_moved_keep_what_they_say();
        the_only_user_of_a_lock_keeps_nothing(common::slots_at_once);
        the_only_user_of_a_lock_keeps_nothing(common::slots_buckets);
        idle_threads_keep_little_of_locks_that_are_dropped(common::slots_at_once);
        idle_threads_keep_little_of_locks_that_are_dropped(common::slots_buckets);
        everything_that_lists_do(ListRw::new);
        everything_that_lists_do(common::slow_path);
        everything_that_lists_do(SkipRw::new);
        everything_that_lists_do(common::skip);
        everything_that_lists_do(common::keys);
        everything_that_lists_do(common::keys_slow_path);
        everything_that_slots_do(common::slots);
        everything_that_slots_do(common::slots_at_once);
        everything_that_slots_do(common::slots_buckets);
        everything_that_slots_do(common::slots_annex);
        exclusive_descents_leave_nothing(common::exclusive);
        exclusive_descents_leave_nothing(common::skip_exclusive);
        exclusive_descents_leave_nothing(SkipEx::new);
    });
}

fn everything_that_slots_do<L: Lock>(make: fn() -> L) {
    threads_that_come_and_go_leave_nothing(make);
    readers_that_hand_over_leave_nothing(&RangeLock::from_raw(make()));
    locks_that_come_and_go_leave_nothing(make);
    locks_dropped_elsewhere_leave_nothing(make);
    refused_requests_leave_nothing(make);
    timed_out_requests_leave_nothing(make);
    threads_that_work_together_keep_little(make);
}

fn everything_that_lists_do<L: Lock>(make: fn() -> L) {
    everything_that_slots_do(make);
    a_thread_that_unlinks_for_others_keeps_little(make);
    descents_of_all_kinds_leave_nothing(make);
    a_descent_beside_another_thread_leaves_nothing(make);
}
