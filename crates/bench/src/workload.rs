//! The workloads: how each runs on hardware and on a simulated machine, and what is reported of it.
//!
//! To add one: implement [`Workload`] for its numbers.

use crate::blob::Subject;
use crate::known::Known;
use crate::meter::Meter;
use crate::registry::Lock;
use crate::rw::locks::Lock as RwLock;
use crate::sets;
use crate::space;
use spanlock_records::record::{Panel, Record, lock, plural};
use spanlock_records::trial::run::{Found, Outcome, Trial};
#[cfg(target_os = "linux")]
use spanlock_records::trial::store;
use spanlock_records::trial::times::{AcquireTimes, Times};
use spanlock_records::trial::{arr, batch, blob, keys, latency, micro, pattern, rw, set, vm};
use spanlock_workbench::crew::Signal;
use spanlock_workbench::keys::table::Row as KeyLock;
use std::fmt;
#[cfg(feature = "sim")]
use {
    crate::sim,
    prim_sim::{Machine, Setup},
    spanlock_records::record::Simulated,
    spanlock_records::trial::run::Throughput,
    spanlock_records::trial::setting::Resource,
    spanlock_workbench_sim as simulated,
    spanlock_workbench_sim::crew::Clock,
    spanlock_workbench_sim::keys::table::Row as SimulatedKeyLock,
    std::time::Duration,
};

/// A workload with its own numbers.
pub trait Workload: Copy + fmt::Debug + Into<Panel> + Send + Sync + 'static {
    /// The locks that it runs on, on hardware.
    type Lock: Known;
    /// The locks that it runs on, on a simulated machine.
    #[cfg(feature = "sim")]
    type Simulated: Known;

    /// Runs it on hardware.
    ///
    /// # Errors
    /// Why the lock cannot do this.
    fn run(trial: &Trial<Self>, lock: Self::Lock) -> Result<Outcome, &'static str>;

    /// Runs it within a run of a simulated machine.
    ///
    /// # Errors
    /// Why the lock cannot do this.
    #[cfg(feature = "sim")]
    fn simulate(
        trial: &Trial<Self>,
        lock: Self::Simulated,
        machine: &Machine,
    ) -> Result<Outcome, &'static str>;

    /// The virtual time after which a run hangs, at least, if that is not the same for all: it grows with the time
    /// that is measured.
    #[cfg(feature = "sim")]
    const HANGS_AFTER: Option<Duration> = None;
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
        rounds: outcome.rounds,
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
        Err(why) => Ok(skipped(record, why)),
    }
}

/// Runs a workload on a simulated machine, on a fresh lock, and checks it. If the lock cannot do it, the record says
/// why. The random numbers of the workload and of the machine follow from one seed.
///
/// # Errors
/// When the run fails, or the lock did not do what it promises.
#[cfg(feature = "sim")]
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
    match ended.value {
        Ok(outcome) => yielded(record, outcome),
        Err(why) => Ok(skipped(record, why)),
    }
}

fn skipped(record: Record, why: &str) -> Record {
    Record {
        skipped: Some(why.to_owned()),
        ..record
    }
}

/// Workloads. Of each: its load, the locks that it runs on, those that it is simulated on, after which time a simulated
/// run hangs, how it runs on hardware, and how it is simulated.
macro_rules! workloads {
    ($(
        $(#[$only:meta])?
        $Load:ty: $Lock:ty, $Simulated:ty, $hangs_after:expr;
        |$trial:pat_param, $lock:pat_param| $run:expr;
        |$same:pat_param, $other:pat_param, $machine:pat_param| $simulate:expr;
    )+) => {$(
        $(#[$only])?
        impl Workload for $Load {
            #[cfg(feature = "sim")]
            const HANGS_AFTER: Option<Duration> = $hangs_after;

            type Lock = $Lock;
            #[cfg(feature = "sim")]
            type Simulated = $Simulated;

            fn run($trial: &Trial<Self>, $lock: $Lock) -> Result<Outcome, &'static str> {
                $run
            }

            #[cfg(feature = "sim")]
            fn simulate($same: &Trial<Self>, $other: $Simulated, $machine: &Machine) -> Result<Outcome, &'static str> {
                $simulate
            }
        }
    )+};
}

