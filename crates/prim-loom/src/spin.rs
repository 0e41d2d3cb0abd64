//! Spinning, as short as it can be: what spins on hardware parks here, unless a model asks for spins.

use crate::atomic::{AtomicU64, Ordering};
use crate::with_execution;

/// Spins on a holder before the thread parks: none, unless the model has others.
pub const ON_HOLDER: u32 = u32::MAX;

/// Spins while another request, already published, decides whether it stays.
pub const ON_DECISION: u32 = 1;

/// Spins and yields of one execution that loom explores; past them it follows one fair schedule to the execution's end.
/// Models with spins explore a few more.
pub(crate) const EXPLORED: usize = 6;

/// Spins until `word` does not hold `seen` any more, and returns what it holds.
#[track_caller]
pub fn until_changed(word: &AtomicU64, seen: u64) -> u64 {
    loop {
        let now = word.load(Ordering::Acquire);
        if now != seen {
            return now;
        }
        crate::thread::yield_now();
    }
}

/// A bounded spin.
#[derive(Debug)]
pub struct Spin {
    round: u32,
    rounds: u32,
}

impl Spin {
    /// A spin of at most `rounds` rounds.
    #[must_use]
    pub const fn new(rounds: u32) -> Self {
        Self { round: 0, rounds }
    }

    /// A spin on a word that its holder changes too.
    #[must_use]
    pub const fn backing_off() -> Self {
        Self::new(ON_HOLDER)
    }

    /// Lets another thread run; `false` once the rounds are used up.
    #[track_caller]
    pub fn round(&mut self) -> bool {
        let rounds = match self.rounds {
            ON_HOLDER => crate::SETTING.get().rounds,
            rounds => rounds,
        };
        if self.round == rounds {
            return false;
        }
        self.round += 1;
        crate::thread::yield_now();
        true
    }
}

/// Counts one spin; past those explored, loom no longer branches.
pub(crate) fn count() {
    let spins = with_execution(|execution| {
        execution.spins += 1;
        execution.spins
    });
    if spins == crate::SETTING.get().explored {
        loom::skip_branch();
    }
}
