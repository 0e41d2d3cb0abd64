//! A range lock for models of what is built on range locks.

use prim::atomic::{AtomicU32, Ordering};
use prim::futex;
use prim::sync::Mutex;
use spanlock::range::Span;
use spanlock::range::raw::{Ask, Mode, RawRangeLock, RawRangeMutex, Wait};

/// A range lock with few steps, so that loom explores those of its user: a list of holders under a mutex. The models
/// of the library's locks are elsewhere.
pub struct Holders {
    held: Mutex<Vec<(u32, Span, Mode)>>,
    changes: AtomicU32,
}

impl Holders {
    /// A lock with nothing held.
    #[must_use]
    pub fn new() -> Self {
        Self {
            held: Mutex::new(Vec::new()),
            changes: AtomicU32::new(0),
        }
    }

    fn acquire(&self, span: Span, mode: Mode, wait: Wait) -> Option<u32> {
        loop {
            let mut held = self.held.lock();
            // Relaxed: the mutex orders.
            let now = self.changes.load(Ordering::Relaxed);
            if !held
                .iter()
                .any(|&(_, other, of)| other.overlaps(span) && of.conflicts(mode))
            {
                let number = held
                    .iter()
                    .map(|&(number, ..)| number + 1)
                    .max()
                    .unwrap_or(0);
                held.push((number, span, mode));
                return Some(number);
            }
            drop(held);
            if wait == Wait::Never {
                return None;
            }
            futex::wait(&self.changes, now, None);
        }
    }
}

// SAFETY: a holder is entered only if no other conflicts, and the mutex orders holders.
unsafe impl RawRangeMutex for Holders {
    type Token = u32;

    fn lock_exclusive(&self, ask: Ask<'_, u32>) -> Option<u32> {
        self.acquire(ask.span, Mode::Exclusive, ask.wait)
    }

    unsafe fn unlock(&self, token: u32) {
        let mut held = self.held.lock();
        held.retain(|&(number, ..)| number != token);
        self.changes.fetch_add(1, Ordering::Relaxed);
        drop(held);
        futex::wake_all(&self.changes);
    }
}

// SAFETY: as above.
unsafe impl RawRangeLock for Holders {
    fn lock_shared(&self, ask: Ask<'_, u32>) -> Option<u32> {
        self.acquire(ask.span, Mode::Shared, ask.wait)
    }

    unsafe fn downgrade(&self, token: u32) -> u32 {
        let mut held = self.held.lock();
        held.iter_mut()
            .filter(|(number, ..)| *number == token)
            .for_each(|(_, _, mode)| *mode = Mode::Shared);
        token
    }
}

impl Default for Holders {
    fn default() -> Self {
        Self::new()
    }
}
