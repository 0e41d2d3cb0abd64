//! Bounded polite spinning, and the unbounded one that hardware locks do.

use crate::atomic::{AtomicU64, Ordering};
use crate::world;

/// Spins on a holder before the thread parks: a few microseconds, about what parking and being woken cost.
pub const ON_HOLDER: u32 = 7;

/// Spins while another request, already published, decides whether it stays: it is a short walk away from that.
pub const ON_DECISION: u32 = 6;

/// A bounded spin that waits longer each time: `2^k` pauses in round `k`.
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

    /// A spin on a word that its holder changes too: a look takes that away from it. So the first wait is long already,
    /// and who holds the lock for less gets it again meanwhile without a transfer (Anderson, TPDS 1990, §IV).
    #[must_use]
    pub const fn backing_off() -> Self {
        // 64 and 128 pauses: a pause takes from 10 to 140 cycles.
        Self {
            round: 6,
            rounds: 8,
        }
    }

    /// Waits one round; `false` once the rounds are used up.
    pub fn round(&mut self) -> bool {
        if self.round == self.rounds {
            return false;
        }
        let pause = world::peek(|world| world.setup.machine.cycles.pause);
        world::work(pause.unwrap_or(0) << self.round);
        self.round += 1;
        true
    }
}

/// Spins until `word` does not hold `seen` any more, and returns what it holds. Costs nobody anything but the loads
/// that follow a change.
#[track_caller]
pub fn until_changed(word: &AtomicU64, seen: u64) -> u64 {
    loop {
        let now = word.load(Ordering::Acquire);
        if now != seen {
            return now;
        }
        world::watch(std::ptr::from_ref(word).addr());
    }
}
