//! Bounded spinning. Every spin in the library ends after one of the limits named here.

use core::marker::PhantomData;

/// Rounds of spinning on a holder before the thread parks: a few microseconds, about the cost of parking and waking.
pub const ON_HOLDER: u32 = 7;

/// The exponent of the longest round of a spin that the clock ends. The thread should notice that its wait is over in
/// about the time in which a cache line comes from another socket.
const LONGEST_BY_TIME: u32 = 5;

/// Rounds of spinning while another request, already published, decides whether it stays. It decides after a short
/// walk.
pub const ON_DECISION: u32 = 6;

/// The way in which a platform waits during a bounded spin.
#[doc(hidden)]
pub trait Pause {
    /// The number of rounds that a spin of at most `rounds` takes on this platform.
    #[inline]
    #[must_use]
    fn limit(rounds: u32) -> u32 {
        rounds
    }

    /// Waits for `2^exponent` pauses.
    fn pause(exponent: u32);
}

/// The processor's own pauses.
#[derive(Debug)]
#[doc(hidden)]
pub struct Processor;

impl Pause for Processor {
    #[inline]
    fn pause(exponent: u32) {
        // On Miri a pause lets the other threads run, and one is as good as many.
        let exponent = if cfg!(miri) { 0 } else { exponent };
        for _ in 0..1_u32 << exponent {
            core::hint::spin_loop();
        }
    }
}

/// A bounded spin with exponential back-off: `2^k` pauses in round `k`.
pub type Spin = SpinBy<Processor>;

/// A [`Spin`] on a platform that pauses as `P` does.
#[derive(Debug)]
pub struct SpinBy<P> {
    round: u32,
    rounds: u32,
    /// The exponent of the first round.
    first: u32,
    /// The exponent of the longest round.
    longest: u32,
    platform: PhantomData<P>,
}

impl<P: Pause> SpinBy<P> {
    /// A spin of at most `rounds` rounds.
    #[must_use]
    pub const fn new(rounds: u32) -> Self {
        Self::from_exponents(0, u32::BITS - 1, rounds)
    }

    /// A spin that the clock ends: rounds of up to 32 pauses, without a bound on their number.
    #[must_use]
    pub const fn by_time() -> Self {
        Self::from_exponents(0, LONGEST_BY_TIME, u32::MAX)
    }

    /// A spin on a word that the holder also writes.
    ///
    /// Each load by a waiter takes the cache line away from the holder. So the first wait is already long: a thread
    /// that releases and takes the lock again in that time does so without a transfer of the line (Anderson, TPDS
    /// 1990, §IV). This pays if threads do little but take the lock. If they have other work, short waits become long.
    #[must_use]
    pub const fn backing_off() -> Self {
        // 64 and then 128 pauses. One pause takes from 10 to 140 cycles, depending on the processor.
        Self::from_exponents(6, 7, 2)
    }

    const fn from_exponents(first: u32, longest: u32, rounds: u32) -> Self {
        Self {
            round: 0,
            rounds,
            first,
            longest,
            platform: PhantomData,
        }
    }

    /// Waits for one round; `false` once all rounds have been used.
    #[inline]
    #[track_caller]
    pub fn round(&mut self) -> bool {
        if self.round == P::limit(self.rounds) {
            return false;
        }
        P::pause(self.first.saturating_add(self.round).min(self.longest));
        self.round += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{ON_HOLDER, Pause, SpinBy};
    use std::cell::RefCell;

    thread_local! {
        static PAUSES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }

    struct Noted;

    impl Pause for Noted {
        fn pause(exponent: u32) {
            PAUSES.with_borrow_mut(|pauses| pauses.push(1 << exponent));
        }
    }

    fn pauses(mut spin: SpinBy<Noted>) -> Vec<u32> {
        while PAUSES.with_borrow(Vec::len) < 10 && spin.round() {}
        PAUSES.take()
    }

    #[test]
    fn rounds_double_up_to_a_bound() {
        let short = pauses(SpinBy::new(ON_HOLDER));
        assert_eq!(short, [1, 2, 4, 8, 16, 32, 64]);
        let long = pauses(SpinBy::by_time());
        assert_eq!(long, [1, 2, 4, 8, 16, 32, 32, 32, 32, 32]);
        assert_eq!(pauses(SpinBy::backing_off()), [64, 128]);
    }
}
