//! When a lock is biased, and what is counted.

use prim::atomic::{AtomicU64, Ordering};
use prim::clock::Duration;
use std::{fmt, mem, process};

/// Whether readers may take the fast path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bias {
    /// Never: the lock is the underlying one and a look at a word.
    Off,
    /// When reading is frequent, and revoking has not cost much lately.
    #[default]
    Adaptive,
    /// From birth, and again as soon as any reader has got in: for tests, which must not miss the fast path.
    Eager,
}

/// How a lock is biased: plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Whether at all.
    pub bias: Bias,
    /// For how many times as long as a revocation took no bias is set afterwards, at least, but never for much more
    /// than a second. Writers lose at most one part in this and one (P2 §3). The paper's `N`.
    pub bound: u32,
}

impl Tuning {
    /// Adaptive, and the paper's bound of 9.
    pub const STANDARD: Self = Self {
        bias: Bias::Adaptive,
        bound: 9,
    };
}

impl Default for Tuning {
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
    /// A reader found its slot in the table taken: it took another, or the slow path.
    Collision,
    /// A reader got in by the underlying lock.
    SlowRead,
    /// A writer that had begun to revoke the bias gave up: readers who came meanwhile took the slow path in vain.
    Withdrawal,
    /// A writer revoked the bias.
    Revocation {
        /// How long it took.
        took: Duration,
        /// For how long no bias will be set.
        inhibited: Duration,
    },
}

/// Decides for a lock, and hears what happens to it.
///
/// Neither may panic: both are called with the lock held and the guard not made yet, so the process is aborted.
pub trait Policy {
    /// That of a lock made by `new`.
    ///
    /// Such a lock has no bias to begin with, whatever this says: the first slow reader sets one, if it is to. One
    /// that is to be biased from birth, or never ([`Bias::Eager`], [`Bias::Off`]) and cheaply so, is made by
    /// [`Bravo::with_policy`](super::Bravo::with_policy) or `default`.
    const INIT: Self;

    /// How the lock is biased. Asked on slow paths; should say the same each time of `bias`, once the lock is in use:
    /// it may have been asked before.
    fn tuning(&self) -> Tuning;

    /// Told after each event. Does nothing unless counted.
    #[inline]
    fn on(&self, _event: Event) {}
}

/// Aborts if dropped, which is by a panic.
struct NoPanic;

impl Drop for NoPanic {
    #[cold]
    fn drop(&mut self) {
        process::abort();
    }
}

/// Tells a policy of an event.
#[inline]
pub(super) fn tell(policy: &impl Policy, event: Event) {
    let no_panic = NoPanic;
    policy.on(event);
    mem::forget(no_panic);
}

/// Asks a policy.
#[inline]
pub(super) fn ask(policy: &impl Policy) -> Tuning {
    let no_panic = NoPanic;
    let tuning = policy.tuning();
    mem::forget(no_panic);
    tuning
}

/// [`Tuning::STANDARD`], in no space.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standard;

impl Policy for Standard {
    const INIT: Self = Self;

    #[inline]
    fn tuning(&self) -> Tuning {
        Tuning::STANDARD
    }
}

impl Policy for Tuning {
    const INIT: Self = Self::STANDARD;

    #[inline]
    fn tuning(&self) -> Tuning {
        *self
    }
}

/// Counts what happens to a lock, decided by another policy.
///
/// One atomic operation on a shared word for each read: with it a lock does not scale.
#[derive(Debug, Default)]
pub struct Counted<P = Standard> {
    policy: P,
    fast_reads: AtomicU64,
    collisions: AtomicU64,
    slow_reads: AtomicU64,
    withdrawals: AtomicU64,
    revocations: AtomicU64,
    revoking: AtomicU64,
    inhibited: AtomicU64,
}

impl<P> Counted<P> {
    prim::const_fn! {
        /// Counts from zero.
        #[must_use]
        pub const fn new(policy: P) -> Self {
            Self {
                policy,
                fast_reads: AtomicU64::new(0),
                collisions: AtomicU64::new(0),
                slow_reads: AtomicU64::new(0),
                withdrawals: AtomicU64::new(0),
                revocations: AtomicU64::new(0),
                revoking: AtomicU64::new(0),
                inhibited: AtomicU64::new(0),
            }
        }
    }

    /// The counts so far. Taken one by one while others go on counting.
    #[must_use]
    pub fn counts(&self) -> Counts {
        // Relaxed, here and below: counters order nothing.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            fast_reads: load(&self.fast_reads),
            collisions: load(&self.collisions),
            slow_reads: load(&self.slow_reads),
            withdrawals: load(&self.withdrawals),
            revocations: load(&self.revocations),
            revoking: Duration::from_nanos(load(&self.revoking)),
            inhibited: Duration::from_nanos(load(&self.inhibited)),
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl<P: Policy> Policy for Counted<P> {
    const INIT: Self = prim::initial!(Self::new(P::INIT));

    #[inline]
    fn tuning(&self) -> Tuning {
        self.policy.tuning()
    }

    fn on(&self, event: Event) {
        let add = |counter: &AtomicU64, amount| counter.fetch_add(amount, Ordering::Relaxed);
        match event {
            Event::FastRead => _ = add(&self.fast_reads, 1),
            Event::Collision => _ = add(&self.collisions, 1),
            Event::SlowRead => _ = add(&self.slow_reads, 1),
            Event::Withdrawal => _ = add(&self.withdrawals, 1),
            Event::Revocation { took, inhibited } => {
                add(&self.revocations, 1);
                add(&self.revoking, nanoseconds(took));
                add(&self.inhibited, nanoseconds(inhibited));
            }
        }
        self.policy.on(event);
    }
}

/// What a [`Counted`] policy has counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Reads granted by the fast path.
    pub fast_reads: u64,
    /// Readers who found their slot in the table taken.
    pub collisions: u64,
    /// Reads granted by the underlying lock.
    pub slow_reads: u64,
    /// Writers who gave up while they revoked the bias.
    pub withdrawals: u64,
    /// How often a writer revoked the bias.
    pub revocations: u64,
    /// How long that took, in all.
    pub revoking: Duration,
    /// For how long no bias was to be set because of that, in all.
    pub inhibited: Duration,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fast_reads,
            collisions,
            slow_reads,
            withdrawals,
            revocations,
            revoking,
            inhibited,
        } = self;
        write!(
            f,
            "{fast_reads} fast reads, {slow_reads} slow, {collisions} collisions; \
             {revocations} revocations took {revoking:?} and inhibited for {inhibited:?}, {withdrawals} were given up"
        )
    }
}
