//! Random work on a range lock, and what all its threads do in concert afterwards.

use super::oracle::{Meeting, Place};
use super::{Case, Run};
use crate::sim::subject::Subject;
use fastrand::Rng;
use prim_sim::clock::Duration;
use prim_sim::{cost, mark, thread};
use spanlock_sim::range::Span;
use spanlock_sim::range::raw::{Mode, Wait};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Runs a case on a lock.
pub(in crate::sim) fn run<S: Subject>(make: impl Fn() -> S + Send + 'static, case: &Case) -> Run {
    case.run(
        move |rng, threads| Resource {
            lock: make(),
            places: (0..rng.u64(2..=8)).map(|_| Place::default()).collect(),
            meetings: Default::default(),
            threads,
            crowd: rng.choice(CROWDS).expect("some"),
            is_fed: AtomicBool::new(false),
            inside: AtomicU32::new(0),
        },
        |resource, hand| {
            let mut worker = Worker {
                resource,
                rng: hand.rng,
                met: 0,
            };
            for _ in 0..hand.operations {
                worker.operate();
            }
            worker.act_in_concert(hand.number);
        },
    )
}

struct Resource<S> {
    lock: S,
    places: Box<[Place]>,
    meetings: [Meeting; 8],
    threads: usize,
    crowd: Crowd,
    /// Of the host: whether the request that a crowd is to let through has got through.
    is_fed: AtomicBool,
    /// Of the host: how many of the crowd hold something.
    inside: AtomicU32,
}

/// Who keeps a resource taken, to starve a request for all of it.
#[derive(Debug, Clone, Copy)]
enum Crowd {
    /// Nobody.
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

/// How often one of a crowd looks for another before it leaves the resource to nobody.
const LOOKS: u32 = 40;

/// What a thread asks for at a time.
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

/// What is thrown in a critical section, to be caught outside.
struct Thrown;

struct Worker<'a, S> {
    resource: &'a Arc<Resource<S>>,
    rng: Rng,
    /// How many meetings it has been at.
    met: usize,
}

impl<S: Subject> Worker<'_, S> {
    fn operate(&mut self) {
        match self.rng.u32(..16) {
            0..=3 => self.hold(0, 1),
            4..=8 => self.hold(0, 4),
            9..=10 => self.ask(),
            11..=13 => self.ask_for_many(),
            14 => self.panic_inside(),
            _ => self.delegate(),
        }
        let pause = self.rng.u64(..2000);
        cost::work(pause);
    }

    /// Holds up to `depth` ranges at a time, each beyond the one before, to its granule: so no two threads wait for each
    /// other, and none for itself.
    fn hold(&mut self, from: u64, depth: u32) {
        if depth == 0 || from >= self.resource.places.len() as u64 {
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
                let granule = self.resource.lock.granule(wanted.spans[0]);
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
        let resource = self.resource;
        let granted = resource
            .lock
            .hold_many(&wanted.spans, wanted.mode, timeout, || {
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
            let resource = self.resource;
            let all = (&wanted.spans[..], wanted.mode);
            resource.lock.hold_many(all.0, all.1, None, || {
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

    /// Has a thread of its own do something, which exits while others work.
    fn delegate(&mut self) {
        mark("has a new thread work, and waits for it");
        let resource = Arc::clone(self.resource);
        let rng = self.rng.fork();
        let other = thread::spawn(move || {
            let mut worker = Worker {
                resource: &resource,
                rng,
                met: 0,
            };
            worker.operate();
        });
        let _ = other.join();
    }

    /// What all threads do together once no request of the random part is left to give way to.
    fn act_in_concert(&mut self, number: usize) {
        self.gather();
        let own = Wanted::one(Mode::Exclusive, self.granule(number));
        self.gather_inside(&own);
        if S::SHARES {
            self.gather();
            self.gather_inside(&Wanted::one(Mode::Shared, Span::ALL));
            self.gather_behind_a_writer(number);
        }
        if S::IS_FAIR && self.resource.threads > 2 {
            self.gather();
            match self.resource.crowd {
                Crowd::Readers if S::SHARES => {
                    self.crowd(
                        number,
                        &Wanted::one(Mode::Shared, Span::of(..=0).expect("one")),
                    );
                }
                Crowd::Writers => self.crowd(number, &own),
                Crowd::Readers | Crowd::None => {}
            }
        }
    }

    fn gather(&mut self) {
        self.resource.meetings[self.met].await_all(self.resource.threads);
        self.met += 1;
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
        let token = unsafe { self.resource.lock.downgrade(token) };
        self.gather();
        self.give_back(&reader, token);
    }

    /// The first wants all. The others hand over what they hold, so that somebody always does: until they have to let it
    /// through.
    fn crowd(&mut self, number: usize, wanted: &Wanted) {
        let resource = self.resource;
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
            let is_joined = (0..LOOKS).any(|_| {
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
        let end = self.resource.places.len() as u64;
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
            self.resource.lock.granule(span)
        };
        (0..number).fold(of(0), |before, _| of(before.last() + 1))
    }

    /// Acquires, and tells the oracle.
    #[track_caller]
    fn acquire(&self, wanted: &Wanted, wait: Wait) -> Option<S::Token> {
        let token = self.get(wanted, wait)?;
        self.enter(wanted);
        Some(token)
    }

    /// Acquires the only span.
    #[track_caller]
    fn get(&self, wanted: &Wanted, wait: Wait) -> Option<S::Token> {
        mark(format!("asks for {wanted}"));
        let token = self.resource.lock.lock(wanted.mode, wanted.spans[0], wait);
        mark(match token {
            Some(_) => format!("has {wanted}"),
            None => format!("gives up {wanted}"),
        });
        token
    }

    #[track_caller]
    fn downgrade(&self, wanted: &Wanted, token: S::Token) -> (Wanted, S::Token) {
        mark(format!("shares {wanted}"));
        let shared = Wanted {
            mode: Mode::Shared,
            ..wanted.clone()
        };
        self.leave(wanted);
        self.enter(&shared);
        // SAFETY: this lock's token, of an exclusive acquisition.
        let token = unsafe { self.resource.lock.downgrade(token) };
        (shared, token)
    }

    #[track_caller]
    fn release(&self, wanted: &Wanted, token: S::Token) {
        self.leave(wanted);
        self.give_back(wanted, token);
    }

    #[track_caller]
    fn give_back(&self, wanted: &Wanted, token: S::Token) {
        mark(format!("releases {wanted}"));
        // SAFETY: this lock's token.
        unsafe { self.resource.lock.unlock(token) };
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
        (0..).zip(&self.resource.places).filter_map(|(at, place)| {
            let is_in = |span: &Span| (span.start()..=span.last()).contains(&at);
            wanted.spans.iter().any(is_in).then_some(place)
        })
    }

    fn enter(&self, wanted: &Wanted) {
        self.places(wanted)
            .for_each(|place| place.enter(wanted.mode));
    }

    fn leave(&self, wanted: &Wanted) {
        self.places(wanted)
            .for_each(|place| place.leave(wanted.mode));
    }
}
