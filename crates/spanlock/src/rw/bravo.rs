//! BRAVO over a lock of `lock_api`.

use super::bias::{BiasState, Missed};
use super::pace;
use super::policy::{Bias, Event, Policy, Standard, ask, tell};
use super::raw::{Stays, granted, within};
use super::visible::Slot;
use super::watch::{self, Mode};
use crate::range::raw::Wait;
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use prim::clock::{Duration, Instant};
use std::fmt;

mod upgrade;

/// Makes a reader-writer lock scale with its readers.
///
/// While reading is frequent the lock is *biased*: a reader writes to a slot of its own in a table that all locks
/// share, and does not touch the underlying lock. A writer first revokes that: it waits until the readers in the
/// table are gone. After that no bias is set for a while, the longer the more the revocation took.
///
/// ```
/// use spanlock::rw::{Bravo, FutexRwLock};
///
/// type Lock<T> = lock_api::RwLock<Bravo<FutexRwLock>, T>;
///
/// static LOCK: Lock<u32> = Lock::new(5); // 8 bytes more than the underlying lock.
/// assert_eq!(*LOCK.read(), 5);
/// *LOCK.write() += 1;
///
/// // Another policy, and counts.
/// use spanlock::rw::{Bias, Counted, Tuning, WritersFirst};
/// let eager = Counted::new(Tuning { bias: Bias::Eager, ..Tuning::STANDARD });
/// let lock = Bravo::with_policy(FutexRwLock::<WritersFirst>::new(), eager);
/// let lock = lock_api::RwLock::from_raw(lock, 5);
/// assert_eq!(*lock.read(), 5);
/// // SAFETY: it is looked at and not released.
/// assert_eq!(unsafe { lock.raw() }.policy().counts().fast_reads, 1);
/// ```
///
/// - **Size**: 8 bytes and the underlying lock, and nothing for [`Standard`]. The table is the process's, 128 bytes
///   for a thread that reads.
/// - **Cost**: a biased read is a store to acquire and one to release, both on a cache line of the thread's own: no
///   atomic operation. Threads beyond twice as many as processors share lines and take a compare-exchange. Without a
///   bias a write costs a load more than the underlying lock, and a read may: on a machine of few processors, and where biases
///   are rare on any, most reads do not look, so that a thread notices a bias some reads late. A write that revokes fences for all threads of the process,
///   which takes microseconds, and scans a table of two cache lines for each thread that reads. The first biased read of a
///   process asks Linux for such fences, which takes tens of milliseconds if there are other threads, once.
/// - **Fairness**: the underlying lock's. A writer that gets that and finds a bias lets go, and arrives before it goes
///   for it again: meanwhile new readers take the slow path and get in. So it loses its place, once; what delays it are
///   no more than the critical sections of those who read, for when the table is empty it queues as it would have.
/// - **Recursion**: as in the underlying lock; and a thread that reads by the table may read again, if the underlying
///   lock's readers share, and no reader inside, as one that upgrades, waits for it. Over [`MutexRwLock`](super::MutexRwLock) it must not: by the slow path a thread would wait
///   for itself.
/// - **Waiting**: a try never waits, a timed write gives up in time also while it revokes, and the bias is then as it
///   was, unless the table was empty by then. To revoke is to spin briefly and then sleep. A try to read can fail with no writer inside: while one looks
///   whether it may enter it holds the underlying lock for a moment. A try to write that would fail because of
///   readers in the table leaves them their bias.
/// - **Upgrade**: where the underlying lock has it. An upgradable reader takes the slow path, and is counted as a slow
///   reader.
/// - Guards stay on their threads, unless the feature `send_guard` is on and the underlying lock's may leave theirs.
/// - Not for locks that are mostly written, or held by one thread at a time.
/// - **Leaked guards**: a lock may be moved and dropped while a leaked read guard of it is about. Where it was used, its
///   reader may stay in the table, as `drop(lock)` and `into_inner` move the lock first. A lock made there later works as
///   any, and is not biased as long as that is so. But a lock that has a bias already when it comes there, because
///   it was moved, or is biased from birth ([`Bias::Eager`]), does not look: its first writer would wait for
///   the reader of the lock before. That is no danger to memory.
///
/// Source: P2 (Dice and Kogan, *BRAVO*, ATC 2019), with the store-load fence on the right side of the store,
/// revocation before the underlying lock is taken, and parking. `docs/rwlocks.md` tells the protocol.
pub struct Bravo<L, P = Standard> {
    bias: BiasState,
    raw: L,
    policy: P,
}