workloads! {
    arr::Load: &'static Lock, &'static sim::Lock, Some(Duration::ZERO);
    |trial, lock| Ok(lock.measure.arr(lock.values, trial));
    |trial, lock, _| Ok(simulated::arr::run::<Clock>(&lock.make(Resource::ARRAY), trial, &mut ()));

    batch::Load: &'static Lock, &'static sim::Lock, Some(Duration::ZERO);
    |trial, lock| {
        let holds_one = lock.holds_one_because(trial.load.resource());
        match holds_one.filter(|_| trial.load.hold > 1) {
            Some(why) => Err(why),
            None => Ok(lock.measure.batch(lock.values, trial)),
        }
    };
    |trial, lock, _| {
        let resource = trial.load.resource();
        match lock.holds_one_because(resource).filter(|_| trial.load.hold > 1) {
            Some(why) => Err(why),
            None => Ok(simulated::batch::run::<Clock>(&lock.make(resource), trial, &mut ())),
        }
    };

    blob::Load: Subject, &'static sim::Lock, Some(Duration::ZERO);
    |trial, subject| subject.run(trial);
    |trial, lock, _| {
        if let Some(why) = lock.holds_one_because(blob::RESOURCE) {
            return Err(why);
        }
        // SAFETY: all locks that can be simulated exclude.
        let lock = unsafe { simulated::blob::Tried::new(lock.make(blob::RESOURCE)) };
        let space = spanlock_structures_sim::blob::raw::Space::new(lock, simulated::blob::Priced);
        let payload = trial.load.payload;
        let reader = || simulated::blob::PricedReader { space: &space, payload };
        let outcome = simulated::blob::run::<Clock, _>(trial, &mut (), reader);
        Ok(outcome.expect("such pages are never refused"))
    };

    latency::Load: &'static Lock, &'static sim::Lock, None;
    // The times of all rounds, without a throughput.
    |trial, lock| {
        let round = |repeat| {
            let round = lock.measure.latency(lock.values, &Trial { repeat, ..*trial });
            (round.first, round.again)
        };
        let (first, again): (Vec<_>, Vec<_>) = (0..trial.load.rounds).map(round).unzip();
        Ok(Outcome {
            first: Some(Times::sum(first.iter().flatten())),
            again: Some(Times::sum(again.iter().flatten())),
            rounds: trial.load.rounds,
            ..Outcome::default()
        })
    };
    |trial, lock, _| Ok(simulated::latency::run(|| lock.make(trial.load.resource()), trial));

    // Longer than it takes to make and to drop the most locks.
    pattern::Load: &'static Lock, &'static sim::Lock, Some(Duration::from_millis(200));
    |trial, lock| Ok(lock.measure.pattern(lock.values, trial));
    |trial, lock, _| {
        let resource = trial.load.pattern.shape().resource();
        Ok(simulated::pattern::run::<Clock, _>(|| lock.make(resource), trial, &mut ()))
    };

    micro::Load: micro::Kernel, micro::Kernel, None;
    |trial, kernel| {
        assert!(trial.threads > 0);
        Ok(spanlock_workbench::micro::run(kernel, trial, &mut ()))
    };
    |trial, kernel, _| Ok(in_time(trial, simulated::micro::run(kernel, trial, &mut ())));

    rw::Load: &'static RwLock, &'static sim::RwLock, None;
    |trial, lock| Ok(lock.measure.run(trial));
    |trial, lock, machine| {
        let outcome = simulated::rw::run(|| lock.make(machine), trial, &mut ());
        Ok(in_time(trial, outcome))
    };

    set::Load: &'static sets::Stock, &'static sets::Simulated, None;
    |trial, stock| stock.run(trial);
    |trial, set, _| {
        let set = (set.make)();
        let filled = simulated::set::fill(&*set, trial.load.keys, trial.threads, trial.seed);
        let outcome = simulated::set::run::<Clock>(&*set, filled, trial, &mut ());
        Ok(outcome.expect("sets that can be simulated have an order"))
    };

    keys::Load: &'static KeyLock, &'static SimulatedKeyLock, Some(Duration::from_millis(200));
    |trial, lock| spanlock_workbench::keys::run::<Signal>(&*(lock.make)(trial.load), trial, &mut Meter::of(trial.events));
    |trial, lock, _| {
        let outcome = simulated::keys::run::<Clock>(&*(lock.make)(trial.load), trial, &mut ());
        Ok(outcome.expect("a lock that cannot do this is not chosen"))
    };

    // Longer than it takes to write all regions first.
    #[cfg(target_os = "linux")]
    store::Load: &'static crate::store::Subject, &'static crate::store::Simulated, Some(Duration::from_secs(1));
    |trial, subject| (subject.run)(trial);
    |trial, lock, machine| Ok((lock.run)(trial, machine));

    // Longer than any program that is recorded runs.
    vm::Load: &'static space::Variant, &'static space::Simulated, Some(Duration::from_secs(3600));
    |trial, variant| (variant.run)(trial);
    |trial, variant, machine| Ok((variant.run)(trial, machine));
}

/// The outcome of a simulated run, in which threads learn of the end a little late. Their operations count until then,
/// and the time is what was asked for.
#[cfg(feature = "sim")]
fn in_time<W>(trial: &Trial<W>, outcome: Outcome) -> Outcome {
    let work = Throughput {
        elapsed: trial.schedule.measured,
        ..outcome.work
    };
    Outcome { work, ..outcome }
}
