//! Schedule fuzzing: random work by a few threads on a machine that is randomly late, and oracles.
//!
//! - *Exclusion*: each slot knows who is inside, and panics when somebody is who should not be.
//! - *Liveness*: a run in which all threads wait fails, and so does one without end.
//! - *Concurrency*: threads hold disjoint ranges, and shared ones, and let go only when all hold theirs.

use super::subject::{Lock, Subject};
use fastrand::Rng;
use prim_sim::atomic::{AtomicU32, Ordering};
use prim_sim::clock::Duration;
use prim_sim::{Ended, Failure, Fuzz, Machine, Placement, Rmw, Setup, cost, futex, mark, thread};
use spanlock_sim::range::Span;
use spanlock_sim::range::raw::{Mode, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// One run. It follows from a seed, the name of a lock and that of a mutant.
#[derive(Debug, Clone)]
pub struct Case {
    setup: Setup,
    threads: usize,
    slots: u64,
    operations: u32,
}

/// More operations than any case needs.
const END: u64 = 2_000_000;

impl Case {
    /// The case of a seed; with a mutant, that edge is weakened.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn new(seed: u64, mutant: Option<&str>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let machine = rng.choice(["small-1x2x1", "xeon-2x10x2"]).expect("two");
        let machine = Machine::find(machine).expect("built in");
        let setup = Setup {
            placement: Placement::Unpinned,
            seed,
            rmw: rng.choice([Rmw::Fences, Rmw::Buffered]).expect("two"),
            fuzz: Fuzz {
                jitter: rng.choice([20, 200, 2000]).expect("three"),
                preempted: rng.choice([0, 30, 300]).expect("three"),
                preemption: rng.choice([10_000, 300_000, 10_000_000]).expect("three"),
                drain: rng.choice([0, 1000, 30_000]).expect("three"),
            },
            mutant: mutant.map(str::to_owned),
            operations: END,
            ..Setup::new(machine)
        };
        Self {
            setup,
            threads: rng.usize(2..=5),
            slots: rng.u64(2..=8),
            operations: rng.u32(4..=24),
        }
    }
}

/// Looks for a seed that fails, from `first` on; tells each run that ended well.
///
/// # Errors
/// The first failure.
pub fn search(
    lock: &Lock,
    seeds: impl IntoIterator<Item = u64>,
    mutant: Option<&str>,
    mut ran: impl FnMut(&Ended<()>),
) -> Result<(), Box<Failure>> {
    for seed in seeds {
        ran(&(lock.fuzz)(&Case::new(seed, mutant))?);
    }
    Ok(())
}

/// Runs a case on a lock.
pub(super) fn run<S: Subject>(
    make: impl Fn() -> S + Send + 'static,
    case: &Case,
) -> Result<Ended<()>, Box<Failure>> {
    let Case {
        threads,
        slots,
        operations,
        ref setup,
    } = *case;
    let seed = setup.seed;
    prim_sim::run(setup, move || {
        let resource = Arc::new(Resource {
            lock: make(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            meetings: [Meeting::default(), Meeting::default(), Meeting::default()],
            threads,
        });
        let crew: Vec<_> = (0..threads)
            .map(|number| {
                let resource = Arc::clone(&resource);
                thread::spawn(move || {
                    let mut worker = Worker {
                        resource: &resource,
                        rng: crate::crew::rng(seed, 0, number),
                    };
                    worker.work(number as u64, operations);
                })
            })
            .collect();
        for worker in crew {
            let _ = worker.join();
        }
    })
}

/// Where all threads wait for each other.
#[derive(Default)]
#[repr(align(128))]
struct Meeting(AtomicU32);

impl Meeting {
    fn await_all(&self, threads: usize) {
        let all = u32::try_from(threads).expect("few");
        self.0.fetch_add(1, Ordering::AcqRel);
        futex::wake_all(&self.0);
        loop {
            let here = self.0.load(Ordering::Acquire);
            if here == all {
                return;
            }
            futex::wait(&self.0, here, None);
        }
    }
}

/// Readers inside, or -1 for a writer. Of the host: seen by all at once.
#[derive(Default)]
#[repr(align(64))]
struct Slot(AtomicI32);

struct Resource<S> {
    lock: S,
    slots: Box<[Slot]>,
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
        let slots = self.resource.slots.len() as u64;
        let (a, b) = (self.rng.u64(from..slots), self.rng.u64(from..slots));
        Span::of(a.min(b)..=a.max(b)).expect("not empty")
    }

    /// Holds up to `depth` ranges at a time, each beyond the one before: so no two threads wait for each other.
    fn hold(&mut self, from: u64, depth: u32) {
        if depth == 0 || from == self.resource.slots.len() as u64 {
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
        for slot in self.slots(span) {
            match mode {
                Mode::Shared => cost::read(slot),
                Mode::Exclusive => cost::write(slot),
            }
        }
        let stay = self.rng.u64(..3000);
        cost::work(stay);
        thread::yield_now();
    }

    #[expect(clippy::cast_possible_truncation, reason = "few slots")]
    fn slots(&self, span: Span) -> &[Slot] {
        &self.resource.slots[span.start() as usize..=span.last() as usize]
    }

    fn enter(&self, mode: Mode, span: Span) {
        for Slot(slot) in self.slots(span) {
            match mode {
                Mode::Shared => {
                    assert!(slot.fetch_add(1, Relaxed) >= 0, "a reader beside a writer")
                }
                Mode::Exclusive => assert_eq!(slot.swap(-1, Relaxed), 0, "a writer beside others"),
            }
        }
    }

    fn leave(&self, mode: Mode, span: Span) {
        for Slot(slot) in self.slots(span) {
            match mode {
                Mode::Shared => assert!(slot.fetch_sub(1, Relaxed) > 0, "a writer came in"),
                Mode::Exclusive => assert_eq!(slot.swap(0, Relaxed), -1, "somebody came in"),
            }
        }
    }
}

fn told(mode: Mode, span: Span) -> String {
    let how = match mode {
        Mode::Shared => "shared",
        Mode::Exclusive => "alone",
    };
    format!("{}..={} {how}", span.start(), span.last())
}
