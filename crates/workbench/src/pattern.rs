//! Patterns of access: what users do with range locks and no paper measures, and what is meant to hurt a lock that
//! adapts to what it saw. [`Pattern`] says what each is; to add one, add its sizes there and its arm in
//! `Actor::next`.
//!
//! All are one loop: draw a lock, a range and a mode; acquire; read the lines of the range, or add one to each;
//! release. There are no pauses between operations, but for the writer of everything. In the end the lines must hold
//! exactly what was added, and no reader may have seen its first or last line change: a lock that let conflicting
//! holders meet has most likely failed one of these.

mod draw;

use crate::arr::{Array, LATENCY, pause};
use crate::crew::{self, Keeper, Meter, Phase, Timekeeper};
use crate::target::AnyLock;
use crate::workload::{Makes, OnRanges, Workload};
use draw::{Drawn, Shared};
use fastrand::Rng;
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::Duration;
use prim::futex;
use prim::workload::{self, Start};
use serde::{Deserialize, Serialize};
use spanlock::range::raw::Mode;
use spanlock_records::by_name;
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Outcome, Tally};
use spanlock_records::trial::setting::{MAX_THREADS, Resource, SLOTS};
use spanlock_records::trial::settings::Settings;
use spanlock_records::trial::times::Times;
use std::fmt;
use std::hint::black_box;
use std::ops::{Not, Range};

/// No-ops between two writes of everything: many times as long as an operation, so that the others are at their usual
/// speed when the next one comes.
const PAUSE: u64 = 1 << 14;

/// A pattern of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Many files, each with a lock of its own. Few are popular (Zipf's law); ranges are of all sizes.
    Files,
    /// Random pages of one file.
    Pages,
    /// One thread appends to a log and locks everything behind its end; the others use random records before the end.
    Append,
    /// Each thread uses its own part, then all use random ranges, then each its own part, and so on.
    Phases,
    /// The same with short phases: they end about when a lock has adapted to them.
    Restless,
    /// Parts that pass to the next thread after each operation.
    Alternate,
    /// Parts that pass to the next thread when it has used its part a few times.
    Owners,
    /// Each thread uses its own part, and now and then writes everything.
    Sweep,
    /// One thread writes everything, over and over, with pauses; the others use random ranges. Only its acquisitions
    /// are timed.
    Everything,
    /// Each thread uses its own part and soon ends; another takes its place.
    Churn,
    /// Many locks, which each thread uses once, one after the other; then again.
    Once,
}

by_name!(Pattern);

/// The most threads that exist beside those that work.
pub const MAX_BYSTANDERS: usize = 1000;

/// Bytes of a line, the smallest part of a resource.
pub const LINE_BYTES: usize = 64;

/// Operations of all threads in a long phase: many times as many as a lock needs to adapt. A simulated run of a few
/// milliseconds has several such phases.
pub const LONG: u64 = 1024;

/// Operations of all threads in a short phase, and of one thread between two sweeps and until a part passes on: about
/// as many as a lock needs to adapt, so that it adapts in vain.
pub const SHORT: u64 = 64;

/// Operations of a thread that another replaces: about as long as it takes to start one.
pub const LIFE: u64 = 512;

/// What the locks of a pattern are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of locks.
    pub locks: usize,
    /// Lines of the resource of each.
    pub lines: usize,
    /// All ranges begin and end at multiples of so many lines.
    pub grain: usize,
}

