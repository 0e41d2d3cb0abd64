//! The workloads: how each runs on hardware and on a simulated machine, and what is reported of it.
//!
//! To add one: implement [`Workload`] for its numbers.

use crate::blob::Subject;
use crate::known::Known;
use crate::named::Named;
use crate::registry::Lock;
use crate::run::{Found, Outcome, Throughput, Trial};
use crate::rw::locks::Lock as RwLock;
use crate::sets;
use crate::setting::Resource;
#[cfg(target_os = "linux")]
use crate::store;
use crate::times::Times;
use crate::{sim, space};
use prim_sim::{Machine, Setup};
use spanlock_judge::record::times::AcquireTimes;
use spanlock_judge::record::{Panel, Record, Simulated, lock, plural};
use spanlock_trial::{arr, batch, blob, latency, micro, pattern, rw, set, vm};
use spanlock_workloads_sim as simulated;
use spanlock_workloads_sim::crew::Clock;
use std::fmt::Display;
use std::time::Duration;

/// A workload with its own numbers.
pub trait Workload: Copy + Send + Sync + 'static {
    /// The locks that it runs on, on hardware.
    type Lock: Known;
    /// The locks that it runs on, on a simulated machine.
    type Simulated: Known + Send + Sync + 'static;

    /// Runs it on hardware.
    ///
    /// # Errors
    /// Why the lock cannot do this.
    fn run(trial: &Trial<Self>, lock: Self::Lock) -> Result<Outcome, &'static str>;

    /// Runs it within a run of a simulated machine.
    fn simulate(trial: &Trial<Self>, lock: Self::Simulated, machine: &Machine) -> Outcome;

    /// The virtual time after which a run hangs, at least, if that is not the same for all: it grows with the time
    /// that is measured.
    const HANGS_AFTER: Option<Duration> = None;

    /// All that a simulated run is, besides the [`Setup`]: two of one name yield the same.
    fn name(trial: &Trial<Self>, lock: Self::Simulated) -> String;

    /// The workload and its numbers, as records have them.
    fn panel(self) -> Panel;

    /// Rounds, each on a fresh lock; 0 if there is but one run.
    fn rounds(self) -> u32 {
        0
    }
}

/// A record of a run in which nothing was measured yet.
fn record<W: Workload>(trial: &Trial<W>, lock: lock::Lock) -> Record {
    Record {
        repeat: trial.repeat,
        rounds: trial.load.rounds(),
        ..Record::new(trial.load.panel(), lock, trial.threads, trial.seed)
    }
}

/// The record of a run that yielded this.
///
/// # Errors
/// When the lock did not do what it promises.
fn yielded(record: Record, outcome: Outcome) -> Result<Record, String> {
    let promised = outcome.check(record.lock.exclusion);
    promised.map_err(|found| found.to_string())?;
    let record = if outcome.work.ops.is_empty() {
        // Only times were measured: such a line has the lock's name alone.
        let lock = lock::Lock::named(&record.lock.name);
        Record { lock, ..record }
    } else {
        record.with_work(&outcome.work)
    };
    let per_second = |operations: u64| match record.panel {
        Panel::Rw(_) => operations as f64 / record.seconds,
        _ => 0.0,
    };
    let (lost, torn) = (outcome.found.lost(), outcome.found.torn());
    let (torn_ranges, torn_reads) = match outcome.found {
        Found::Ranges(_) => (torn, 0),
        _ => (0, torn),
    };
    let count = |times: &Option<Times>| times.as_ref().map_or(0, Times::count);
    let times = |times: &Option<Times>| times.as_ref().map(AcquireTimes::from);
    Ok(Record {
        reads_per_sec: per_second(outcome.reads),
        writes_per_sec: per_second(outcome.writes),
        lost_updates: lost,
        torn_ranges,
        torn_reads,
        read_ns: outcome.parts,
        acquire_ns: times(&outcome.acquire),
        first_count: count(&outcome.first),
        first_ns: times(&outcome.first),
        again_count: count(&outcome.again),
        again_ns: times(&outcome.again),
        space: outcome.vm,
        ..record
    })
}

