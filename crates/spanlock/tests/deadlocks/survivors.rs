//! Two owners, each part of a ring that is broken elsewhere, wait on by the same requests, and then for each other.

use super::pool::poll;
use super::{REFUSE, REPORT, TOLD, begin, common, waits_at};
use spanlock::deadlock::{Deadlocks, Report};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock, Refusal};
use std::future::Future;
use std::sync::PoisonError;
use std::task::{Poll, Waker};

/// What becomes of the first two rings, and then of the third.
enum Outcome {
    Refused,
    /// The lines that ask, of those who wait for each other.
    Told([u32; 2]),
}

/// Polls a request until it is over.
fn finish<F: Future + Unpin>(request: &mut F) -> F::Output {
    let mut output = None;
    common::until(|| match poll(request, Waker::noop()) {
        Poll::Ready(over) => {
            output = Some(over);
            true
        }
        Poll::Pending => false,
    });
    output.expect("it is over")
}

fn two_survivors(deadlocks: Deadlocks, how: impl FnOnce([u32; 2]) -> Outcome) {
    begin();
    let lock = RangeLock::from_raw(RawSlots::builder().deadlocks(deadlocks).build());
    let [one, other, first, second] = [(); 4].map(|()| Owner::new());
    let waker = Waker::noop();
    let holds = |owner: &Owner, at: u64| lock.by(owner).write(at..=at).expect("it is free");
    let (mut held, mut held_too) = (holds(&one, 20), holds(&other, 10));
    let of_victims = [holds(&first, 9), holds(&second, 19)];
    common::watched(lock.raw(), || {
        let line = line!() + 1;
        let mut more = Box::pin(held.extend_async(9..=10));
        let mut more_too = Box::pin(held_too.extend_async(19..=20));
        let outcome = how([line, line + 1]);
        let mut asks = lock.by(&first).write_async(20..=20);
        let mut asks_too = lock.by(&second).write_async(10..=10);
        assert!(poll(&mut more, waker).is_pending());
        assert!(poll(&mut more_too, waker).is_pending());
        assert!(poll(&mut asks, waker).is_pending());
        assert!(poll(&mut asks_too, waker).is_pending());
        match outcome {
            Outcome::Refused => {
                assert_eq!(finish(&mut asks).err(), Some(Refusal::Deadlock));
                assert_eq!(finish(&mut asks_too).err(), Some(Refusal::Deadlock));
            }
            Outcome::Told(lines) => {
                let told = |line| has_told([line, line]);
                common::until(|| {
                    // It may give way at first.
                    assert!(poll(&mut asks, waker).is_pending());
                    assert!(poll(&mut asks_too, waker).is_pending());
                    lines.into_iter().all(told)
                });
                drop((asks, asks_too));
            }
        }
        drop(of_victims);
        // Each finds the other one behind what it has waited for so far.
        assert!(poll(&mut more, waker).is_pending());
        assert!(poll(&mut more_too, waker).is_pending());
        match outcome {
            Outcome::Refused => assert_eq!(finish(&mut more_too), Err(Refusal::Deadlock)),
            Outcome::Told(lines) => common::until(|| has_told(lines)),
        }
        drop(more_too);
        drop(held_too);
        assert_eq!(finish(&mut more), Ok(()));
        drop(more);
        drop(held);
    });
    common::assert_nothing_held(lock.raw());
}

/// Whether a ring was told of which requests of both lines are a part.
fn has_told(lines: [u32; 2]) -> bool {
    let told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.iter().any(|report| match report {
        Report::Deadlock(ring) => lines.iter().all(|&line| waits_at(ring, file!(), line)),
        _ => false,
    })
}

#[test]
fn one_of_them_is_refused() {
    two_survivors(REFUSE, |_| Outcome::Refused);
}

#[test]
fn their_ring_is_told() {
    two_survivors(REPORT, Outcome::Told);
}
