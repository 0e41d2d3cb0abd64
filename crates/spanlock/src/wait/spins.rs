//! How long a thread spins on the holders that it meets.

use prim::clock;
use prim::spin::{ON_HOLDER, Spin};
use std::cell::Cell;

/// Whether the long spins of one thread have paid.
///
/// Parking and waking cost the threads that wake others as much as the sleeper, and whoever waits for the sleeper waits
/// for its wake-up, too. So a thread gains if it spins for about as long as that takes: a short spin, and then a long
/// one of [`LONG_SPIN`].
///
/// It loses if the holder does not run, because more threads want to run than there are processors. A thread cannot see
/// which is true, so it learns: a long spin in vain makes its next spins short, twice as many each time, and a long
/// spin that pays starts over. So a thread for which long spins never pay makes one in `2^MOST` of them.
#[derive(Debug, Default)]
pub(crate) struct Spins {
    /// How many of the next spins are short.
    short: Cell<u32>,
    /// Long spins in vain since the last that paid, up to [`MOST`].
    in_vain: Cell<u32>,
}

/// About what it costs to park a thread and to wake it, in nanoseconds. Who spins for that long before it parks loses
/// no more than twice what it would with the best choice. Longer spins keep from its processor whom they wait for.
const LONG_SPIN: u64 = 16_000;

/// Once in 64 spins, a long one takes a quarter of a microsecond of each.
const MOST: u32 = 6;

impl Spins {
    /// Spins until `is_over` or until the thread should park; whether it is over.
    #[inline]
    pub(crate) fn spin(&self, is_over: impl Fn() -> bool) -> bool {
        self.spin_until(u64::MAX, is_over)
    }

    /// Spins as [`spin`](Self::spin) does, but no longer than until `limit`, in nanoseconds, beyond a short spin.
    #[inline]
    fn spin_until(&self, limit: u64, is_over: impl Fn() -> bool) -> bool {
        let mut spin = Spin::by_time();
        let mut ends = None;
        for round in 0_u32.. {
            if round == ON_HOLDER {
                ends = Some(clock::nanoseconds() + self.most());
            }
            let is_too_long = ends.is_some_and(|ends| clock::nanoseconds() >= ends.min(limit));
            if is_too_long || !spin.round() {
                break;
            }
            if is_over() {
                if ends.is_some() {
                    self.in_vain.set(0);
                }
                return true;
            }
        }
        // A spin that was cut short tells nothing about long ones.
        if ends.is_some_and(|ends| ends <= limit) {
            self.learn();
        }
        false
    }

    /// How long to spin after a short spin.
    fn most(&self) -> u64 {
        match self.short.get() {
            0 => LONG_SPIN,
            _ => 0,
        }
    }

    /// Notes a spin in vain.
    fn learn(&self) {
        let short = match self.short.get() {
            0 => {
                let in_vain = (self.in_vain.get() + 1).min(MOST);
                self.in_vain.set(in_vain);
                (1 << in_vain) - 1
            }
            short => short - 1,
        };
        self.short.set(short);
    }
}

/// The time in which one acquisition may wait while it is in the way of others: as long as a long spin, in sum.
#[derive(Debug)]
pub(crate) struct Stay<'a> {
    spins: &'a Spins,
    /// When it ends, in nanoseconds, if it has begun.
    ends: Cell<Option<u64>>,
}

impl<'a> Stay<'a> {
    pub(crate) fn new(spins: &'a Spins) -> Self {
        let ends = Cell::new(None);
        Self { spins, ends }
    }

    /// Whether long spins have lately paid.
    pub(crate) fn may_pay(&self) -> bool {
        self.spins.most() != 0
    }

    /// Whether there is no time left.
    pub(crate) fn is_over(&self) -> bool {
        self.ends
            .get()
            .is_some_and(|ends| clock::nanoseconds() >= ends)
    }

    /// Spins as [`Spins::spin`], while there is time.
    pub(crate) fn spin(&self, is_over: impl Fn() -> bool) -> bool {
        let ends = self
            .ends
            .get()
            .unwrap_or_else(|| clock::nanoseconds() + LONG_SPIN);
        self.ends.set(Some(ends));
        self.spins.spin_until(ends, is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, MOST, ON_HOLDER, Spins, Stay, clock};

    #[test]
    fn a_stay_is_bounded_in_sum() {
        let spins = Spins::default();
        let stay = Stay::new(&spins);
        assert!(!stay.is_over());
        assert!(stay.spin(|| true));
        let ends = stay.ends.get().expect("it has begun");
        // Each spin in vain takes some time, and none begins a new stay.
        while !stay.is_over() {
            stay.spin(|| false);
            assert_eq!(stay.ends.get(), Some(ends));
        }
        assert!(clock::nanoseconds() >= ends);
        let looks = Cell::new(0);
        stay.spin(|| {
            looks.set(looks.get() + 1);
            false
        });
        assert_eq!(looks.get(), ON_HOLDER, "a short spin at most");
        let learnt = (spins.short.get(), spins.in_vain.get());
        stay.spin(|| false);
        assert_eq!(
            (spins.short.get(), spins.in_vain.get()),
            learnt,
            "it was cut short"
        );
    }

    #[test]
    fn long_spins_in_vain_become_rare() {
        let spins = Spins::default();
        let is_long = |_| {
            let is_long = spins.most() != 0;
            spins.learn();
            is_long
        };
        let all: Vec<_> = (0..1000).map(is_long).collect();
        let long = |(at, is_long): (usize, &bool)| is_long.then_some(at);
        let long: Vec<_> = all.iter().enumerate().filter_map(long).collect();
        let apart: Vec<_> = long.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(apart[..6], [2, 4, 8, 16, 32, 64]);
        assert!(
            apart[6..].iter().all(|&apart| apart == 1 << MOST),
            "{apart:?}"
        );
    }

    #[test]
    fn a_long_spin_that_pays_starts_over() {
        let spins = Spins::default();
        (0..3).for_each(|_| spins.learn());
        assert_eq!((spins.most(), spins.in_vain.get()), (0, 2));
        let looks = Cell::new(0);
        let over_after = |most| {
            looks.set(0);
            spins.spin(|| {
                looks.set(looks.get() + 1);
                looks.get() == most
            })
        };
        assert!(over_after(1));
        assert_eq!(
            (spins.most(), spins.in_vain.get()),
            (0, 2),
            "a short wait says nothing"
        );
        assert!(!over_after(u32::MAX));
        assert_eq!(looks.get(), ON_HOLDER);
        while spins.most() == 0 {
            spins.learn();
        }
        // Not each time: the thread may not run for as long as it would spin.
        assert!((0..100).any(|_| over_after(ON_HOLDER + 1)));
        assert_eq!(spins.in_vain.get(), 0);
    }
}
