//! Bounded polite spinning. Every spin in the library ends after one of the limits named here.

use crate::atomic::{AtomicU64, Ordering};

/// Spins on a holder before the thread parks: a few microseconds, about what parking and being woken cost.
pub const ON_HOLDER: u32 = 7;

/// Spins while another request, already published, decides whether it stays: it is a short walk away from that.
pub const ON_DECISION: u32 = 6;

/// Looks of an unbounded spin before the processor is given away after each.
const LOOKS: u32 = 1000;

/// Spins until `word` does not hold `seen` any more, and returns what it holds.
///
/// Without bound, as hardware locks do: for workloads, and for locks that ours are compared with.
#[inline]
pub fn until_changed(word: &AtomicU64, seen: u64) -> u64 {
    let mut looks = 0;
    loop {
        // Acquire: as a lock that is spun on acquires.
        let now = word.load(Ordering::Acquire);
        if now != seen {
            return now;
        }
        if looks < LOOKS {
            looks += 1;
            core::hint::spin_loop();
        } else {
            crate::thread::yield_now();
        }
    }
}

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
    /// and who holds the lock for less gets it again meanwhile without a transfer (Anderson, TPDS 1990, §IV). That pays
    /// where threads do little but take the lock; where they have other work it makes short waits long.
    #[must_use]
    pub const fn backing_off() -> Self {
        // 64 and 128 pauses: a pause takes from 10 to 140 cycles.
        Self {
            round: 6,
            rounds: 8,
        }
    }

    /// Waits one round; `false` once the rounds are used up.
    #[inline]
    pub fn round(&mut self) -> bool {
        if self.round == self.rounds {
            return false;
        }
        for _ in 0..1_u32 << self.round {
            core::hint::spin_loop();
        }
        self.round += 1;
        true
    }
}
