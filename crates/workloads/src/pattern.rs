//! Patterns of access: what users do with range locks and no paper measures, and what is meant to hurt a lock that
//! adapts to what it saw. [`Pattern`] says what each is; to add one, add its sizes there and its arm in
//! `Actor::next`.
//!
//! All are one loop: draw a lock, a range and a mode; acquire; read the lines of the range, or add one to each;
//! release. There are no pauses between operations, but for the writer of everything. In the end the lines must hold
//! exactly what was added, and no reader may have seen its first or last line change: a lock that let conflicting
//! holders meet has most likely failed one of these.

mod draw;

use crate::arr::{Array, pause};
use crate::crew::{self, Meter, Phase, Timekeeper};
use crate::target::Target;
use crate::timed;
use crossbeam_utils::CachePadded;
use draw::{Drawn, Shared};
use fastrand::Rng;
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::Duration;
use prim::futex;
use prim::thread::{self, Start};
use spanlock::range::raw::Mode;
use spanlock_trial::arr::Timing;
use spanlock_trial::pattern::{LIFE, LINE_BYTES, MAX_THREADS, Pattern, Shape, Trial};
use spanlock_trial::run::{Found, Outcome, Throughput};
use spanlock_trial::times::Times;
use std::hint::black_box;
use std::ops::Range;

/// No-ops between two writes of everything: many times as long as an operation, so that the others are at their usual
/// speed when the next one comes.
const PAUSE: u64 = 1 << 14;

/// Runs a trial on locks that `make` makes.
///
/// # Panics
/// When the trial's number of threads is not from 1 to [`MAX_THREADS`].
pub fn run<K: Timekeeper, T: Target>(
    make: impl Fn() -> T,
    trial: &Trial,
    meter: &mut impl Meter,
) -> Outcome {
    assert!((1..=MAX_THREADS).contains(&trial.threads));
    let world = World::new(&make, trial);
    let spare = make();
    beside(
        trial.load.bystanders,
        |thread| {
            // No two conflict, as far as there are ranges for all.
            let Shape { lines, grain, .. } = trial.load.pattern.shape();
            let start = thread * grain % lines;
            drop(black_box(spare.read(bytes(&(start..start + grain)))));
        },
        || world.run::<K>(meter),
    )
}

/// Calls `run` while so many threads exist that have called `first`, each with its number, and sleep.
fn beside<R>(threads: usize, first: impl Fn(usize) + Sync, run: impl FnOnce() -> R) -> R {
    /// Wakes them when dropped, also by a panic.
    struct Wakes<'a>(&'a AtomicU32);
    impl Drop for Wakes<'_> {
        fn drop(&mut self) {
            self.0.store(1, Ordering::Relaxed);
            futex::wake_all(self.0);
        }
    }
    let (ready, over) = (Start::new(threads + 1), AtomicU32::new(0));
    let mut result = None;
    let sleep = |thread| {
        first(thread);
        ready.wait();
        while over.load(Ordering::Relaxed) == 0 {
            futex::wait(&over, 0, None);
        }
    };
    thread::crew(threads, sleep, || {
        let _wakes = Wakes(&over);
        ready.wait();
        result = Some(run());
    });
    result.expect("it ran")
}

/// What the threads of a run share.
struct World<'a, T> {
    trial: &'a Trial,
    locks: Vec<CachePadded<T>>,
    /// The lines of all locks, one lock after the other.
    array: Array,
    shared: Shared,
}

impl<'a, T: Target> World<'a, T> {
    fn new(make: impl Fn() -> T, trial: &'a Trial) -> Self {
        let shape = trial.load.pattern.shape();
        Self {
            trial,
            locks: (0..shape.locks).map(|_| CachePadded::new(make())).collect(),
            array: Array::new(shape.locks * shape.lines),
            shared: Shared::new(shape),
        }
    }

