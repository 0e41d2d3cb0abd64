//! Random work on a range lock.

use super::oracle::{Meeting, Place};
use super::{Case, Hand, Run};
use crate::sim::subject::Subject;
use fastrand::Rng;
use prim_sim::clock::Duration;
use prim_sim::{cost, mark, thread};
use spanlock_sim::range::Span;
use spanlock_sim::range::raw::{Mode, Wait};

/// Runs a case on a lock.
pub(in crate::sim) fn run<S: Subject>(make: impl Fn() -> S + Send + 'static, case: &Case) -> Run {
    case.run(
        move |rng, threads| Resource {
            lock: make(),
            places: (0..rng.u64(2..=8)).map(|_| Place::default()).collect(),
            meetings: [Meeting::default(), Meeting::default(), Meeting::default()],
            threads,
        },
        |resource,
         Hand {
             number,
             operations,
             rng,
         }| {
            Worker { resource, rng }.work(number as u64, operations);
        },
    )
}

struct Resource<S> {
    lock: S,
    places: Box<[Place]>,
    meetings: [Meeting; 3],
    threads: usize,
}

struct Worker<'a, S> {
    resource: &'a Resource<S>,
    rng: Rng,
}

impl<S: Subject> Worker<'_, S> {
    fn work(&mut self, number: u64, operations: u32) {
        for _ in 0..operations {
            match self.rng.u32(..8) {
                0..=2 => self.hold(0, 1),
                3..=4 => self.hold(0, 4),
                5 => self.ask(Wait::Never),
                6 => {
                    let patience = Duration::from_nanos(self.rng.u64(..100_000));
                    self.ask(Wait::at_most(patience));
                }
                _ => self.downgrade(),
            }
            let pause = self.rng.u64(..2000);
            cost::work(pause);
        }
        // All have come to here: no request of the random part is left to give way to.
        let Resource {
            meetings, threads, ..
        } = self.resource;
        meetings[0].await_all(*threads);
        let own = Span::of(number..=number).expect("not empty");
        self.meet(&meetings[1], Mode::Exclusive, own);
        if S::SHARES {
            self.meet(&meetings[2], Mode::Shared, Span::ALL);
        }
    }

    /// Holds what all can hold at a time until all do.
    fn meet(&self, meeting: &Meeting, mode: Mode, span: Span) {
        let lock = &self.resource.lock;
        if mode == Mode::Shared {
            // After the last writer has gone.
            cost::work(1_000_000);
        }
        let token = lock.lock(mode, span, Wait::Forever).expect("waits forever");
        mark("meets");
        meeting.await_all(self.resource.threads);
        // SAFETY: this lock's token.
        unsafe { lock.unlock(token) };
    }

    fn mode(&mut self) -> Mode {
        if S::SHARES && self.rng.bool() {
            Mode::Shared
        } else {
            Mode::Exclusive
        }
    }

    fn span(&mut self, from: u64) -> Span {
        let slots = self.resource.places.len() as u64;
        let (a, b) = (self.rng.u64(from..slots), self.rng.u64(from..slots));
        Span::of(a.min(b)..=a.max(b)).expect("not empty")
    }

    /// Holds up to `depth` ranges at a time, each beyond the one before: so no two threads wait for each other.
    fn hold(&mut self, from: u64, depth: u32) {
        if depth == 0 || from == self.resource.places.len() as u64 {
            return;
        }
        let (mode, span) = (self.mode(), self.span(from));
        let token = self
            .acquire(mode, span, Wait::Forever)
            .expect("waits forever");
        self.stay(mode, span);
        self.hold(span.last() + 1, depth - 1);
        self.release(mode, span, token);
    }

    fn ask(&mut self, wait: Wait) {
        let (mode, span) = (self.mode(), self.span(0));
        if let Some(token) = self.acquire(mode, span, wait) {
            self.stay(mode, span);
            self.release(mode, span, token);
        }
    }

    fn downgrade(&mut self) {
        let span = self.span(0);
        let token = self
            .acquire(Mode::Exclusive, span, Wait::Forever)
            .expect("waits forever");
        self.stay(Mode::Exclusive, span);
        if S::SHARES {
            mark(format!("downgrades {}", told(Mode::Exclusive, span)));
            self.leave(Mode::Exclusive, span);
            self.enter(Mode::Shared, span);
            // SAFETY: this lock's token, of an exclusive acquisition.
            let token = unsafe { self.resource.lock.downgrade(token) };
            self.stay(Mode::Shared, span);
            self.release(Mode::Shared, span, token);
        } else {
            self.release(Mode::Exclusive, span, token);
        }
    }

    fn acquire(&self, mode: Mode, span: Span, wait: Wait) -> Option<S::Token> {
        mark(format!("asks for {}", told(mode, span)));
        let token = self.resource.lock.lock(mode, span, wait);
        match token {
            Some(_) => {
                mark(format!("has {}", told(mode, span)));
                self.enter(mode, span);
            }
            None => mark(format!("gives up {}", told(mode, span))),
        }
        token
    }

    fn release(&self, mode: Mode, span: Span, token: S::Token) {
        self.leave(mode, span);
        mark(format!("releases {}", told(mode, span)));
        // SAFETY: this lock's token.
        unsafe { self.resource.lock.unlock(token) };
    }

    /// For a while, in which others run.
    fn stay(&mut self, mode: Mode, span: Span) {
        for place in self.places(span) {
            match mode {
                Mode::Shared => cost::read(place),
                Mode::Exclusive => cost::write(place),
            }
        }
        let stay = self.rng.u64(..3000);
        cost::work(stay);
        thread::yield_now();
    }

    #[expect(clippy::cast_possible_truncation, reason = "few places")]
    fn places(&self, span: Span) -> &[Place] {
        &self.resource.places[span.start() as usize..=span.last() as usize]
    }

    fn enter(&self, mode: Mode, span: Span) {
        self.places(span).iter().for_each(|place| place.enter(mode));
    }

    fn leave(&self, mode: Mode, span: Span) {
        self.places(span).iter().for_each(|place| place.leave(mode));
    }
}

fn told(mode: Mode, span: Span) -> String {
    let how = match mode {
        Mode::Shared => "shared",
        Mode::Exclusive => "alone",
    };
    format!("{}..={} {how}", span.start(), span.last())
}
