//! One thread sleeping until another signals it.
//!
//! ```text
//!   sleeper                                   another thread
//!   -------                                   --------------
//!   ticket := signals
//!   make itself findable, under a mutex       find it, under the same mutex
//!   park: sleep while signals = ticket        signals += 1, once, under that mutex
//!                                             release the mutex, and wake the sleeper
//! ```
//!
//! A late wake-up may find a thread that has gone on, and even sleeps for another reason; and so may a signal of a lock
//! that gives signals without a mutex. That thread checks once too often and sleeps again. The word is still there,
//! because parkers live as long as the program.

use super::Wakers;
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::Instant;
use prim::futex;
use std::task::Waker;

/// Where one thread sleeps.
#[derive(Debug)]
pub(crate) struct Parker {
    /// How often the thread was signalled.
    signals: AtomicU32,
}

impl Default for Parker {
    fn default() -> Self {
        Self {
            signals: AtomicU32::new(0),
        }
    }
}

/// The number of signals that a thread had when it took the ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

impl Parker {
    /// A number that no other living parker has.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The signals so far. The thread takes this before it can be found, or before it looks for what comes before a
    /// signal.
    pub(crate) fn ticket(&self) -> Ticket {
        // Acquire: pairs with the Release in `signal`. What came before the signals so far is there.
        Ticket(self.signals.load(Ordering::Acquire))
    }

    /// Sleeps until a signal after `ticket` was taken, and returns `true`; or `false` at the deadline, signalled or
    /// not.
    pub(crate) fn park(&self, ticket: Ticket, deadline: Option<Instant>) -> bool {
        loop {
            if self.is_signalled(ticket) {
                return true;
            }
            if futex::wait(&self.signals, ticket.0, deadline) == futex::Woken::TimedOut {
                return false;
            }
        }
    }

    /// Whether there was a signal after `ticket` was taken.
    pub(crate) fn is_signalled(&self, ticket: Ticket) -> bool {
        // Acquire: pairs with the Release in `signal`.
        self.signals.load(Ordering::Acquire) != ticket.0
    }

    /// Signals the thread and wakes it.
    #[cfg(feature = "rw")]
    pub(crate) fn unpark(&self) {
        self.signal();
        self.wake();
    }

    fn signal(&self) {
        // Release: pairs with the Acquire in `is_signalled` and in `ticket`.
        self.signals.fetch_add(1, Ordering::Release);
    }

    fn wake(&self) {
        futex::wake_all(&self.signals);
    }
}

/// Threads that were signalled under a mutex, and tasks, to be woken once that is released.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    few: [Option<&'static Parker>; 8],
    many: Vec<&'static Parker>,
    tasks: Wakers,
    alarm: Option<Instant>,
}

impl Wakeups {
    /// Signals a thread.
    pub(crate) fn signal(&mut self, parker: &'static Parker) {
        parker.signal();
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(parker),
            None => self.many.push(parker),
        }
    }

    /// Is to wake a task.
    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        self.tasks.wake(waker);
    }

    /// Is to drop a waker.
    pub(crate) fn discard(&mut self, waker: Option<Waker>) {
        self.tasks.discard(waker);
    }

    /// Is to have the timer call at that time.
    pub(crate) fn set_alarm(&mut self, when: Instant) {
        self.alarm = Some(when);
    }

    /// Wakes the threads. What else there is to do: to call tasks, and to set an alarm.
    pub(crate) fn deliver(self) -> (Wakers, Option<Instant>) {
        for parker in self.few.into_iter().flatten().chain(self.many) {
            parker.wake();
        }
        (self.tasks, self.alarm)
    }
}
