//! Comparators that panic, comparators that lie, and keys that panic or lock as they are dropped.

use spanlock::range::Owner;
use spanlock::range::keys::{Compare, KeyRangeLock, point};
use spanlock::range::raw::Mode;
use spanlock_testkit::watchdog::{HANG, watched};
use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;

thread_local! {
    /// After so many comparisons of this thread one panics; 0: none does.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// The order of numbers, by comparisons of which one may panic.
pub struct Fragile;

impl Compare<u32> for Fragile {
    fn compare(&self, one: &u32, other: &u32) -> Ordering {
        match LEFT.get() {
            0 => {}
            1 => {
                LEFT.set(0);
                // Without a word of the panic hook.
                resume_unwind(Box::new("a comparison panics"));
            }
            left => LEFT.set(left - 1),
        }
        one.cmp(other)
    }
}

/// Whether `f` panics at its comparison of that number, or has fewer.
pub fn panics_at<R>(count: usize, f: impl FnOnce() -> R) -> bool {
    LEFT.set(count);
    let outcome = catch_unwind(AssertUnwindSafe(f));
    LEFT.set(0);
    outcome.is_err()
}

type Lock = KeyRangeLock<u32, Fragile>;

/// Calls `f` until no comparison of it is left to panic, and checks each time that nothing is left behind.
fn at_each_comparison<R>(lock: &Lock, f: impl Fn() -> R) {
    let holders = lock.snapshot().holders.len();
    let mut panics = 0;
    while panics_at(panics + 1, &f) {
        panics += 1;
        let left = lock.snapshot();
        assert_eq!((left.holders.len(), left.waiters.len()), (holders, 0));
    }
    assert!(panics > 0, "it compares");
}

#[test]
fn a_panic_leaves_nothing_held() {
    let lock = Lock::ordered_by(Fragile);
    let held: Vec<_> = (0..20).map(|n| lock.write(10 * n..10 * n + 5)).collect();
    let scan = lock.read(1000..2000);
    at_each_comparison(&lock, || drop(lock.write(95..96)));
    at_each_comparison(&lock, || drop(lock.read(195..300)));
    at_each_comparison(&lock, || drop(lock.try_write(97..102)));
    at_each_comparison(&lock, || drop(lock.try_write(1500..1600)));
    at_each_comparison(&lock, || drop(lock.read(1500..2600)));
    at_each_comparison(&lock, || {
        drop(lock.write_many([205..206, 207..208, 300..400]))
    });
    let owner = Owner::new();
    at_each_comparison(&lock, || drop(lock.by(&owner).write(205..206)));
    at_each_comparison(&lock, || {
        let mut held = lock
            .by(&owner)
            .read(300..400)
            .expect("nobody is in the way");
        held.convert(320..330, Mode::Exclusive)
            .expect("nobody is in the way");
    });
    assert_eq!(owner.asks_or_holds(), 0);
    drop((held, scan));
    assert!(lock.try_write(..).is_some());
}

#[test]
fn a_task_that_panics_leaves_nothing() {
    let lock = Lock::ordered_by(Fragile);
    let held = [lock.write(10..20), lock.write(30..40)];
    at_each_comparison(&lock, || {
        let mut request = Box::pin(lock.write_async(32..50));
        let polled = request
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    });
    drop(held);
    let mut request = Box::pin(lock.write_async(32..50));
    let polled = request
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(_)));
}

