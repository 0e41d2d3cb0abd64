//! BRAVO: a bias towards readers, over any reader-writer lock of `lock_api`, which is then the *underlying* lock.
//!
//! `docs/rwlocks.md` tells how readers and writers come and go, and why. Arrows between the modules point down the
//! table; whatever the account advises, the protocol below it is correct.
//!
//! | module | content |
//! |---|---|
//! | `upgrade` | upgradable readers |
//! | `pthread` | the lock for C, whose releases do not name what they release |
//! | `bias` | where protocol and account meet: asks for advice, takes the steps, tells what came of them |
//! | `hint` | which acquisitions go by the underlying lock without a look at the bias |
//! | `options` | what a user chooses, and what is counted |
//! | `account` | advice: whether a bias pays, and when it is tried again; every tuned constant |
//! | `state` | protocol: the word by which fast readers and writers of one lock agree |
//! | `table` | protocol: where readers publish, and how a writer waits for them |
//!
//! A writer that expects no bias takes the underlying lock first, and checks the bias then (**bias-checked**). If it
//! finds one it releases the lock again, revokes, and asks anew: no writer waits for fast readers with the underlying
//! lock held, so a fast reader may read again, whatever that lock prefers.

use super::raw::{Token, raw_rwlock};
use super::watch::{self, Mode};
use crate::wait::Wait;
use account::{LOOK, TIMED};
use bias::BiasState;
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use options::{Bias, Event, Policy, Standard, bias_of, report};
use prim::clock::{self, Duration, Instant};
use table::{Publication, ReaderRow};

mod account;
pub(super) mod bias;
mod hint;
pub(super) mod options;
pub(super) mod pthread;
mod state;
pub mod table;
mod upgrade;

pub use hint::Sampler;

/// Makes a reader-writer lock scale with its readers.
///
/// While that pays the lock is *biased*: a reader stores the lock's address in a slot of its own, in a table that all
/// locks share, and does not touch the underlying lock. A writer first revokes the bias: it waits until the readers in
/// the table have left. When the last writer has left, the bias is back, unless it did not pay.
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
/// use spanlock::rw::{Bias, Counted, WritersFirst};
/// let eager = Counted::new(Bias::EAGER);
/// let lock = Bravo::with_policy(FutexRwLock::<WritersFirst>::new(), eager);
/// let lock = lock_api::RwLock::from_raw(lock, 5);
/// assert_eq!(*lock.read(), 5);
/// // SAFETY: the raw lock is asked for its counts, and not released.
/// assert_eq!(unsafe { lock.raw() }.policy().counts().fast_reads, 1);
/// ```
///
/// - **Size**: 8 bytes, the underlying lock and the policy ([`Standard`] takes no space). The table belongs to the
///   process: 128 bytes for each thread that reads.
/// - **Cost of a read**: with a bias that has lived for a tenth of a millisecond, one store to acquire and one to
///   release, both to a cache line of the thread's own, and no atomic read-modify-write; with a younger one, a
///   compare-exchange on that line. Threads beyond twice the number of processors share lines. Without a bias, a read
///   costs as much as the underlying lock's; one in 17 looks whether there is a bias now, and one in 136 reads the
///   clock.
/// - **Cost of a write**: without a bias, a load more than the underlying lock's. A write that revokes scans two cache
///   lines for each thread that reads, and reads the clock four times. If the bias has lived long, it also fences for
///   all threads of the process, which takes microseconds. Writers that come while one revokes share that. Where
///   readers are dense, a writer first waits until the fast path has been open for 1.5 microseconds.
/// - **First use**: the first biased read of a process registers with Linux for such fences. That takes tens of
///   milliseconds, once, if the process has other threads.
/// - **Fairness**: the underlying lock's, with one difference. A writer that gets the underlying lock and finds a bias
///   releases it, revokes, and asks again. So the writer loses its place in a queue, once. The delay is at most the
///   critical sections of readers: once the table is empty the writer queues as any other. Readers that come while
///   writers keep the path closed wait for 32 microseconds at most, and then ask the underlying lock.
/// - **Recursion**: as in the underlying lock. Also, a thread that reads by the table may read again, if the underlying
///   lock's readers share, and if no reader inside waits for it (as one does that upgrades). Over a mutex a thread must
///   not read twice: by the slow path it would wait for itself.
/// - **Waiting**: a try never waits, and does not spin. A timed write gives up in time, also during a revocation, and
///   leaves the bias set or kept. A revoking writer spins briefly and then sleeps. A reader that waits for the path,
///   and a writer that lets readers in, spin and yield the processor in turn; so their limits of time hold but for what
///   the system takes to run them again. A try to read may fail although no writer is inside, because a writer holds
///   the underlying lock for a moment to check the bias. A try to write that would fail because of readers in the table
///   leaves the bias set.
/// - **Downgrade**: where the underlying lock has it, and what that promises to readers that wait. Over
///   [`FutexRwLock`](super::FutexRwLock) that gives way to writers, it is a toss between them and a writer that waits.
/// - **Upgrade**: where the underlying lock has it. An upgradable reader takes the slow path, and counts as a slow
///   reader.
/// - **Threads**: guards stay on their threads, but for those of [`SendGuards`](crate::rw::SendGuards).
/// - **Not for** locks that are mostly written, or used by one thread at a time.
/// - **Leaked guards**: a lock may be moved and dropped while a leaked read guard of it exists. If the lock is moved
///   before it is dropped (`drop(lock)` and `into_inner` do that), the publication stays in the table at the old
///   address. A lock that is made at that address later works, and is not biased as long as the publication stays. A
///   lock that arrives there with a bias (because it was moved there, or is biased from birth, [`Bias::Eager`]) does
///   not check: its first writer waits for the leaked reader. Memory safety is not affected.
///
/// Source: Dice and Kogan, *BRAVO: Biased Locking for Reader-Writer Locks*, USENIX ATC 2019. What differs is the order
/// of the store-load fence, revocation before the underlying lock is taken, and sleep; `docs/rwlocks.md` says why.
#[derive(Debug)]
pub struct Bravo<L, P = Standard> {
    bias: BiasState,
    raw: L,
    policy: P,
}