    fn run<K: Timekeeper>(&self, meter: &mut impl Meter) -> Outcome {
        let Trial {
            threads, schedule, ..
        } = *self.trial;
        let run = crew::run(threads, schedule, meter, |thread, keeper: &K| {
            self.work(thread, keeper)
        });
        let work = Throughput::of(&run, |tally| tally.ops);
        let all = run.workers.iter().fold(Tally::default(), Tally::and);
        Outcome {
            work,
            acquire: all.times,
            found: Found::Data {
                lost: all.added.abs_diff(self.array.total()),
                torn: all.torn,
            },
            ..Outcome::default()
        }
    }

    /// The work of one thread, or of those that replace each other in its place.
    fn work(&self, thread: usize, keeper: &impl Timekeeper) -> Tally {
        let mut rng = crew::rng(self.trial.seed, self.trial.repeat, thread);
        if self.trial.load.pattern != Pattern::Churn {
            return self.live(thread, rng, u64::MAX, keeper);
        }
        let mut tally = Tally::default();
        while keeper.phase() != Phase::Stop {
            let seed = rng.u64(..);
            let life = |_| self.live(thread, Rng::with_seed(seed), LIFE, keeper);
            tally = thread::crew(1, life, || ()).iter().fold(tally, Tally::and);
        }
        tally
    }

    /// Up to so many operations.
    fn live(&self, thread: usize, rng: Rng, most: u64, keeper: &impl Timekeeper) -> Tally {
        let load = self.trial.load;
        let is_writer = load.pattern == Pattern::Everything && thread == 0;
        let mut actor = draw::Actor::new(load, thread, self.trial.threads, rng);
        let mut tally = Tally {
            times: (is_writer || self.is_timed()).then(Times::default),
            ..Tally::default()
        };
        for _ in 0..most {
            let phase = keeper.phase();
            if phase == Phase::Stop {
                break;
            }
            let drawn = actor.next(&self.shared);
            self.operate(&drawn, phase, &mut tally);
            actor.done(&drawn, &self.shared);
            tally.ops += phase.counts();
            if is_writer {
                pause(PAUSE);
            }
        }
        tally
    }

    /// Whether the acquisitions of all threads are timed.
    fn is_timed(&self) -> bool {
        let load = self.trial.load;
        load.timing == Timing::On && load.pattern != Pattern::Everything
    }

    #[inline]
    fn operate(&self, drawn: &Drawn, phase: Phase, tally: &mut Tally) {
        let (lock, range) = (&self.locks[drawn.lock], bytes(&drawn.locked));
        let first = drawn.lock * self.trial.load.pattern.shape().lines;
        let used = first + drawn.used.start..first + drawn.used.end;
        match drawn.mode {
            Mode::Shared => {
                let held = tally.acquire(phase, || lock.read(range));
                let ends = || [used.start, used.end - 1].map(|line| self.array.get(line));
                let before = ends();
                black_box(self.array.sum(used.clone()));
                tally.torn += u64::from(ends() != before);
                drop(held);
            }
            Mode::Exclusive => {
                let held = tally.acquire(phase, || lock.write(range));
                tally.added += used.len() as u64;
                self.array.increment(used);
                drop(held);
            }
        }
    }
}

fn bytes(lines: &Range<usize>) -> Range<u64> {
    (lines.start * LINE_BYTES) as u64..(lines.end * LINE_BYTES) as u64
}

/// The work of threads.
#[derive(Default)]
struct Tally {
    /// Operations in the measured time.
    ops: u64,
    /// The sum of what was added to lines, from start to end.
    added: u64,
    /// Reads in which a line changed, from start to end.
    torn: u64,
    /// How long acquisitions took in the measured time, if they are timed.
    times: Option<Times>,
}

impl Tally {
    #[inline]
    fn acquire<G>(&mut self, phase: Phase, acquire: impl FnOnce() -> G) -> G {
        let Some(times) = &mut self.times else {
            return acquire();
        };
        let (held, took): (G, Duration) = timed(acquire);
        if phase == Phase::Measured {
            times.record(took);
        }
        held
    }

    /// The sum of both.
    fn and(self, other: &Self) -> Self {
        let times: Vec<_> = self.times.iter().chain(&other.times).collect();
        Self {
            ops: self.ops + other.ops,
            added: self.added + other.added,
            torn: self.torn + other.torn,
            times: (!times.is_empty()).then(|| Times::sum(times)),
        }
    }
}
