//! BRAVO: a bias towards readers, over any reader-writer lock of `lock_api`.
//!
//! A plain reader-writer lock counts its readers in one word. Every reader writes to that word, so its cache line goes
//! from processor to processor, and reading does not scale. Dice and Kogan put a *bias* over such a lock, which is then
//! the *underlying* lock (*BRAVO: Biased Locking for Reader-Writer Locks*, USENIX ATC 2019). While the bias is set a
//! reader does not touch the underlying lock. It *publishes* the lock's address in a slot of its own, in a table that
//! all locks of the process share. A writer *revokes* the bias first: it waits until no slot holds the address, and
//! clears the bias. After a revocation the bias is *inhibited*: it stays clear for a multiple of the time that the
//! revocation took.
//!
//! ```text
//!   read                                        write
//!   ----                                        -----
//!   bias set, no revoker? --- no ---+           lock the underlying lock
//!     | yes                         |             |
//!   publish in the table            |           bias set? --- no ---> inside
//!     |                             |             | yes  (bias-checked)
//!   still so? - no - retract -------+           unlock it, and begin a revocation:
//!     | yes                         |             register, fence, wait until no slot
//!   inside, by the table            v             holds the address, clear the bias
//!                      lock the underlying        |
//!                      lock, and now and        lock the underlying lock
//!                      then set the bias          |
//!                             |                 unregister; inside
//!                       inside, as a
//!                       slow reader
//! ```
//!
//! | module | content |
//! |---|---|
//! | `state` | the word by which fast readers and writers of one lock agree; the protocol and its edges |
//! | `table` | where readers publish, and how a writer waits for them |
//! | `inhibit` | when the bias may be set again, and which reads skip the fast path |
//! | `policy` | what a user chooses, and what is counted |
//! | `upgrade` | upgradable readers |
//! | `pthread` | the same for C, whose releases do not name what they release |
//!
//! # Why a writer revokes without the underlying lock
//!
//! The published algorithm revokes with the underlying lock held. Then a reader inside by the table, which reads again
//! by the underlying lock, waits for a writer that waits for it. Here no writer that waits for fast readers holds the
//! underlying lock, so a recursive fast read cannot deadlock, whatever that lock prefers. (`docs/rwlocks.md` has the
//! two exceptions.)
//!
//! An unbiased write pays one load for this: it takes the underlying lock first, and checks the bias then
//! (**bias-checked**). A writer that finds a bias has to release the lock again, and may lose its place in a queue.
//! The inhibition bounds how often that happens.

use super::raw::{Stays, granted, within};
use super::watch::{self, Mode};
use crate::wait::Wait;
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use policy::{Bias, Event, Policy, Standard, report, tuning_of};
use prim::clock::{Duration, Instant};
use state::{BiasState, Missed};
use std::fmt;
use table::Publication;

mod inhibit;
pub(super) mod policy;
pub(super) mod pthread;
pub(super) mod state;
pub mod table;
mod upgrade;

pub use inhibit::Sampler;

/// Makes a reader-writer lock scale with its readers.
///
/// While reading is frequent the lock is *biased*: a reader stores the lock's address in a slot of its own, in a table
/// that all locks share, and does not touch the underlying lock. A writer first revokes the bias: it waits until the
/// readers in the table have left. Afterwards the bias stays off for a while, longer if the revocation took longer.
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
/// // SAFETY: the raw lock is asked for its counts, and not released.
/// assert_eq!(unsafe { lock.raw() }.policy().counts().fast_reads, 1);
/// ```
///
/// - **Size**: 8 bytes, the underlying lock and the policy ([`Standard`] takes no space). The table belongs to the
///   process: 128 bytes for each thread that reads.
/// - **Cost of a read**: with a bias, one store to acquire and one to release, both to a cache line of the thread's
///   own, and no atomic read-modify-write. Threads beyond twice the number of processors share lines, and use a
///   compare-exchange. Without a bias, a read costs a load more than the underlying lock's. Most reads skip that load
///   on a machine of few processors, and where biases are rare on any machine, so a thread notices a new bias some
///   reads late.
/// - **Cost of a write**: without a bias, a load more than the underlying lock's. A write that revokes fences for all
///   threads of the process, which takes microseconds, and scans two cache lines for each thread that reads.
/// - **First use**: the first biased read of a process registers with Linux for such fences. That takes tens of
///   milliseconds, once, if the process has other threads.
/// - **Fairness**: the underlying lock's, with one difference. A writer that gets the underlying lock and finds a bias
///   releases it, revokes, and asks again. Meanwhile new readers get in by the slow path. So the writer loses its place
///   in a queue, once. The delay is at most the critical sections of readers: once the table is empty the writer queues
///   as any other.
/// - **Recursion**: as in the underlying lock. Also, a thread that reads by the table may read again, if the underlying
///   lock's readers share, and if no reader inside waits for it (as one does that upgrades). Over
///   [`MutexRwLock`](super::MutexRwLock) a thread must not read twice: by the slow path it would wait for itself.
/// - **Waiting**: a try never waits. A timed write gives up in time, also during a revocation, and then leaves the bias
///   set unless the table was empty. A revoking writer spins briefly and then sleeps. A try to read may fail although
///   no writer is inside, because a writer holds the underlying lock for a moment to check the bias. A try to write
///   that would fail because of readers in the table leaves the bias set.
/// - **Upgrade**: where the underlying lock has it. An upgradable reader takes the slow path, and counts as a slow
///   reader.
/// - **Threads**: guards stay on their threads, unless the feature `send_guard` is on and the underlying lock's guards
///   may leave theirs.
/// - **Not for** locks that are mostly written, or used by one thread at a time.
/// - **Leaked guards**: a lock may be moved and dropped while a leaked read guard of it exists. If the lock is moved
///   before it is dropped (`drop(lock)` and `into_inner` do that), the publication stays in the table at the old
///   address. A lock that is made at that address later works, and is not biased as long as the publication stays. A
///   lock that arrives there with a bias (because it was moved there, or is biased from birth, [`Bias::Eager`]) does
///   not check: its first writer waits for the leaked reader. Memory safety is not affected.
///
/// Source: Dice and Kogan, *BRAVO: Biased Locking for Reader-Writer Locks*, USENIX ATC 2019. What differs is the order
/// of the store-load fence, revocation before the underlying lock is taken, and sleep; `docs/rwlocks.md` says why.
pub struct Bravo<L, P = Standard> {
    bias: BiasState,
    raw: L,
    policy: P,
}

