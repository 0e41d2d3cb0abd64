//! Locks in a tree under a mutex: what databases have where they do not hash.
//!
//! A request that conflicts with a holder sleeps until a holder leaves, and looks again.

use super::{KeyLock, Scanned};
use prim::atomic::{AtomicU32, Ordering};
use prim::futex;
use prim::sync::Mutex;
use spanlock::range::raw::Mode;
use std::collections::BTreeMap;

/// The holders by their first keys, each with a number of its own.
type Held = BTreeMap<(Vec<u8>, u64), Holder>;

struct Holder {
    /// The first key behind the range; `None`: it is a point.
    end: Option<Vec<u8>>,
    mode: Mode,
}

/// The holders, and how many requests there were.
struct Holders {
    held: Held,
    numbered: u64,
}

/// A table of locks.
pub(super) struct LockTable {
    holders: Mutex<Holders>,
    /// Changes when a holder leaves.
    left: AtomicU32,
    /// Requests that sleep.
    sleepers: AtomicU32,
}

impl LockTable {
    pub(super) fn new() -> Self {
        Self {
            holders: Mutex::new(Holders {
                held: Held::new(),
                numbered: 0,
            }),
            left: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
        }
    }

    fn with(&self, from: &[u8], end: Option<&[u8]>, mode: Mode, inside: &mut dyn FnMut()) {
        let number = self.acquire(from, end, mode);
        inside();
        let mut holders = self.holders.lock();
        holders.held.remove(&(from.to_vec(), number));
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.left.fetch_add(1, Ordering::Relaxed);
            drop(holders);
            futex::wake_all(&self.left);
        }
    }

    fn acquire(&self, from: &[u8], end: Option<&[u8]>, mode: Mode) -> u64 {
        loop {
            let mut holders = self.holders.lock();
            if !is_taken(&holders.held, from, end, mode) {
                holders.numbered += 1;
                let number = holders.numbered;
                let end = end.map(<[u8]>::to_vec);
                let holder = Holder { end, mode };
                holders.held.insert((from.to_vec(), number), holder);
                return number;
            }
            self.sleepers.fetch_add(1, Ordering::Relaxed);
            let left = self.left.load(Ordering::Relaxed);
            drop(holders);
            futex::wait(&self.left, left, None);
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether a holder is in the way: it starts before the range ends, and ends behind its start.
fn is_taken(held: &Held, from: &[u8], end: Option<&[u8]>, mode: Mode) -> bool {
    let behind = match end {
        Some(end) => (end.to_vec(), 0),
        None => (from.to_vec(), u64::MAX),
    };
    held.range(..behind).any(|((start, _), holder)| {
        let reaches = match &holder.end {
            Some(end) => end.as_slice() > from,
            None => start.as_slice() >= from,
        };
        reaches && holder.mode.conflicts(mode)
    })
}

impl KeyLock for LockTable {
    fn point(&self, key: &[u8], mode: Mode, inside: &mut dyn FnMut()) {
        self.with(key, None, mode, inside);
    }

    fn scan(&self, from: &[u8], to: &[u8], mode: Mode, inside: &mut dyn FnMut()) -> Scanned {
        self.with(from, Some(to), mode, inside);
        Scanned::Yes
    }
}
