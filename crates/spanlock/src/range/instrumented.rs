//! Counting what a lock does, in the spirit of Linux's `lock_stat`.

use super::inspect::Snapshot;
use super::owner::{Owner, Refusal};
use super::raw::{
    Ask, AskBy, Asked, Mode, RawOwned, RawOwnedMutex, RawRangeLock, RawRangeMutex, Replaced, Wait,
};
use super::span::Span;
use prim::atomic::{AtomicU64, Ordering};
use prim::clock::{Duration, Instant};
use std::fmt;
use std::task::{Poll, Waker};

/// Wait times are counted by powers of two of nanoseconds: bucket `k` is `2^k ..= 2^(k+1) - 1`, the last open.
const BUCKETS: usize = 40;

/// A raw lock that counts acquisitions, those that had to wait, and for how long.
///
/// ```
/// use spanlock::range::{Instrumented, RangeLock, list::ListRw};
///
/// let lock = RangeLock::from_raw(Instrumented::new(ListRw::new()));
/// drop(lock.write(0..10));
/// let stats = lock.raw().stats();
/// assert_eq!((stats.exclusive.acquired, stats.exclusive.contended), (1, 0));
/// println!("{stats}");
/// ```
///
/// # Cost
/// One more atomic operation per acquisition, on counters that all threads share, and two readings of the clock for an
/// acquisition that waits. Not for production locks that must scale. The lock inside behaves as without it.
#[derive(Debug)]
pub struct Instrumented<L> {
    raw: L,
    shared: Counters,
    exclusive: Counters,
}

#[derive(Debug)]
struct Counters {
    acquired: AtomicU64,
    contended: AtomicU64,
    refused: AtomicU64,
    waits: [AtomicU64; BUCKETS],
}

