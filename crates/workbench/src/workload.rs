//! The workloads, each once: to add one, add its file and a row in [`WORKLOADS`].
//!
//! The file has the settings, which are the fields of its lines and name its panels; the arguments by which users
//! choose them; and what its threads do. Commands, lines of JSON and the report follow from that.

use crate::crew::Meter;
#[cfg(target_os = "linux")]
use crate::store;
use crate::target::AnyLock;
use crate::{arr, batch, blob, keys, latency, micro, pattern, rw, set, vm};
use prim::clock::Duration;
use spanlock_records::record::{Kind, Panel};
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Outcome, Trial};
use spanlock_records::trial::setting::Resource;
use spanlock_records::trial::settings::Settings;

/// All workloads, in the order of commands.
pub static WORKLOADS: &[Row] = &[
    Row::ranges::<arr::Load>(),
    Row::ranges::<batch::Load>(),
    Row::of::<blob::Load>(Runs::Objects),
    Row::of::<keys::Load>(Runs::Keys),
    Row::ranges::<latency::Load>(),
    Row::of::<micro::Load>(Runs::Words),
    Row::ranges::<pattern::Load>(),
    Row::of::<set::Load>(Runs::Sets),
    #[cfg(target_os = "linux")]
    Row::of::<store::Load>(Runs::Files),
    Row::of::<vm::Load>(Runs::Spaces),
    Row::whole::<rw::interference::Load>(),
    Row::whole::<rw::alternator::Load>(),
    Row::whole::<rw::test_rwlock::Load>(),
    Row::whole::<rw::rwbench::Load>(),
    Row::whole::<rw::hash_table::Load>(),
    Row::whole::<rw::readers::Load>(),
];

/// A workload, as its settings describe it.
pub trait Workload: Settings {
    /// What it is, for people.
    const ABOUT: &'static str;
    /// The arguments by which its settings are chosen.
    const ARGUMENTS: &'static [Argument] = &[];
    /// What ends a run.
    const ENDS: Ends = Ends::InTime;
    /// The length of a measurement in seconds, unless users choose: on hardware, and on simulated machines.
    const SECONDS: [&'static str; 2] = ["0.05", "0.001"];
    /// Numbers of threads on hardware, unless users choose.
    const THREADS: &'static str = "1,2,4";
    /// The virtual time after which a run hangs, at least, if that is not the same for all: it grows with the time that
    /// is measured.
    const HANGS_AFTER: Option<Duration> = None;

    /// Why a trial cannot be: its numbers contradict each other.
    fn refused(trial: &Trial<Self>) -> Option<String> {
        let _ = trial;
        None
    }
}

/// What ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The time that was asked for.
    InTime,
    /// This, said to users who ask for a time.
    ByItself(&'static str),
}

/// A lock that is made for a resource.
pub trait Makes {
    /// Makes one.
    fn make(&self, resource: Resource) -> Box<dyn AnyLock>;

    /// Why a thread cannot hold several ranges of a resource at a time; `None` if it can.
    fn holds_one_because(&self, resource: Resource) -> Option<&'static str>;
}

/// A workload of range locks.
pub trait OnRanges: Workload {
    /// Runs a trial.
    ///
    /// # Errors
    /// Why the lock cannot do this.
    fn run(
        lock: &dyn Makes,
        trial: &Trial<Self>,
        meter: &mut dyn Meter,
    ) -> Result<Outcome, &'static str>;
}

/// Runs a workload of range locks.
pub type RunsRanges =
    fn(&dyn Makes, &Trial<Panel>, &mut dyn Meter) -> Result<Outcome, &'static str>;

/// Runs a workload of reader-writer locks, on those that it makes.
pub type RunsWhole = fn(&dyn Fn() -> Box<dyn AnyLock>, &Trial<Panel>, &mut dyn Meter) -> Outcome;

/// What a workload runs on.
#[derive(Clone, Copy)]
pub enum Runs {
    /// Range locks, and so.
    Ranges(RunsRanges),
    /// Reader-writer locks, and so.
    Whole(RunsWhole),
    /// Who reads large objects.
    Objects,
    /// Locks over keys.
    Keys,
    /// The simplest locks, on words.
    Words,
    /// Ordered sets.
    Sets,
    /// The locks of files.
    Files,
    /// Variants of address spaces.
    Spaces,
}

/// A workload whose settings are yet to be chosen.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// What it compares.
    pub kind: Kind,
    /// The arguments by which its settings are chosen.
    pub arguments: &'static [Argument],
    /// What ends a run.
    pub ends: Ends,
    /// The length of a measurement in seconds, on hardware and on simulated machines.
    pub seconds: [&'static str; 2],
    /// Numbers of threads on hardware.
    pub threads: &'static str,
    /// [`Workload::HANGS_AFTER`].
    pub hangs_after: Option<Duration>,
    /// What it runs on.
    pub runs: Runs,
    /// The panel of settings.
    pub panel: fn(Panel) -> Result<Panel, String>,
    /// [`Workload::refused`].
    pub refused: fn(&Trial<Panel>) -> Option<String>,
}

impl Row {
    const fn of<W: Workload>(runs: Runs) -> Self {
        Self {
            name: W::NAME,
            about: W::ABOUT,
            kind: W::KIND,
            arguments: W::ARGUMENTS,
            ends: W::ENDS,
            seconds: W::SECONDS,
            threads: W::THREADS,
            hangs_after: W::HANGS_AFTER,
            runs,
            panel: |settings| {
                let read = settings.read::<W>();
                read.map(Settings::panel).map_err(|error| error.to_string())
            },
            refused: |trial| W::refused(&trial.read()),
        }
    }

    const fn ranges<W: OnRanges>() -> Self {
        let run = Runs::Ranges(|lock, trial, meter| W::run(lock, &trial.read(), meter));
        Self::of::<W>(run)
    }

    const fn whole<W: rw::OnWhole>() -> Self {
        let run = Runs::Whole(|make, trial, meter| rw::run::<W>(make, &trial.read(), meter));
        Self::of::<W>(run)
    }
}

/// The workload of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Row> {
    WORKLOADS.iter().find(|row| row.name == name)
}
