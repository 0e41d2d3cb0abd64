//! `spanlock sim`.

mod cache;
mod engine;
mod fuzz;

use crate::failure::Result;
use crate::options::{Locks, seconds, without_seconds};
use crate::output::print;
#[cfg(target_os = "linux")]
use crate::workloads::Files;
use crate::workloads::{
    Arr, Batch, Blob, Keyed, Loads, Micro, Parts, Patterns, SimulatedSets, Space, Workload,
};
use clap::{Args, Subcommand};
use engine::Simulated;
use spanlock_bench::known::Known;
use spanlock_bench::sim::{Lock, Machine, RwLock};
use spanlock_bench::workload::Workload as Simulate;
use spanlock_records::trial::latency;
use spanlock_records::trial::run::Schedule;
use std::time::Duration;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Sim {
    /// List the machines and exit.
    #[arg(long)]
    list_machines: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Random work under random schedules, until one breaks the lock.
    Fuzz(fuzz::Fuzz),
    /// ArrBench in virtual time.
    #[command(mut_arg("reads", |reads| reads.default_value("100,60")))]
    #[command(mut_arg("seconds", |seconds| seconds.default_value("0.002")))]
    Arr(Box<Of<Arr>>),
    /// W1 and W2 in virtual time: threads write 1 KB ranges, held one at a time or in batches.
    Batch(Box<Of<Batch>>),
    /// Large objects read from an aliasing area in virtual time: its lock, with assumed costs of pages.
    #[command(mut_arg("seconds", |seconds| seconds.default_value("0.02")))]
    Blob(Box<Of<Blob>>),
    /// Loads that users have and no paper measures, and loads meant to hurt a lock that adapts, in virtual time.
    Pattern(Box<Of<Patterns>>),
    /// Locks over keys in virtual time: threads lock single byte strings, and ranges of them.
    #[command(mut_arg("keys", |keys| keys.default_value("4096")))]
    Keys(Box<Of<Keyed>>),
    /// Acquisition times of fresh parts of a resource, and later ones, in virtual time.
    #[command(arg(without_seconds("it ends when all --parts were locked")))]
    #[command(mut_arg("parts", |parts| parts.default_value("16384")))]
    Latency(Box<Latency>),
    /// Contended words and the simplest locks, in virtual time: to compare a simulated machine with a real one.
    Micro(Box<Of<Micro>>),
    /// Reader-writer locks under the workloads of `bench rw`, in virtual time.
    Rw(Box<Rw>),
    /// Ordered sets in virtual time: threads search, insert and remove keys.
    #[command(mut_arg("keys", |keys| keys.default_value("16384")))]
    Set(Box<Of<SimulatedSets>>),
    /// Files in a store, in virtual time: its locks, index and log, with assumed costs of pages.
    #[cfg(target_os = "linux")]
    #[command(mut_arg("pages", |pages| pages.default_value("64")))]
    #[command(mut_arg("machine", |machine| machine.default_value("xeon-4x18x2")))]
    // as many threads as the paper's
    Store(Box<Of<Files>>),
    /// Traffic of an address space, in virtual time.
    #[command(arg(without_seconds("it ends when all calls and faults were replayed")))]
    #[command(mut_arg("machine", |machine| machine.default_value("xeon-4x18x2")))] // the paper's
    #[command(mut_arg("locks", |locks| locks.alias("lock")))]
    Vm(Box<Of<Space, Whole>>),
}

pub(crate) fn run(sim: Sim) -> Result {
    match sim.command {
        Some(Command::Fuzz(args)) => fuzz::run(&args),
        Some(Command::Arr(args)) => args.run(),
        Some(Command::Batch(args)) => args.run(),
        Some(Command::Blob(args)) => args.run(),
        Some(Command::Pattern(args)) => args.run(),
        Some(Command::Keys(args)) => args.run(),
        Some(Command::Latency(args)) => args.run(),
        Some(Command::Micro(args)) => args.run(),
        Some(Command::Rw(args)) => {
            let (loads, RwRuns { runs }) = args.load.split();
            runs.of(&loads)
        }
        Some(Command::Set(args)) => args.run(),
        #[cfg(target_os = "linux")]
        Some(Command::Store(args)) => args.run(),
        Some(Command::Vm(args)) => args.run(),
        None => list_machines(),
    }
}

fn list_machines() -> Result {
    let line = |machine: &Machine| {
        let Machine { name, about, .. } = machine;
        format!("{name:<14} {:>3} threads  {about}\n", machine.contexts())
    };
    print(&Machine::built_in().iter().map(line).collect::<String>())
}

/// How long a workload lasts.
trait Lasts: Args {
    fn schedule(&self) -> Schedule;
}

#[derive(Args)]
struct Length {
    /// Virtual length of each measurement, after as much again for warming up.
    #[arg(long, value_parser = seconds, default_value = "0.001")]
    seconds: Duration,
}

impl Lasts for Length {
    fn schedule(&self) -> Schedule {
        Schedule::even(self.seconds)
    }
}

/// Until it ends by itself.
#[derive(Args)]
struct Whole;

impl Lasts for Whole {
    fn schedule(&self) -> Schedule {
        Schedule::NONE
    }
}

/// Runs on locks, or on what takes their place.
#[derive(Args)]
struct Runs<L: Known, T: Lasts> {
    #[command(flatten)]
    locks: Locks<L>,
    #[command(flatten)]
    length: T,
    #[command(flatten)]
    simulated: Simulated,
}

impl<L: Known, T: Lasts> Runs<L, T> {
    fn of<W: Workload<Load: Simulate<Simulated = L>>>(&self, workload: &W) -> Result {
        self.simulated
            .run(workload, &self.locks.chosen(), self.length.schedule())
    }
}

/// A workload with its own numbers.
#[derive(Args)]
struct Of<W: Args + Workload<Load: Simulate>, T: Lasts = Length> {
    #[command(flatten)]
    workload: W,
    #[command(flatten)]
    runs: Runs<<W::Load as Simulate>::Simulated, T>,
}

impl<W: Args + Workload<Load: Simulate>, T: Lasts> Of<W, T> {
    fn run(&self) -> Result {
        self.runs.of(&self.workload)
    }
}

#[derive(Args)]
struct Latency {
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    runs: Runs<&'static Lock, Whole>,
}

impl Latency {
    fn run(&self) -> Result {
        /// Acquisitions in a second lock before the first that counts.
        const WARMUP: usize = 100;
        self.runs.of(&vec![latency::Load {
            parts: self.parts.parts,
            warmup: WARMUP,
            rounds: 1,
        }])
    }
}

/// Reader-writer locks under the workloads of `bench rw`, in virtual time.
#[derive(Args)]
#[command(arg_required_else_help = true)]
struct Rw {
    #[command(subcommand)]
    load: Loads<RwRuns>,
}

#[derive(Args)]
#[command(mut_arg("machine", |machine| machine.default_value("xeon-2x18x2")))] // the paper's
struct RwRuns {
    #[command(flatten)]
    runs: Runs<&'static RwLock, Length>,
}