impl Counters {
    fn new() -> Self {
        Self {
            acquired: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            waits: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    // Relaxed, everywhere: counters order nothing.

    fn waited(&self, time: Duration) {
        self.contended.fetch_add(1, Ordering::Relaxed);
        self.waits[bucket(time)].fetch_add(1, Ordering::Relaxed);
    }

    fn decided<T>(&self, granted: Option<T>) -> Option<T> {
        let counter = if granted.is_some() {
            &self.acquired
        } else {
            &self.refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
        granted
    }

    fn stats(&self) -> ModeStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ModeStats {
            acquired: load(&self.acquired),
            contended: load(&self.contended),
            refused: load(&self.refused),
            waits: std::array::from_fn(|k| load(&self.waits[k])),
        }
    }
}

/// Evaluates the acquisition `$acquire` of `$ask`: first without waiting, to find out whether it has to wait. A macro
/// and not a closure, so that the acquisition reports the caller's line.
macro_rules! counted {
    ($counters:expr, $ask:ident, $acquire:expr) => {{
        let mut granted = {
            let mut $ask = $ask;
            $ask.wait = Wait::Never;
            $acquire
        };
        if granted.is_none() && $ask.wait != Wait::Never {
            let start = Instant::now();
            granted = $acquire;
            $counters.waited(start.elapsed());
        }
        $counters.decided(granted)
    }};
}

fn bucket(wait: Duration) -> usize {
    let nanoseconds = wait.as_nanos().max(1);
    (nanoseconds.ilog2() as usize).min(BUCKETS - 1)
}

impl<L> Instrumented<L> {
    /// Wraps a raw lock.
    #[must_use]
    pub fn new(raw: L) -> Self {
        Self {
            raw,
            shared: Counters::new(),
            exclusive: Counters::new(),
        }
    }

    /// The lock inside.
    pub(super) fn inner(&self) -> &L {
        &self.raw
    }

    /// The counts so far. Taken one by one while others go on counting.
    pub fn stats(&self) -> LockStats {
        LockStats {
            shared: self.shared.stats(),
            exclusive: self.exclusive.stats(),
        }
    }
}

impl<L> Instrumented<L> {
    fn counters(&self, mode: Mode) -> &Counters {
        match mode {
            Mode::Shared => &self.shared,
            Mode::Exclusive => &self.exclusive,
        }
    }
}

// SAFETY: every method forwards to the inner lock, which keeps the promise.
unsafe impl<L: RawRangeMutex> RawRangeMutex for Instrumented<L> {
    type Token = L::Token;

    fn lock_exclusive(&self, ask: Ask<'_, L::Token>) -> Option<L::Token> {
        counted!(self.exclusive, ask, self.raw.lock_exclusive(ask))
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the token came from the inner lock.
        unsafe { self.raw.unlock(token) };
    }

    fn granule(&self, span: Span) -> Span {
        self.raw.granule(span)
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
unsafe impl<L: RawRangeLock> RawRangeLock for Instrumented<L> {
    fn lock_shared(&self, ask: Ask<'_, L::Token>) -> Option<L::Token> {
        counted!(self.shared, ask, self.raw.lock_shared(ask))
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        // SAFETY: an exclusive token, which came from the inner lock.
        unsafe { self.raw.downgrade(token) }
    }
}

// SAFETY: every method forwards to the inner lock, which keeps the promise.
unsafe impl<L: RawOwnedMutex> RawOwnedMutex for Instrumented<L> {
    fn lock_by(&self, ask: AskBy<'_, L::Token>) -> Result<L::Token, Refusal> {
        let counters = self.counters(ask.mode);
        // A piece is no acquisition: its owner has what it asks for.
        if matches!(ask.replaced(), Replaced::Larger(_)) {
            return self.raw.lock_by(ask);
        }
        let mut first = ask;
        first.wait = Wait::Never;
        let mut outcome = self.raw.lock_by(first);
        if matches!(outcome, Err(Refusal::Busy)) && ask.wait != Wait::Never {
            let start = Instant::now();
            outcome = self.raw.lock_by(ask);
            counters.waited(start.elapsed());
        }
        let _ = counters.decided(outcome.as_ref().ok());
        outcome
    }

    fn poll_by(
        &self,
        ask: AskBy<'_, L::Token>,
        asked: &mut Asked,
        waker: &Waker,
    ) -> Poll<Result<L::Token, Refusal>> {
        let counters = self.counters(ask.mode);
        let outcome = self.raw.poll_by(ask, asked, waker);
        match &outcome {
            Poll::Pending => asked.kept.begin_wait(),
            Poll::Ready(decided) => {
                if let Some(start) = asked.kept.end_wait() {
                    counters.waited(start.elapsed());
                }
                let _ = counters.decided(decided.as_ref().ok());
            }
        }
        outcome
    }

    fn forget_by(&self, owner: &Owner, mode: Mode, asked: &mut Asked) {
        if let Some(start) = asked.kept.end_wait() {
            let counters = self.counters(mode);
            counters.waited(start.elapsed());
            let _ = counters.decided(None::<()>);
        }
        self.raw.forget_by(owner, mode, asked);
    }

    unsafe fn unlock_by(&self, token: L::Token) {
        // SAFETY: the token came from the inner lock.
        unsafe { self.raw.unlock_by(token) };
    }
}

// SAFETY: every method forwards to the inner lock, which keeps the promise.
unsafe impl<L: RawOwned> RawOwned for Instrumented<L> {
    unsafe fn share_by(&self, token: &L::Token) {
        // SAFETY: an exclusive token, which came from the inner lock.
        unsafe { self.raw.share_by(token) };
    }
}

/// What an [`Instrumented`] lock has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockStats {
    /// Of [`Mode::Shared`].
    pub shared: ModeStats,
    /// Of [`Mode::Exclusive`].
    pub exclusive: ModeStats,
}

/// The counts of one mode.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModeStats {
    /// Acquisitions granted.
    pub acquired: u64,
    /// Those that had to wait, granted in the end or not.
    pub contended: u64,
    /// Tries that failed and waits that timed out.
    pub refused: u64,
    waits: [u64; BUCKETS],
}

impl ModeStats {
    /// How many waits took so long: `(at least, count)` by powers of two of nanoseconds, without empty ones.
    pub fn waits(&self) -> impl Iterator<Item = (Duration, u64)> {
        (0..BUCKETS)
            .map(|k| (Duration::from_nanos(1 << k), self.waits[k]))
            .filter(|(_, count)| *count > 0)
    }
}

impl fmt::Display for LockStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (mode, stats) in [
            (Mode::Shared, &self.shared),
            (Mode::Exclusive, &self.exclusive),
        ] {
            let ModeStats {
                acquired,
                contended,
                refused,
                ..
            } = stats;
            writeln!(
                f,
                "{mode:?}: {acquired} acquired, {contended} contended, {refused} refused"
            )?;
            for (at_least, count) in stats.waits() {
                writeln!(f, "  waited {at_least:?} or more: {count}")?;
            }
        }
        Ok(())
    }
}
