//! Files without a name whose space is not free yet.
//!
//! The kernel does not wait for the server when a program closes a file: what the server has to free of a removed file
//! arrives a moment later, perhaps at another thread. A program that closes, removes and writes would find a full store
//! full. So a request that finds no space waits until such a file is freed, and tries again. It waits while the last
//! removal, or the last closing of a file without a name, is no longer ago than the kernel may keep what it was told: a
//! file that is kept open for longer delays nobody. One thread of the server never waits here, since somebody has to
//! read what the kernel tells.
//!
//! ```text
//! the kernel:   close ──▶ remove ──▶ write                    ( release, forget: sent, not waited for )
//! thread 1:                          no space ─▶ waits ······▶ again: there is room
//! thread 2:                                      forget ─▶ frees the file, wakes
//! ```

use crate::server::VALID;
use fuser::Errno;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[derive(Debug, Default)]
struct State {
    /// Nodes without a name that the kernel knows.
    nameless: usize,
    /// When the last one lost its name or was closed.
    last: Option<Instant>,
    /// Threads that wait.
    waiting: usize,
}

/// Counts nodes without a name.
#[derive(Debug)]
pub(crate) struct Departures {
    /// How many threads may wait at a time.
    others: usize,
    state: Mutex<State>,
    /// How many of them became free since the mount. Changed below the mutex, and looked at without it, so that a
    /// request that finds space takes no lock here.
    freed: AtomicU64,
    another: Condvar,
}

impl Departures {
    /// For a server of so many threads.
    pub(crate) fn new(threads: NonZeroUsize) -> Arc<Self> {
        Arc::new(Self {
            others: threads.get() - 1,
            state: Mutex::default(),
            freed: AtomicU64::new(0),
            another: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node lost its last name.
    pub(crate) fn nameless(self: &Arc<Self>) -> Nameless {
        let mut state = self.lock();
        state.nameless += 1;
        state.last = Some(Instant::now());
        Nameless(Arc::clone(self))
    }

    /// A node without a name was closed, perhaps not for the last time.
    pub(crate) fn closed(&self) {
        self.lock().last = Some(Instant::now());
    }

    /// Does something, and again after each node that became free, as long as there is no space for it.
    pub(crate) fn with_room<T>(&self, act: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        loop {
            let seen = self.freed.load(Ordering::Acquire);
            let done = act();
            let is_full = matches!(&done, Err(error) if error.code() == libc::ENOSPC);
            if !is_full || !self.another_is_freed(seen) {
                return done;
            }
        }
    }

    /// Waits until more than `seen` nodes were freed. Returns `false` if that is not to be expected.
    fn another_is_freed(&self, seen: u64) -> bool {
        let mut state = self.lock();
        loop {
            if self.freed.load(Ordering::Acquire) != seen {
                return true;
            }
            let left = state
                .last
                .and_then(|last| VALID.checked_sub(last.elapsed()));
            let may_wait = state.nameless > 0 && state.waiting < self.others;
            let Some(left) = left.filter(|_| may_wait) else {
                return false;
            };
            state.waiting += 1;
            let woken = self.another.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
    }
}

/// Counts as a node without a name until it is dropped, which must be after its space was freed.
#[derive(Debug)]
pub(crate) struct Nameless(Arc<Departures>);

impl Drop for Nameless {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.nameless -= 1;
        self.0.freed.fetch_add(1, Ordering::Release);
        self.0.another.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanlock_testkit::watchdog::HANG;
    use std::sync::atomic::{AtomicBool, AtomicU32};
    use std::thread;

    fn of_threads(threads: usize) -> Arc<Departures> {
        Departures::new(NonZeroUsize::new(threads).expect("not zero"))
    }

    #[test]
    fn the_only_thread_does_not_wait_for_what_it_has_to_read() {
        let departures = of_threads(1);
        let _leaving = departures.nameless();
        // If it waited, it would do so for as long as that.
        departures.lock().last = Instant::now().checked_add(60 * HANG);
        let tries = AtomicU32::new(0);
        let full = departures.with_room(|| {
            tries.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>(Errno::ENOSPC)
        });
        assert!(full.is_err());
        assert_eq!(tries.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn who_finds_no_space_waits_for_what_is_being_freed() {
        let departures = of_threads(2);
        let (free, tries) = (AtomicBool::new(false), AtomicU32::new(0));
        thread::scope(|scope| {
            let leaving = departures.nameless();
            let writer = scope.spawn(|| {
                departures.with_room(|| {
                    // Before it is counted: the first try finds nothing free.
                    let free = free.load(Ordering::SeqCst);
                    // It stays recent for a while.
                    departures.closed();
                    tries.fetch_add(1, Ordering::SeqCst);
                    free.then_some(()).ok_or(Errno::ENOSPC)
                })
            });
            while tries.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            free.store(true, Ordering::SeqCst);
            drop(leaving);
            assert!(writer.join().expect("no panic").is_ok());
        });
        assert_eq!(tries.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn nobody_waits_for_a_file_that_is_kept_open() {
        let departures = of_threads(2);
        let tries = AtomicU32::new(0);
        let full = || {
            tries.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>(Errno::ENOSPC)
        };
        assert!(departures.with_room(full).is_err());
        let _kept = departures.nameless();
        departures.lock().last = Instant::now().checked_sub(VALID * 2);
        assert!(departures.with_room(full).is_err());
        assert_eq!(tries.load(Ordering::SeqCst), 2);
    }
}
