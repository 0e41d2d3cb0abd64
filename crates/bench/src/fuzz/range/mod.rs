//! The work on range locks: random requests, and then what all threads do together.

mod subject;

use crate::fuzz::crew::{Work, Worker};
use crate::fuzz::{Case, Lock, Run, holder, no_conflict};
use prim_sim::clock::Duration;
use prim_sim::{cost, mark, thread};
use spanlock_records::trial::lock::Overtaking;
use spanlock_sim::range::Span;
use spanlock_sim::range::raw::{Mode, RawRangeMutex, Wait};
use spanlock_testkit::exclusion::Place;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use subject::{Lines, Many, Subject, Token};

/// All rows of the common table.
pub(crate) fn locks() -> Vec<Lock> {
    subject::rows()
}

/// Runs a case on a lock.
fn run<S: Subject>(
    make: impl Fn() -> S + Send + 'static,
    overtaking: Overtaking,
    case: &Case,
) -> Run {
    case.run(move |rng| Resource {
        lock: Lines::new(make()),
        overtaking,
        places: (0..rng.u64(2..=8)).map(|_| Place::default()).collect(),
        crowd: rng.choice(CROWDS).expect("some"),
        is_fed: AtomicBool::new(false),
        inside: AtomicU32::new(0),
    })
}

struct Resource<S> {
    lock: Lines<S>,
    overtaking: Overtaking,
    places: Box<[Place]>,
    crowd: Crowd,
    /// Of the host: whether the request that a crowd has to let through has been granted.
    is_fed: AtomicBool,
    /// Of the host: how many of the crowd hold something.
    inside: AtomicU32,
}

/// The holders that keep a resource taken, to starve a request for all of it.
#[derive(Debug, Clone, Copy)]
enum Crowd {
    /// None.
    None,
    /// Readers of the same place.
    Readers,
    /// Writers of different places.
    Writers,
}

const CROWDS: [Crowd; 6] = [
    Crowd::None,
    Crowd::None,
    Crowd::None,
    Crowd::None,
    Crowd::Readers,
    Crowd::Writers,
];

/// How often one of a crowd checks for another before it leaves the resource free.
const CHECKS: u32 = 40;

/// The ranges that a thread asks for at a time.
#[derive(Debug, Clone)]
struct Wanted {
    mode: Mode,
    spans: Vec<Span>,
}

impl Wanted {
    fn one(mode: Mode, span: Span) -> Self {
        let spans = vec![span];
        Self { mode, spans }
    }

    /// All of it, within a time.
    fn many(&self, timeout: Option<Duration>) -> Many<'_> {
        Many {
            spans: &self.spans,
            mode: self.mode,
            timeout,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, span) in self.spans.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            match (span.start(), span.last()) {
                (0, u64::MAX) => write!(f, "{comma}all")?,
                (start, last) => write!(f, "{comma}{start}..={last}")?,
            }
        }
        f.write_str(match self.mode {
            Mode::Shared => " to read",
            Mode::Exclusive => " to write",
        })
    }
}

/// The panic in a critical section, caught outside.
struct Thrown;

impl<S: Subject> Work for Resource<S> {
    fn operate(worker: &mut Worker<'_, Self>) {
        match worker.rng.u32(..16) {
            0..=3 => worker.hold(0, 1),
            4..=8 => worker.hold(0, 4),
            9..=10 => worker.ask(),
            11..=13 => worker.ask_for_many(),
            14 => worker.panic_inside(),
            _ => worker.delegate(),
        }
    }

    fn act_in_concert(worker: &mut Worker<'_, Self>, number: usize) {
        worker.gather();
        let own = Wanted::one(Mode::Exclusive, worker.granule(number));
        worker.gather_inside(&own);
        if S::SHARES {
            worker.gather();
            worker.gather_inside(&Wanted::one(Mode::Shared, Span::ALL));
            worker.gather_behind_a_writer(number);
        }
        let resource = worker.resource();
        if resource.overtaking == Overtaking::Bounded && worker.crew().threads > 2 {
            worker.gather();
            match resource.crowd {
                Crowd::Readers if S::SHARES => {
                    let first = Span::of(..=0).expect("one");
                    worker.crowd(number, &Wanted::one(Mode::Shared, first));
                }
                Crowd::Writers => worker.crowd(number, &own),
                Crowd::Readers | Crowd::None => {}
            }
        }
    }
}