/// How a thread got in, with what it needs to leave.
#[derive(Debug)]
pub enum Way<B, G> {
    /// By the bias: a reader by the table; a writer that has arrived, and keeps the fast path closed until it leaves.
    Bias(B),
    /// By the underlying lock alone.
    Under(G),
}

/// Proof of one read acquisition of a [`Bravo`].
pub type ReadToken<G> = Token<Way<Publication, G>>;

/// Proof of one upgradable read of a [`Bravo`], which goes by the underlying lock.
pub type UnderToken<G> = Token<G>;

/// Proof of one write acquisition of a [`Bravo`].
pub type WriteToken<G> = Token<Way<G, G>>;

impl<L: RawRwLock, P: Policy> Bravo<L, P> {
    prim::const_fn! {
        /// A lock that nobody holds, without a bias so far, whatever its policy.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                bias: BiasState::new(Bias::STANDARD),
                raw: L::INIT,
                policy: P::INIT,
            }
        }
    }

    /// Puts a bias with that policy over a lock that nobody holds.
    #[must_use]
    pub fn with_policy(raw: L, policy: P) -> Self {
        let bias = BiasState::new(policy.bias());
        Self { bias, raw, policy }
    }

    pub(super) const fn underlying(&self) -> &L {
        &self.raw
    }

    /// The policy, with what it has counted.
    pub const fn policy(&self) -> &P {
        &self.policy
    }

    #[inline(always)] // Into the caller: it is all that the fast path is.
    fn read(&self, wait: Wait) -> Option<ReadToken<L::SharedGuard>> {
        self.read_by(wait, |raw, wait| match wait {
            Wait::Forever => Some(raw.lock_shared()),
            _ => raw.try_lock_shared(),
        })
    }

    /// `slow` acquires the underlying lock. It is given `wait`, and so captures nothing: what it captured the fast path
    /// would store on the stack.
    #[inline(always)] // As above.
    pub(super) fn read_by(
        &self,
        wait: Wait,
        slow: impl FnOnce(&L, Wait) -> Option<L::SharedGuard>,
    ) -> Option<ReadToken<L::SharedGuard>> {
        if hint::spend(self.bias.path.address()) {
            let guard = slow(&self.raw, wait)?;
            report(&self.policy, Event::SlowRead);
            return Some(Token::new(Way::Under(guard)));
        }
        let entered = self
            .bias
            .read_by_store(ReaderRow::known, &self.policy, back_out);
        match entered {
            Some(publication) => Some(Token::new(Way::Bias(publication))),
            None => self.read_otherwise(wait, slow),
        }
    }

    /// Enters by the table, whatever its grade, or acquires the underlying lock, looks at the bias then, and may set
    /// it.
    #[inline(never)] // Inlined, it would make the fast path save registers.
    fn read_otherwise(
        &self,
        wait: Wait,
        slow: impl FnOnce(&L, Wait) -> Option<L::SharedGuard>,
    ) -> Option<ReadToken<L::SharedGuard>> {
        // SAFETY: the row is used at once and not kept.
        let row = || unsafe { ReaderRow::here() };
        if self.bias.path.word().is_biased_or_kept()
            && let Some(publication) = self.bias.read(wait, row, &self.policy, back_out)
        {
            // None in a model, where a lock is made with a free bias.
            if hint::draw_one_in(prim::stock(LOOK, prim::sized(1, 1 << 16)) as u32) {
                self.bias.free_if_old();
            }
            return Some(Token::new(Way::Bias(publication)));
        }
        // Loaded before the acquisition: afterwards the line with the policy may be on another processor.
        let bias = bias_of(&self.policy);
        let is_timed = matches!(bias, Bias::Adaptive { .. })
            && hint::draw_one_in(prim::stock(TIMED, 1) as u32);
        let start = is_timed.then(clock::nanoseconds);
        let guard = slow(&self.raw, wait)?;
        let latency = start.map(|start| clock::nanoseconds() - start);
        report(&self.policy, Event::SlowRead);
        if !self.bias.maybe_open(bias, latency) {
            hint::set(self.bias.path.address());
        }
        Some(Token::new(Way::Under(guard)))
    }

    #[inline]
    fn write(&self, wait: Wait) -> Option<WriteToken<L::ExclusiveGuard>> {
        self.write_by(wait, |raw| match wait {
            Wait::Forever => Some(raw.lock_exclusive()),
            _ => raw.try_lock_exclusive(),
        })
    }

    /// `lock` acquires the underlying lock.
    #[inline]
    fn write_by(
        &self,
        wait: Wait,
        lock: impl Fn(&L) -> Option<L::ExclusiveGuard>,
    ) -> Option<WriteToken<L::ExclusiveGuard>> {
        // A try that would fail leaves the readers their bias.
        if wait == Wait::Never && self.bias.is_read() {
            return None;
        }
        if !hint::spend(self.bias.path.address()) {
            let word = self.bias.path.word();
            // Who arrives before it asks for the underlying lock need not ask twice. But if the bias is kept, the path
            // is to open before: writers that followed each other without a gap would keep it closed.
            if word.is_biased() {
                return self.write_arriving(wait, lock);
            }
            if !word.is_biased_or_kept() && !bias_of(&self.policy).is_eager() {
                hint::set(self.bias.path.address());
            }
        }
        let guard = lock(&self.raw)?;
        // [bias-checked] With the hint, the one load that a write costs without a bias.
        if !self.bias.path.is_biased() || !prim::intact!("bias-checked") {
            return Some(Token::new(Way::Under(guard)));
        }
        // SAFETY: `guard` is the acquisition of this very lock just now, and it is consumed here.
        unsafe { self.raw.unlock_exclusive(guard) };
        self.write_arriving(wait, lock)
    }

    #[inline(never)] // Where there is no bias, writes are as short as the underlying lock's.
    fn write_arriving(
        &self,
        wait: Wait,
        lock: impl Fn(&L) -> Option<L::ExclusiveGuard>,
    ) -> Option<WriteToken<L::ExclusiveGuard>> {
        self.bias.let_readers_in(wait, bias_of(&self.policy));
        let revocation = self.bias.arrive(&self.policy);
        let is_drained = revocation.drain(wait, &self.policy);
        let guard = is_drained.then(|| lock(&self.raw)).flatten()?;
        revocation.stay();
        Some(Token::new(Way::Bias(guard)))
    }

    /// The writer's critical section ends. The underlying lock is still held as it was.
    #[inline]
    pub(super) fn leave(&self, token: WriteToken<L::ExclusiveGuard>) -> L::ExclusiveGuard {
        match token.what() {
            Way::Under(guard) => guard,
            Way::Bias(guard) => {
                // Before the underlying lock is released: those who wait for that see the open path.
                self.bias.leave(&self.policy);
                guard
            }
        }
    }

    #[inline]
    pub(super) fn leave_shared(&self, token: ReadToken<L::SharedGuard>) {
        match token.what() {
            // SAFETY: the token owns the publication. The lock lives, so its drop has not retracted it, and locks of
            // this type are released by token alone.
            Way::Bias(publication) => unsafe { publication.retract() },
            // SAFETY: whoever releases promises that the token is this lock's, so the guard in it is the underlying
            // lock's.
            Way::Under(guard) => unsafe { self.raw.unlock_shared(guard) },
        }
    }

    #[inline]
    fn leave_exclusive(&self, token: WriteToken<L::ExclusiveGuard>) {
        let guard = self.leave(token);
        // SAFETY: whoever releases promises that the token is this lock's, so the guard in it is the underlying lock's.
        unsafe { self.raw.unlock_exclusive(guard) };
    }

    fn is_locked(&self) -> bool {
        self.raw.is_locked() || self.bias.is_read()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

#[cold] // A writer has arrived in between.
fn back_out(publication: Publication) {
    // SAFETY: the running thread made this publication just now and has not handed it out, so it still stands.
    unsafe { publication.retract() };
}

impl<L: RawRwLock, P: Policy> Default for Bravo<L, P> {
    fn default() -> Self {
        Self::with_policy(L::INIT, P::INIT)
    }
}

// SAFETY (of the traits): the underlying lock excludes writers from each other and from slow readers. `BiasState`
// excludes writers from fast readers, which are published until they leave. Both order critical sections.
raw_rwlock!([L: RawRwLock, P: Policy] Bravo<L, P>, ReadToken<L::SharedGuard>, WriteToken<L::ExclusiveGuard>);

// SAFETY: the timed forms acquire as the untimed ones do, or not at all.
unsafe impl<L, P: Policy> RawRwLockTimed for Bravo<L, P>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant>,
{
    type Duration = Duration;
    type Instant = Instant;

    raw_rwlock! { @timed methods of Read (Self::SharedGuard):
    try_lock_shared_for, try_lock_shared_until by read_until }
    raw_rwlock! { @timed methods of Write (Self::ExclusiveGuard):
    try_lock_exclusive_for, try_lock_exclusive_until by write_until }
}

impl<L, P: Policy> Bravo<L, P>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant>,
{
    fn read_until(&self, wait: Wait) -> Option<ReadToken<L::SharedGuard>> {
        self.read_by(wait, |raw, wait| match wait.deadline() {
            Some(deadline) => raw.try_lock_shared_until(deadline),
            None => Some(raw.lock_shared()),
        })
    }

    fn write_until(&self, wait: Wait) -> Option<WriteToken<L::ExclusiveGuard>> {
        self.write_by(wait, |raw| match wait.deadline() {
            Some(deadline) => raw.try_lock_exclusive_until(deadline),
            None => Some(raw.lock_exclusive()),
        })
    }
}

// SAFETY: the underlying lock turns its writer into its reader without letting another writer in. The new reader is a
// slow reader, and sets no bias.
unsafe impl<L: RawRwLockDowngrade, P: Policy> RawRwLockDowngrade for Bravo<L, P> {
    unsafe fn downgrade(&self, token: Self::ExclusiveGuard) -> Self::SharedGuard {
        watch::convert(self, Mode::Write, Mode::Read);
        let guard = self.leave(token);
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        Token::new(Way::Under(unsafe { self.raw.downgrade(guard) }))
    }
}
