//! What owners hold.

use super::{FLAT, Lock, allocations_when_warm, growth};
use spanlock::range::raw::{Mode, RawOwned};
use spanlock::range::{Owner, RangeLock};
use std::sync::{Arc, mpsc};
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
