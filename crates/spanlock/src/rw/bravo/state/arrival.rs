//! The writers' half of the protocol in the header of `state.rs`: they arrive, wait for the table, and leave.

use super::super::account;
use super::super::policy::{Event, Policy, report, tuning_of};
use super::super::table;
use super::BiasState;
use super::word::{ARRIVAL, Word};
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
        // If the bias is clear there is nobody to wait for: no reader is inside by the table, and none sets a bias
        // beside a writer that has arrived.
        let since = before.is_biased().then(account::now);
        if before.is_fenced() {
            // [bias-writer-fenced] Against [bias-reader-fenced].
            if prim::intact!("bias-writer-fenced") {
                fence(Ordering::SeqCst);
            }
            report(policy, Event::Scan);
        } else if before.is_biased() {
            // [bias-writer] The heavy side of [bias-reader].
            if prim::intact!("bias-writer") {
                barrier::heavy();
            }
            report(policy, Event::Membarrier);
        }
        Arrival { bias: self, since }
    }

    /// A writer that has arrived leaves, and still holds the underlying lock. The last one opens the path again if the
    /// bias is kept.
    pub(in crate::rw) fn leave(&self, policy: &impl Policy) {
        // [bias-reopened] Release: pairs with [bias-seen].
        let order = prim::order!("bias-reopened", Ordering::Release);
        let mut left = Word::UNBIASED;
        // [bias-kept-last] In one step with the arrival of the last.
        let early = (!prim::intact!("bias-kept-last")).then(|| self.word());
        let leaves = |word| {
            left = early.unwrap_or(Word(word)).left();
            Some(left.0)
        };
        let _ = self.word.fetch_update(order, Ordering::Relaxed, leaves);
        if left.is_open() {
            // The account comes after the word: until then a revocation weighs a life too long.
            let (account, now) = (self.account(), account::now());
            self.set_account(account.opened(now));
            let closed = Duration::from_nanos(account.elapsed(now));
            report(policy, Event::Reopening { closed });
        }
    }
}

/// A writer that has arrived and does not stay. To drop this is to give up.
#[derive(Debug)]
#[must_use = "to drop it is to give up"]
pub struct Arrival<'a> {
    bias: &'a BiasState,
    /// When the writer arrived, in nanoseconds, if it found a bias.
    since: Option<u64>,
}

impl Arrival<'_> {
    /// Waits until no reader is inside by the table, and clears the bias; `false` if that takes longer than `wait`
    /// allows. Spins briefly, then sleeps.
    ///
    /// Readers may wait for a writer that holds the underlying lock, and this waits for readers: so the caller does not
    /// hold it, unless new readers are to wait.
    #[must_use]
    pub fn drain(&self, wait: Wait, policy: &impl Policy) -> bool {
        let Some(since) = self.since else {
            return true;
        };
        let bias = self.bias;
        // [bias-drain]
        if prim::intact!("bias-drain") && !table::drain(bias.address(), wait) {
            report(policy, Event::Withdrawal);
            return false;
        }
        let (now, word, bound) = (account::now(), bias.word(), tuning_of(policy).bound);
        let (is_kept, account) = bias.account().revoked(word, since, now, bound);
        let fate = if is_kept { Word::KEPT } else { Word::UNBIASED };
        // [bias-off] Release: pairs with [bias-off-checked] and [bias-off-begin]. Several writers may do this; the
        // first decides whether the bias is kept.
        let order = prim::order!("bias-off", Ordering::AcqRel);
        let closes = |word| Word(word).closed(fate).map(|closed| closed.0);
        let closed = bias.word.fetch_update(order, Ordering::Acquire, closes);
        if closed.is_ok() {
            bias.set_account(account);
            let took = Duration::from_nanos(now.saturating_sub(since));
            let inhibited = Duration::from_nanos(if is_kept { 0 } else { account.price() });
            report(policy, Event::Revocation { took, inhibited });
        }
        true
    }

    /// The writer is inside: it has drained, and holds the underlying lock. It leaves by [`BiasState::leave`].
    pub(in crate::rw) fn stay(self) {
        debug_assert!(!self.bias.word().is_biased(), "not drained");
        mem::forget(self); // Its drop would take the arrival off.
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        // If the bias is clear, its writer has weighed the time already.
        if let Some(since) = self.since
            && self.bias.word().is_biased()
        {
            let account = self.bias.account().resumed(since, account::now());
            self.bias.set_account(account);
        }
        // [bias-withdraw] Not Release: who opens the path next holds the underlying lock.
        if prim::intact!("bias-withdraw") {
            self.bias.word.fetch_sub(ARRIVAL, Ordering::Relaxed);
        }
    }
}
