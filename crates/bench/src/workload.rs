//! How workloads run on hardware and on a simulated machine, and what is reported of it. The workloads themselves are
//! rows of [`WORKLOADS`].

use crate::blob::Subject as Reader;
use crate::known::Known;
use crate::meter::Meter;
use crate::provenance::available_memory;
use crate::registry::Lock;
use crate::rw::locks::Lock as RwLock;
use crate::sets::Stock;
use crate::space::Variant;
#[cfg(target_os = "linux")]
use crate::store;
pub use spanlock_workbench::workload::{Ends, Row, Runs, WORKLOADS, find};

#[cfg(feature = "sim")]
pub use simulated::{Simulated, simulate};
use spanlock_records::record::{Kind, Panel, Record, lock, plural};
use spanlock_records::trial::run::{Found, Outcome, Trial};
use spanlock_records::trial::setting::Resource;
use spanlock_records::trial::times::{AcquireTimes, Times};
use spanlock_workbench::blob::RECORD_BYTES;
use spanlock_workbench::keys::{self, table::Row as KeyLock};
use spanlock_workbench::micro::{self, Kernel};
use spanlock_workbench::target::AnyLock;
use spanlock_workbench::workload::Makes;

/// What a workload runs on, on hardware.
pub trait Subject: Known {
    /// Runs a trial of that workload.
    ///
    /// # Errors
    /// Why it cannot do this.
    fn run(self, workload: &Row, trial: &Trial<Panel>) -> Result<Outcome, &'static str>;
}

impl Makes for &'static Lock {
    fn make(&self, resource: Resource) -> Box<dyn AnyLock> {
        Lock::make(self, resource)
    }

    fn holds_one_because(&self, resource: Resource) -> Option<&'static str> {
        Lock::holds_one_because(self, resource)
    }
}

/// Says that a workload does not run on such.
fn other(workload: &str) -> ! {
    panic!("{workload} runs on something else")
}

impl Subject for &'static Lock {
    fn run(self, workload: &Row, trial: &Trial<Panel>) -> Result<Outcome, &'static str> {
        match workload.runs {
            Runs::Ranges(run) => run(&self, trial, &mut Meter::of(trial.events)),
            _ => other(workload.name),
        }
    }
}

impl Subject for &'static RwLock {
    fn run(self, workload: &Row, trial: &Trial<Panel>) -> Result<Outcome, &'static str> {
        let make = || self.measure.make();
        match workload.runs {
            Runs::Whole(run) => Ok(run(&make, trial, &mut Meter::of(trial.events))),
            _ => other(workload.name),
        }
    }
}

