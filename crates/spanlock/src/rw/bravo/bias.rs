//! The bias of a lock: its fast path, and its account beside that.
//!
//! The two meet here alone. An acquisition asks the account for advice, which is plain data, takes the steps of the
//! protocol (`state.rs`), and tells the account what came of them. The protocol knows no account, and the account
//! (`account.rs`) no word of the protocol: whatever it advises, the lock is correct. A policy that is not adaptive
//! takes its place: never a bias ([`Bias::Off`]), or one as soon as a reader can set it ([`Bias::Eager`]).

use super::account::{Account, OVERDUE};
use super::options::{Bias, Event, Policy, bias_of, report};
use super::state::{Arrival, Path, Word};
use super::table::{self, Publication, ReaderRow};
use crate::wait::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::{self, Duration};
use std::mem;

/// The bias of a lock: 8 bytes beside the underlying lock, all zero when unbiased.
///
/// It must not move while a reader is inside.
#[derive(Debug)]
pub struct BiasState {
    pub(super) path: Path,
    /// An [`Account`]. Slow readers that sample, threads that open or close the path, and writers that give up store
    /// here, and one may overwrite what another stored. A lost value makes a trial early or late, or keeps a bias once
    /// too often. It never affects exclusion.
    account: AtomicU32,
}

impl BiasState {
    prim::const_fn! {
        /// With no readers and no writers; free from birth if the bias is eager, else unbiased.
        #[must_use]
        pub const fn new(bias: Bias) -> Self {
            let word = match bias {
                Bias::Eager { .. } => Word::FREE,
                Bias::Adaptive { .. } | Bias::Off => Word::UNBIASED,
            };
            Self {
                path: Path::new(word),
                account: AtomicU32::new(0),
            }
        }
    }

    /// Whether the fast path is open. One load, which orders nothing.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.path.word().is_open()
    }

    /// Whether a reader is inside by the table, or is trying to get in. Scans the table if the bias is set.
    #[inline]
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.path.is_read()
    }

    fn account(&self) -> Account {
        Account(self.account.load(Ordering::Relaxed))
    }

    fn set_account(&self, account: Account) {
        self.account.store(account.0, Ordering::Relaxed);
    }

    /// Enters by the table where a publication is one store, as [`Path::read_by_store`] does.
    #[inline(always)] // It is all that the fast path is.
    pub(super) fn read_by_store(
        &self,
        row: impl FnOnce() -> Option<ReaderRow>,
        policy: &impl Policy,
        back_out: impl FnOnce(Publication),
    ) -> Option<Publication> {
        let publication = self.path.read_by_store(row, back_out)?;
        report(policy, Event::FastRead);
        Some(publication)
    }

    /// Enters by the table whatever the grade of the bias. While the path is closed by writers that will open it again,
    /// waits for that: not at all in a try, and each time for [`OVERDUE`] at most. `None`: the reader has to go by the
    /// underlying lock.
    pub(super) fn read(
        &self,
        wait: Wait,
        row: impl Fn() -> ReaderRow,
        policy: &impl Policy,
        back_out: impl Fn(Publication),
    ) -> Option<Publication> {
        loop {
            let (open, row) = (self.path.await_open(wait, OVERDUE)?, row());
            let publication = self.path.publish(open, row);
            if publication.as_ref().is_none_or(|it| row.is_collision(it)) {
                report(policy, Event::Collision);
            }
            match self.path.recheck(publication?, open) {
                Ok(publication) => {
                    report(policy, Event::FastRead);
                    return Some(publication);
                }
                Err(publication) => back_out(publication),
            }
            if wait.is_over() {
                return None;
            }
        }
    }

    /// If the bias has lived long, its readers publish by plain stores from now on.
    #[cold] // It reads the clock.
    pub(super) fn free_if_old(&self) {
        if self.path.word() == Word::FENCED && self.account().is_old(clock::nanoseconds()) {
            self.path.free();
        }
    }

    /// For a reader that holds the underlying lock: opens the path if the bias is left kept, or if the policy and the
    /// account permit a trial. `latency` is how many nanoseconds it took to acquire that lock, if that is known.
    /// Whether the next acquisition is to look at the word: there is a bias now, one is kept, or the policy is eager.
    pub(super) fn maybe_open(&self, bias: Bias, latency: Option<u64>) -> bool {
        let word = self.path.word();
        let opens = match (bias, word, latency) {
            (Bias::Off, ..) => false,
            (_, Word::KEPT, _) | (Bias::Eager { .. }, Word::UNBIASED, _) => true,
            (Bias::Adaptive { .. }, Word::UNBIASED, Some(latency)) => self.note_sample(latency),
            _ => false,
        };
        if opens {
            self.set_account(self.account().opened(clock::nanoseconds()));
            self.path.open(word);
        }
        opens || word.is_biased_or_kept() || bias.is_eager()
    }

    /// Tells the account how long an acquisition of the underlying lock took. Whether it advises to try a bias now.
    #[cold] // It reads the clock.
    fn note_sample(&self, latency: u64) -> bool {
        let (is_to_try, account) = self.account().sampled(clock::nanoseconds(), latency);
        self.set_account(account);
        is_to_try
    }

    /// Before a writer arrives: if the policy is adaptive, readers are dense, and the path has just opened, waits until
    /// they have had time to get in, or another writer closes the path.
    pub(super) fn let_readers_in(&self, wait: Wait, bias: Bias) {
        let left = match bias {
            Bias::Adaptive { .. } => self.account().youth_left(clock::nanoseconds()),
            Bias::Off | Bias::Eager { .. } => 0,
        };
        if left > 0 {
            self.path.stay_open(wait, left);
        }
    }

    /// A writer begins to revoke the bias, as [`Path::arrive`] does.
    pub fn arrive(&self, policy: &impl Policy) -> Revocation<'_> {
        let arrival = self.path.arrive();
        match arrival.found() {
            found if found.is_fenced() => report(policy, Event::Scan),
            found if found.is_biased() => report(policy, Event::Membarrier),
            _ => {}
        }
        Revocation {
            bias: self,
            arrival,
        }
    }

    /// A writer that has arrived leaves, and still holds the underlying lock. The last one opens the path again if the
    /// bias is kept.
    pub(super) fn leave(&self, policy: &impl Policy) {
        if self.path.leave() {
            // The account comes after the word: until then a revocation weighs a life too long.
            let (account, now) = (self.account(), clock::nanoseconds());
            self.set_account(account.opened(now));
            let closed = Duration::from_nanos(account.elapsed(now));
            report(policy, Event::Reopening { closed });
        }
    }

    /// Makes the state that of an unbiased lock, whatever the memory held before: for a lock that begins its life
    /// without [`new`](Self::new).
    ///
    /// The table is left alone. If it holds this address, because a guard of an earlier lock was leaked, this lock is
    /// not biased until it does not.
    ///
    /// # Safety
    /// The lock begins its life, and no other thread uses it.
    pub unsafe fn begin(&self) {
        // SAFETY: the caller promises what this asks for.
        unsafe { self.path.begin() };
        self.set_account(Account::NEW);
    }

    /// Forgets readers, writers and the bias. Scans the table.
    ///
    /// # Safety
    /// The lock ends its life, and no other thread uses it.
    pub unsafe fn reset(&self) {
        // SAFETY: the caller promises that no other thread uses the lock, so nobody is inside by a publication of it.
        unsafe { table::forget(self.path.address()) };
        // SAFETY: the caller promises that no other thread uses the lock; what follows is another lock's life.
        unsafe { self.begin() };
    }
}

