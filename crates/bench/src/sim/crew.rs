//! As [`crate::crew`], of virtual threads.

use crate::counters;
use crate::crew::{Phase, Run, Schedule};
use prim_sim::atomic::{AtomicU32, Ordering};
use prim_sim::clock::{Duration, Instant};
use prim_sim::futex::{self, Woken};
use prim_sim::thread;

pub(crate) use crate::crew::rng;

/// Tells the threads of a run where it is. On a line that is written twice in a run.
#[repr(align(128))]
pub(crate) struct Signal(AtomicU32);

const PHASES: [Phase; 3] = [Phase::Warmup, Phase::Measured, Phase::Stop];

impl Signal {
    /// Where the run is. Ask before each operation; an operation counts by the phase it began in.
    pub(crate) fn phase(&self) -> Phase {
        PHASES[self.0.load(Ordering::Relaxed) as usize]
    }
}

/// Runs `work` in so many threads. Nothing is counted.
pub(crate) fn run<W: Send>(
    threads: usize,
    schedule: Schedule,
    _: &[counters::Event],
    work: impl Fn(usize, &Signal) -> W + Sync,
) -> Run<W> {
    let signal = Signal(AtomicU32::new(0));
    let workers = thread::crew(
        threads,
        |number| work(number, &signal),
        || {
            for (phase, time) in [(1, schedule.warmup), (2, schedule.measured)] {
                sleep(time);
                signal.0.store(phase, Ordering::Relaxed);
            }
        },
    );
    Run {
        workers,
        elapsed: schedule.measured,
        processor: None,
        counts: Vec::new(),
    }
}

fn sleep(time: Duration) {
    let nobody = Signal(AtomicU32::new(0));
    let deadline = Some(Instant::now() + time);
    while futex::wait(&nobody.0, 0, deadline) != Woken::TimedOut {}
}