/// How a reader got in.
#[derive(Debug)]
enum Way<G> {
    /// Seen in the table.
    Fast(Slot),
    /// By the underlying lock.
    Slow(G),
}

/// Proof of one read acquisition of a [`Bravo`].
#[derive(Debug)]
pub struct ReadToken<G>(Way<G>, Stays);

/// Proof of one other acquisition of a [`Bravo`]: the underlying lock's.
#[derive(Debug)]
pub struct UnderToken<G>(G, Stays);

impl<G> ReadToken<G> {
    #[inline(always)] // It is nothing but the way.
    const fn by(way: Way<G>) -> Self {
        Self(way, Stays::new())
    }
}

impl<G> UnderToken<G> {
    #[inline(always)] // As above.
    const fn new(guard: G) -> Self {
        Self(guard, Stays::new())
    }
}

impl<L: RawRwLock, P: Policy> Bravo<L, P> {
    prim::const_fn! {
        /// A lock that nobody holds, without a bias so far, whatever its policy.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                bias: BiasState::new(),
                raw: L::INIT,
                policy: P::INIT,
            }
        }
    }

    /// Puts a bias of that policy over a lock that nobody holds.
    #[must_use]
    pub fn with_policy(raw: L, policy: P) -> Self {
        let bias = match policy.tuning().bias {
            Bias::Eager => BiasState::biased(),
            Bias::Adaptive => BiasState::new(),
            Bias::Off => BiasState::never(),
        };
        Self { bias, raw, policy }
    }

    /// What decides and counts.
    pub const fn policy(&self) -> &P {
        &self.policy
    }

    #[inline(always)] // Into the caller: it is all that the fast path is.
    fn read(
        &self,
        slow: impl FnOnce(&L) -> Option<L::SharedGuard>,
    ) -> Option<ReadToken<L::SharedGuard>> {
        if pace::is_on_detour(self.bias.address()) {
            let guard = slow(&self.raw);
            pace::go_on();
            let guard = guard?;
            tell(&self.policy, Event::SlowRead);
            return Some(ReadToken::by(Way::Slow(guard)));
        }
        match self.bias.enter_at_once(&self.policy) {
            Ok(slot) => Some(ReadToken::by(Way::Fast(slot))),
            Err(missed) => self.read_otherwise(missed, slow),
        }
    }

    #[inline(never)] // The fast path would save registers for it.
    fn read_otherwise(
        &self,
        missed: Missed,
        slow: impl FnOnce(&L) -> Option<L::SharedGuard>,
    ) -> Option<ReadToken<L::SharedGuard>> {
        match missed {
            Missed::Closed => {}
            Missed::Displaced => {
                if let Some(slot) = self.bias.enter(&self.policy) {
                    return Some(ReadToken::by(Way::Fast(slot)));
                }
            }
            // SAFETY: published just now, by a reader who will have a token.
            Missed::TurnedAway(slot) => unsafe { slot.retract() },
        }
        // Asked before: a lock that others want is on another processor afterwards.
        let bias = ask(&self.policy).bias;
        let guard = slow(&self.raw)?;
        tell(&self.policy, Event::SlowRead);
        match bias {
            Bias::Eager => self.bias.set_at_once(),
            Bias::Adaptive if pace::is_considered() => self.bias.consider(),
            Bias::Adaptive | Bias::Off => self.bias.begin_detour(),
        }
        Some(ReadToken::by(Way::Slow(guard)))
    }

    /// `lock` is how to wait for the underlying lock.
    #[inline]
    fn write(
        &self,
        wait: Wait,
        lock: impl Fn(&L) -> Option<L::ExclusiveGuard>,
    ) -> Option<L::ExclusiveGuard> {
        // Who would not wait does not disturb readers in vain.
        if wait == Wait::Never && self.bias.is_read() {
            return None;
        }
        // Not announced, and not looked at beforehand: where there is no bias, each would take the line from the others
        // once more.
        let guard = lock(&self.raw)?;
        // [bias-checked] The one look that a write costs where there is no bias.
        if !self.bias.is_biased() || !prim::intact!("bias-checked") {
            return Some(guard);
        }
        self.write_biased(guard, wait, lock)
    }

    #[cold] // Rare, by the pace.
    fn write_biased(
        &self,
        guard: L::ExclusiveGuard,
        wait: Wait,
        lock: impl Fn(&L) -> Option<L::ExclusiveGuard>,
    ) -> Option<L::ExclusiveGuard> {
        // SAFETY: the caller has acquired it.
        unsafe { self.raw.unlock_exclusive(guard) };
        // Arrived: no bias is set until this is inside, or has given up.
        let mut arrival = self.bias.arrive();
        let granted = if arrival.drain(wait, &self.policy) {
            lock(&self.raw)
        } else {
            None
        };
        match granted {
            Some(_) => arrival.enter(),
            None => arrival.give_up(&self.policy),
        }
        granted
    }
}

