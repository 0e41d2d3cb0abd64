//! Guards: a holder's proof of its range. Dropping a guard releases the range.

use super::raw::{Mode, RawRangeLock, RawRangeMutex};
use super::slots::RawSlots;
use super::span::Span;
use smallvec::SmallVec;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A token and its lock. Dropping it releases, also in a panic. An empty range has no token.
///
/// It is two words, which a function returns in registers. So it does not keep the range.
pub(super) struct HeldToken<'a, L: RawRangeMutex> {
    raw: &'a L,
    token: Option<GuardedToken<L::Token>>,
    /// A guard stays on its thread, because locks count what each thread holds.
    not_send: PhantomData<dyn StaysOnItsThreadUseOwnedOrAsync>,
}

/// What the compiler names where a guard would leave its thread, or live over an `.await`. What `read_owned` and
/// `write_owned` return may be sent, and what `read_async` and `write_async` return as well.
trait StaysOnItsThreadUseOwnedOrAsync: UnwindSafe + RefUnwindSafe + Unpin {}

/// A token in a guard.
struct GuardedToken<T>(T);

// SAFETY: the guard around it does not leave its thread. So the compiler names one reason why, and not two.
unsafe impl<T> Send for GuardedToken<T> {}

// SAFETY: a reference to a guard asks the lock for the range of the token, which any thread may do. Only the thread
// that owns the guard releases it.
unsafe impl<L: RawRangeMutex + Sync> Sync for HeldToken<'_, L> {}

impl<'a, L: RawRangeMutex> HeldToken<'a, L> {
    /// `token` came from `raw`, on this thread.
    #[inline]
    pub(super) fn new(raw: &'a L, token: Option<L::Token>) -> Self {
        Self {
            raw,
            token: token.map(GuardedToken),
            not_send: PhantomData,
        }
    }
}

impl<L: RawRangeMutex> HeldToken<'_, L> {
    /// The token, unless the range is empty.
    pub(super) fn token(&self) -> Option<&L::Token> {
        self.token.as_ref().map(|GuardedToken(token)| token)
    }

    /// The range, unless it is empty or the lock does not keep it.
    fn span(&self) -> Option<Span> {
        let token = self.token()?;
        // SAFETY: the token came from this lock, by `new`'s contract, and it is released when `self` is dropped.
        unsafe { self.raw.span_of(token) }
    }
}

impl<L: RawRangeMutex> Drop for HeldToken<'_, L> {
    #[inline]
    fn drop(&mut self) {
        if let Some(GuardedToken(token)) = self.token.take() {
            // SAFETY: the token came from this lock, by `new`'s contract, and a guard does not leave its thread.
            unsafe { self.raw.unlock(token) };
        }
    }
}

/// Shared hold of a range, from [`RangeLock::read`](super::RangeLock::read) and its kin.
#[must_use = "the range is released when the guard is dropped"]
pub struct ReadGuard<'a, L: RawRangeLock = RawSlots> {
    held: HeldToken<'a, L>,
}

/// Exclusive hold of a range, from [`RangeLock::write`](super::RangeLock::write) and its kin.
///
/// It stays on its thread, and does not outlive its lock:
/// ```compile_fail,E0277
/// let lock = spanlock::range::RangeLock::new();
/// let guard = lock.write(..);
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(guard));
/// });
/// ```
/// ```compile_fail,E0505
/// let lock = spanlock::range::RangeLock::new();
/// let guard = lock.write(..);
/// drop(lock);
/// drop(guard);
/// ```
#[must_use = "the range is released when the guard is dropped"]
pub struct WriteGuard<'a, L: RawRangeLock = RawSlots> {
    held: HeldToken<'a, L>,
}

/// Exclusive hold of a range, from [`RangeMutex::lock`](super::RangeMutex::lock) and its kin.
#[must_use = "the range is released when the guard is dropped"]
pub struct LockGuard<'a, L: RawRangeMutex = RawSlots> {
    held: HeldToken<'a, L>,
}

