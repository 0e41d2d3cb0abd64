//! What panics, leaked guards and threads that exit leave behind.

use crate::suite::{Make, Scenario};
use crate::support::{
    Exclusive, assert_nothing_held, await_sleepers, elsewhere, panic_message, watched,
};
use spanlock::range::RangeMutex;
use std::any::Any;
use std::cell::RefCell;
use std::mem;
use std::ptr;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

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
fn a_leaked_guard_of_an_exited_thread<L: Exclusive>(make: &Make<L>) {
    let lock = RangeMutex::from_raw(make());
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
}

fn a_lock_dropped_with_leaked_guards<L: Exclusive>(make: &Make<L>) {
    let lock = RangeMutex::from_raw(make());
    mem::forget(lock.lock(0..10));
    mem::forget(lock.lock_many([20..30, 40..50]));
    drop(lock.lock(60..70));
    drop(lock);
    let next = RangeMutex::from_raw(make());
    assert!(next.try_lock(..).is_some());
}

/// Dropped by another thread than filled it, with nodes that nobody has walked past since their release.
fn a_lock_dropped_by_another_thread<L: Exclusive>(make: &Make<L>) {
    let lock = RangeMutex::from_raw(make());
    drop((lock.lock(0..10), lock.lock(20..30)));
    mem::forget(lock.lock(40..50));
    elsewhere(move || drop(lock));
}

/// Runs when its thread exits.
struct Late(Box<dyn Fn()>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0();
    }
}

thread_local! {
    static KEPT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Thread-locals are destroyed in reverse order of their first use: these two before the library's, or after.
fn touch_thread_locals() {
    KEPT.with(|kept| kept.borrow_mut().clear());
    LATE.with(|late| drop(late.borrow_mut().take()));
}

/// In a thread-local that is destroyed after the library's own, a thread asks for more while another, which has waited
/// too long, waits for what it holds.
fn holds_while_a_thread_exits<L: Exclusive>(make: &Make<L>) {
    let lock: &'static RangeMutex<L> = Box::leak(Box::new(RangeMutex::from_raw(make())));
    watched(lock.raw(), || {
        elsewhere(|| {
            touch_thread_locals();
            drop(lock.lock(0..1));
            let late = move || {
                let first = lock.lock(0..10);
                let is_held = Barrier::new(2);
                thread::scope(|scope| {
                    let early = scope.spawn(|| {
                        let early = lock.lock(20..30);
                        is_held.wait();
                        await_sleepers(lock.raw(), 1);
                        // Longer than anybody's patience.
                        thread::sleep(Duration::from_millis(5));
                        drop(early);
                    });
                    is_held.wait();
                    scope.spawn(|| drop(lock.lock(0..30)));
                    early.join().expect("no panic");
                    for _ in 0..3 {
                        drop((lock.lock(10..20), lock.lock(20..30)));
                    }
                    drop(lock.lock_many([10..12, 14..16]));
                    drop(first);
                });
            };
            LATE.with(|cell| *cell.borrow_mut() = Some(Late(Box::new(late))));
        });
    });
    assert_nothing_held(lock.raw());
    // SAFETY: it came from a box, and the thread that had guards is no more.
    drop(unsafe { Box::from_raw(ptr::from_ref(lock).cast_mut()) });
}

fn exit_with_guards_and_locking<L: Exclusive>(make: &Make<L>, before_first_use: fn()) {
    let lock: &'static RangeMutex<L> = Box::leak(Box::new(RangeMutex::from_raw(make())));
    elsewhere(|| {
        before_first_use();
        let guards = [lock.lock(0..10), lock.lock(20..30)];
        KEPT.with(|kept| kept.borrow_mut().push(Box::new(guards)));
        let lock_and_unlock = move || {
            for _ in 0..300 {
                drop((lock.lock(100..200), lock.lock(300..400)));
            }
        };
        LATE.with(|late| *late.borrow_mut() = Some(Late(Box::new(lock_and_unlock))));
    });
    assert_nothing_held(lock.raw());
    // SAFETY: it came from a box, and the thread that had guards is no more.
    drop(unsafe { Box::from_raw(ptr::from_ref(lock).cast_mut()) });
}

fn guards_dropped_and_locks_used_while_a_thread_exits<L: Exclusive>(make: &Make<L>) {
    for _ in 0..20 {
        exit_with_guards_and_locking(make, touch_thread_locals);
        exit_with_guards_and_locking(make, || ());
    }
}

/// The scenarios of this file that leave nothing held.
pub fn scenarios<L: Exclusive>() -> Vec<Scenario<RangeMutex<L>>> {
    scenarios![
        a_panic_releases,
        a_panic_releases_in_a_thread_that_ends_by_it,
    ]
}

/// The scenarios of this file that may leave ranges held.
pub fn leaking_scenarios<L: Exclusive>() -> Vec<Scenario<Make<L>>> {
    scenarios![
        guards_dropped_and_locks_used_while_a_thread_exits,
        holds_while_a_thread_exits needs Bounded,
        a_leaked_guard_of_an_exited_thread,
        a_lock_dropped_with_leaked_guards,
        a_lock_dropped_by_another_thread,
    ]
}
