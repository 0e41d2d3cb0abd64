//! How long a thread spins on the holders that it meets.

use prim::clock;
use prim::spin::{ON_HOLDER, Spin};
use std::cell::Cell;

/// How long the waits of one thread have lately taken, and whether its long spins have paid.
///
/// Parking and waking cost the threads that wake others as much as the sleeper, and whoever waits for the sleeper waits
/// for its wake-up, too. So a thread gains if it spins for as long as its waits take: four times as long as they
/// have usually taken, asleep or not, within [`PARKING`] and [`LONGEST_SPIN`].
///
/// It loses if the holder does not run, because more threads want to run than there are processors. A thread cannot see
/// which is true, so it learns: a long spin in vain makes its next spins short, twice as many each time, and a long
/// spin that pays starts over. So a thread for which long spins never pay makes one in `2^MOST` of them.
#[derive(Debug, Default)]
pub(crate) struct Spins {
    /// The moving average of the waits that outlasted a short spin, in nanoseconds from its end.
    usual: Cell<u64>,
    /// When the short spin of the last such wait ended, until that wait is over.
    begun: Cell<Option<u64>>,
    /// How many of the next spins are short.
    short: Cell<u32>,
    /// Long spins in vain since the last that paid, up to [`MOST`].
    in_vain: Cell<u32>,
}

/// About what it costs to park a thread and to wake it, in nanoseconds.
const PARKING: u64 = 10_000;

/// Short against a time slice of any scheduler.
pub(crate) const LONGEST_SPIN: u64 = 128_000;

/// A long spin lasts this many times as long as waits usually take: few take longer.
const USUAL: u64 = 4;

/// The average is over about this many waits.
const WAITS: u64 = 8;

/// Once in 64 spins, the longest spin takes 2 us of each.
const MOST: u32 = 6;

impl Spins {
    /// Spins until `is_over` or until the thread should park; whether it is over. If the thread parks, it calls
    /// [`over`](Self::over) when it has been woken.
    #[inline]
    pub(crate) fn spin(&self, is_over: impl Fn() -> bool) -> bool {
        self.spin_until(u64::MAX, is_over)
    }

    /// Spins as [`spin`](Self::spin) does, but no longer than until `limit`, in nanoseconds, beyond a short spin.
    #[inline]
    fn spin_until(&self, limit: u64, is_over: impl Fn() -> bool) -> bool {
        let mut spin = Spin::by_time();
        let mut ends = 0;
        let mut is_cut = false;
        self.begun.set(None);
        for round in 0_u32.. {
            if round == ON_HOLDER {
                let now = clock::nanoseconds();
                self.begun.set(Some(now));
                ends = now + self.most();
                is_cut = limit < ends;
                ends = ends.min(limit);
            }
            if round >= ON_HOLDER && clock::nanoseconds() >= ends || !spin.round() {
                break;
            }
            if is_over() {
                if self.begun.get().is_some() {
                    self.in_vain.set(0);
                }
                self.over();
                return true;
            }
        }
        // A spin that was cut short tells nothing about long ones.
        if self.begun.get().is_some() && !is_cut {
            self.learn();
        }
        false
    }

    /// How long to spin after a short spin.
    fn most(&self) -> u64 {
        match self.short.get() {
            0 => (USUAL * self.usual.get()).clamp(PARKING, LONGEST_SPIN),
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

    /// Notes that the wait is over in which the thread has spun last.
    pub(crate) fn over(&self) {
        if let Some(begun) = self.begun.take() {
            self.note(clock::nanoseconds().saturating_sub(begun));
        }
    }

    fn note(&self, took: u64) {
        // A wait for hours says no more than that waits are long.
        let sum = self.usual.get() * (WAITS - 1) + took.min(LONGEST_SPIN);
        self.usual.set(sum / WAITS);
    }
}

/// The time in which one acquisition may wait while it is in the way of others: as long as the longest spin, in sum.
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
        self.spins.short.get() == 0
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
            .unwrap_or_else(|| clock::nanoseconds() + LONGEST_SPIN);
        self.ends.set(Some(ends));
        self.spins.spin_until(ends, is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, LONGEST_SPIN, MOST, ON_HOLDER, PARKING, Spins, Stay, USUAL, WAITS, clock};

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
    fn spins_take_as_long_as_most_waits() {
        let spins = Spins::default();
        assert_eq!(spins.most(), PARKING);
        (0..10 * WAITS).for_each(|_| spins.note(LONGEST_SPIN / 8));
        assert_eq!(spins.most(), USUAL * spins.usual.get());
        assert!(spins.most() > LONGEST_SPIN / 8);
        (0..10 * WAITS).for_each(|_| spins.note(16 * LONGEST_SPIN));
        assert_eq!(spins.most(), LONGEST_SPIN);
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
    fn a_short_wait_says_nothing_about_long_spins() {
        let spins = Spins::default();
        spins.learn();
        let looks = Cell::new(0);
        let after = |most| {
            looks.set(0);
            spins.spin(|| {
                looks.set(looks.get() + 1);
                looks.get() == most
            })
        };
        assert!(after(1));
        assert_eq!((spins.most(), spins.usual.get()), (0, 0));
        assert!(!after(u32::MAX), "the only short one");
        assert_eq!(looks.get(), ON_HOLDER);
        assert_eq!(spins.usual.get(), 0, "it is not over");
        spins.over();
        let usual = spins.usual.get();
        spins.over();
        assert_eq!(spins.usual.get(), usual, "it is over once");
        assert_eq!(spins.most(), (USUAL * usual).clamp(PARKING, LONGEST_SPIN));
    }
}
