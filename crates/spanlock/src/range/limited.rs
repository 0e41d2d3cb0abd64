//! A limit on what all owners together hold of a lock.

use super::inspect::Snapshot;
use super::owner::{Owner, Refusal};
use super::raw::{
    Ask, AskBy, Asked, Mode, RawOwned, RawOwnedMutex, RawRangeLock, RawRangeMutex, Replaced,
};
use super::span::Span;
use prim::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

/// A raw lock of which all owners together may hold or await a number of ranges at most. A request beyond that is
/// refused with [`Refusal::LockFull`]. It protects a lock from clients who ask for more and more.
///
/// ```
/// use spanlock::range::{Limited, Owner, RangeLock, Refusal, slots::RawSlots};
///
/// let lock = RangeLock::from_raw(Limited::new(RawSlots::new(), 2));
/// let client = Owner::new();
/// let mut held = lock.by(&client).write(0..10)?;
/// let other = lock.by(&client).read(20..30)?;
/// assert_eq!(lock.by(&client).read(40..50).map(drop), Err(Refusal::LockFull));
/// held.release(4..5); // Pieces count, and are never refused.
/// assert_eq!(lock.raw().held_or_awaited(), 3);
/// # drop(other);
/// # Ok::<(), Refusal>(())
/// ```
///
/// What threads hold does not count: a thread has few ranges, and its request without a limit of time is never refused.
/// Owned guards count as an owner's, and so does what tasks hold. Use their tries, or name an owner: the forms without
/// either that wait for ever (`write_owned`, `write_async`) panic when the lock is full.
///
/// # Cost
/// Two more atomic operations for each range of an owner, on a counter that all owners share. The lock inside behaves
/// as without it.
#[derive(Debug)]
pub struct Limited<L> {
    raw: L,
    limit: usize,
    /// Ranges of owners, held or asked for.
    count: AtomicUsize,
}

impl<L> Limited<L> {
    /// Limits a raw lock to `limit` ranges of owners.
    #[must_use]
    pub fn new(raw: L, limit: usize) -> Self {
        Self {
            raw,
            limit,
            count: AtomicUsize::new(0),
        }
    }

    /// The lock inside.
    pub(super) fn inner(&self) -> &L {
        &self.raw
    }

    /// How many ranges there may be with that request. What an owner has already is never refused, also if it is held
    /// in more pieces.
    fn most<T>(&self, ask: &AskBy<'_, T>) -> usize {
        match ask.replaced() {
            Replaced::Nothing => self.limit,
            _ => usize::MAX,
        }
    }

    /// How many ranges owners hold or wait for. Pieces count.
    #[must_use]
    pub fn held_or_awaited(&self) -> usize {
        // Relaxed, everywhere: the count orders nothing.
        self.count.load(Ordering::Relaxed)
    }
}

/// A range that is counted, until dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    /// Counts one more range, if there are fewer than `most`.
    fn one_more(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let one_more = |before| (before < most).then(|| before + 1);
        // In one step: a request that is refused refuses no other.
        let counted = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.is_ok().then(|| Self(count))
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

// SAFETY: every method forwards to the inner lock, which keeps the promise.
unsafe impl<L: RawRangeMutex> RawRangeMutex for Limited<L> {
    type Token = L::Token;

    fn lock_exclusive(&self, ask: Ask<'_, L::Token>) -> Option<L::Token> {
        self.raw.lock_exclusive(ask)
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the token came from the inner lock.
        unsafe { self.raw.unlock(token) };
    }

    fn granule(&self, span: Span) -> Span {
        self.raw.granule(span)
    }

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        self.raw.is_taken(span, mode)
    }

    unsafe fn span_of(&self, token: &L::Token) -> Option<Span> {
        // SAFETY: the token came from the inner lock.
        unsafe { self.raw.span_of(token) }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.raw.snapshot()
    }
}

// SAFETY: every method forwards to the inner lock, which keeps the promise.
unsafe impl<L: RawRangeLock> RawRangeLock for Limited<L> {
    fn lock_shared(&self, ask: Ask<'_, L::Token>) -> Option<L::Token> {
        self.raw.lock_shared(ask)
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        // SAFETY: an exclusive token, which came from the inner lock.
        unsafe { self.raw.downgrade(token) }
    }
}

// SAFETY: every method forwards to the inner lock, which keeps the promise.
unsafe impl<L: RawOwnedMutex> RawOwnedMutex for Limited<L> {
    fn lock_by(&self, ask: AskBy<'_, L::Token>) -> Result<L::Token, Refusal> {
        let counted = Counted::one_more(&self.count, self.most(&ask));
        let counted = counted.ok_or(Refusal::LockFull)?;
        let token = self.raw.lock_by(ask)?;
        std::mem::forget(counted);
        Ok(token)
    }

    fn poll_by(
        &self,
        ask: AskBy<'_, L::Token>,
        asked: &mut Asked,
        waker: &Waker,
    ) -> Poll<Result<L::Token, Refusal>> {
        let counted = match asked.kept.leave_limit() {
            true => Some(Counted(&self.count)),
            false => Counted::one_more(&self.count, self.most(&ask)),
        };
        let Some(counted) = counted else {
            // It may be in the queue, if it was polled before, and foreign code has panicked then.
            self.raw.forget_by(ask.owner, ask.mode, asked);
            return Poll::Ready(Err(Refusal::LockFull));
        };
        let outcome = self.raw.poll_by(ask, asked, waker);
        match &outcome {
            Poll::Pending => {
                asked.kept.enter_limit();
                std::mem::forget(counted);
            }
            Poll::Ready(Ok(_)) => std::mem::forget(counted),
            Poll::Ready(Err(_)) => {}
        }
        outcome
    }

    fn forget_by(&self, owner: &Owner, mode: Mode, asked: &mut Asked) {
        let counted = asked.kept.leave_limit().then(|| Counted(&self.count));
        self.raw.forget_by(owner, mode, asked);
        drop(counted);
    }

    unsafe fn unlock_by(&self, token: L::Token) {
        // SAFETY: the token came from the inner lock.
        unsafe { self.raw.unlock_by(token) };
        drop(Counted(&self.count));
    }
}

// SAFETY: every method forwards to the inner lock, which keeps the promise.
unsafe impl<L: RawOwned> RawOwned for Limited<L> {
    unsafe fn share_by(&self, token: &L::Token) {
        // SAFETY: an exclusive token, which came from the inner lock.
        unsafe { self.raw.share_by(token) };
    }
}
