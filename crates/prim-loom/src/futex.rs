//! Wait until a word changes; wake those who wait for it. As in the kernel, the look at the word and the falling
//! asleep are one step, and the word looked at is the newest.
//!
//! A wait with a deadline sleeps, too: it takes a wake-up that comes meanwhile, which then is lost to others. It times out
//! when the thread runs again, which loom tries before and after each wake-up of the word, as far as preemptions go.

use crate::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::clock::Instant;
use crate::with_execution;
use core::ptr;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The word differed, somebody woke us, or for no reason: look at the word again.
    LookAgain,
    /// The deadline passed.
    TimedOut,
}

fn differs(word: &AtomicU32, expected: u32) -> bool {
    // A read-modify-write sees the newest value. Relaxed: a wait on a futex orders nothing.
    word.compare_exchange(expected, expected, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
}

/// A thread asleep on the word at that address.
pub(crate) struct Sleeper {
    address: usize,
    who: Who,
}

enum Who {
    Parked(loom::thread::Thread),
    /// With a deadline; each such wait has a number of its own.
    Timed(usize),
}

/// Sleeps while `word` holds `expected`, until woken or, with a deadline, until others have had a chance to run.
#[track_caller]
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    if differs(word, expected) {
        return Woken::LookAgain;
    }
    // No other thread runs between the look and the entry.
    let address = ptr::from_ref(word).addr();
    if deadline.is_some() {
        return wait_a_while(address);
    }
    let who = Who::Parked(loom::thread::current());
    with_execution(|execution| execution.sleepers.push(Sleeper { address, who }));
    loom::thread::park();
    Woken::LookAgain
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
            None => Woken::LookAgain,
        }
    })
}

loom::lazy_static! {
    static ref MEETING: AtomicUsize = AtomicUsize::new(0);
}

/// What a time-out and a wake-up both change: so loom knows that their order matters. Relaxed: it orders nothing else.
#[track_caller]
fn meet() {
    MEETING.fetch_add(1, Ordering::Relaxed);
}

/// Wakes the one who has slept longest on `word`.
pub fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

/// Wakes everybody who sleeps on `word`.
pub fn wake_all(word: &AtomicU32) {
    wake(word, usize::MAX);
}

fn wake(word: &AtomicU32, at_most: usize) {
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
    for sleeper in woken {
        match sleeper.who {
            Who::Parked(thread) => thread.unpark(),
            // It finds itself no longer entered.
            Who::Timed(_) => {}
        }
    }
}
