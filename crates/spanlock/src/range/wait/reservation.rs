//! Reservations: how a request that others keep overtaking gets its range in the end.
//!
//! A request *reserves* its range when it goes to sleep behind a holder that lets others in its way come in: a reader,
//! or one that holds only a part of what it asks for. They could be granted one after another while it sleeps; where
//! threads are more than processors, that lasts until each that was preempted inside has had its turn to run. Behind a
//! holder of all of its range nobody overtakes it as long as it sleeps. It reserves when it finds its range taken again
//! and has waited longer than the lock's patience. If each that sleeps did so at once, threads that all want the same
//! would hand it over asleep, although one of them runs. Later requests that conflict with it
//! give way: they sleep although no holder is in their way. The lock does not know what its holders wait for, so
//! giving way must end by itself. Say the reservation waits for a holder, and that holder waits for the very request
//! that gives way (it joins the thread, or wants a mutex that the thread holds): giving way without end would be a
//! deadlock. So reservations are in force in *turns*.
//!
//! # Turns
//!
//! The turns of a reservation are counted from the moment at which it was granted. Each round has three turns of equal
//! length and takes twice as long as the round before. The first turn lasts [`FIRST_TURN`].
//!
//! ```text
//!  reserved
//!    |##########|::::::::::|..........|####################|::::::::::::::::::::|....................|####
//!    0         10         20         30                   50                   70                   90 ms
//!
//!  #  in force: later requests that conflict with the reservation give way until the turn ends
//!  :  in force for newcomers: requests that are not in the queue give way until the turn ends
//!  .  suspended: no request gives way
//! ```
//!
//! - A request gives way to one reservation for one turn, and then tries for its range. A turn takes [`FIRST_TURN`], or
//!   as long as the reservation is old, whichever is more.
//! - Reservations are suspended for a third of each round. So a computation that the holder waits for, unknown to the
//!   lock, takes about three times as long. That holds if the waiting requests wait without a limit: a request that
//!   gives up and asks again begins the rounds anew.
//! - The first reservation is granted its range in the first turn `#` that is longer than its blockers' critical
//!   sections. In the turn `:`, requests that have waited compete with each other, also while the first reservation
//!   waits for a thread that waits for them.
//! - Reservations come together. While some are in force none is granted, for the patience at most. When the last of
//!   them is over, none is granted for as long as it lasted, for the patience at most. Then all requests get theirs
//!   that have asked meanwhile. Where all wait longer than the patience, because they are many, reservations would
//!   otherwise be in force all the time: all would sleep, and wake one after another for ever.
//! - A thread that holds what a reservation waits for ignores that reservation and every later one. Otherwise the
//!   blockers of two reservations could give way to each other's, and both reservations would stay blocked.

use prim::clock::Duration;

/// How a lock treats requests that others keep overtaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Requests wait for holders alone. A request may be overtaken without end.
    Unfair,
    /// A request that sleeps behind a holder which lets others in its way come in gets a *reservation*: other requests
    /// give way to it, in turns that grow with its age. So does one that finds its range taken again after it has
    /// waited this long, its patience. Reservations pause for no longer than that. It gets its range in the first
    /// turn that is longer than the critical sections in its way: [`RangeLock`](crate::range::RangeLock#fairness)
    /// states the bounds, and what they depend on. Counted in whole microseconds, rounded down, and an hour at most.
    After(Duration),
}

impl Fairness {
    /// Fair after a millisecond: long against a short critical section, so that throughput does not suffer, and
    /// short against what people notice.
    pub const DEFAULT: Self = Self::After(Duration::from_millis(1));
}

/// After how many microseconds of waiting a request gets a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::range) struct Patience(u32);

impl Patience {
    /// A reservation as soon as the request sleeps.
    pub(in crate::range) const NONE: Self = Self(0);
    /// No reservations. More than the longest patience.
    pub(in crate::range) const ENDLESS: Self = Self(u32::MAX);

    pub(in crate::range) const fn of(fairness: Fairness) -> Self {
        const LONGEST: Duration = Duration::from_secs(3600);
        match fairness {
            Fairness::Unfair => Self::ENDLESS,
            Fairness::After(patience) if patience.as_secs() < LONGEST.as_secs() => {
                Self(micros(patience))
            }
            Fairness::After(_) => Self(micros(LONGEST)),
        }
    }

    /// How long no reservation is granted after some that lasted that long. Without patience, all are granted at once.
    pub(super) fn pause(self, lasted: Duration) -> Duration {
        let most = self.limit().unwrap_or(Duration::ZERO);
        lasted.min(most)
    }

    pub(in crate::range) fn limit(self) -> Option<Duration> {
        (self != Self::ENDLESS).then(|| Duration::from_micros(self.0.into()))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an hour has fewer")]
const fn micros(duration: Duration) -> u32 {
    duration.as_micros() as u32
}

/// How long the first turn lasts: a few time slices of a scheduler, so that a preempted holder can leave meanwhile.
const FIRST_TURN: Duration = Duration::from_millis(10);

/// Who gives way to a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    Everybody,
    /// Those who are not in the queue.
    Newcomers,
}

/// Who gives way to a reservation of that age, and until which age; `None`: nobody does, while it is suspended.
pub(super) fn turn_at(age: Duration) -> Option<(Gives, Duration)> {
    let (mut begins, mut length) = (Duration::ZERO, FIRST_TURN);
    while age >= begins + 3 * length {
        begins += 3 * length;
        length *= 2;
    }
    let turns = [Gives::Everybody, Gives::Newcomers].into_iter().zip(1..);
    let mut turns = turns.map(|(gives, turn)| (gives, begins + turn * length));
    turns.find(|&(_, ends)| age < ends)
}

#[cfg(test)]
mod tests {
    use super::{Duration, FIRST_TURN, Fairness, Gives, Patience, turn_at};

    #[test]
    fn pauses_are_bounded() {
        let patience = Patience::of(Fairness::DEFAULT);
        let limit = patience.limit().unwrap();
        assert_eq!(patience.pause(limit / 10), limit / 10);
        assert_eq!(patience.pause(Duration::MAX), limit);
        assert_eq!(Patience::NONE.pause(Duration::MAX), Duration::ZERO);
        assert_eq!(Patience::ENDLESS.pause(Duration::MAX), Duration::ZERO);
    }

    fn ms(count: u64) -> Duration {
        FIRST_TURN * u32::try_from(count).unwrap() / 10
    }

    /// A round has three turns of equal length, a reservation is in force in two of them, and each round takes twice as
    /// long as the one before.
    #[test]
    fn rounds_double() {
        use Gives::{Everybody, Newcomers};
        for (ages, turn) in [
            (0..10, Some((Everybody, 10))),
            (10..20, Some((Newcomers, 20))),
            (20..30, None),
            (30..50, Some((Everybody, 50))),
            (50..70, Some((Newcomers, 70))),
            (70..90, None),
            (90..130, Some((Everybody, 130))),
        ] {
            let expected = turn.map(|(gives, ends)| (gives, ms(ends)));
            for age in ages {
                assert_eq!(turn_at(ms(age)), expected, "after {age} ms");
            }
        }
    }

    /// After the first turn, a request gives way for no longer than the reservation is old.
    #[test]
    fn turns_are_bounded_by_the_age_of_the_reservation() {
        for exponent in 0..40 {
            let age = Duration::from_micros(1 << exponent);
            if let Some((_, ends)) = turn_at(age) {
                assert!(ends - age <= age.max(FIRST_TURN), "{age:?}");
            }
        }
    }
}