impl<S: Subject> Worker<'_, Resource<S>> {
    /// Holds up to `depth` ranges at a time, each beyond the one before, to its granule: so no two threads wait for
    /// each other, and none for itself.
    fn hold(&mut self, from: u64, depth: u32) {
        if depth == 0 || from >= self.resource().places.len() as u64 {
            return;
        }
        let mut wanted = Wanted::one(self.mode(), self.span(from));
        let mut token = self.acquire(&wanted, Wait::Forever).expect("waits forever");
        self.stay(&wanted);
        if S::SHARES && wanted.mode == Mode::Exclusive && self.rng.u32(..4) == 0 {
            (wanted, token) = self.downgrade(&wanted, token);
            self.stay(&wanted);
        }
        match self.rng.u32(..4) {
            // Any range, its own or one that touches it too.
            0 => self.ask(),
            _ => {
                let granule = self.resource().lock.raw_lock().granule(wanted.spans[0]);
                if let Some(beyond) = granule.last().checked_add(1) {
                    self.hold(beyond, depth - 1);
                }
            }
        }
        self.release(&wanted, token);
    }

    /// Asks for a range, not at any price.
    fn ask(&mut self) {
        let wanted = Wanted::one(self.mode(), self.span(0));
        let wait = Wait::at_most(self.patience());
        if let Some(token) = self.acquire(&wanted, wait) {
            self.stay(&wanted);
            self.release(&wanted, token);
        }
    }

    fn ask_for_many(&mut self) {
        let wanted = self.many();
        let timeout = self.rng.bool().then(|| self.patience());
        mark(format!("asks for {wanted}"));
        let lock = &self.resource().lock;
        let granted = lock.hold_many(wanted.many(timeout), || {
            mark(format!("has {wanted}"));
            self.enter(&wanted);
            self.stay(&wanted);
            self.leave(&wanted);
            mark(format!("releases {wanted}"));
        });
        if granted.is_none() {
            mark(format!("gives up {wanted}"));
        }
    }

    /// Panics while it holds ranges: they are released all the same.
    fn panic_inside(&mut self) {
        let wanted = self.many();
        mark(format!("asks for {wanted}"));
        let thrown = catch_unwind(AssertUnwindSafe(|| {
            let lock = &self.resource().lock;
            lock.hold_many(wanted.many(None), || {
                mark(format!("has {wanted}"));
                self.enter(&wanted);
                self.stay(&wanted);
                self.leave(&wanted);
                mark(format!("panics, and so releases {wanted}"));
                resume_unwind(Box::new(Thrown))
            });
        }));
        match thrown {
            Err(thrown) if thrown.is::<Thrown>() => {}
            Err(other) => resume_unwind(other),
            Ok(()) => {}
        }
    }

    /// Holds what all can hold at a time until all do.
    #[track_caller]
    fn gather_inside(&mut self, wanted: &Wanted) {
        let token = self.get(wanted, Wait::Forever).expect("waits forever");
        self.gather();
        self.give_back(wanted, token);
    }

    /// One writes until all others wait, then shares: they are let in while it still is.
    fn gather_behind_a_writer(&mut self, number: usize) {
        let (writer, reader) = (
            Wanted::one(Mode::Exclusive, Span::ALL),
            Wanted::one(Mode::Shared, Span::ALL),
        );
        if number > 0 {
            self.gather();
            self.gather_inside(&reader);
            return;
        }
        let token = self.get(&writer, Wait::Forever).expect("waits forever");
        self.gather();
        cost::work(1_000_000);
        thread::yield_now();
        mark(format!("shares {writer}"));
        // SAFETY: this lock's token, of an exclusive acquisition.
        let token = unsafe { self.resource().lock.downgrade(token) };
        self.gather();
        self.give_back(&reader, token);
    }

    /// The first wants all. The others hand over what they hold, so that somebody always does: until they have to let
    /// it through.
    fn crowd(&mut self, number: usize, wanted: &Wanted) {
        let resource = self.resource();
        if number == 0 {
            let all = Wanted::one(Mode::Exclusive, Span::ALL);
            let token = self.get(&all, Wait::Forever).expect("waits forever");
            resource.is_fed.store(true, Relaxed);
            self.give_back(&all, token);
            return;
        }
        while !resource.is_fed.load(Relaxed) {
            let token = self.get(wanted, Wait::Forever).expect("waits forever");
            resource.inside.fetch_add(1, Relaxed);
            let is_joined = (0..CHECKS).any(|_| {
                cost::work(500);
                thread::yield_now();
                resource.inside.load(Relaxed) > 1
            });
            resource.inside.fetch_sub(1, Relaxed);
            self.give_back(wanted, token);
            if !is_joined {
                // Time for all stores to become visible. Until then only this thread can change the words.
                cost::work(1_000_000);
            }
        }
    }

    fn mode(&mut self) -> Mode {
        if S::SHARES && self.rng.bool() {
            Mode::Shared
        } else {
            Mode::Exclusive
        }
    }

    fn span(&mut self, from: u64) -> Span {
        let end = self.resource().places.len() as u64;
        let (a, b) = (self.rng.u64(from..end), self.rng.u64(from..end));
        Span::of(a.min(b)..=a.max(b)).expect("not empty")
    }

    /// In any order; some may overlap or touch.
    fn many(&mut self) -> Wanted {
        Wanted {
            mode: self.mode(),
            spans: (0..self.rng.u32(1..=4)).map(|_| self.span(0)).collect(),
        }
    }

    /// None, or some.
    fn patience(&mut self) -> Duration {
        let most = self.rng.choice([1, 100_000]).expect("two");
        Duration::from_nanos(self.rng.u64(..most))
    }

    /// The granule of that number.
    fn granule(&self, number: usize) -> Span {
        let of = |position| {
            let span = Span::of(position..=position).expect("not empty");
            self.resource().lock.raw_lock().granule(span)
        };
        (0..number).fold(of(0), |before, _| of(before.last() + 1))
    }

    /// Acquires, and reports to the oracle.
    #[track_caller]
    fn acquire(&self, wanted: &Wanted, wait: Wait) -> Option<Token<S>> {
        let token = self.get(wanted, wait)?;
        self.enter(wanted);
        Some(token)
    }

    /// Acquires the only span.
    #[track_caller]
    fn get(&self, wanted: &Wanted, wait: Wait) -> Option<Token<S>> {
        mark(format!("asks for {wanted}"));
        let token = self
            .resource()
            .lock
            .lock(wanted.mode, wanted.spans[0], wait);
        mark(match token {
            Some(_) => format!("has {wanted}"),
            None => format!("gives up {wanted}"),
        });
        token
    }

    #[track_caller]
    fn downgrade(&self, wanted: &Wanted, token: Token<S>) -> (Wanted, Token<S>) {
        mark(format!("shares {wanted}"));
        let shared = Wanted {
            mode: Mode::Shared,
            ..wanted.clone()
        };
        self.leave(wanted);
        self.enter(&shared);
        // SAFETY: this lock's token, of an exclusive acquisition.
        let token = unsafe { self.resource().lock.downgrade(token) };
        (shared, token)
    }

    #[track_caller]
    fn release(&self, wanted: &Wanted, token: Token<S>) {
        self.leave(wanted);
        self.give_back(wanted, token);
    }

    #[track_caller]
    fn give_back(&self, wanted: &Wanted, token: Token<S>) {
        mark(format!("releases {wanted}"));
        // SAFETY: this lock's token.
        unsafe { self.resource().lock.raw_lock().unlock(token) };
    }

    /// For a while, in which others run.
    fn stay(&mut self, wanted: &Wanted) {
        for place in self.places(wanted) {
            match wanted.mode {
                Mode::Shared => cost::read(place),
                Mode::Exclusive => cost::write(place),
            }
        }
        let stay = self.rng.u64(..3000);
        cost::work(stay);
        thread::yield_now();
    }

    fn places(&self, wanted: &Wanted) -> impl Iterator<Item = &Place> {
        (0..)
            .zip(&self.resource().places)
            .filter_map(|(at, place)| {
                let is_in = |span: &Span| (span.start()..=span.last()).contains(&at);
                wanted.spans.iter().any(is_in).then_some(place)
            })
    }

    #[track_caller]
    fn enter(&self, wanted: &Wanted) {
        for place in self.places(wanted) {
            no_conflict(place.enter(holder(wanted.mode)));
        }
    }

    #[track_caller]
    fn leave(&self, wanted: &Wanted) {
        for place in self.places(wanted) {
            no_conflict(place.leave(holder(wanted.mode)));
        }
    }
}
