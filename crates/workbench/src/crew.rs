//! Threads that start together, warm up, are measured, and stop together: the driver of all workloads.
//!
//! Where hardware and a simulated machine differ is in `prim`. What is metered meanwhile is the caller's: see
//! [`Meter`].

use crate::timed;
use fastrand::Rng;
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::{Duration, Instant};
use prim::workload::{self, Start};
use spanlock_records::trial::run::{Found, Metered, Outcome, Run, Schedule, Tally, Trial};

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Work; it does not count.
    Warmup,
    /// Work; it counts.
    Measured,
    /// The end.
    Stop,
}

impl Phase {
    /// 1 if an operation that begins now counts, and else 0.
    #[inline]
    #[must_use]
    pub fn counts(self) -> u64 {
        u64::from(self == Self::Measured)
    }
}

/// Meters the measured time of a run: on hardware processor time and counters. `()` meters nothing.
pub trait Meter {
    /// The measured time begins.
    fn begin(&mut self);
    /// It has ended.
    fn end(&mut self) -> Metered;
}

impl Meter for () {
    fn begin(&mut self) {}

    fn end(&mut self) -> Metered {
        Metered::default()
    }
}

/// How the threads of a run know where it is.
pub trait Timekeeper: Sync {
    /// When the run begins, just before its threads do.
    fn begin(schedule: Schedule) -> Self;

    /// Where the run is. Ask before each operation; an operation counts by the phase it began in.
    fn phase(&self) -> Phase;

    /// Repeats an operation until the end, with the phase in which each begins.
    #[inline]
    fn until_stop(&self, mut operation: impl FnMut(Phase)) {
        loop {
            match self.phase() {
                Phase::Stop => return,
                phase => operation(phase),
            }
        }
    }

    /// The thread that started the others calls this. Returns when the schedule is over: how long the measured time
    /// was, and what was metered in it.
    fn keep(&self, meter: &mut dyn Meter) -> (Duration, Metered);
}

/// A word on lines of its own, which is written twice in a run and which threads load before each operation.
#[derive(Debug)]
pub struct Signal {
    phase: Word,
    schedule: Schedule,
}

#[derive(Debug)]
#[repr(align(128))]
struct Word(AtomicU32);

impl Signal {
    fn announce(&self, phase: Phase) {
        // Relaxed, as in `phase`: it orders nothing.
        self.phase.0.store(phase as u32, Ordering::Relaxed);
    }
}

impl Timekeeper for Signal {
    fn begin(schedule: Schedule) -> Self {
        let phase = Word(AtomicU32::new(Phase::Warmup as u32));
        Self { phase, schedule }
    }

    #[inline]
    fn phase(&self) -> Phase {
        match self.phase.0.load(Ordering::Relaxed) {
            0 => Phase::Warmup,
            1 => Phase::Measured,
            _ => Phase::Stop,
        }
    }

    fn keep(&self, meter: &mut dyn Meter) -> (Duration, Metered) {
        workload::sleep(self.schedule.warmup);
        meter.begin();
        self.announce(Phase::Measured);
        let elapsed = workload::sleep(self.schedule.measured);
        self.announce(Phase::Stop);
        (elapsed, meter.end())
    }
}

/// On hardware a [`Signal`]. On a simulated machine, where that costs the same for any number of threads, they read the
/// clock before each operation, and nothing is metered.
#[derive(Debug)]
pub struct Keeper {
    signal: Signal,
    start: Instant,
}

impl Timekeeper for Keeper {
    fn begin(schedule: Schedule) -> Self {
        let signal = Signal::begin(schedule);
        let start = Instant::now();
        Self { signal, start }
    }

    #[inline]
    fn phase(&self) -> Phase {
        if !workload::IS_VIRTUAL {
            return self.signal.phase();
        }
        let Schedule { warmup, measured } = self.signal.schedule;
        match self.start.elapsed() {
            elapsed if elapsed >= warmup + measured => Phase::Stop,
            elapsed if elapsed >= warmup => Phase::Measured,
            _ => Phase::Warmup,
        }
    }

    fn keep(&self, meter: &mut dyn Meter) -> (Duration, Metered) {
        match workload::IS_VIRTUAL {
            true => (self.signal.schedule.measured, Metered::default()),
            false => self.signal.keep(meter),
        }
    }
}

/// Runs `work` on so many threads, which are numbered from 0, until the schedule is over.
///
/// # Panics
/// When `work` does.
pub fn run<K: Timekeeper, W: Send>(
    threads: usize,
    schedule: Schedule,
    meter: &mut dyn Meter,
    work: impl Fn(usize, &K) -> W + Sync,
) -> Run<W> {
    let start = Start::new(threads + 1);
    let keeper = K::begin(schedule);
    let mut kept = (Duration::ZERO, Metered::default());
    let workers = workload::crew(
        threads,
        |number| {
            start.wait();
            work(number, &keeper)
        },
        || {
            start.wait();
            kept = keeper.keep(meter);
        },
    );
    let (elapsed, metered) = kept;
    Run {
        workers,
        elapsed,
        metered,
    }
}

/// The same for all threads of a trial, each with random numbers of its own.
pub fn run_trial<L: Sync, W: Send, K: Timekeeper>(
    trial: &Trial<L>,
    meter: &mut dyn Meter,
    work: impl Fn(usize, Rng, &K) -> W + Sync,
) -> Run<W> {
    run(
        trial.threads,
        trial.schedule,
        meter,
        |thread, keeper: &K| work(thread, rng(trial.seed, trial.repeat, thread), keeper),
    )
}

/// The same, where each thread counts what it does. Given all of it, `found` says what was found in the end.
pub fn tallied<L: Sync, K: Timekeeper>(
    trial: &Trial<L>,
    meter: &mut dyn Meter,
    work: impl Fn(usize, Rng, &K, &mut Tally) + Sync,
    found: impl Fn(&Tally) -> Found,
) -> Outcome {
    let run = run_trial(trial, meter, |thread, rng, keeper: &K| {
        let mut tally = Tally::default();
        work(thread, rng, keeper, &mut tally);
        tally
    });
    Outcome::of(&run, &found)
}

/// Acquires a lock, and adds how long that took if the thread's acquisitions are timed and it counts.
#[inline]
pub(crate) fn acquire<G>(tally: &mut Tally, phase: Phase, acquire: impl FnOnce() -> G) -> G {
    let Some(times) = &mut tally.times else {
        return acquire();
    };
    let (held, took) = timed(acquire);
    if phase == Phase::Measured {
        times.record(took);
    }
    held
}

/// Random numbers of one thread in one of several equal runs.
#[must_use]
pub fn rng(seed: u64, repeat: u32, thread: usize) -> Rng {
    // Each part is mixed in by a draw, so that similar seeds give unrelated sequences.
    [u64::from(repeat), thread as u64]
        .into_iter()
        .fold(Rng::with_seed(seed), |mut rng, part| {
            Rng::with_seed(rng.u64(..) ^ part)
        })
}