/// How a reader got in.
#[derive(Debug)]
enum Way<G> {
    /// By the table.
    Fast(Publication),
    /// By the underlying lock.
    Slow(G),
}

/// Proof of one read acquisition of a [`Bravo`].
#[derive(Debug)]
pub struct ReadToken<G>(Way<G>, Stays);

/// Proof of one acquisition of a [`Bravo`] that went through the underlying lock: a write, or an upgradable read.
#[derive(Debug)]
pub struct UnderToken<G>(G, Stays);

impl<G> ReadToken<G> {
    #[inline(always)] // Nothing but a constructor on the fast path.
    const fn by(way: Way<G>) -> Self {
        Self(way, Stays::new())
    }
}

impl<G> UnderToken<G> {
    #[inline(always)] // Nothing but a constructor.
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

    /// Puts a bias with that policy over a lock that nobody holds.
    #[must_use]
    pub fn with_policy(raw: L, policy: P) -> Self {
        let bias = match policy.tuning().bias {
            Bias::Eager => BiasState::biased(),
            Bias::Adaptive => BiasState::new(),
            Bias::Off => BiasState::never(),
        };
        Self { bias, raw, policy }
    }

    /// The policy, with what it has counted.
    pub const fn policy(&self) -> &P {
        &self.policy
    }

    #[inline(always)] // Into the caller: it is all that the fast path is.
    fn read(
        &self,
        slow: impl FnOnce(&L) -> Option<L::SharedGuard>,
    ) -> Option<ReadToken<L::SharedGuard>> {
        if inhibit::is_skipping(self.bias.address()) {
            let guard = slow(&self.raw);
            inhibit::count_skip();
            let guard = guard?;
            report(&self.policy, Event::SlowRead);
            return Some(ReadToken::by(Way::Slow(guard)));
        }
        match self.bias.fast_read_by_store(&self.policy) {
            Ok(publication) => Some(ReadToken::by(Way::Fast(publication))),
            Err(missed) => self.read_otherwise(missed, slow),
        }
    }

    #[inline(never)] // Inlined, it would make the fast path save registers.
    fn read_otherwise(
        &self,
        missed: Missed,
        slow: impl FnOnce(&L) -> Option<L::SharedGuard>,
    ) -> Option<ReadToken<L::SharedGuard>> {
        match missed {
            Missed::NotBiased => {}
            Missed::SlotBusy => {
                if let Some(publication) = self.bias.enter(&self.policy) {
                    return Some(ReadToken::by(Way::Fast(publication)));
                }
            }
            // SAFETY: the running thread made this publication just now and has not handed it out, so it still stands.
            Missed::Revoking(publication) => unsafe { publication.retract() },
        }
        // Loaded before the acquisition: afterwards the line with the policy may be on another processor.
        let bias = tuning_of(&self.policy).bias;
        let guard = slow(&self.raw)?;
        report(&self.policy, Event::SlowRead);
        match bias {
            Bias::Eager => self.bias.set_bias_now(),
            Bias::Adaptive if inhibit::samples_this_read() => self.bias.maybe_set_bias(),
            Bias::Adaptive | Bias::Off => self.bias.begin_skipping(),
        }
        Some(ReadToken::by(Way::Slow(guard)))
    }

    /// `lock` acquires the underlying lock.
    #[inline]
    fn write(
        &self,
        wait: Wait,
        lock: impl Fn(&L) -> Option<L::ExclusiveGuard>,
    ) -> Option<L::ExclusiveGuard> {
        // A try that would fail leaves the readers their bias.
        if wait == Wait::Never && self.bias.is_read() {
            return None;
        }
        // The writer neither registers nor loads the bias before this. Without a bias, each would transfer the lock's
        // cache line once more.
        let guard = lock(&self.raw)?;
        // [bias-checked] The one load that a write costs without a bias.
        if !self.bias.is_biased() || !prim::intact!("bias-checked") {
            return Some(guard);
        }
        self.write_biased(guard, wait, lock)
    }

