//! A lock and what it protects.

use prim::cell::UnsafeCell;
use prim::thread::{self, JoinHandle};
use spanlock_loom::range::Span;
use spanlock_loom::range::inspect::Snapshot;
use spanlock_loom::range::list::{Builder, ExclusiveOnly, ListEx, ListRw, SharedExclusive};
use spanlock_loom::range::raw::{Behind, Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock_loom::range::{RangeLock, RangeMutex};
use std::ops::Range;
use std::sync::Arc;

/// Slots under a lock. A range of positions protects the slots of the same numbers.
pub struct World<L = ListRw> {
    lock: L,
    slots: Vec<UnsafeCell<u64>>,
}

// SAFETY: slots are touched under the lock; that this suffices is what the models check.
unsafe impl<L: Sync> Sync for World<L> {}
// SAFETY: as above.
unsafe impl<L: Send> Send for World<L> {}

/// A reader-writer list lock to be built.
pub fn rw() -> Builder<SharedExclusive> {
    ListRw::builder()
}

/// An exclusive list lock to be built.
pub fn ex() -> Builder<ExclusiveOnly> {
    ListEx::builder()
}

/// A held range.
pub struct Hold<'a, L: RawRangeMutex> {
    world: &'a World<L>,
    range: Range<u64>,
    mode: Mode,
    token: Option<L::Token>,
}

impl<L: RawRangeMutex> World<L> {
    /// Eight slots.
    pub fn new(lock: L) -> Arc<Self> {
        let slots = (0..8).map(UnsafeCell::new).collect();
        Arc::new(Self { lock, slots })
    }

    fn hold(&self, range: Range<u64>, mode: Mode, token: Option<L::Token>) -> Option<Hold<'_, L>> {
        Some(Hold {
            world: self,
            range,
            mode,
            token: Some(token?),
        })
    }

    pub fn write(&self, range: Range<u64>) -> Hold<'_, L> {
        self.write_within(range, Wait::Forever).unwrap()
    }

    pub fn write_within(&self, range: Range<u64>, wait: Wait) -> Option<Hold<'_, L>> {
        let token = self.lock.lock_exclusive(span(&range), wait);
        self.hold(range, Mode::Exclusive, token)
    }

    /// Locks several ranges in one call, touches and releases them.
    pub fn write_many(&self, ranges: &[Range<u64>]) {
        let lock = RangeMutex::from_raw(Borrowed(&self.lock));
        let _guards = lock.lock_many(ranges.iter().cloned());
        self.touch(ranges, Mode::Exclusive);
    }

    fn touch(&self, ranges: &[Range<u64>], mode: Mode) {
        for at in ranges.iter().cloned().flatten() {
            let slot = &self.slots[usize::try_from(at).unwrap()];
            match mode {
                // SAFETY: held shared; loom checks.
                Mode::Shared => _ = slot.with(|slot| unsafe { *slot }),
                // SAFETY: held exclusively; loom checks.
                Mode::Exclusive => slot.with_mut(|slot| unsafe { *slot += 1 }),
            }
        }
    }

    /// Looks at who holds and who waits.
    pub fn snapshot(&self) -> Snapshot {
        self.lock.snapshot().unwrap()
    }

    /// Waits until so many requests are asleep.
    pub fn until_asleep(&self, count: usize) {
        while self.snapshot().waiters.len() < count {
            // Loom's own, which does not count as a spin: what is to be explored has yet to begin.
            prim::loom::thread::yield_now();
        }
    }
}

impl<L: RawRangeLock> World<L> {
    pub fn read(&self, range: Range<u64>) -> Hold<'_, L> {
        self.read_within(range, Wait::Forever).unwrap()
    }

    pub fn read_within(&self, range: Range<u64>, wait: Wait) -> Option<Hold<'_, L>> {
        let token = self.lock.lock_shared(span(&range), wait);
        self.hold(range, Mode::Shared, token)
    }

    /// Shares several ranges in one call, looks at and releases them.
    pub fn read_many(&self, ranges: &[Range<u64>]) {
        let lock = RangeLock::from_raw(Borrowed(&self.lock));
        let _guards = lock.read_many(ranges.iter().cloned());
        self.touch(ranges, Mode::Shared);
    }
}

fn span(range: &Range<u64>) -> Span {
    Span::of(range.clone()).unwrap()
}

impl<L: RawRangeMutex + Send + Sync + 'static> World<L> {
    /// Runs `f` in a thread of its own.
    pub fn spawn<R: 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> R + 'static,
    ) -> JoinHandle<R> {
        let world = Arc::clone(self);
        thread::spawn(move || f(&world))
    }
}

impl<L: RawRangeMutex> Hold<'_, L> {
    /// Looks at every slot of the range, and changes it if that is allowed.
    pub fn touch(&self) {
        self.world
            .touch(std::slice::from_ref(&self.range), self.mode);
    }

    /// Touches and releases.
    pub fn done(self) {
        self.touch();
    }
}

impl<L: RawRangeLock> Hold<'_, L> {
    /// Shares the range from now on.
    pub fn downgrade(mut self) -> Self {
        let token = self.token.take().unwrap();
        self.mode = Mode::Shared;
        // SAFETY: this lock's token, and exclusive until now.
        self.token = Some(unsafe { self.world.lock.downgrade(token) });
        self
    }
}

impl<L: RawRangeMutex> Drop for Hold<'_, L> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: this lock's token.
            unsafe { self.world.lock.unlock(token) };
        }
    }
}

/// A lock behind a reference, as the typed locks want to own one.
struct Borrowed<'a, L>(&'a L);

// SAFETY: the lock's promise: all is forwarded.
unsafe impl<L: RawRangeMutex> RawRangeMutex for Borrowed<'_, L> {
    type Token = L::Token;

    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<L::Token> {
        self.0.lock_exclusive(span, wait)
    }

    unsafe fn lock_exclusive_behind(
        &self,
        span: Span,
        wait: Wait,
        behind: Behind<'_, L::Token>,
    ) -> Option<L::Token> {
        // SAFETY: the caller's.
        unsafe { self.0.lock_exclusive_behind(span, wait, behind) }
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock(token) };
    }

    fn granule(&self, span: Span) -> Span {
        self.0.granule(span)
    }
}

// SAFETY: as above.
unsafe impl<L: RawRangeLock> RawRangeLock for Borrowed<'_, L> {
    fn lock_shared(&self, span: Span, wait: Wait) -> Option<L::Token> {
        self.0.lock_shared(span, wait)
    }

    unsafe fn lock_shared_behind(
        &self,
        span: Span,
        wait: Wait,
        behind: Behind<'_, L::Token>,
    ) -> Option<L::Token> {
        // SAFETY: the caller's.
        unsafe { self.0.lock_shared_behind(span, wait, behind) }
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        // SAFETY: the caller's.
        unsafe { self.0.downgrade(token) }
    }
}
