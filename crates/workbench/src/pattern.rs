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
use crossbeam_utils::CachePadded;
use draw::{Drawn, Shared};
use fastrand::Rng;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex;
use prim::workload::{self, Start};
use spanlock::range::raw::Mode;
use spanlock_records::trial::arr::Timing;
use spanlock_records::trial::pattern::{LIFE, LINE_BYTES, MAX_THREADS, Pattern, Shape, Trial};
use spanlock_records::trial::run::{Outcome, Tally};
use spanlock_records::trial::times::Times;
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
    workload::crew(threads, sleep, || {
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
        crew::tallied(
            self.trial,
            meter,
            |thread, rng, keeper: &K, tally| *tally = self.work(thread, rng, keeper),
            |all| all.data(all.added.abs_diff(self.array.total())),
        )
    }

    /// The work of one thread, or of those that replace each other in its place.
    fn work(&self, thread: usize, mut rng: Rng, keeper: &impl Timekeeper) -> Tally {
        if self.trial.load.pattern != Pattern::Churn {
            return self.live(thread, rng, u64::MAX, keeper);
        }
        let mut tally = Tally::default();
        while keeper.phase() != Phase::Stop {
            let seed = rng.u64(..);
            let life = |_| self.live(thread, Rng::with_seed(seed), LIFE, keeper);
            tally = workload::crew(1, life, || ())
                .iter()
                .fold(tally, Tally::and);
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
            tally.writes += phase.counts();
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
                let held = crew::acquire(tally, phase, || lock.read(range));
                let ends = || [used.start, used.end - 1].map(|line| self.array.get(line));
                let before = ends();
                black_box(self.array.sum(used.clone()));
                tally.torn += u64::from(ends() != before);
                drop(held);
            }
            Mode::Exclusive => {
                let held = crew::acquire(tally, phase, || lock.write(range));
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
