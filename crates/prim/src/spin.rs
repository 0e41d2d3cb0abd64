//! Bounded polite spinning. Every spin in the library ends after one of the limits named here.

/// Spins on a range's holder before the thread parks: a few microseconds, about what parking and being woken cost.
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
