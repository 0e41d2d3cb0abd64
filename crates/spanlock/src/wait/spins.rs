//! How long a thread spins on the holders that it meets.

use prim::spin::{ON_BUSY_HOLDER, ON_HOLDER, Spin};
use std::cell::Cell;

/// Whether long spins of one thread have paid lately.
///
/// Parking and waking cost the threads that wake others as much as the sleeper, so a thread gains if it spins for as
/// long as a critical section takes. It loses if the holder does not run, because more threads want to run than there
/// are processors. A thread cannot see which is true, so it learns: a long spin in vain makes its next spins short,
/// twice as many each time, and a long spin that pays starts over. So a thread for which long spins never pay makes one
/// in `2^MOST` of them, and loses less by it than a quarter of what its short spins cost.
#[derive(Debug, Default)]
pub(crate) struct Spins {
    /// How many of the next spins are short.
    short: Cell<u32>,
    /// Long spins in vain since the last that paid, up to [`MOST`].
    in_vain: Cell<u32>,
}

/// A long spin takes as long as sixteen short ones: in vain once in 64 spins, it costs a quarter of a short one.
const MOST: u32 = 6;

impl Spins {
    /// Spins until `is_over` or until the thread should park; whether it is over.
    #[inline]
    pub(crate) fn spin(&self, is_over: impl Fn() -> bool) -> bool {
        let rounds = self.rounds();
        let mut spin = Spin::new(rounds);
        let mut taken = 0;
        while spin.round() {
            taken += 1;
            if is_over() {
                if taken > ON_HOLDER {
                    self.in_vain.set(0);
                }
                return true;
            }
        }
        if rounds == ON_BUSY_HOLDER {
            let in_vain = (self.in_vain.get() + 1).min(MOST);
            self.in_vain.set(in_vain);
            self.short.set((1 << in_vain) - 1);
        }
        false
    }

    /// The rounds of the next spin.
    fn rounds(&self) -> u32 {
        match self.short.get() {
            0 => ON_BUSY_HOLDER,
            short => {
                self.short.set(short - 1);
                ON_HOLDER
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, MOST, ON_BUSY_HOLDER, ON_HOLDER, Spins};

    /// Spins until the holder has been looked at so often; how often it was looked at.
    fn looks(spins: &Spins, leaves_after: u32) -> u32 {
        let looks = Cell::new(0);
        let is_over = spins.spin(|| {
            looks.set(looks.get() + 1);
            looks.get() >= leaves_after
        });
        assert_eq!(is_over, looks.get() >= leaves_after);
        looks.get()
    }

    const NEVER: u32 = u32::MAX;

    #[test]
    fn spins_are_long_while_they_pay() {
        let spins = Spins::default();
        for _ in 0..100 {
            assert_eq!(looks(&spins, ON_HOLDER + 3), ON_HOLDER + 3);
        }
        assert_eq!(looks(&spins, NEVER), ON_BUSY_HOLDER);
        assert_eq!(looks(&spins, NEVER), ON_HOLDER);
        assert_eq!(looks(&spins, ON_BUSY_HOLDER), ON_BUSY_HOLDER, "it pays");
        assert_eq!(looks(&spins, NEVER), ON_BUSY_HOLDER);
        assert_eq!(looks(&spins, NEVER), ON_HOLDER);
        assert_eq!(looks(&spins, NEVER), ON_BUSY_HOLDER);
    }

    #[test]
    fn long_spins_in_vain_become_rare() {
        let spins = Spins::default();
        let all: Vec<_> = (0..1000).map(|_| looks(&spins, NEVER)).collect();
        let long = |(at, looks): (usize, &u32)| (*looks == ON_BUSY_HOLDER).then_some(at);
        let long: Vec<_> = all.iter().enumerate().filter_map(long).collect();
        let apart: Vec<_> = long.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(apart[..6], [2, 4, 8, 16, 32, 64]);
        assert!(
            apart[6..].iter().all(|&apart| apart == 1 << MOST),
            "{apart:?}"
        );
    }

    #[test]
    fn a_short_wait_says_nothing_about_long_spins() {
        let spins = Spins::default();
        assert_eq!(looks(&spins, NEVER), ON_BUSY_HOLDER);
        assert_eq!(looks(&spins, 1), 1);
        assert_eq!(looks(&spins, 1), 1, "with a long spin ahead");
        assert_eq!(looks(&spins, NEVER), ON_BUSY_HOLDER);
        let shorts = (0..4).map(|_| looks(&spins, NEVER)).collect::<Vec<_>>();
        assert_eq!(shorts, [ON_HOLDER, ON_HOLDER, ON_HOLDER, ON_BUSY_HOLDER]);
    }
}
