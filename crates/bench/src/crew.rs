//! Threads that start together, warm up, are measured, and stop together.

use crate::processor;
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
}

/// Runs `work` on so many threads, which are numbered from 0, until the schedule is over.
///
/// # Panics
/// When `work` does.
pub fn run<W: Send>(
    threads: usize,
    schedule: Schedule,
    work: impl Fn(usize, &Signal) -> W + Sync,
) -> Run<W> {
    let signal = Signal(AtomicU8::new(Phase::Warmup as u8));
    let start = Barrier::new(threads + 1);
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
        let begin = Instant::now();
        let (processor, elapsed) = processor::measure(processor::time_of_process, || {
            signal.set(Phase::Measured);
            std::thread::sleep(schedule.measured);
            signal.set(Phase::Stop);
            begin.elapsed()
        });
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
        }
    })
}