/// What each guard says of itself.
macro_rules! says {
    ($($Guard:ident over $Raw:ident: $mode:ident),+) => {$(
        impl<L: $Raw> $Guard<'_, L> {
            /// The range that is held, in whole granules of the lock. `None`: it is empty, or a lock of your own does
            /// not keep it. One of several guards has what was asked for, joined where it overlaps or touches.
            #[must_use]
            pub fn span(&self) -> Option<Span> {
                self.held.span()
            }

            /// How it is held.
            #[must_use]
            pub const fn mode(&self) -> Mode {
                Mode::$mode
            }
        }
    )+};
}

says! {
    ReadGuard over RawRangeLock: Shared, WriteGuard over RawRangeLock: Exclusive,
    LockGuard over RawRangeMutex: Exclusive
}

impl<'a, L: RawRangeLock> ReadGuard<'a, L> {
    #[inline]
    pub(super) fn new(held: HeldToken<'a, L>) -> Self {
        Self { held }
    }
}

impl<'a, L: RawRangeLock> WriteGuard<'a, L> {
    /// `held` is held exclusively.
    #[inline]
    pub(super) fn new(held: HeldToken<'a, L>) -> Self {
        Self { held }
    }

    /// Keeps the range, but shares it from now on. No writer gets in between, and waiting readers are woken.
    ///
    /// Costs one atomic operation, and a wake-up if a request sleeps. There is no way back: two readers that both
    /// wanted to write would wait for each other.
    pub fn downgrade(mut self) -> ReadGuard<'a, L> {
        let raw = self.held.raw;
        let token = self.held.token.take().map(|GuardedToken(token)| {
            // SAFETY: an exclusive token of this lock, by `new`'s contract, and a guard does not leave its thread.
            unsafe { raw.downgrade(token) }
        });
        ReadGuard::new(HeldToken::new(raw, token))
    }
}

impl<'a, L: RawRangeMutex> LockGuard<'a, L> {
    #[inline]
    pub(super) fn new(held: HeldToken<'a, L>) -> Self {
        Self { held }
    }
}

/// Guards of several ranges, acquired together; from [`RangeLock::write_many`](super::RangeLock::write_many) and
/// its kin. Up to eight are kept without an allocation.
#[must_use = "the ranges are released when the guards are dropped"]
pub struct Guards<G>(SmallVec<[G; 8]>);

impl<G> Guards<G> {
    pub(super) fn new(guards: SmallVec<[G; 8]>) -> Self {
        Self(guards)
    }
}

impl<G> IntoIterator for Guards<G> {
    type Item = G;
    type IntoIter = GuardsIntoIter<G>;

    /// The guards in no particular order, to release them one by one.
    fn into_iter(self) -> GuardsIntoIter<G> {
        GuardsIntoIter(self.0.into_iter())
    }
}

/// The guards of several ranges, one by one. Those that are left are released with it.
#[derive(Debug)]
pub struct GuardsIntoIter<G>(smallvec::IntoIter<[G; 8]>);

impl<G> Iterator for GuardsIntoIter<G> {
    type Item = G;

    fn next(&mut self) -> Option<G> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<G> ExactSizeIterator for GuardsIntoIter<G> {}

impl<'a, L: RawRangeLock> Guards<WriteGuard<'a, L>> {
    /// Downgrades all of them: see [`WriteGuard::downgrade`].
    pub fn downgrade(self) -> Guards<ReadGuard<'a, L>> {
        Guards(self.0.into_iter().map(WriteGuard::downgrade).collect())
    }
}

impl<L: RawRangeLock> fmt::Debug for ReadGuard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadGuard")
            .field("span", &self.span())
            .finish_non_exhaustive()
    }
}

impl<L: RawRangeLock> fmt::Debug for WriteGuard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteGuard")
            .field("span", &self.span())
            .finish_non_exhaustive()
    }
}

impl<L: RawRangeMutex> fmt::Debug for LockGuard<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("span", &self.span())
            .finish_non_exhaustive()
    }
}

impl<G> fmt::Debug for Guards<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guards")
            .field("len", &self.0.len())
            .finish()
    }
}
