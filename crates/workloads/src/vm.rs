//! Traffic of an address space, replayed (P1 §7.2).
//!
//! | module | what it is |
//! |---|---|
//! | [`replay`] | a trace on any address space: calls and faults, one at a time, and the areas at the end |
//! | [`page`] | a page table whose pages are zeroed when a fault makes them |
//!
//! The threads of a trace are dealt to the threads of a run in turn, so a run of fewer threads has several in each. An
//! event waits for the events of other threads that [`order`] names, and for no others.

pub mod page;
pub mod replay;

use crate::crew::Meter;
use page::Zeroed;
use prim::atomic::{AtomicUsize, Ordering};
use prim::clock::{Duration, Instant};
use prim::thread::{self, Start};
use replay::{Families, Replay};
use spanlock::range::raw::{Mode, RawRangeLock};
use spanlock_trial::run::{Found, Outcome, Throughput};
use spanlock_trial::vm::{Pace, Stat, Traffic, Trial};
use spanlock_vm_trace::order::{self, Wait};
use spanlock_vm_trace::{Call, Event, Trace};
use std::borrow::Cow;
use vm::variants::Variant;
use vm::{LockStat, Operation, Speculation};

/// Replays the traffic of a trial on a fresh address space. `pass` passes some time, as the program did.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run<L: RawRangeLock + Sync>(
    make: fn() -> L,
    variant: Variant,
    trial: &Trial,
    meter: &mut impl Meter,
    pass: impl Fn(Duration) + Sync,
) -> Outcome {
    let trace = match trial.load.traffic {
        Traffic::Recorded(_, trace) => Cow::Borrowed(trace),
        Traffic::Pattern(program, growths) => Cow::Owned(program.trace(trial.threads, growths)),
    };
    let threads = trial.threads;
    assert!(
        (1..=trace.threads()).contains(&threads),
        "{threads} threads"
    );
    let builder = vm::AddressSpace::builder()
        .refinement(variant.refinement)
        .recorded();
    let space = Replay::begin(&trace, builder, make(), Zeroed::default());
    let run = Run::new(&trace, threads, &space, trial.load.pace);
    let start = Start::new(threads + 1);
    let workers = thread::crew(
        threads,
        |number| {
            start.wait();
            run.work(number, &pass)
        },
        || {
            start.wait();
            meter.begin();
        },
    );
    let metered = meter.end();
    // From the first to begin to the last to end: this thread may learn of both late.
    let begun = workers.iter().map(|worker| worker.begun).min();
    let ended = workers.iter().map(|worker| worker.ended).max();
    let elapsed = ended
        .zip(begun)
        .map(|(ended, begun)| ended.saturating_duration_since(begun));
    let refused = workers.iter().map(|worker| worker.refused).sum();
    let families = if threads == 1 {
        Families::Compared
    } else {
        Families::Ignored
    };
    let differs = space.difference(families).is_some();
    Outcome {
        work: Throughput {
            ops: workers.iter().map(|worker| worker.events).collect(),
            elapsed: elapsed.expect("there is a thread"),
            processor: metered.processor,
            counts: metered.counts,
        },
        found: Found::Space { refused, differs },
        vm: space.space().lock_stat().map(|stat| summed(&stat, &trace)),
        ..Outcome::default()
    }
}

/// What one thread did.
struct Worker {
    events: u64,
    refused: u64,
    begun: Instant,
    ended: Instant,
}

/// How many events of a thread of the trace are over, on a line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Over(AtomicUsize);

/// A run of a trace.
struct Run<'a, L: RawRangeLock> {
    space: &'a Replay<'a, L, Zeroed>,
    /// For each thread of the run the numbers of its events.
    shares: Vec<Vec<usize>>,
    events: &'a [Event],
    waits: order::Waits,
    over: Vec<Over>,
    pace: Pace,
}

impl<'a, L: RawRangeLock> Run<'a, L> {
    fn new(trace: &'a Trace, threads: usize, space: &'a Replay<'a, L, Zeroed>, pace: Pace) -> Self {
        let mut shares = vec![Vec::new(); threads];
        for (number, event) in trace.events.iter().enumerate() {
            shares[event.thread % threads].push(number);
        }
        let over = (0..trace.threads()).map(|_| Over::default()).collect();
        let waits = order::waits(trace);
        Self {
            space,
            shares,
            events: &trace.events,
            waits,
            over,
            pace,
        }
    }

    fn work(&self, thread: usize, pass: &impl Fn(Duration)) -> Worker {
        let begun = Instant::now();
        let share = &self.shares[thread];
        let mut refused = 0;
        for &number in share {
            let event = &self.events[number];
            if self.pace == Pace::Recorded && event.think > 0 {
                pass(Duration::from_micros(event.think));
            }
            for wait in self.waits.of(number) {
                self.until(*wait);
            }
            refused += u64::from(self.space.apply(&event.call).is_err());
            let over = &self.over[event.thread].0;
            // Release: pairs with the Acquire in `until`. Only this thread writes the word.
            over.store(over.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
        Worker {
            events: share.len() as u64,
            refused,
            begun,
            ended: Instant::now(),
        }
    }

    /// Waits until events of another thread are over. Nobody wakes this thread: what it waits for is short.
    fn until(&self, wait: Wait) {
        // Acquire: pairs with the Release in `work`.
        while self.over[wait.thread].0.load(Ordering::Acquire) < wait.events {
            thread::nap();
        }
    }
}

/// Waits of all operations together, and speculations of `mprotect`.
fn summed(stat: &LockStat, trace: &Trace) -> Stat {
    let is_protect = |event: &&Event| matches!(event.call, Call::Protect { .. });
    let protects = trace.events.iter().filter(is_protect).count() as u64;
    let waits = |mode| {
        let waits = Operation::ALL
            .into_iter()
            .map(|operation| stat.waits(operation, mode));
        let (count, time) = waits.fold((0, Duration::ZERO), |(count, time), waits| {
            (count + waits.acquired, time + waits.time)
        });
        (count, time.as_nanos() as f64 / count.max(1) as f64)
    };
    let outcomes = |outcomes: &[Speculation]| {
        let count = |outcome| stat.speculations(Operation::Mprotect, outcome);
        outcomes.iter().map(|outcome| count(*outcome)).sum::<u64>()
    };
    let ((reads, read_wait_ns), (writes, write_wait_ns)) =
        (waits(Mode::Shared), waits(Mode::Exclusive));
    let whole = [
        Speculation::WholeForStructure,
        Speculation::WholeForRange,
        Speculation::WholeForRetries,
    ];
    let (in_place, structural) = (
        outcomes(&[Speculation::InPlace]),
        outcomes(&[Speculation::Structural]),
    );
    Stat {
        reads,
        read_wait_ns,
        writes,
        write_wait_ns,
        protects,
        in_place,
        structural,
        retried: outcomes(&[Speculation::Retried, Speculation::Widened]),
        whole: outcomes(&whole),
    }
}
