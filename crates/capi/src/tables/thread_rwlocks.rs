//! What a thread holds of reader-writer locks.
//!
//! The lock is that of Rust, whose releases need a token. A release of C names the lock alone. So each thread keeps the
//! tokens of the locks that it holds, and finds there what it may release. Most hold one lock at a time, or release the
//! last first, and so the search ends at once.

use super::thread;
use crate::rwlock_state::{ReadToken, RwLock, WriteToken};
use std::num::NonZero;

/// What a thread holds of reader-writer locks.
pub(crate) struct Locks {
    pub(crate) reads: Tokens<ReadToken>,
    pub(crate) writes: Tokens<WriteToken>,
}

/// The tokens of the locks that a thread holds in one mode.
pub(crate) struct Tokens<T> {
    /// One of them, if there are any. Most threads hold one at a time, and find it without following a pointer.
    first: Option<Noted<T>>,
    /// The others, the last acquired last.
    more: Vec<Noted<T>>,
}

/// A lock that a thread holds, and the token.
pub(crate) type Noted<T> = (Name, T);

/// A lock by its address, with its kind in the lowest bit. So one comparison tells both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name(NonZero<usize>);

impl Name {
    #[inline(always)]
    pub(crate) fn of(lock: &RwLock, kind: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "zero or one")]
        let kind = kind as usize;
        Self(std::ptr::NonNull::from(lock).addr() | kind)
    }

    fn is_of(self, lock: &RwLock) -> bool {
        self.0.get() & !1 == std::ptr::from_ref(lock).addr()
    }
}

impl Locks {
    /// Of a thread that holds none.
    pub(crate) const fn new() -> Self {
        Self {
            reads: Tokens::new(),
            writes: Tokens::new(),
        }
    }

    /// Whether the thread holds none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// Frees the memory of tables in which nothing is held.
    pub(crate) fn clear(&mut self) {
        self.reads.more = Vec::new();
        self.writes.more = Vec::new();
    }
}

impl<T> Tokens<T> {
    const fn new() -> Self {
        Self {
            first: None,
            more: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Notes what the thread has acquired, if it is the first one; else returns it, for [`note_more`](Self::note_more).
    #[inline(always)]
    pub(crate) fn note(&mut self, held: Noted<T>) -> Option<Noted<T>> {
        if self.first.is_some() {
            return Some(held);
        }
        self.first = Some(held);
        None
    }

    pub(crate) fn note_more(&mut self, held: Noted<T>) {
        thread::free_at_exit();
        self.more.push(held);
    }

    /// Takes away the token of a lock, if it is the only one.
    #[inline(always)]
    pub(crate) fn forget(&mut self, lock: Name) -> Option<T> {
        if !self.more.is_empty() {
            return None;
        }
        let (_, token) = self.first.take_if(|first| first.0 == lock)?;
        Some(token)
    }

    /// Takes away a token of a lock, the last one.
    pub(crate) fn forget_more(&mut self, lock: &RwLock) -> Option<T> {
        if let Some(at) = self.more.iter().rposition(|held| held.0.is_of(lock)) {
            return Some(self.more.remove(at).1);
        }
        let (_, token) = self.first.take_if(|first| first.0.is_of(lock))?;
        self.first = self.more.pop();
        Some(token)
    }

    pub(crate) fn holds(&self, lock: &RwLock) -> bool {
        let mut held = self.first.iter().chain(&self.more);
        held.any(|held| held.0.is_of(lock))
    }
}
