//! A lock where another was, of which a read guard was leaked.

use super::*;
use spanlock::rw::Counted;
use std::ptr;
use std::sync::Mutex;

type Lock = RwLock<Bravo<FutexRwLock, Counted>, u32>;

fn fast_reads(lock: &Lock) -> u64 {
    // SAFETY: the test only reads its state and does not release it.
    unsafe { lock.raw() }.policy().counts().fast_reads
}

/// Reads until the bias is on, if it is to be.
fn warm(lock: &Lock) {
    (0..10_000).for_each(|_| drop(lock.read()));
}

/// The next lock in the place of one that is left, by `leave`, with a reader in the table. No other lock will ever be
/// there.
fn the_next(leave: impl Fn(&mut Option<Lock>)) -> &'static Lock {
    let place = Box::leak(Box::new(Some(Lock::new(0))));
    // Reachable for ever, so that no leak is reported.
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let address = ptr::from_ref(place).expose_provenance();
    KEPT.lock().expect("no panic while held").push(address);
    if let Some(lock) = &*place {
        warm(lock);
        let before = fast_reads(lock);
        mem::forget(lock.read());
        assert_eq!(fast_reads(lock), before + 1, "a slow one");
        assert!(lock.try_write().is_none());
    }
    leave(place);
    place.insert(Lock::new(0))
}

fn is_free(lock: &Lock) {
    for _ in 0..3 {
        warm(lock);
        let patience = Duration::from_secs(10);
        *lock.try_write_for(patience).expect("nobody reads it") += 1;
        assert!(lock.try_write().is_some());
        // Biases that are put off are looked for again.
        thread::sleep(SHORT);
    }
}

#[test]
fn of_one_that_was_moved_and_dropped() {
    is_free(the_next(|place| drop(place.take())));
}

#[test]
fn of_one_that_was_taken_apart() {
    is_free(the_next(|place| {
        assert_eq!(place.take().map(Lock::into_inner), Some(0))
    }));
}

#[test]
fn of_one_that_lives_elsewhere() {
    is_free(the_next(|place| mem::forget(place.take())));
}

/// Dropped in place a lock takes its leaked readers along, and the next is biased as any.
#[test]
fn of_one_that_was_dropped_there() {
    let lock = the_next(|place| *place = None);
    warm(lock);
    assert!(fast_reads(lock) > 0);
    is_free(lock);
}
