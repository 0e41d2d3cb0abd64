//! Futexes: a thread sleeps until a word changes, and another thread wakes it. As in the kernel, the load of the word
//! and the start of the sleep are one step, and the load gets the newest value.
//!
//! A wait with a deadline sleeps too. If a wake-up comes while it sleeps, the wait takes it, and no other sleeper gets
//! it. The wait times out when its thread runs again. Loom tries this before and after each wake-up of the word, within
//! the bound on preemptions.

pub use hardware::futex::Woken;

use crate::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::clock::Instant;
use crate::with_execution;
use core::ptr;

fn differs(word: &AtomicU32, expected: u32) -> bool {
    // A read-modify-write sees the newest value. Relaxed: a wait on a futex orders nothing.
    word.compare_exchange(expected, expected, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
}

/// A thread that sleeps on the word at `address`.
pub(crate) struct Sleeper {
    address: usize,
    who: Who,
}

enum Who {
    Parked(loom::thread::Thread),
    /// A wait with a deadline, identified by a number.
    Timed(usize),
}

/// Sleeps while `word` holds `expected`, until woken or, with a deadline, until the other threads could run.
#[track_caller]
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    if differs(word, expected) {
        return Woken::Recheck;
    }
    // No other thread runs between the load and the entry.
    let address = ptr::from_ref(word).addr();
    if deadline.is_some() {
        return wait_a_while(address);
    }
    let who = Who::Parked(loom::thread::current());
    with_execution(|execution| execution.sleepers.push(Sleeper { address, who }));
    loom::thread::park();
    Woken::Recheck
}

#[track_caller]
fn wait_a_while(address: usize) -> Woken {
    let number = with_execution(|execution| {
        execution.timed_waits += 1;
        let who = Who::Timed(execution.timed_waits);
        execution.sleepers.push(Sleeper { address, who });
        execution.timed_waits
    });
    loom::thread::yield_now();
    meet();
    with_execution(|execution| {
        let sleepers = &mut execution.sleepers;
        let mine = |sleeper: &Sleeper| matches!(sleeper.who, Who::Timed(other) if other == number);
        match sleepers.iter().position(mine) {
            Some(at) => {
                sleepers.remove(at);
                Woken::TimedOut
            }
            None => Woken::Recheck,
        }
    })
}

loom::lazy_static! {
    static ref MEETING: AtomicUsize = AtomicUsize::new(0);
}

/// Changes a word that both a time-out and a wake-up change, so that loom explores both orders. Relaxed: the word
/// orders nothing else.
#[track_caller]
fn meet() {
    MEETING.fetch_add(1, Ordering::Relaxed);
}

/// Wakes the thread that has slept longest on `word`.
pub fn wake_one(word: &AtomicU32) -> bool {
    wake(word, 1)
}

/// Wakes all threads that sleep on `word`.
pub fn wake_all(word: &AtomicU32) {
    wake(word, usize::MAX);
}

/// Returns whether one was woken.
fn wake(word: &AtomicU32, at_most: usize) -> bool {
    let address = ptr::from_ref(word).addr();
    let sleeps_here = |sleeper: &Sleeper| sleeper.address == address;
    let may_time_out =
        |sleeper: &Sleeper| sleeps_here(sleeper) && matches!(sleeper.who, Who::Timed(_));
    if with_execution(|execution| execution.sleepers.iter().any(may_time_out)) {
        meet();
    }
    let woken: Vec<_> = with_execution(|execution| {
        execution
            .sleepers
            .extract_if(.., |sleeper| sleeps_here(sleeper))
            .take(at_most)
            .collect()
    });
    let any = !woken.is_empty();
    for sleeper in woken {
        match sleeper.who {
            Who::Parked(thread) => thread.unpark(),
            // The thread finds that its entry is gone.
            Who::Timed(_) => {}
        }
    }
    any
}