/// Runs a workload on hardware, on a fresh lock or a set in stock, and checks it. If the lock cannot do it, the record
/// says why.
///
/// # Errors
/// When the lock did not do what it promises.
pub fn measure<W: Workload>(trial: Trial<W>, lock: W::Lock) -> Result<Record, String> {
    let record = record(&trial, lock.known());
    match W::run(&trial, lock) {
        Ok(outcome) => yielded(record, outcome),
        Err(why) => Ok(Record {
            skipped: Some(why.to_owned()),
            ..record
        }),
    }
}

/// Runs a workload on a simulated machine, on a fresh lock, and checks it. Its random numbers and the machine's follow
/// from one seed.
///
/// # Errors
/// When the run fails, or the lock did not do what it promises.
pub fn simulate<W: Workload>(
    trial: Trial<W>,
    lock: W::Simulated,
    setup: &Setup,
) -> Result<Record, String> {
    let limited = Setup {
        lasts: W::HANGS_AFTER.map_or(setup.lasts, |least| {
            least.max(trial.schedule.measured * 100)
        }),
        ..setup.clone()
    };
    let machine = setup.machine.clone();
    let ended = prim_sim::run(&limited, move || W::simulate(&trial, lock, &machine));
    let ended = ended.map_err(|failure| failure.to_string())?;
    let record = Record {
        simulated: Some(Simulated {
            machine: setup.machine.name.clone(),
            placement: setup.placement,
            operations: ended.operations,
        }),
        ..record(&trial, lock.known())
    };
    yielded(record, ended.value)
}

/// The name of a run that lasts a time, of a workload with its numbers and of a lock.
fn timed_run<W>(trial: &Trial<W>, what: impl Display, lock: &str) -> String {
    let (threads, seconds) = (plural(trial.threads), trial.schedule.measured.as_secs_f64());
    format!("{what}, {threads}, {lock}, {seconds} s")
}

/// Whether acquisitions are timed, as the name of a run has it.
const fn timed(timing: arr::Timing) -> &'static str {
    match timing {
        arr::Timing::On => ", timed",
        arr::Timing::Off => "",
    }
}

impl Workload for arr::Load {
    const HANGS_AFTER: Option<Duration> = Some(Duration::ZERO);

    type Lock = &'static Lock;
    type Simulated = &'static sim::Lock;

    fn run(trial: &Trial<Self>, lock: &'static Lock) -> Result<Outcome, &'static str> {
        Ok(lock.measure.arr(lock.values, trial))
    }

    fn simulate(trial: &Trial<Self>, lock: &'static sim::Lock, _: &Machine) -> Outcome {
        simulated::arr::run::<Clock>(&lock.make(Resource::ARRAY), trial, &mut ())
    }

    fn name(trial: &Trial<Self>, lock: &'static sim::Lock) -> String {
        let what = format!("arr, {}", trial.load.panel());
        timed_run(trial, what, lock.name()) + timed(trial.load.timing)
    }

    fn panel(self) -> Panel {
        let (variant, reads) = (self.variant, self.reads.get());
        Panel::Arr { variant, reads }
    }
}

impl Workload for batch::Load {
    const HANGS_AFTER: Option<Duration> = Some(Duration::ZERO);

    type Lock = &'static Lock;
    type Simulated = &'static sim::Lock;

    fn run(trial: &Trial<Self>, lock: &'static Lock) -> Result<Outcome, &'static str> {
        let several = trial.load.hold > 1;
        match lock
            .holds_one_because(trial.load.resource())
            .filter(|_| several)
        {
            Some(why) => Err(why),
            None => Ok(lock.measure.batch(lock.values, trial)),
        }
    }

    fn simulate(trial: &Trial<Self>, lock: &'static sim::Lock, _: &Machine) -> Outcome {
        simulated::batch::run::<Clock>(&lock.make(trial.load.resource()), trial, &mut ())
    }

    fn name(trial: &Trial<Self>, lock: &'static sim::Lock) -> String {
        let Self { hold, ranges } = trial.load;
        let what = format!("batch, {hold} of {ranges} ranges");
        timed_run(trial, what, lock.name())
    }

    fn panel(self) -> Panel {
        let Self { hold, ranges } = self;
        Panel::Batch { hold, ranges }
    }
}

impl Workload for blob::Load {
    const HANGS_AFTER: Option<Duration> = Some(Duration::ZERO);

    type Lock = Subject;
    type Simulated = &'static sim::Lock;

    fn run(trial: &Trial<Self>, subject: Subject) -> Result<Outcome, &'static str> {
        subject.run(trial)
    }