/// What has a way of its own to run the only workload that it is for.
macro_rules! subjects {
    ($($(#[$only:meta])? $Subject:ty: |$subject:ident, $trial:ident, $meter:ident| $run:expr;)+) => {$(
        $(#[$only])?
        impl Subject for $Subject {
            fn run(self, _: &Row, trial: &Trial<Panel>) -> Result<Outcome, &'static str> {
                let ($subject, $trial) = (self, &trial.read());
                let $meter = &mut Meter::of($trial.events);
                $run
            }
        }
    )+};
}

subjects! {
    Kernel: |kernel, trial, meter| Ok(micro::run(kernel, trial, meter));
    Reader: |reader, trial, meter| reader.run(trial, meter);
    &'static Stock: |stock, trial, meter| stock.run(trial, meter);
    &'static KeyLock: |lock, trial, meter| keys::run(&*(lock.make)(trial.load), trial, meter);
    #[cfg(target_os = "linux")]
    &'static store::Subject: |subject, trial, meter| (subject.run)(trial, meter);
    &'static Variant: |variant, trial, meter| (variant.run)(trial, meter);
}

/// A run, as progress and errors name it.
#[must_use]
pub fn name(trial: &Trial<Panel>, lock: impl Known) -> String {
    let (panel, threads) = (trial.load, plural(trial.threads));
    format!("{}, {panel}, {threads}", lock.known().name)
}

/// A record of a run in which nothing was measured yet.
fn record(trial: &Trial<Panel>, lock: lock::Lock) -> Record {
    Record {
        repeat: trial.repeat,
        ..Record::new(trial.load, lock, trial.threads, trial.seed)
    }
}

/// The record of a run that yielded this.
///
/// # Errors
/// When the lock did not do what it promises.
fn yielded(record: Record, outcome: Outcome) -> Result<Record, String> {
    let promised = outcome.check(record.lock.exclusion);
    promised.map_err(|found| found.to_string())?;
    let record = record.with_work(&outcome.work);
    let per_second = |operations: u64| match record.panel.kind() {
        Kind::Whole => operations as f64 / record.seconds,
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

/// The workload of a panel.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn of(panel: Panel) -> &'static Row {
    find(panel.workload()).unwrap_or_else(|| other(panel.workload()))
}

/// Why a trial cannot be on hardware: its numbers contradict each other, or ask for what this machine does not have.
#[must_use]
pub fn refused(trial: &Trial<Panel>) -> Option<String> {
    let records = trial.load.number("records").zip(available_memory());
    let too_many = || records.and_then(|(records, available)| exceeding(records, available));
    (of(trial.load).refused)(trial).or_else(too_many)
}

/// Why so many records do not fit into the available bytes of memory. The kernel would end the program.
fn exceeding(records: usize, available: usize) -> Option<String> {
    let room = available / RECORD_BYTES;
    (records > room).then(|| {
        format!(
            "--records {records}: the memory that is available has room for {room}, of 1 MB each"
        )
    })
}

/// Runs a workload on hardware, on a fresh lock or a set in stock, and checks it. If the lock cannot do it, the record
/// says why.
///
/// # Errors
/// When the lock did not do what it promises.
pub fn measure<S: Subject>(trial: Trial<Panel>, subject: S) -> Result<Record, String> {
    let outcome = subject.run(of(trial.load), &trial);
    recorded(record(&trial, subject.known()), outcome)
}

/// A run as it is recorded: what it yielded, or why it could not be.
fn recorded(record: Record, ran: Result<Outcome, &'static str>) -> Result<Record, String> {
    match ran {
        Ok(outcome) => yielded(record, outcome),
        Err(why) => Ok(Record {
            skipped: Some(why.to_owned()),
            ..record
        }),
    }
}

#[cfg(feature = "sim")]
mod simulated {
    use super::{Known, Outcome, Panel, Record, Resource, Trial, other, record, recorded};
    use crate::{sets, sim, space};
    use prim_sim::{Machine, Setup};
    use spanlock_workbench_sim::keys::{self, table::Row as KeyLock};
    use spanlock_workbench_sim::micro::{self, Kernel};
    use spanlock_workbench_sim::target::AnyLock;
    use spanlock_workbench_sim::workload::{Makes, Row, Runs, find};
    use spanlock_workbench_sim::{blob, set};

    /// What a workload runs on, on a simulated machine.
    pub trait Simulated: Known {
        /// Runs a trial of that workload within a run of a simulated machine.
        ///
        /// # Errors
        /// Why it cannot do this.
        fn simulate(
            self,
            workload: &Row,
            trial: &Trial<Panel>,
            machine: &Machine,
        ) -> Result<Outcome, &'static str>;
    }

    impl Makes for &'static sim::Lock {
        fn make(&self, resource: Resource) -> Box<dyn AnyLock> {
            sim::Lock::make(self, resource)
        }

        fn holds_one_because(&self, resource: Resource) -> Option<&'static str> {
            sim::Lock::holds_one_because(self, resource)
        }
    }

    impl Simulated for &'static sim::Lock {
        fn simulate(
            self,
            workload: &Row,
            trial: &Trial<Panel>,
            _: &Machine,
        ) -> Result<Outcome, &'static str> {
            match workload.runs {
                Runs::Ranges(run) => run(&self, trial, &mut ()),
                // SAFETY: all locks that can be simulated exclude.
                Runs::Objects => unsafe { blob::priced(&self, &trial.read()) },
                _ => other(workload.name),
            }
        }
    }

    impl Simulated for &'static sim::RwLock {
        fn simulate(
            self,
            workload: &Row,
            trial: &Trial<Panel>,
            machine: &Machine,
        ) -> Result<Outcome, &'static str> {
            match workload.runs {
                Runs::Whole(run) => Ok(run(&|| self.make(machine), trial, &mut ())),
                _ => other(workload.name),
            }
        }
    }

    /// What has a way of its own to run the only workload that it is for.
    macro_rules! subjects {
        ($($(#[$only:meta])? $Subject:ty: |$subject:ident, $trial:ident, $machine:pat_param| $run:expr;)+) => {$(
            $(#[$only])?
            impl Simulated for $Subject {
                fn simulate(self, _: &Row, trial: &Trial<Panel>, machine: &Machine) -> Result<Outcome, &'static str> {
                    let ($subject, $trial, $machine) = (self, &trial.read(), machine);
                    $run
                }
            }
        )+};
    }

    subjects! {
        Kernel: |kernel, trial, _| Ok(micro::run(kernel, trial, &mut ()));
        &'static sets::Simulated: |set, trial, _| {
            let trial: &Trial<set::Load> = trial;
            let set = (set.make)();
            let filled = set::fill(&*set, trial.load.keys, trial.threads, trial.seed);
            set::run(&*set, filled, trial, &mut ())
        };
        &'static KeyLock: |lock, trial, _| keys::run(&*(lock.make)(trial.load), trial, &mut ());
        #[cfg(target_os = "linux")]
        &'static crate::store::Simulated: |lock, trial, machine| Ok((lock.run)(trial, machine));
        &'static space::Simulated: |variant, trial, machine| Ok((variant.run)(trial, machine));
    }

    /// Runs a workload on a simulated machine, on a fresh lock, and checks it. If the lock cannot do it, the record
    /// says why. The random numbers of the workload and of the machine follow from one seed.
    ///
    /// # Errors
    /// When the run fails, or the lock did not do what it promises.
    pub fn simulate<S: Simulated>(
        trial: Trial<Panel>,
        subject: S,
        setup: &Setup,
    ) -> Result<Record, String> {
        let name = trial.load.workload();
        let workload = find(name).unwrap_or_else(|| other(name));
        let limited = Setup {
            lasts: workload.hangs_after.map_or(setup.lasts, |least| {
                least.max(trial.schedule.measured * 100)
            }),
            ..setup.clone()
        };
        let machine = setup.machine.clone();
        let run = move || subject.simulate(workload, &trial, &machine);
        let ended = prim_sim::run(&limited, run).map_err(|failure| failure.to_string())?;
        let record = Record {
            simulated: Some(spanlock_records::record::Simulated {
                machine: setup.machine.name.clone(),
                placement: setup.placement,
                operations: ended.operations,
            }),
            ..record(&trial, subject.known())
        };
        recorded(record, ended.value)
    }
}