/// Of many that wait, each panics now and then, and all others go on.
#[test]
fn a_panic_hangs_nobody() {
    let lock = Arc::new(Lock::ordered_by(Fragile));
    let panics = Arc::new(AtomicUsize::new(0));
    let rounds = if cfg!(miri) { 10 } else { 2000 };
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (lock, panics) = (Arc::clone(&lock), Arc::clone(&panics));
            thread::spawn(move || {
                for round in 0..rounds {
                    let at = (round * 7 + worker * 13) % 20;
                    let work = || match round % 3 {
                        0 => drop(lock.read(at..at + 10)),
                        _ => drop(lock.write(at..at + 5)),
                    };
                    // A release compares, too, if it dispatches others: whoever they are, it does not panic.
                    let count = (round % 11) as usize;
                    panics.fetch_add(usize::from(panics_at(count, work)), Relaxed);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("its panics are caught");
    }
    assert!(panics.load(Relaxed) > 0);
    let left = lock.snapshot();
    assert!(left.holders.is_empty() && left.waiters.is_empty());
    assert!(lock.try_write(..).is_some());
}

/// A comparator that answers at random costs exclusion. All requests end, and nothing is left.
#[test]
fn a_comparator_may_lie() {
    let random = |_: &u32, _: &u32| match fastrand::u8(..3) {
        0 => Ordering::Less,
        1 => Ordering::Equal,
        _ => Ordering::Greater,
    };
    let lock = Arc::new(KeyRangeLock::<u32, _>::ordered_by(random));
    let rounds = if cfg!(miri) { 10 } else { 2000 };
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                for round in 0..rounds {
                    // Reversed, as far as it knows: then it panics before it asks.
                    let work = || match round % 4 {
                        0 => drop(lock.try_read(3..9)),
                        1 => drop(lock.try_write(2..7)),
                        2 => drop(lock.try_write_many([1..3, 4..8, 5..9])),
                        _ => {
                            let owner = Owner::new();
                            drop(lock.by(&owner).try_lock(2..8, Mode::Exclusive));
                        }
                    };
                    let _ = catch_unwind(AssertUnwindSafe(work));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("its panics are caught");
    }
    assert!(lock.snapshot().holders.is_empty());
}

/// A walk within a walk would end the protection of the outer one.
#[test]
fn a_comparator_that_searches_another_lock_panics() {
    let other = Arc::new(KeyRangeLock::<u32>::new());
    let held = [other.write(1..=1), other.write(2..=2)];
    let used = Arc::clone(&other);
    let lock = KeyRangeLock::<u32, _>::ordered_by(move |one: &u32, other: &u32| {
        drop(used.read(5..=5));
        one.cmp(other)
    });
    let first = lock.write(1..=1);
    let outcome = catch_unwind(AssertUnwindSafe(|| drop(lock.write(7..=7))));
    assert!(outcome.is_err(), "it walks already");
    assert_eq!(lock.snapshot().holders.len(), 1);
    drop((first, held));
    assert!(lock.snapshot().holders.is_empty());
    assert!(other.snapshot().holders.is_empty());
}

thread_local! {
    /// Whether the next key that this thread drops panics.
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Explosive(u32);

impl Drop for Explosive {
    fn drop(&mut self) {
        if ARMED.take() {
            resume_unwind(Box::new("a key's drop panics"));
        }
    }
}

/// Keys of earlier requests are freed as the walk of a request ends, which is granted. Where other tests walk at the
/// time, that may be a later request.
#[test]
fn a_key_whose_drop_panics_disturbs_nobody() {
    let lock = KeyRangeLock::<Explosive>::new();
    let end = lock.write(Explosive(100_000)..Explosive(100_001));
    let held: Vec<_> = (0..400)
        .map(|n| lock.write(Explosive(n)..=Explosive(n)))
        .collect();
    drop(held);
    let key = Explosive(50_000);
    ARMED.set(true);
    let nothing = |(): &()| "no key is dropped".to_owned();
    watched(
        HANG,
        || (),
        nothing,
        || {
            while ARMED.get() {
                let outcome = catch_unwind(AssertUnwindSafe(|| drop(lock.try_write(point(&key)))));
                assert!(outcome.is_ok(), "the panic is nobody's");
                thread::yield_now();
            }
        },
    );
    assert_eq!(lock.snapshot().holders.len(), 1);
    assert!(lock.try_write(point(&key)).is_some());
    drop(end);
    assert!(lock.snapshot().holders.is_empty());
}

static LATE: OnceLock<KeyRangeLock<str>> = OnceLock::new();

/// Locks in a thread that has given back what the library keeps for it.
struct LocksLate;

impl Drop for LocksLate {
    fn drop(&mut self) {
        if let Some(lock) = LATE.get() {
            // The listing is to show it.
            std::mem::forget(lock.try_write(point("late")));
        }
    }
}

/// A request that the fast path refuses goes on with the same keys.
#[test]
fn a_thread_that_is_exiting_keeps_the_keys_it_asks_for() {
    thread_local!(static EARLIER: LocksLate = const { LocksLate });
    let lock = LATE.get_or_init(KeyRangeLock::new);
    let first = lock.write(point("first"));
    let exits = thread::spawn(|| {
        // Destructors run in the reverse order of first use.
        EARLIER.with(|_| ());
        drop(KeyRangeLock::<str>::new().write(point("early")));
    });
    exits.join().expect("it does not panic");
    let holders = lock.snapshot().holders;
    let shown: Vec<_> = holders.iter().map(|one| one.range.to_string()).collect();
    assert_eq!(shown, [r#""first"..="first""#, r#""late"..="late""#]);
    drop(first);
}

/// The node of a request that panicked serves another one.
#[test]
fn what_is_held_is_listed_after_a_panic() {
    let lock = Lock::ordered_by(Fragile);
    let first = lock.write(1..=1);
    assert!(panics_at(2, || lock.write(5..=5)));
    drop(first);
    let other = Lock::ordered_by(Fragile);
    let held = other.write(7..=7);
    assert_eq!(other.snapshot().holders.len(), 1);
    drop(held);
}