    fn simulate(trial: &Trial<Self>, lock: &'static sim::Lock, _: &Machine) -> Outcome {
        // SAFETY: all locks that can be simulated exclude.
        let lock = unsafe { simulated::blob::Tried::new(lock.make(blob::RESOURCE)) };
        let space = spanlock_blob_sim::raw::Space::new(lock, simulated::blob::Priced);
        let reader = || simulated::blob::PricedReader {
            space: &space,
            payload: trial.load.payload,
        };
        let outcome = simulated::blob::run::<Clock, _>(trial, &mut (), reader);
        outcome.expect("such pages are never refused")
    }

    fn name(trial: &Trial<Self>, lock: &'static sim::Lock) -> String {
        timed_run(trial, format!("blob, {}", trial.load.panel()), lock.name())
    }

    fn panel(self) -> Panel {
        let Self {
            draw,
            payload,
            cache,
            records,
        } = self;
        Panel::Blob {
            draw,
            payload,
            cache,
            records,
        }
    }
}

impl Workload for latency::Load {
    type Lock = &'static Lock;
    type Simulated = &'static sim::Lock;

    /// The times of all rounds, without a throughput.
    fn run(trial: &Trial<Self>, lock: &'static Lock) -> Result<Outcome, &'static str> {
        let round = |repeat| {
            let round = lock
                .measure
                .latency(lock.values, &Trial { repeat, ..*trial });
            (round.first, round.again)
        };
        let (first, again): (Vec<_>, Vec<_>) = (0..trial.load.rounds).map(round).unzip();
        Ok(Outcome {
            first: Some(Times::sum(first.iter().flatten())),
            again: Some(Times::sum(again.iter().flatten())),
            ..Outcome::default()
        })
    }

    fn simulate(trial: &Trial<Self>, lock: &'static sim::Lock, _: &Machine) -> Outcome {
        simulated::latency::run(|| lock.make(trial.load.resource()), trial)
    }

    fn name(trial: &Trial<Self>, lock: &'static sim::Lock) -> String {
        let (parts, threads) = (trial.load.parts, plural(trial.threads));
        format!("latency, {parts} parts, {threads}, {}", lock.name())
    }

    fn panel(self) -> Panel {
        Panel::Latency { parts: self.parts }
    }

    fn rounds(self) -> u32 {
        self.rounds
    }
}

impl Workload for pattern::Load {
    /// Longer than it takes to make and to drop the most locks.
    const HANGS_AFTER: Option<Duration> = Some(Duration::from_millis(200));

    type Lock = &'static Lock;
    type Simulated = &'static sim::Lock;

    fn run(trial: &Trial<Self>, lock: &'static Lock) -> Result<Outcome, &'static str> {
        Ok(lock.measure.pattern(lock.values, trial))
    }

    fn simulate(trial: &Trial<Self>, lock: &'static sim::Lock, _: &Machine) -> Outcome {
        let resource = trial.load.pattern.shape().resource();
        simulated::pattern::run::<Clock, _>(|| lock.make(resource), trial, &mut ())
    }

    fn name(trial: &Trial<Self>, lock: &'static sim::Lock) -> String {
        let what = format!("pattern {}", trial.load.panel());
        timed_run(trial, what, lock.name()) + timed(trial.load.timing)
    }

    fn panel(self) -> Panel {
        let Self {
            pattern,
            reads,
            bystanders,
            ..
        } = self;
        Panel::Pattern {
            pattern,
            reads: reads.get(),
            bystanders,
        }
    }
}

impl Workload for micro::Load {
    type Lock = micro::Kernel;
    type Simulated = micro::Kernel;

    fn run(trial: &Trial<Self>, kernel: micro::Kernel) -> Result<Outcome, &'static str> {
        assert!(trial.threads > 0);
        Ok(spanlock_workloads::micro::run(kernel, trial, &mut ()))
    }

    fn simulate(trial: &Trial<Self>, kernel: micro::Kernel, _: &Machine) -> Outcome {
        in_time(trial, simulated::micro::run(kernel, trial, &mut ()))
    }

    fn name(trial: &Trial<Self>, kernel: micro::Kernel) -> String {
        let (threads, seconds) = (plural(trial.threads), trial.schedule.measured.as_secs_f64());
        format!("micro {kernel}, {threads}, {seconds} s")
    }

    fn panel(self) -> Panel {
        Panel::Micro
    }
}

impl Workload for rw::Load {
    type Lock = &'static RwLock;
    type Simulated = &'static sim::RwLock;

