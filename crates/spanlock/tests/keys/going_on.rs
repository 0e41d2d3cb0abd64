//! What is held is used further after each panic of a comparison: it is in order, it is what is listed, and each part
//! of it is released, extended and converted as if nothing had been.

use super::foreign::{Fragile, panics_at};
use super::pool::{Count, poll};
use spanlock::deadlock::{Deadlocks, dump_all};
use spanlock::range::keys::{Compare, KeyRange, KeyRangeLock};
use spanlock::range::raw::Mode::{self, Exclusive, Shared};
use spanlock::range::{Holding, Owner, Reentrant, Refusal};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::future::Future;
use std::ops::{Bound, RangeBounds};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;

type Lock = KeyRangeLock<u32, Fragile>;
type Held<'l> = Holding<&'l Lock>;

/// No test uses a larger key.
const MOST: u32 = 80;

/// Where a range begins and ends, where each key has a place before it and one behind.
fn places(range: &KeyRange<u32>) -> (u32, u32) {
    let start = match range.start_bound() {
        Bound::Included(&key) => 2 * key,
        Bound::Excluded(&key) => 2 * key + 1,
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&key) => 2 * key + 1,
        Bound::Excluded(&key) => 2 * key,
        Bound::Unbounded => u32::MAX,
    };
    (start, end)
}

/// How a key is held by these pieces.
fn mode_at(pieces: &[(KeyRange<u32>, Mode)], key: u32) -> Option<Mode> {
    let has = |(range, _): &&(KeyRange<u32>, Mode)| {
        let (start, end) = places(range);
        start <= 2 * key && 2 * key < end
    };
    pieces.iter().find(has).map(|&(_, mode)| mode)
}

/// What others find of a key.
fn probe(lock: &Lock, key: u32) -> Option<Mode> {
    let probe = Owner::new();
    let can = |mode| lock.by(&probe).try_lock(key..=key, mode).is_ok();
    match (can(Shared), can(Exclusive)) {
        (true, true) => None,
        (true, false) => Some(Shared),
        (false, _) => Some(Exclusive),
    }
}

/// Whether these pieces are in order and apart, and others find just them.
fn assert_true(lock: &Lock, pieces: &[(KeyRange<u32>, Mode)], of: &str) {
    let bounds: Vec<_> = pieces.iter().map(|(range, _)| places(range)).collect();
    let in_order = bounds.windows(2).all(|two| two[0].1 <= two[1].0);
    assert!(in_order, "{of}: {pieces:?}");
    for key in 0..MOST {
        assert_eq!(
            probe(lock, key),
            mode_at(pieces, key),
            "{of}: {key} of {pieces:?}"
        );
    }
}

/// Goes on with what is held after an operation has panicked, or has not.
fn go_on(lock: &Lock, held: &mut Held<'_>, of: &str) {
    let pieces: Vec<_> = held.pieces().collect();
    assert_true(lock, &pieces, of);
    assert_eq!(held.owner().asks_or_holds(), pieces.len(), "{of}");
    for key in (0..MOST).step_by(3) {
        match mode_at(&pieces, key) {
            None => {
                assert_eq!(held.try_convert(key..=key, Shared), Ok(()), "{of}: {key}");
                assert_eq!(probe(lock, key), Some(Shared), "{of}: {key}");
            }
            // What it shares alone it may have alone.
            Some(_) => {
                assert_eq!(
                    held.try_extend(key..=key),
                    Ok(()),
                    "{of}: {key} of {pieces:?}"
                );
                assert_eq!(probe(lock, key), Some(Exclusive), "{of}: {key}");
            }
        }
    }
    assert_true(lock, &held.pieces().collect::<Vec<_>>(), of);
    for key in (0..MOST).rev() {
        held.release(key..=key);
        assert_eq!(probe(lock, key), None, "{of}: {key} is released");
    }
}

/// Holds some, panics at each comparison of an operation in turn, and goes on.
fn at_each_comparison(of: &str, operation: impl Fn(&Lock, &mut Held<'_>)) {
    for count in 1.. {
        let lock = Lock::ordered_by(Fragile);
        let owner = Owner::new();
        let wanted = [
            (2..6, Exclusive),
            (20..30, Shared),
            (40..44, Shared),
            (50..60, Exclusive),
        ];
        let by = lock.by(&owner);
        let mut held = by.lock_many(wanted).expect("it is free");
        let has_panicked = panics_at(count, || operation(&lock, &mut held));
        go_on(&lock, &mut held, of);
        drop(held);
        assert!(lock.snapshot().holders.is_empty(), "{of}");
        assert_eq!(owner.asks_or_holds(), 0, "{of}");
        if !has_panicked {
            assert!(count > 1, "{of}: it compares");
            return;
        }
    }
}

/// Polls a future once, which has not to wait.
fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    poll(&mut pin!(future), Waker::noop())
}

fn is_granted(outcome: Result<(), Refusal>) {
    assert_eq!(outcome, Ok(()), "nobody is in the way");
}

