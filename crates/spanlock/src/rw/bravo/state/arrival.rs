//! The writers' half of the protocol in the header of `state.rs`: they arrive, wait for the table, and leave.

use super::super::account::{self, Fate};
use super::super::hint;
use super::super::policy::{Event, Policy, report, tuning_of};
use super::super::table;
use super::BiasState;
use super::word::{ARRIVAL, Grade, Word};
use crate::wait::Wait;
use prim::atomic::{Ordering, fence};
use prim::barrier;
use prim::clock::Duration;
use std::mem;

impl BiasState {
    /// A writer arrives: the fast path is closed until each that arrived has left or given up.
    ///
    /// If the bias is set this executes the writer's side of the fence, which takes microseconds if the bias is free.
    pub fn arrive(&self, policy: &impl Policy) -> Arrival<'_> {
        // [bias-off-begin] Acquire: pairs with [bias-off].
        let order = prim::order!("bias-off-begin", Ordering::Acquire);
        let before = Word(self.word.fetch_add(ARRIVAL, order));
        debug_assert!(before.has_room(), "too many writers");
        // If the bias is clear there is nobody to wait for: no reader is inside by the table, and none sets a bias
        // beside a writer that has arrived.
        let since = before.is_biased().then(account::now);
        if since.is_some() {
            if before.grade() == Grade::Fenced {
                // [bias-writer-fenced] Against [bias-reader-fenced].
                if prim::intact!("bias-writer-fenced") {
                    fence(Ordering::SeqCst);
                }
                report(policy, Event::Scan);
            } else {
                // [bias-writer] The heavy side of [bias-reader].
                if prim::intact!("bias-writer") {
                    barrier::heavy();
                }
                report(policy, Event::Membarrier);
            }
        }
        Arrival { bias: self, since }
    }

    /// A writer that has arrived leaves, and still holds the underlying lock. The last one opens the path again if the
    /// bias is kept.
    pub(in crate::rw) fn leave(&self, policy: &impl Policy) {
        // [bias-reopened] Release: pairs with [bias-seen].
        let order = prim::order!("bias-reopened", Ordering::Release);
        let mut seen = self.word();
        // [bias-kept-last] In one step with the arrival of the last.
        if prim::intact!("bias-kept-last") {
            let left = |word: Word| {
                self.word
                    .compare_exchange(word.0, word.left().0, order, Ordering::Relaxed)
            };
            while let Err(found) = left(seen) {
                seen = Word(found);
            }
        } else {
            self.word.fetch_sub(ARRIVAL, order);
            if seen.left().is_open() {
                self.word.store(Word::FENCED.0, order);
            }
        }
        if seen.left().is_open() {
            // The account comes after the word: until then a revocation weighs a life too long.
            let (account, now) = (self.account(), account::now());
            self.set_account(account.opened(now));
            let closed = Duration::from_nanos(account.elapsed(now));
            report(policy, Event::Reopening { closed });
        }
    }
}

/// One revocation in so many takes rho down by a step. A bias that pays may end by that, so it is rare.
const DOUBTS: u32 = prim::sized(1 << 12, 1 << 16) as u32;

/// A writer that has arrived and is not inside yet. To drop this is to give up.
#[derive(Debug)]
#[must_use = "to drop it is to give up"]
pub struct Arrival<'a> {
    bias: &'a BiasState,
    /// When the writer arrived, in nanoseconds, if it found a bias; `None` once the table is empty.
    since: Option<u64>,
}

impl Arrival<'_> {
    /// Waits until no reader is inside by the table, and clears the bias; `false` if that takes longer than `wait`
    /// allows. Spins briefly, then sleeps.
    ///
    /// Readers may wait for a writer that holds the underlying lock, and this waits for readers: so the caller does not
    /// hold it, unless new readers are to wait.
    #[must_use]
    pub fn drain(&mut self, wait: Wait, policy: &impl Policy) -> bool {
        let Some(since) = self.since else {
            return true;
        };
        // [bias-drain]
        if prim::intact!("bias-drain") && !table::drain(self.bias.address(), wait) {
            return false;
        }
        self.since = None; // From here on nothing is aborted.
        self.bias.close(since, policy);
        true
    }

    /// The writer is inside: it has drained, and holds the underlying lock. It leaves by [`BiasState::leave`].
    pub(in crate::rw) fn stay(self) {
        debug_assert!(self.since.is_none(), "not drained");
        mem::forget(self); // Its drop would take the arrival off.
    }

    /// The writer is inside, and will not be known when it leaves: a reader opens the path again.
    pub fn finish(self) {
        debug_assert!(self.since.is_none(), "not drained");
    }

    /// Gives up, as a drop does, and reports that to the policy.
    pub fn give_up(self, policy: &impl Policy) {
        if self.since.is_some() {
            report(policy, Event::Withdrawal);
        }
    }
}

impl BiasState {
    /// Clears the bias, after a revocation that began at `since`: the table is empty.
    fn close(&self, since: u64, policy: &impl Policy) {
        let (word, tuning) = (self.word(), tuning_of(policy));
        if !word.is_biased() {
            return; // Another writer has cleared it.
        }
        let (mut account, now) = (self.account(), account::now());
        if hint::samples_one_in(DOUBTS) {
            account = account.doubted();
        }
        let (fate, account) = account.revoked(word.grade(), since, now, tuning);
        // [bias-off] Release: pairs with [bias-off-checked] and [bias-off-begin]. Several writers may do this; the
        // first decides whether the bias is kept.
        let order = prim::order!("bias-off", Ordering::AcqRel);
        let close = |word| Word(word).closed(fate).map(|word| word.0);
        let closed = self.word.fetch_update(order, Ordering::Acquire, close);
        if closed.is_err() {
            return;
        }
        self.set_account(account);
        let took = Duration::from_nanos(now.saturating_sub(since));
        let inhibited = match fate {
            Fate::Kept => Duration::ZERO,
            Fate::Ended(inhibited) => inhibited,
        };
        report(policy, Event::Revocation { took, inhibited });
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since {
            let account = self.bias.account().resumed(since, account::now());
            self.bias.set_account(account);
        }
        // [bias-withdraw] Not Release: who opens the path next holds the underlying lock.
        if prim::intact!("bias-withdraw") {
            self.bias.word.fetch_sub(ARRIVAL, Ordering::Relaxed);
        }
    }
}