    #[cold] // The inhibition makes it rare.
    fn write_biased(
        &self,
        guard: L::ExclusiveGuard,
        wait: Wait,
        lock: impl Fn(&L) -> Option<L::ExclusiveGuard>,
    ) -> Option<L::ExclusiveGuard> {
        // SAFETY: `guard` is the caller's acquisition of this very lock, and it is consumed here.
        unsafe { self.raw.unlock_exclusive(guard) };
        // While the writer is registered no reader sets the bias.
        let mut revocation = self.bias.begin_revocation();
        let granted = if revocation.drain(wait, &self.policy) {
            lock(&self.raw)
        } else {
            None
        };
        match granted {
            Some(_) => revocation.finish(),
            None => revocation.give_up(&self.policy),
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

// SAFETY: the underlying lock excludes writers from each other and from slow readers. `BiasState` excludes writers from
// fast readers, which are published until they leave. Both order critical sections.
unsafe impl<L: RawRwLock, P: Policy> RawRwLock for Bravo<L, P> {
    const INIT: Self = prim::initial!(Self::new());

    type SharedGuard = ReadToken<L::SharedGuard>;
    type ExclusiveGuard = UnderToken<L::ExclusiveGuard>;

    #[track_caller]
    #[inline(always)] // Into the caller: it is all that the fast path is.
    fn lock_shared(&self) -> Self::SharedGuard {
        watch::acquire(self, Mode::Read, || {
            granted(self.read(|raw| Some(raw.lock_shared())))
        })
    }

    #[track_caller]
    #[inline]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        watch::attempt(self, Mode::Read, || self.read(L::try_lock_shared))
    }

    #[inline]
    unsafe fn unlock_shared(&self, token: Self::SharedGuard) {
        watch::leave(self, Mode::Read);
        match token.0 {
            // SAFETY: the token owns the publication. The lock lives, so its drop has not retracted it, and locks of
            // this type are released by token alone.
            Way::Fast(publication) => unsafe { publication.retract() },
            // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
            Way::Slow(guard) => unsafe { self.raw.unlock_shared(guard) },
        }
    }

    #[track_caller]
    #[inline]
    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        watch::acquire(self, Mode::Write, || {
            UnderToken::new(granted(
                self.write(Wait::Forever, |raw| Some(raw.lock_exclusive())),
            ))
        })
    }

    #[track_caller]
    #[inline]
    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        self.attempt_write(Wait::Never, L::try_lock_exclusive)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, token: Self::ExclusiveGuard) {
        watch::leave(self, Mode::Write);
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        unsafe { self.raw.unlock_exclusive(token.0) };
    }

    fn is_locked(&self) -> bool {
        self.raw.is_locked() || self.bias.is_read()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

impl<L: RawRwLock, P: Policy> Bravo<L, P> {
    /// A write that may give up.
    #[track_caller]
    #[inline]
    fn attempt_write(
        &self,
        wait: Wait,
        lock: impl Fn(&L) -> Option<L::ExclusiveGuard>,
    ) -> Option<UnderToken<L::ExclusiveGuard>> {
        watch::attempt(self, Mode::Write, || {
            self.write(wait, lock).map(UnderToken::new)
        })
    }
}

// SAFETY: the timed forms acquire as the untimed ones do, or not at all.
unsafe impl<L, P: Policy> RawRwLockTimed for Bravo<L, P>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant>,
{
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Self::SharedGuard> {
        watch::attempt(self, Mode::Read, || {
            self.read(|raw| raw.try_lock_shared_for(timeout))
        })
    }

    #[track_caller]
    fn try_lock_shared_until(&self, deadline: Instant) -> Option<Self::SharedGuard> {
        watch::attempt(self, Mode::Read, || {
            self.read(|raw| raw.try_lock_shared_until(deadline))
        })
    }

    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Self::ExclusiveGuard> {
        let until = |deadline| self.try_lock_exclusive_until(deadline);
        within(timeout, until, || self.lock_exclusive())
    }

    #[track_caller]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<Self::ExclusiveGuard> {
        self.attempt_write(Wait::Until(deadline), |raw| {
            raw.try_lock_exclusive_until(deadline)
        })
    }
}

// SAFETY: the underlying lock turns its writer into its reader without letting another writer in. The new reader is a
// slow reader, and sets no bias.
unsafe impl<L: RawRwLockDowngrade, P: Policy> RawRwLockDowngrade for Bravo<L, P> {
    unsafe fn downgrade(&self, token: Self::ExclusiveGuard) -> Self::SharedGuard {
        watch::convert(self, Mode::Write, Mode::Read);
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        ReadToken::by(Way::Slow(unsafe { self.raw.downgrade(token.0) }))
    }
}