impl Shape {
    /// The resource of each lock, in bytes.
    #[must_use]
    pub const fn resource(self) -> Resource {
        Resource {
            units: (self.lines * LINE_BYTES) as u64,
            grain: (self.grain * LINE_BYTES) as u64,
        }
    }
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Files,
        Self::Pages,
        Self::Append,
        Self::Phases,
        Self::Restless,
        Self::Alternate,
        Self::Owners,
        Self::Sweep,
        Self::Everything,
        Self::Churn,
        Self::Once,
    ];

    /// Its sizes.
    #[must_use]
    pub const fn shape(self) -> Shape {
        let (locks, lines, grain) = match self {
            // Files of 64 KiB: 16 MiB in all.
            Self::Files => (256, 1024, 1),
            // Pages of 4 KiB: 16 MiB in all.
            Self::Pages => (1, 1 << 18, 64),
            // Records of 512 bytes: 4 MiB in all.
            Self::Append => (1, 1 << 16, 8),
            Self::Once => (100_000, 1, 1),
            // An array as ArrBench's.
            Self::Phases
            | Self::Restless
            | Self::Alternate
            | Self::Owners
            | Self::Sweep
            | Self::Everything
            | Self::Churn => (1, SLOTS, 1),
        };
        Shape {
            locks,
            lines,
            grain,
        }
    }
}

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// What threads do.
    pub pattern: Pattern,
    /// Of a hundred operations that the pattern leaves to chance, those that read.
    pub reads: u8,
    /// Threads that exist meanwhile and sleep. Each has used another lock of the same kind once.
    pub bystanders: usize,
    /// Whether acquisitions are timed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub latency: bool,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} % reads", self.pattern, self.reads)?;
        match self.bystanders {
            0 => Ok(()),
            some => write!(f, ", beside {some} threads"),
        }
    }
}

impl Settings for Load {
    const NAME: &'static str = "pattern";
    const KIND: Kind = Kind::Ranges;
}

impl Workload for Load {
    const ABOUT: &'static str =
        "Loads that users have and no paper measures, and loads meant to hurt a lock that adapts";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::words(
            "pattern",
            Pattern::named,
            "files,pages,append,phases,restless,alternate,owners,sweep,everything,churn,once",
            "What threads do: files, pages, append, phases are users' loads; restless, alternate, owners, sweep, \
             everything, churn, once are meant to hurt a lock that adapts",
        ),
        Argument::percent(
            "reads",
            "100,90,50",
            "The percentage of operations that read. It does not apply to appends, sweeps and writes of everything",
        ),
        Argument::whole(
            "bystanders",
            0..=MAX_BYSTANDERS,
            "0",
            "Further threads, which sleep meanwhile. Each has used another lock of the same kind once",
        ),
        LATENCY,
    ];
    /// Longer than it takes to make and to drop the most locks.
    const HANGS_AFTER: Option<Duration> = Some(Duration::from_millis(200));
}

/// One run.
type Trial = spanlock_records::trial::run::Trial<Load>;

impl OnRanges for Load {
    fn run(
        lock: &dyn Makes,
        trial: &Trial,
        meter: &mut dyn Meter,
    ) -> Result<Outcome, &'static str> {
        assert!((1..=MAX_THREADS).contains(&trial.threads));
        let make = || lock.make(trial.load.pattern.shape().resource());
        let world = World::new(make, trial);
        let spare = make();
        Ok(beside(
            trial.load.bystanders,
            |thread| {
                // No two conflict, as far as there are ranges for all.
                let Shape { lines, grain, .. } = trial.load.pattern.shape();
                let start = thread * grain % lines;
                drop(black_box(spare.read(bytes(&(start..start + grain)))));
            },
            || world.run(meter),
        ))
    }
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
struct World<'a> {
    trial: &'a Trial,
    locks: Vec<Box<dyn AnyLock>>,
    /// The lines of all locks, one lock after the other.
    array: Array,
    shared: Shared,
}

impl<'a> World<'a> {
    fn new(make: impl Fn() -> Box<dyn AnyLock>, trial: &'a Trial) -> Self {
        let shape = trial.load.pattern.shape();
        Self {
            trial,
            locks: (0..shape.locks).map(|_| make()).collect(),
            array: Array::new(shape.locks * shape.lines),
            shared: Shared::new(shape),
        }
    }

    fn run(&self, meter: &mut dyn Meter) -> Outcome {
        crew::tallied(
            self.trial,
            meter,
            |thread, rng, keeper: &Keeper, tally| *tally = self.work(thread, rng, keeper),
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
        load.latency && load.pattern != Pattern::Everything
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
