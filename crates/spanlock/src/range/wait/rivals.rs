//! What a request that may not wait does about rivals.
//!
//! A *rival* is in the way, and not decided: it may withdraw, and then nobody holds what it asked for. So a request
//! that may not wait for holders waits until its rivals are decided. They decide after a short walk, unless their
//! threads do not run. That is why the wait is bounded.

use super::acquisition::{Acquisition, Refused, Standing};
use super::waiter::Waiter;
use crate::wait::BRIEF;
use prim::clock;
use prim::spin::{ON_DECISION, Spin};

impl Waiter<'_> {
    /// Waits until it is decided whether the blocker stays of a request which may not wait for holders. All such waits
    /// of a request take 128 us at most. One that ends late, since the thread did not run, counts if
    /// the rival has withdrawn by then, and is the last.
    ///
    /// # Errors
    /// The blocker stays, or no time is left.
    pub(super) fn await_decision<A: Acquisition>(
        &mut self,
        acquisition: &A,
        blocker: &A::Blocker,
    ) -> Result<(), Refused> {
        if self
            .rivals_until
            .is_some_and(|ends| clock::nanoseconds() >= ends)
        {
            return Err(Refused::OutOfTime);
        }
        let is_open = || acquisition.look(blocker) == Standing::Undecided;
        let is_blocked = || acquisition.look(blocker) != Standing::Gone;
        // Twice: it may have withdrawn during the first look.
        if !is_open() && is_blocked() {
            return Err(Refused::OutOfTime);
        }
        let mut spin = Spin::new(ON_DECISION);
        while is_open() && spin.round() {}
        let limit = || clock::nanoseconds() + BRIEF;
        let ends = *self.rivals_until.get_or_insert_with(limit);
        let mut spin = Spin::by_time();
        while is_open() && clock::nanoseconds() < ends && spin.round() {}
        if is_blocked() {
            Err(Refused::OutOfTime)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Attempt, Holder, HolderId, Patience, Standing, WaitQueue};
    use super::{Acquisition, Refused, Waiter};
    use crate::deadlock::Deadlocks;
    use crate::range::inspect::{Request, SelfDeadlock};
    use crate::range::raw::{Mode, Wait};
    use crate::range::span::Span;
    use crate::range::thread;
    use std::cell::Cell;
    use std::panic::Location;

    /// Who is in the way.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Met {
        Rival(usize),
        Holder(usize),
    }

    impl Met {
        fn number(self) -> usize {
            match self {
                Self::Rival(number) | Self::Holder(number) => number,
            }
        }
    }

    /// A range, and who is in the way at each look.
    struct Meets<F> {
        met: F,
        looks: Cell<usize>,
    }

    impl<F: Fn(usize) -> Option<Met>> Meets<F> {
        fn met(&self) -> Option<Met> {
            let look = self.looks.get();
            self.looks.set(look + 1);
            (self.met)(look)
        }
    }

    impl<F: Fn(usize) -> Option<Met>> Acquisition for Meets<F> {
        type Token = ();
        type Blocker = usize;

        fn attempt(&mut self) -> Attempt<(), usize> {
            match self.met() {
                None => Attempt::Granted(()),
                Some(met) => Attempt::Blocked(met.number()),
            }
        }

        fn look(&self, blocker: &usize) -> Standing {
            match self.met() {
                Some(Met::Rival(number)) if number == *blocker => Standing::Undecided,
                Some(Met::Holder(number)) if number == *blocker => Standing::Stays,
                _ => Standing::Gone,
            }
        }

        fn deadlock_with(&self, _: &usize) -> Option<SelfDeadlock> {
            None
        }

        fn mark(&self, _: &usize) -> Option<Holder> {
            unreachable!("it may not wait")
        }

        fn held(&self) -> Vec<Request> {
            Vec::new()
        }

        fn adopt(&self, (): &mut (), _: &Request) -> HolderId {
            unreachable!("nobody sleeps")
        }
    }

    /// Whether a request that may not wait is granted.
    fn is_granted(met: impl Fn(usize) -> Option<Met>) -> bool {
        let queue = WaitQueue::new(Patience::ENDLESS, Deadlocks::OFF);
        let looks = Cell::new(0);
        let mut meets = Meets { met, looks };
        let outcome = thread::with_record(|record| {
            let request = Request::new(Span::ALL, Mode::Exclusive, record.thread());
            let (wait, patience) = (Wait::Never, Patience::ENDLESS);
            let waiter = Waiter::new(&queue, record, request, wait, patience, Location::caller());
            waiter.acquire(&mut meets, None)
        });
        match outcome {
            Ok(()) => true,
            Err(Refused::OutOfTime) => false,
            Err(_) => unreachable!("it may not wait"),
        }
    }

    #[test]
    fn a_holder_refuses_at_once() {
        let is_refused = |look| {
            assert!(look < 10);
            Some(Met::Holder(0))
        };
        assert!(!is_granted(is_refused));
    }

    #[test]
    fn rivals_that_withdraw_refuse_nobody() {
        for looks in 1..40 {
            for rivals in 1..4 {
                let met = |look| Some(Met::Rival(look / looks)).filter(|met| met.number() < rivals);
                // Not each time: the thread may not run for as long as the request may wait.
                let is_granted = (0..100).any(|_| is_granted(met));
                assert!(is_granted, "{rivals} rivals, {looks} looks each");
            }
        }
    }

    #[test]
    fn a_rival_that_becomes_a_holder_refuses() {
        for looks in 1..40 {
            let met = |look| match look < looks {
                true => Some(Met::Rival(0)),
                false => Some(Met::Holder(0)),
            };
            assert!(!is_granted(met));
        }
    }

    #[test]
    fn a_rival_that_never_decides_refuses_at_last() {
        assert!(!is_granted(|_| Some(Met::Rival(0))));
    }

    #[test]
    fn rivals_that_come_and_go_for_ever_refuse_at_last() {
        assert!(!is_granted(|look| Some(Met::Rival(look))));
    }
}
