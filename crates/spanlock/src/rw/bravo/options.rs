//! What a user chooses of a bias, and what is counted of it.

use super::account::BOUND;
use prim::atomic::{AtomicU64, Ordering};
use prim::clock::Duration;
use std::{fmt, mem, process};

/// When readers may take the fast path: what a user chooses of a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bias {
    /// Never: the lock is the underlying one, and one load.
    Off,
    /// While it gains more time for readers than revocations cost.
    Adaptive {
        /// A bias that did not pay is tried again only when slow readers have lost this many times what its revocation
        /// cost, but no later than after a fifteenth of a second. So where a revocation takes less than a millisecond,
        /// trials take at most one part in `bound` of one thread's time; where many threads read and all wait for a
        /// trial, as many parts of theirs as slow reads go on at a time, 32 at most. A bias that gains `bound` / 32
        /// times what its revocations cost is kept. Zero: it is always kept; the largest number: never.
        ///
        /// It is akin to `N` in the paper on BRAVO (Dice and Kogan, ATC 2019, section 3), which bounds writers' time
        /// alone.
        bound: u32,
    },
    /// From birth, and again as soon as a reader has got in by the underlying lock. For tests, which must not miss the
    /// fast path.
    Eager {
        /// Whether a bias is kept: as in [`Adaptive`](Self::Adaptive).
        bound: u32,
    },
}

impl Bias {
    /// Adaptive, with a bound of 64: a bias is kept that gains twice its cost.
    pub const STANDARD: Self = Self::Adaptive { bound: BOUND };

    /// Eager, with the same bound.
    pub const EAGER: Self = Self::Eager { bound: BOUND };

    #[inline]
    pub(super) fn is_eager(self) -> bool {
        matches!(self, Self::Eager { .. })
    }

    /// The bound by which a revocation decides whether the bias is kept.
    pub(super) fn bound(self) -> u32 {
        match self {
            Self::Off => u32::MAX,
            Self::Adaptive { bound } | Self::Eager { bound } => bound,
        }
    }
}

impl Default for Bias {
    fn default() -> Self {
        Self::STANDARD
    }
}

/// Something that happened to a biased lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A reader got in by the fast path.
    FastRead,
    /// A reader found the first slot of its row taken, and took another slot or the slow path.
    Collision,
    /// A reader got in by the underlying lock.
    SlowRead,
    /// A writer that had begun to revoke the bias gave up. Readers that came meanwhile waited for nothing. (In the lock
    /// for C also a release by another thread, if it would have revoked the bias and others read by the table.)
    Withdrawal,
    /// A writer is about to scan the table, after a fence of its own.
    Scan,
    /// A writer is about to scan the table, after a fence for all threads of the process (Linux's `membarrier`).
    Membarrier,
    /// A writer revoked the bias. Others may have scanned the table for the same revocation.
    Revocation {
        /// How long it took, from the writer's arrival until the table was empty.
        took: Duration,
        /// For how long the bias is not tried again, at rho = 1; zero if it is kept.
        inhibited: Duration,
    },
    /// The last writer to leave opened the fast path again.
    Reopening {
        /// For how long it was closed, after the revocation.
        closed: Duration,
    },
}

/// Decides when a lock is biased, and receives an [`Event`] for whatever happens to it.
///
/// The trait is open, so that a program can pass events on to metrics of its own. [`Standard`] and [`Bias`] ignore
/// events, and [`Counted`] counts them.
///
/// A policy that panics aborts the process: its functions are called while the lock is held and no guard exists yet
/// that would release it.
pub trait Policy {
    /// The policy of a lock made by `new`.
    ///
    /// Such a lock begins without a bias, whatever the policy says, and slow readers set it if the policy allows. Use
    /// [`Bravo::with_policy`](super::Bravo::with_policy) or `default` for a lock that is biased from birth
    /// ([`Bias::Eager`]).
    const INIT: Self;

    /// When the lock is biased. Called on slow paths. Once the lock is in use the variant should stay the same, because
    /// a lock may act on an earlier answer.
    fn bias(&self) -> Bias;

    /// Called after each event. Does nothing by default.
    #[inline]
    fn on(&self, _event: Event) {}
}

/// Aborts the process when dropped, which only a panic does.
struct NoPanic;

impl Drop for NoPanic {
    #[cold]
    fn drop(&mut self) {
        process::abort();
    }
}

/// Reports an event to a policy.
#[inline]
pub(super) fn report(policy: &impl Policy, event: Event) {
    let no_panic = NoPanic;
    policy.on(event);
    mem::forget(no_panic);
}

/// Asks a policy when the lock is biased.
#[inline]
pub(super) fn bias_of(policy: &impl Policy) -> Bias {
    let no_panic = NoPanic;
    let bias = policy.bias();
    mem::forget(no_panic);
    bias
}

/// [`Bias::STANDARD`], which takes no space in the lock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standard;