impl<L: RawRwLock, P: Policy> Default for Bravo<L, P> {
    fn default() -> Self {
        Self::with_policy(L::INIT, P::INIT)
    }
}

impl<L: fmt::Debug, P: fmt::Debug> fmt::Debug for Bravo<L, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bravo")
            .field("bias", &self.bias)
            .field("raw", &self.raw)
            .field("policy", &self.policy)
            .finish()
    }
}

// SAFETY: the underlying lock excludes its writers from each other and from slow readers; `BiasState` excludes them
// from fast readers, who are visible in the table until they leave. Critical sections are ordered by either.
unsafe impl<L: RawRwLock, P: Policy> RawRwLock for Bravo<L, P> {
    const INIT: Self = prim::initial!(Self::new());

    type SharedGuard = ReadToken<L::SharedGuard>;
    type ExclusiveGuard = UnderToken<L::ExclusiveGuard>;

    #[cfg_attr(debug_assertions, track_caller)]
    #[inline(always)] // As above.
    fn lock_shared(&self) -> Self::SharedGuard {
        watch::acquire(self, Mode::Read, || {
            granted(self.read(|raw| Some(raw.lock_shared())))
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        watch::attempt(self, Mode::Read, || self.read(L::try_lock_shared))
    }

    #[inline]
    unsafe fn unlock_shared(&self, token: Self::SharedGuard) {
        watch::leave(self, Mode::Read);
        match token.0 {
            // SAFETY: the lock lives, and releases by token alone.
            Way::Fast(slot) => unsafe { slot.retract() },
            // SAFETY: the token is this lock's, so what is in it is the underlying lock's.
            Way::Slow(guard) => unsafe { self.raw.unlock_shared(guard) },
        }
    }

    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        watch::acquire(self, Mode::Write, || {
            UnderToken::new(granted(
                self.write(Wait::Forever, |raw| Some(raw.lock_exclusive())),
            ))
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        watch::attempt(self, Mode::Write, || {
            let guard = self.write(Wait::Never, L::try_lock_exclusive);
            guard.map(UnderToken::new)
        })
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, token: Self::ExclusiveGuard) {
        watch::leave(self, Mode::Write);
        // SAFETY: the caller's.
        unsafe { self.raw.unlock_exclusive(token.0) };
    }

    fn is_locked(&self) -> bool {
        self.raw.is_locked() || self.bias.is_read()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

// SAFETY: as above.
unsafe impl<L, P: Policy> RawRwLockTimed for Bravo<L, P>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant>,
{
    type Duration = Duration;
    type Instant = Instant;

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Self::SharedGuard> {
        watch::attempt(self, Mode::Read, || {
            self.read(|raw| raw.try_lock_shared_for(timeout))
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_shared_until(&self, deadline: Instant) -> Option<Self::SharedGuard> {
        watch::attempt(self, Mode::Read, || {
            self.read(|raw| raw.try_lock_shared_until(deadline))
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Self::ExclusiveGuard> {
        let until = |deadline| self.try_lock_exclusive_until(deadline);
        within(timeout, until, || self.lock_exclusive())
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<Self::ExclusiveGuard> {
        watch::attempt(self, Mode::Write, || {
            let guard = self.write(Wait::Until(deadline), |raw| {
                raw.try_lock_exclusive_until(deadline)
            });
            guard.map(UnderToken::new)
        })
    }
}

// SAFETY: the underlying lock's promise. Its new reader is a slow one, and no bias is set by it.
unsafe impl<L: RawRwLockDowngrade, P: Policy> RawRwLockDowngrade for Bravo<L, P> {
    unsafe fn downgrade(&self, token: Self::ExclusiveGuard) -> Self::SharedGuard {
        watch::convert(self, Mode::Write, Mode::Read);
        // SAFETY: the caller's.
        ReadToken::by(Way::Slow(unsafe { self.raw.downgrade(token.0) }))
    }
}