    fn run(trial: &Trial<Self>, lock: &'static RwLock) -> Result<Outcome, &'static str> {
        Ok(lock.measure.run(trial))
    }

    fn simulate(trial: &Trial<Self>, lock: &'static sim::RwLock, machine: &Machine) -> Outcome {
        let outcome = simulated::rw::run(|| lock.make(machine), trial, &mut ());
        in_time(trial, outcome)
    }

    fn name(trial: &Trial<Self>, lock: &'static sim::RwLock) -> String {
        timed_run(trial, format!("rw {}", trial.load), lock.name())
    }

    fn panel(self) -> Panel {
        Panel::Rw(self)
    }
}

impl Workload for set::Load {
    type Lock = &'static sets::Stock;
    type Simulated = &'static sets::Simulated;

    fn run(trial: &Trial<Self>, stock: &'static sets::Stock) -> Result<Outcome, &'static str> {
        stock.run(trial)
    }

    fn simulate(trial: &Trial<Self>, set: &'static sets::Simulated, _: &Machine) -> Outcome {
        let set = (set.make)();
        let filled = simulated::set::fill(&*set, trial.load.keys, trial.threads, trial.seed);
        let outcome = simulated::set::run::<Clock>(&*set, filled, trial, &mut ());
        outcome.expect("sets that can be simulated have an order")
    }

    fn name(trial: &Trial<Self>, set: &'static sets::Simulated) -> String {
        let what = format!("set, {}", trial.load.panel());
        timed_run(trial, what, set.described.name)
    }

    fn panel(self) -> Panel {
        let Self {
            keys,
            chosen,
            mix,
            stall,
        } = self;
        Panel::Set {
            keys,
            chosen,
            mix,
            stall,
        }
    }
}

#[cfg(target_os = "linux")]
impl Workload for store::Load {
    /// Longer than it takes to write all regions first.
    const HANGS_AFTER: Option<Duration> = Some(Duration::from_secs(1));

    type Lock = &'static store::Subject;
    type Simulated = &'static store::Simulated;

    fn run(trial: &Trial<Self>, subject: &'static store::Subject) -> Result<Outcome, &'static str> {
        subject.run(trial)
    }

    fn simulate(
        trial: &Trial<Self>,
        lock: &'static store::Simulated,
        machine: &Machine,
    ) -> Outcome {
        lock.run(trial, machine)
    }

    fn name(trial: &Trial<Self>, lock: &'static store::Simulated) -> String {
        let Self { kernel, pages } = trial.load;
        timed_run(trial, format!("store {kernel}, {pages} pages"), lock.name())
    }

    fn panel(self) -> Panel {
        let Self { kernel, pages } = self;
        Panel::Store { kernel, pages }
    }
}

impl Workload for vm::Load {
    /// Longer than any program that is recorded runs.
    const HANGS_AFTER: Option<Duration> = Some(Duration::from_secs(3600));

    type Lock = &'static space::Variant;
    type Simulated = &'static space::Simulated;

    fn run(trial: &Trial<Self>, variant: &'static space::Variant) -> Result<Outcome, &'static str> {
        Ok(variant.run(trial))
    }

    fn simulate(
        trial: &Trial<Self>,
        variant: &'static space::Simulated,
        machine: &Machine,
    ) -> Outcome {
        variant.run(trial, machine)
    }

    fn name(trial: &Trial<Self>, variant: &'static space::Simulated) -> String {
        let (panel, threads) = (trial.load.panel(), plural(trial.threads));
        let content = space::digest(&trial.load.traffic);
        format!("vm, {panel} ({content:x}), {threads}, {}", variant.name())
    }

    fn panel(self) -> Panel {
        let growths = match self.traffic {
            vm::Traffic::Recorded(..) => 0,
            vm::Traffic::Pattern(_, growths) => growths,
        };
        Panel::Vm {
            traffic: self.traffic.name(),
            pace: self.pace,
            growths,
        }
    }
}

/// The outcome of a simulated run, in which threads learn of the end a little late. Their operations count until then,
/// and the time is what was asked for.
fn in_time<W>(trial: &Trial<W>, outcome: Outcome) -> Outcome {
    let work = Throughput {
        elapsed: trial.schedule.measured,
        ..outcome.work
    };
    Outcome { work, ..outcome }
}