#[test]
fn a_conversion() {
    for (range, mode) in [
        (10..25, Shared),
        (10..25, Exclusive),
        (25..42, Shared),
        (25..42, Exclusive),
        (0..70, Shared),
        (0..70, Exclusive),
        (22..24, Exclusive),
        (52..54, Shared),
    ] {
        let of = format!("{range:?} {mode:?}");
        let range = || range.clone();
        at_each_comparison(&of, |_, held| is_granted(held.convert(range(), mode)));
        at_each_comparison(&of, |_, held| is_granted(held.try_convert(range(), mode)));
        at_each_comparison(&of, |_, held| {
            let converted = poll_once(held.convert_async(range(), mode));
            assert_eq!(converted, Poll::Ready(Ok(())));
        });
    }
}

#[test]
fn an_extension() {
    for range in [10..15, 0..70, 28..41, 59..62] {
        let of = format!("{range:?}");
        let range = || range.clone();
        at_each_comparison(&of, |_, held| is_granted(held.extend(range())));
        at_each_comparison(&of, |_, held| {
            let extended = poll_once(held.extend_async(range()));
            assert_eq!(extended, Poll::Ready(Ok(())));
        });
    }
}

#[test]
fn an_upgrade() {
    at_each_comparison("upgrade", |_, held| is_granted(held.upgrade()));
    at_each_comparison("upgrade of a task", |_, held| {
        assert_eq!(poll_once(held.upgrade_async()), Poll::Ready(Ok(())));
    });
}

#[test]
fn a_release() {
    for range in [22..24, 0..70, 5..21, 43..51] {
        let of = format!("release {range:?}");
        at_each_comparison(&of, |_, held| held.release(range.clone()));
        let of = format!("shrink to {range:?}");
        at_each_comparison(&of, |_, held| held.shrink_to(range.clone()));
    }
}

#[test]
fn a_split() {
    for at in [0, 4, 25, 35, 50, 70] {
        at_each_comparison("split", |lock, held| {
            let outcome = catch_unwind(AssertUnwindSafe(|| held.split_off_from(&at)));
            match outcome {
                Ok(mut rest) => {
                    let both: Vec<_> = held.pieces().chain(rest.pieces()).collect();
                    assert_true(lock, &both, "split");
                    rest.release(..);
                }
                Err(panic) => resume_unwind(panic),
            }
        });
    }
}

/// What an owner locks again and again.
#[test]
fn a_re_entrant_holding() {
    type Step = fn(&mut Reentrant<&Lock>);
    let steps: [Step; 5] = [
        |held| is_granted(held.lock(0..30, Shared)),
        |held| is_granted(held.lock(10..40, Exclusive)),
        |held| held.unlock(20..30, Shared),
        |held| held.unlock(15..25, Exclusive),
        |held| {
            assert_eq!(
                poll_once(held.lock_async(5..20, Exclusive)),
                Poll::Ready(Ok(()))
            )
        },
    ];
    for last in 0..steps.len() {
        for count in 1.. {
            let lock = Lock::ordered_by(Fragile);
            let owner = Owner::new();
            let mut held = lock.by(&owner).reentrant();
            steps[..last].iter().for_each(|step| step(&mut held));
            let has_panicked = panics_at(count, || steps[last](&mut held));
            let pieces: Vec<_> = held.holding().pieces().collect();
            assert_true(&lock, &pieces, "re-entrant");
            is_granted(held.lock(0..60, Exclusive));
            is_granted(held.lock(0..60, Shared));
            held.unlock(0..60, Exclusive);
            held.unlock(0..60, Shared);
            assert_true(
                &lock,
                &held.holding().pieces().collect::<Vec<_>>(),
                "re-entrant",
            );
            drop(held);
            assert!(lock.snapshot().holders.is_empty());
            if !has_panicked {
                break;
            }
        }
    }
}

thread_local! {
    /// Called by each comparison of this thread.
    static CALL: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

fn calls(one: &u32, other: &u32) -> Ordering {
    CALL.with_borrow_mut(|call| call.as_mut().map(|call| call()));
    one.cmp(other)
}

type Calls = KeyRangeLock<u32, fn(&u32, &u32) -> Ordering>;

/// A task sleeps behind a request that is about to be granted. That panics instead, and its thread does nothing more.
#[test]
fn a_task_behind_a_request_that_panics_is_woken() {
    panics_before_a_task(|lock| drop(lock.write(12..18)));
    panics_before_a_task(|lock| drop(lock.by(&Owner::new()).write(12..18)));
    panics_before_a_task(|lock| {
        let mut asks = lock.write_async(12..18);
        assert!(poll(&mut asks, Waker::noop()).is_ready());
    });
}

fn panics_before_a_task(asks: impl Fn(&Calls)) {
    let mut slept = 0;
    for count in 1.. {
        let lock = Arc::new(Calls::ordered_by(calls));
        let held = [lock.read(0..10), lock.read(20..30)];
        let (begin, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                let woken = Arc::new(Count::default());
                let waker = Waker::from(Arc::clone(&woken));
                if begun.recv().is_err() {
                    return false;
                }
                let mut waits = lock.write_async(15..16);
                let is_asleep = poll(&mut waits, &waker).is_pending();
                _ = end.send(());
                _ = begun.recv();
                if is_asleep {
                    assert_eq!(woken.woken(), 1, "after comparison {count}");
                    assert!(poll(&mut waits, &waker).is_ready());
                }
                is_asleep
            })
        };
        let mut left = count;
        let tell = begin.clone();
        CALL.set(Some(Box::new(move || {
            match left {
                // It has panicked.
                0 => {}
                1 => {
                    left = 0;
                    tell.send(()).expect("it listens");
                    ended.recv().expect("it answers");
                    resume_unwind(Box::new("a comparison panics"));
                }
                _ => left -= 1,
            }
        })));
        let outcome = catch_unwind(AssertUnwindSafe(|| asks(&lock)));
        CALL.set(None);
        let has_panicked = outcome.is_err();
        _ = begin.send(());
        drop(begin);
        slept += usize::from(other.join().expect("it does not panic"));
        drop(held);
        if !has_panicked {
            break;
        }
    }
    assert!(slept > 0, "the node is in the list at some comparison");
}