/// A revocation by a writer that has arrived and does not stay. To drop this is to give up.
#[derive(Debug)]
#[must_use = "to drop it is to give up"]
pub struct Revocation<'a> {
    bias: &'a BiasState,
    arrival: Arrival<'a>,
}

impl Revocation<'_> {
    /// Waits until no reader is inside by the table, and clears the bias; `false` if that takes longer than `wait`
    /// allows. Spins briefly, then sleeps.
    ///
    /// Readers may wait for a writer that holds the underlying lock, and this waits for readers: so the caller does not
    /// hold it, unless new readers are to wait.
    #[must_use]
    pub fn drain(&self, wait: Wait, policy: &impl Policy) -> bool {
        let Some(since) = self.arrival.since() else {
            return true;
        };
        if !self.arrival.await_readers(wait) {
            report(policy, Event::Withdrawal);
            return false;
        }
        let (bias, now) = (self.bias, clock::nanoseconds());
        let bound = bias_of(policy).bound();
        let (is_kept, account) = bias.account().revoked(since, now, bound);
        let fate = if is_kept { Word::KEPT } else { Word::UNBIASED };
        if self.arrival.close(fate) {
            bias.set_account(account);
            let took = Duration::from_nanos(now.saturating_sub(since));
            let inhibited = Duration::from_nanos(if is_kept { 0 } else { account.price() });
            report(policy, Event::Revocation { took, inhibited });
        }
        true
    }

    /// The writer is inside: it has drained, and holds the underlying lock. It leaves by [`BiasState::leave`].
    pub(super) fn stay(self) {
        debug_assert!(!self.bias.path.word().is_biased(), "not drained");
        mem::forget(self); // Its drop would take the arrival off.
    }
}

impl Drop for Revocation<'_> {
    fn drop(&mut self) {
        // If the bias is clear, its writer has weighed the time already.
        if let Some(since) = self.arrival.since()
            && self.bias.path.word().is_biased()
        {
            let account = self.bias.account().resumed(since, clock::nanoseconds());
            self.bias.set_account(account);
        }
        // The arrival, which is dropped next, withdraws.
    }
}
