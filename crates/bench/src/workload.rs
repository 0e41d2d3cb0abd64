//! The workloads: how each runs on hardware and on a simulated machine, and what is reported of it.
//!
//! To add one: implement [`Workload`] for its numbers.

use crate::blob::Subject;
use crate::known::Known;
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
use std::fmt;
use std::time::Duration;

/// A workload with its own numbers.
pub trait Workload: Copy + fmt::Debug + Into<Panel> + Send + Sync + 'static {
    /// The locks that it runs on, on hardware.
    type Lock: Known;
    /// The locks that it runs on, on a simulated machine.
    type Simulated: Known;

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

    /// Rounds, each on a fresh lock; 0 if there is but one run.
    fn rounds(self) -> u32 {
        0
    }
}

/// A run, as progress and errors name it.
#[must_use]
pub fn name<W: Workload>(trial: &Trial<W>, lock: impl Known) -> String {
    let (panel, threads): (Panel, _) = (trial.load.into(), plural(trial.threads));
    format!("{}, {panel}, {threads}", lock.known().name)
}

/// A record of a run in which nothing was measured yet.
fn record<W: Workload>(trial: &Trial<W>, lock: lock::Lock) -> Record {
    Record {
        repeat: trial.repeat,
        rounds: trial.load.rounds(),
        ..Record::new(trial.load.into(), lock, trial.threads, trial.seed)
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

    fn simulate(trial: &Trial<Self>, lock: &'static store::Simulated, _: &Machine) -> Outcome {
        lock.run(trial)
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
