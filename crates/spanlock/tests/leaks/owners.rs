//! What owners hold.

use super::{FLAT, Lock, allocations_when_warm, growth};
use spanlock::range::raw::{Mode, RawOwned};
use spanlock::range::{Owner, RangeLock};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, RawWaker, RawWakerVTable, Waker};
use std::thread;

/// One thread acquires for owners, and another releases: what the one takes must not pile up with the other.
pub fn released_elsewhere_keep_little<L: Lock + RawOwned>(make: fn() -> L) {
    let lock = Arc::new(RangeLock::from_raw(make()));
    let grown = growth(30, || {
        let (sender, receiver) = mpsc::sync_channel(64);
        let acquires = {
            let lock = Arc::clone(&lock);
            move || {
                let owner = Owner::new();
                for at in 0..500 {
                    let (at, mode) = (at * 7 % 1_000, Mode::Shared);
                    let mut holding = lock
                        .by_arc(&owner)
                        .lock(at..at + 3, mode)
                        .expect("readers share");
                    holding.release(at + 1..at + 2);
                    sender.send(holding).expect("the other one receives");
                }
            }
        };
        let acquires = thread::spawn(acquires);
        receiver.into_iter().for_each(drop);
        acquires.join().expect("no panic elsewhere");
        drop(lock.write(..));
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// An owner that acquires, converts and releases.
pub fn allocate_nothing<L: RawOwned>(lock: &RangeLock<L>) {
    let (owner, by) = (Owner::new(), |owner: &Owner| lock.by(owner).write(0..10));
    let allocations = allocations_when_warm(|| {
        let mut holding = by(&owner).expect("nobody cancels it");
        holding.downgrade();
        drop(holding);
    });
    assert_eq!(allocations, 0);
}

/// The waker of a task panics when it is cloned, which it is when the task is about to sleep.
pub fn wakers_that_panic_keep_little<L: RawOwned>(lock: &RangeLock<L>) {
    static TABLE: RawWakerVTable =
        RawWakerVTable::new(|_| resume_unwind(Box::new(())), |_| {}, |_| {}, |_| {});
    // SAFETY: there is no data, and a panic is safe.
    let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) };
    let held = lock.write(0..10);
    let grown = growth(5_000, || {
        let mut request = pin!(lock.write_async(0..10));
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            request.as_mut().poll(&mut context).is_pending()
        }));
        assert!(polled.is_err(), "it panics");
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
    drop(held);
}
