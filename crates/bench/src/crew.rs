//! Threads that start together, warm up, are measured, and stop together.

use crate::counters::{Count, Counters, Event, Rate};
use crate::processor;
use fastrand::Rng;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// How long a run lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Time before the measurement, in which threads already work.
    pub warmup: Duration,
    /// Time of the measurement.
    pub measured: Duration,
}

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

/// Tells the threads of a run where it is. On a line that is written twice in a run.
#[derive(Debug)]
#[repr(align(128))]
pub struct Signal(AtomicU8);

impl Signal {
    fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Relaxed);
    }

    /// Where the run is. Ask before each operation; an operation counts by the phase it began in.
    #[inline]
    pub fn phase(&self) -> Phase {
        // Relaxed: it orders nothing.
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Warmup,
            1 => Phase::Measured,
            _ => Phase::Stop,
        }
    }
}

/// What a run was.
#[derive(Debug)]
pub struct Run<W> {
    /// What each thread returned, in order of their numbers.
    pub workers: Vec<W>,
    /// How long the measured phase really was.
    pub elapsed: Duration,
    /// Processor time of the whole process in the measured phase.
    pub processor: Option<Duration>,
    /// What was counted in the measured phase.
    pub counts: Vec<Count>,
}

/// Runs `work` on so many threads, which are numbered from 0, until the schedule is over, and
/// counts events.
///
/// # Panics
/// When `work` does.
pub fn run<W: Send>(
    threads: usize,
    schedule: Schedule,
    events: &[Event],
    work: impl Fn(usize, &Signal) -> W + Sync,
) -> Run<W> {
    let signal = Signal(AtomicU8::new(Phase::Warmup as u8));
    let start = Barrier::new(threads + 1);
    let mut counters = Counters::open(events);
    std::thread::scope(|scope| {
        let crew: Vec<_> = (0..threads)
            .map(|number| {
                let (signal, start, work) = (&signal, &start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(number, signal)
                })
            })
            .collect();
        start.wait();
        std::thread::sleep(schedule.warmup);
        counters.begin();
        let begin = Instant::now();
        let (processor, elapsed) = processor::measure(processor::time_of_process, || {
            signal.set(Phase::Measured);
            std::thread::sleep(schedule.measured);
            signal.set(Phase::Stop);
            begin.elapsed()
        });
        let counts = counters.end();
        let workers = crew
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        Run {
            workers,
            elapsed,
            processor,
            counts,
        }
    })
}

/// Random numbers of one thread in one of several equal runs.
#[must_use]
pub fn rng(seed: u64, repeat: u32, thread: usize) -> Rng {
    // Each part is mixed in by a draw, so that neighbours in any of them are strangers.
    [u64::from(repeat), thread as u64]
        .into_iter()
        .fold(Rng::with_seed(seed), |mut rng, part| {
            Rng::with_seed(rng.u64(..) ^ part)
        })
}

/// What was done in the measured time of a run.
#[derive(Debug)]
pub struct Throughput {
    /// The operations of each thread.
    pub ops: Vec<u64>,
    /// How long it was.
    pub elapsed: Duration,
    /// Processor time of the process in it; `None` where the system does not tell.
    pub processor: Option<Duration>,
    /// What was counted in it.
    pub counts: Vec<Count>,
}

impl Throughput {
    /// Of a run, of which each worker tells its operations.
    pub fn of<W>(run: &Run<W>, ops: impl Fn(&W) -> u64) -> Self {
        Self {
            ops: run.workers.iter().map(ops).collect(),
            elapsed: run.elapsed,
            processor: run.processor,
            counts: run.counts.clone(),
        }
    }

    /// Operations of all threads.
    fn total(&self) -> u64 {
        self.ops.iter().sum()
    }

    /// What was counted, per operation.
    #[must_use]
    pub fn rates(&self) -> Vec<Rate> {
        let counts = self.counts.iter();
        counts.map(|count| Rate::of(count, self.total())).collect()
    }

    /// Operations per second, of all threads.
    #[must_use]
    pub fn ops_per_second(&self) -> f64 {
        self.total() as f64 / self.elapsed.as_secs_f64()
    }

    /// Operations of the thread that had the fewest.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.ops.iter().copied().min().unwrap_or(0)
    }

    /// Operations of the thread that had the most.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.ops.iter().copied().max().unwrap_or(0)
    }

    /// Processor time of the process, in seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> Option<f64> {
        self.processor.map(|time| time.as_secs_f64())
    }
}