/// A poll has panicked, and the future is polled again when the lock is full: the request leaves the queue.
#[test]
fn a_task_of_a_full_lock_is_polled_after_a_panic() {
    for count in 1.. {
        let builder = KeyRangeLock::builder().ordered_by(Fragile);
        let lock = builder.deadlocks(Deadlocks::report()).build().limited(1);
        let owner = Owner::new();
        let (elsewhere, held) = (lock.write(1..3), lock.write(4..10));
        let by = lock.by(&owner);
        let line = format!("{}:{}:", file!(), line!() + 1);
        let mut waits = by.write_async(5..6);
        let waker = Waker::noop();
        assert!(poll(&mut waits, waker).is_pending());
        assert!(dump_all().contains(&line));
        drop(held);
        if !panics_at(count, || _ = poll(&mut waits, waker)) {
            assert!(count > 1, "it compares");
            return;
        }
        assert_eq!(lock.held_or_awaited(), 0);
        let other = by.write(50..51).expect("there is room");
        let Poll::Ready(Err(Refusal::LockFull)) = poll(&mut waits, waker) else {
            panic!("it is full");
        };
        drop(waits);
        assert!(!dump_all().contains(&line));
        drop((other, elsewhere));
        assert_eq!((lock.held_or_awaited(), owner.asks_or_holds()), (0, 0));
    }
}

/// After so many comparisons something is done at one, which then panics.
type Meddles = Option<(usize, Box<dyn FnOnce()>)>;

thread_local! {
    /// What this thread does.
    static MEDDLES: RefCell<Meddles> = const { RefCell::new(None) };
}

/// The order of numbers, by comparisons of which one does something else.
struct Meddling;

impl Compare<u32> for Meddling {
    fn compare(&self, one: &u32, other: &u32) -> Ordering {
        let due = MEDDLES.with_borrow_mut(|meddles| {
            let (left, _) = meddles.as_mut()?;
            *left -= 1;
            meddles.take_if(|(left, _)| *left == 0)
        });
        if let Some((_, meddle)) = due {
            meddle();
            resume_unwind(Box::new("a comparison panics"));
        }
        one.cmp(other)
    }
}

/// While an owner cuts what it holds, another one asks for the part that is given up. Then the cut panics.
#[test]
fn a_cut_that_panics_beside_another_request() {
    type Lock = KeyRangeLock<u32, Meddling>;
    // Of nodes that enter the index, one in four is tall enough.
    for _ in 0..40 {
        for count in 1.. {
            let lock = KeyRangeLock::<u32>::builder().ordered_by(Meddling);
            let lock: Arc<Lock> = Arc::new(lock.levels(4, 0).build());
            let owner = Owner::new();
            let mut held = lock.by_arc(&owner).write(10..40).expect("it is free");
            let theirs = Arc::new(Mutex::new(None));
            let (asked, granted) = (Arc::clone(&lock), Arc::clone(&theirs));
            let asks = move || {
                let by = asked.by_arc(&Owner::new()).try_write(20..30);
                *granted.lock().unwrap() = by.ok();
            };
            let meddle = move || thread::spawn(asks).join().unwrap();
            MEDDLES.set(Some((count, Box::new(meddle))));
            let cut = catch_unwind(AssertUnwindSafe(|| held.release(20..30)));
            MEDDLES.set(None);
            let pieces: Vec<_> = held.pieces().collect();
            let is_theirs = theirs.lock().unwrap().is_some();
            assert!(!is_theirs || mode_at(&pieces, 25).is_none(), "{pieces:?}");
            for key in [15, 35] {
                let probe = lock.by_arc(&Owner::new()).try_read(key..=key);
                assert_eq!(probe.is_err(), mode_at(&pieces, key).is_some(), "{key}");
            }
            if cut.is_ok() {
                break;
            }
        }
    }
}
