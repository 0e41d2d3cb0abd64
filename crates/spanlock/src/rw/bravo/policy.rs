//! What a user chooses of a bias, and what is counted of it.

use prim::atomic::{AtomicU64, Ordering};
use prim::clock::Duration;
use std::{fmt, mem, process};

/// Whether readers may take the fast path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bias {
    /// Never: the lock is the underlying one, and one load.
    Off,
    /// While reading is frequent and revocations are rare: see [`Tuning::bound`].
    #[default]
    Adaptive,
    /// From birth, and again as soon as a reader has got in after a revocation. For tests, which must not miss the fast
    /// path.
    Eager,
}

/// When a lock is biased: plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Whether readers may take the fast path.
    pub bias: Bias,
    /// After a revocation the bias stays off for at least this many times as long as the revocation took, but never for
    /// much more than a second. So writers spend at most one part in `bound + 1` of their time on revocations. It is
    /// `N` in the paper on BRAVO (Dice and Kogan, ATC 2019, section 3).
    pub bound: u32,
}

impl Tuning {
    /// Adaptive, with the paper's bound of 9.
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
    /// A reader found the first slot of its row taken, and took another slot or the slow path.
    Collision,
    /// A reader got in by the underlying lock.
    SlowRead,
    /// A writer that had begun to revoke the bias gave up. Readers that came meanwhile took the slow path for nothing.
    Withdrawal,
    /// A writer revoked the bias.
    Revocation {
        /// How long it took.
        took: Duration,
        /// For how long the bias stays off at least.
        inhibited: Duration,
    },
}

/// Decides when a lock is biased, and receives an [`Event`] for whatever happens to it.
///
/// The trait is open, so that a program can pass events on to metrics of its own. [`Standard`] and [`Tuning`] ignore
/// events, and [`Counted`] counts them.
///
/// A policy that panics aborts the process: its functions are called while the lock is held and no guard exists yet
/// that would release it.
pub trait Policy {
    /// The policy of a lock made by `new`.
    ///
    /// Such a lock begins without a bias, whatever the policy says, and slow readers set it if the policy allows. Use
    /// [`Bravo::with_policy`](super::Bravo::with_policy) or `default` for a lock that is biased from birth
    /// ([`Bias::Eager`]), or never ([`Bias::Off`]) at the least cost.
    const INIT: Self;

    /// When the lock is biased. Called on slow paths. Once the lock is in use, `bias` should stay the same, because a
    /// lock may act on an earlier answer.
    fn tuning(&self) -> Tuning;

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

/// Asks a policy for its tuning.
#[inline]
pub(super) fn tuning_of(policy: &impl Policy) -> Tuning {
    let no_panic = NoPanic;
    let tuning = policy.tuning();
    mem::forget(no_panic);
    tuning
}

/// [`Tuning::STANDARD`], which takes no space in the lock.
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
    revocations: AtomicU64,
    revoking: AtomicU64,
    inhibited: AtomicU64,
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
                revocations: AtomicU64::new(0),
                revoking: AtomicU64::new(0),
                inhibited: AtomicU64::new(0),
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
    /// Reads by the table.
    pub fast_reads: u64,
    /// Reads that found the first slot of their row taken.
    pub collisions: u64,
    /// Reads by the underlying lock.
    pub slow_reads: u64,
    /// Revocations that were given up.
    pub withdrawals: u64,
    /// Revocations.
    pub revocations: u64,
    /// How long the revocations took, in all.
    pub revoking: Duration,
    /// For how long the bias stayed off because of them, in all.
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