impl Policy for Standard {
    const INIT: Self = Self;

    #[inline]
    fn bias(&self) -> Bias {
        Bias::STANDARD
    }
}

impl Policy for Bias {
    const INIT: Self = Self::STANDARD;

    #[inline]
    fn bias(&self) -> Bias {
        *self
    }
}

/// Counts what happens to a lock, and leaves decisions to another policy.
///
/// It executes an atomic operation on a shared word for each read, so a counted lock does not scale.
#[derive(Debug, Default)]
pub struct Counted<P = Standard> {
    policy: P,
    fast_reads: AtomicU64,
    collisions: AtomicU64,
    slow_reads: AtomicU64,
    withdrawals: AtomicU64,
    scans: AtomicU64,
    membarriers: AtomicU64,
    revocations: AtomicU64,
    revoking: AtomicU64,
    inhibited: AtomicU64,
    reopenings: AtomicU64,
    closed: AtomicU64,
}

impl<P> Counted<P> {
    prim::const_fn! {
        /// All counts zero.
        #[must_use]
        pub const fn new(policy: P) -> Self {
            Self {
                policy,
                fast_reads: AtomicU64::new(0),
                collisions: AtomicU64::new(0),
                slow_reads: AtomicU64::new(0),
                withdrawals: AtomicU64::new(0),
                scans: AtomicU64::new(0),
                membarriers: AtomicU64::new(0),
                revocations: AtomicU64::new(0),
                revoking: AtomicU64::new(0),
                inhibited: AtomicU64::new(0),
                reopenings: AtomicU64::new(0),
                closed: AtomicU64::new(0),
            }
        }
    }

    /// The counts so far. They are loaded one after another while other threads go on counting.
    #[must_use]
    pub fn counts(&self) -> Counts {
        // Relaxed, here and in `on`: counters order nothing.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            fast_reads: load(&self.fast_reads),
            collisions: load(&self.collisions),
            slow_reads: load(&self.slow_reads),
            withdrawals: load(&self.withdrawals),
            scans: load(&self.scans),
            membarriers: load(&self.membarriers),
            revocations: load(&self.revocations),
            revoking: Duration::from_nanos(load(&self.revoking)),
            inhibited: Duration::from_nanos(load(&self.inhibited)),
            reopenings: load(&self.reopenings),
            closed: Duration::from_nanos(load(&self.closed)),
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl<P: Policy> Policy for Counted<P> {
    const INIT: Self = prim::initial!(Self::new(P::INIT));

    #[inline]
    fn bias(&self) -> Bias {
        self.policy.bias()
    }

    fn on(&self, event: Event) {
        let add = |counter: &AtomicU64, amount| counter.fetch_add(amount, Ordering::Relaxed);
        match event {
            Event::FastRead => _ = add(&self.fast_reads, 1),
            Event::Collision => _ = add(&self.collisions, 1),
            Event::SlowRead => _ = add(&self.slow_reads, 1),
            Event::Withdrawal => _ = add(&self.withdrawals, 1),
            Event::Scan => _ = add(&self.scans, 1),
            Event::Membarrier => _ = add(&self.membarriers, 1),
            Event::Revocation { took, inhibited } => {
                add(&self.revocations, 1);
                add(&self.revoking, nanoseconds(took));
                add(&self.inhibited, nanoseconds(inhibited));
            }
            Event::Reopening { closed } => {
                add(&self.reopenings, 1);
                add(&self.closed, nanoseconds(closed));
            }
        }
        self.policy.on(event);
    }
}

/// What a [`Counted`] policy has counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Reads by the table.
    pub fast_reads: u64,
    /// Reads that found the first slot of their row taken.
    pub collisions: u64,
    /// Reads by the underlying lock.
    pub slow_reads: u64,
    /// Revocations that were given up.
    pub withdrawals: u64,
    /// Scans of the table by writers, after a fence of their own.
    pub scans: u64,
    /// Scans of the table by writers, after a fence for all threads.
    pub membarriers: u64,
    /// Revocations.
    pub revocations: u64,
    /// How long the revocations took, in all.
    pub revoking: Duration,
    /// For how long the bias stayed off because of them at rho = 1, in all.
    pub inhibited: Duration,
    /// How often the last writer opened the fast path again.
    pub reopenings: u64,
    /// For how long the fast path was closed after those revocations, in all.
    pub closed: Duration,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fast_reads,
            collisions,
            slow_reads,
            withdrawals,
            scans,
            membarriers,
            revocations,
            revoking,
            inhibited,
            reopenings,
            closed,
        } = self;
        write!(
            f,
            "{fast_reads} fast reads, {slow_reads} slow, {collisions} collisions; \
             {revocations} revocations ({scans} scans, {membarriers} more with a membarrier) took {revoking:?} and \
             inhibited for {inhibited:?}, {withdrawals} were given up; \
             reopened {reopenings} times, after {closed:?}"
        )
    }
}
