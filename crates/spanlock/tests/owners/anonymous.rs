//! Holders without a name: guards that may be sent, of each typed lock.

use super::common::{assert_nothing_held, elsewhere, until, watched};
use spanlock::range::raw::Mode::{Exclusive, Shared};
use spanlock::range::{Owner, RangeLock, RangeMutex, Refusal, Span};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn it_is_nobody_in_particular() {
    let somebody = Owner::anonymous();
    assert!(somebody.is_anonymous() && !Owner::new().is_anonymous());
    assert_ne!(somebody, somebody.clone());
    assert_ne!(somebody, Owner::new());
    assert_eq!(somebody.id().to_string(), "somebody");
    somebody.cancel();
    assert!(!somebody.is_cancelled());
    let lock = RangeLock::new();
    let _held = lock.by(&somebody).write(..).expect("it is free");
    assert_eq!(somebody.asks_or_holds(), 0);
    assert_eq!(lock.snapshot().holders[0].owner, somebody.id());
    assert_eq!(
        lock.by(&somebody).try_read(0..1).map(drop),
        Err(Refusal::Busy)
    );
}

/// Who asks is not who holds, though neither has a name: no debug build takes that for a self-deadlock.
#[test]
fn one_waits_for_another() {
    let lock = Arc::new(RangeLock::new());
    let held = lock.write_owned(0..10);
    let waits = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || drop(lock.read_owned(5..6)))
    };
    watched(lock.raw(), || until(|| !lock.snapshot().waiters.is_empty()));
    drop(held);
    waits.join().expect("it is granted");
    assert_nothing_held(lock.raw());
}

/// The thread that acquired it asks for it again, and another thread releases it.
#[test]
fn a_thread_waits_for_what_it_has_sent_away() {
    let lock = Arc::new(RangeLock::new());
    for _ in 0..50 {
        let held = lock.write_owned(0..10);
        let releases = thread::spawn(move || drop(held));
        drop(lock.write(0..10));
        releases.join().expect("it releases");
        let held = lock.read_owned(0..10);
        let releases = thread::spawn(move || drop(held));
        drop(lock.write_owned(0..10));
        releases.join().expect("it releases");
    }
    assert_nothing_held(lock.raw());
}

#[test]
fn guards_that_may_be_sent_are_converted() {
    let lock = Arc::new(RangeLock::new());
    let mut held = lock.read_owned(0..10);
    assert!(lock.try_write_owned(5..6).is_none());
    assert_eq!(held.convert(0..5, Exclusive), Ok(()));
    assert!(lock.try_read_owned(4..5).is_none() && lock.try_read_owned(5..6).is_some());
    held.downgrade();
    assert_eq!(held.mode(), Some(Shared));
    assert_eq!(held.upgrade(), Ok(()));
}

#[test]
fn a_mutex_has_owners() {
    let mutex = Arc::new(RangeMutex::new());
    let (owner, soon) = (Owner::new(), std::time::Duration::from_millis(1));
    let mut held = mutex
        .by(&owner)
        .write_many([0..4, 8..12])
        .expect("it is free");
    assert_eq!(held.try_extend(4..8), Ok(()));
    assert_eq!(owner.asks_or_holds(), 3);
    let rest = held.split_off(6);
    elsewhere(move || drop(rest));
    let theirs = mutex.lock_owned(6..12);
    assert_eq!(held.try_extend(5..7), Err(Refusal::Busy));
    assert!(mutex.try_lock_owned(5..7).is_none());
    assert!(mutex.try_lock_owned_for(5..7, soon).is_none());
    assert_eq!(
        mutex.by(&owner).try_write_for(11..13, soon).map(drop),
        Err(Refusal::Busy)
    );
    drop((held, theirs));
    assert_nothing_held(mutex.raw());
}

#[test]
fn a_guard_tells_its_range() {
    let lock = RangeLock::new();
    let (read, write) = (lock.read(0..5), lock.write(5..));
    assert_eq!((read.span(), read.mode()), (Span::of(0..5), Shared));
    assert_eq!((write.span(), write.mode()), (Span::of(5..), Exclusive));
    assert_eq!(lock.write(7..7).span(), None);
    // Wherever the lock keeps it: in the list, in a slot, in the annex.
    let lock = RangeLock::new();
    let spans =
        (0..200).map(|at| Span::of(10 * at..10 * at + 1 + at % 9).expect("it has positions"));
    let guards: Vec<_> = spans.clone().map(|span| lock.write(span)).collect();
    for (guard, span) in guards.iter().zip(spans) {
        assert_eq!(guard.span(), Some(span));
    }
    drop(read);
    let read = write.downgrade();
    assert_eq!((read.span(), read.mode()), (Span::of(5..), Shared));
    assert!(lock.try_write(read.span().expect("it is held")).is_none());
}

/// A request with a reservation waits for what is cut. Nobody is to give way to it with what is kept.
#[test]
fn it_cuts_what_others_wait_for_at_once() {
    let lock = Arc::new(RangeLock::new());
    let mut held = lock.write_owned(0..20);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(0..40)));
        until(|| lock.snapshot().waiters.len() == 1);
        let watches = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let waiters = lock.snapshot().waiters;
                assert!(waiters.len() <= 1, "{waiters:?}");
            }
        });
        for at in 0..5 {
            held.release(at..=at);
        }
        held.convert(10..12, Shared).expect("it has more");
        is_over.store(true, Ordering::Relaxed);
        watches.join().expect("only the other one sleeps");
        drop(held);
    });
    assert_nothing_held(lock.raw());
}
