//! One thread sleeping until another signals it.
//!
//! The sleeper takes a [`Ticket`], makes itself findable (under some mutex), and parks. Whoever finds it *signals*
//! under the same mutex, once, and wakes it after letting go of the mutex. A wake-up that comes late finds a thread
//! that has gone on; it is one look too many and nothing else, because parkers live as long as the program.

use prim::atomic::{AtomicU32, Ordering};
use prim::clock::Instant;
use prim::futex;

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

/// The signals a thread had before it made itself findable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

impl Parker {
    /// A number that no other living parker has.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// To be taken before the thread can be found.
    pub(crate) fn ticket(&self) -> Ticket {
        // Relaxed: the last signal was seen by `park`, or under the mutex by whoever gave up waiting for it.
        Ticket(self.signals.load(Ordering::Relaxed))
    }

    /// Sleeps until signalled after `ticket` was taken: `true`. At the deadline: `false`, signalled or not.
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

    /// Whether it was signalled after `ticket` was taken.
    pub(crate) fn is_signalled(&self, ticket: Ticket) -> bool {
        // Acquire: what the signaller did is before what the sleeper does next.
        self.signals.load(Ordering::Acquire) != ticket.0
    }

    /// Signals the thread and wakes it.
    #[cfg(feature = "rw")]
    pub(crate) fn rouse(&self) {
        self.signal();
        self.wake();
    }

    fn signal(&self) {
        // Release: pairs with the Acquire in `is_signalled`.
        self.signals.fetch_add(1, Ordering::Release);
    }

    fn wake(&self) {
        futex::wake_all(&self.signals);
    }
}

/// Threads signalled under a mutex, to be woken once it is free.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    few: [Option<&'static Parker>; 8],
    many: Vec<&'static Parker>,
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

    /// Wakes them all.
    pub(crate) fn deliver(self) {
        for parker in self.few.into_iter().flatten().chain(self.many) {
            parker.wake();
        }
    }
}
