//! What panics, leaked guards and threads that exit leave behind.

use crate::common::{Exclusive, assert_nothing_held, elsewhere, panic_message};
use spanlock::range::list::{FastPath, ListRw};
use spanlock::range::{RangeLock, RangeMutex, WriteGuard};
use std::cell::RefCell;
use std::mem;
use std::thread;

fn a_panic_releases<L: Exclusive>(lock: &RangeMutex<L>) {
    let message = panic_message(|| {
        let _held = (lock.lock(0..10), lock.lock_many([20..30, 40..50]));
        panic!("on purpose");
    });
    assert_eq!(message, "on purpose");
    assert!(elsewhere(|| lock.try_lock(..).is_some()));
}

fn a_panic_releases_in_a_thread_that_ends_by_it<L: Exclusive>(lock: &RangeMutex<L>) {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _held = lock.lock(0..10);
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
    });
}

/// The range stays locked, all others work, also for threads that take over what the exited one had.
fn a_leaked_guard_of_an_exited_thread<L: Exclusive>(lock: RangeMutex<L>) {
    for at in 0..10 {
        elsewhere(|| mem::forget(lock.lock(10 * at..10 * at + 5)));
    }
    for at in 0..10 {
        elsewhere(|| {
            assert!(lock.try_lock(10 * at + 4..10 * at + 5).is_none());
            for _ in 0..300 {
                drop(lock.lock(10 * at + 5..10 * at + 10));
            }
        });
    }
    assert_eq!(lock.snapshot().holders.len(), 10);
}

fn a_lock_dropped_with_leaked_guards<L: Exclusive>(lock: RangeMutex<L>) {
    mem::forget(lock.lock(0..10));
    mem::forget(lock.lock_many([20..30, 40..50]));
    drop(lock.lock(60..70));
    drop(lock);
    let next = RangeMutex::new();
    assert!(next.try_lock(..).is_some());
}

/// Dropped by another thread than filled it, with nodes that nobody has walked past since their release.
fn a_lock_dropped_by_another_thread<L: Exclusive + Send>(lock: RangeMutex<L>) {
    drop((lock.lock(0..10), lock.lock(20..30)));
    mem::forget(lock.lock(40..50));
    elsewhere(move || drop(lock));
}

static FAST: RangeLock = RangeLock::new();
static SLOW: RangeLock = RangeLock::from_raw(ListRw::builder().fast_path(FastPath::Off).build());

thread_local! {
    static KEPT: RefCell<Vec<WriteGuard<'static>>> = const { RefCell::new(Vec::new()) };
}

/// Locks and unlocks when its thread exits.
struct Late(&'static RangeLock);

impl Drop for Late {
    fn drop(&mut self) {
        for _ in 0..300 {
            drop((self.0.write(100..200), self.0.read(300..400)));
        }
    }
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Thread-locals are destroyed in reverse order of their first use: these two before the library's, or after.
fn touch_thread_locals() {
    KEPT.with(|kept| kept.borrow_mut().clear());
    LATE.with(|late| drop(late.borrow_mut().take()));
}

fn exit_with_guards_and_locking(lock: &'static RangeLock, before_first_use: fn()) {
    elsewhere(|| {
        before_first_use();
        let guards = [lock.write(0..10), lock.write(20..30)];
        KEPT.with(|kept| kept.borrow_mut().extend(guards));
        LATE.with(|late| *late.borrow_mut() = Some(Late(lock)));
    });
    assert_nothing_held(lock.raw());
}

#[test]
fn guards_dropped_and_locks_used_while_a_thread_exits() {
    for lock in [&FAST, &SLOW] {
        for _ in 0..20 {
            exit_with_guards_and_locking(lock, touch_thread_locals);
            exit_with_guards_and_locking(lock, || ());
        }
    }
}

mod releasing {
    use super::{a_panic_releases, a_panic_releases_in_a_thread_that_ends_by_it};
    in_every_configuration!(crate::common::mutex:
        a_panic_releases,
        a_panic_releases_in_a_thread_that_ends_by_it,
    );
}

in_every_configuration!(crate::common::leaking_mutex:
    a_leaked_guard_of_an_exited_thread,
    a_lock_dropped_with_leaked_guards,
    a_lock_dropped_by_another_thread,
);
