//! The crate `range-lock`, as its source describes it, so that it can be simulated: held ranges in a tree under a
//! mutex, exclusive only. A request that finds its range taken tries again. On hardware the crate itself is measured.
//!
//! The mutex alone orders the critical sections of holders.

use super::spin_lock::gives_up;
use prim::cost;
use prim::sync::Mutex;
use spanlock::range::Span;
use spanlock::range::raw::{Ask, RawRangeMutex};
use std::collections::BTreeMap;

/// Tries in a row before a waiter gives the processor away after each, as the measured crate is used.
const TRIES: u32 = 64;

/// Held ranges in a tree under a mutex.
#[derive(Debug)]
pub struct TriedTree {
    /// The last position of each, by its start.
    held: Mutex<BTreeMap<u64, u64>>,
}

/// A range held in a [`TriedTree`].
#[derive(Debug)]
pub struct TriedToken(u64);

impl TriedTree {
    prim::const_fn! {
        /// A free lock.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                held: Mutex::new(BTreeMap::new()),
            }
        }
    }

    fn try_hold(&self, span: Span) -> Option<TriedToken> {
        let mut held = self.held.lock();
        search(held.len());
        let before = held.range(..=span.last()).next_back();
        if before.is_some_and(|(_, &last)| last >= span.start()) {
            return None;
        }
        cost::write(&*held);
        held.insert(span.start(), span.last());
        Some(TriedToken(span.start()))
    }
}

impl Default for TriedTree {
    fn default() -> Self {
        Self::new()
    }
}

/// Reports a search in a tree of that size: some steps for each level. Its lines are with who holds the mutex.
fn search(size: usize) {
    cost::work(10 * u64::from((size + 1).ilog2() + 1));
}

// SAFETY: a range is entered under the mutex, when none that is held overlaps it.
unsafe impl RawRangeMutex for TriedTree {
    type Token = TriedToken;

    fn lock_exclusive(&self, ask: Ask<'_, TriedToken>) -> Option<TriedToken> {
        let mut tries = 0;
        loop {
            if let Some(token) = self.try_hold(ask.span) {
                return Some(token);
            }
            if gives_up(ask.wait) {
                return None;
            }
            if tries < TRIES {
                tries += 1;
                cost::work(1);
            } else {
                prim::thread::yield_now();
            }
        }
    }

    unsafe fn unlock(&self, token: TriedToken) {
        let mut held = self.held.lock();
        search(held.len());
        cost::write(&*held);
        held.remove(&token.0);
    }
}
