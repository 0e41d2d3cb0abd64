//! `spanlock sim`.

mod cache;
mod engine;
mod fuzz;
mod rw;
mod vm;

use crate::failure::Result;
use crate::options::{chosen, seconds, without_seconds};
use crate::output::print;
#[cfg(target_os = "linux")]
use crate::workloads::Files;
use crate::workloads::{Arr, Batch, Blob, Kernels, Parts, Patterns, SimulatedSets, Workload};
use clap::{Args, Subcommand};
use engine::Simulated;
use spanlock_bench::arr::MAX_THREADS;
use spanlock_bench::latency;
use spanlock_bench::named::Named;
use spanlock_bench::run::Schedule;
use spanlock_bench::sets;
use spanlock_bench::sim::{Lock, Machine};
#[cfg(target_os = "linux")]
use spanlock_bench::store;
use spanlock_bench::workload;
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
    Arr(Box<Ranges<Arr>>),
    /// W1 and W2 in virtual time: threads write 1 KB ranges, held one at a time or in batches.
    Batch(Box<Ranges<Batch>>),
    /// Large objects read from an aliasing area in virtual time: its lock, with assumed costs of pages.
    #[command(mut_arg("seconds", |seconds| seconds.default_value("0.02")))]
    Blob(Box<Ranges<Blob>>),
    /// What users do and no paper measures, and what is to hurt a lock that adapts, in virtual time.
    Pattern(Box<Ranges<Patterns>>),
    /// How long acquisitions take in virtual time, those of fresh parts of a resource and later ones.
    Latency(Box<Latency>),
    /// Contended words and the simplest locks, in virtual time: to compare a simulated machine with a real one.
    Micro(Box<Micro>),
    /// Reader-writer locks under the workloads of `bench rw`, in virtual time.
    Rw(Box<rw::Rw>),
    /// Ordered sets in virtual time: threads search, insert and remove keys.
    #[command(mut_arg("keys", |keys| keys.default_value("16384")))]
    Set(Box<Set>),
    /// Files in a store, in virtual time: its locks, index and log, with assumed costs of pages.
    #[cfg(target_os = "linux")]
    #[command(mut_arg("pages", |pages| pages.default_value("64")))]
    #[command(mut_arg("machine", |machine| machine.default_value("xeon-4x18x2")))]
    // as many threads as the paper's
    Store(Box<Store>),
    /// Traffic of an address space, in virtual time.
    Vm(Box<vm::Vm>),
}

pub(crate) fn run(sim: Sim) -> Result {
    match sim.command {
        Some(Command::Fuzz(args)) => fuzz::run(&args),
        Some(Command::Arr(args)) => args.run(),
        Some(Command::Batch(args)) => args.run(),
        Some(Command::Blob(args)) => args.run(),
        Some(Command::Pattern(args)) => args.run(),
        Some(Command::Latency(args)) => args.run(),
        Some(Command::Micro(args)) => args.run(),
        Some(Command::Rw(args)) => rw::run(*args),
        Some(Command::Set(args)) => args.run(),
        #[cfg(target_os = "linux")]
        Some(Command::Store(args)) => args.run(),
        Some(Command::Vm(args)) => vm::run(&args),
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

/// Range locks.
#[derive(Args)]
struct Locks {
    /// Locks, by name; by default, all range locks that `bench` has too.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = Lock::find, value_name = "NAME,...")]
    locks: Vec<&'static Lock>,
}

impl Locks {
    /// The locks named, or else all that are measured on hardware too.
    fn chosen(&self) -> Vec<&'static Lock> {
        chosen(self.locks.clone(), Lock::measured(), |lock| lock.name())
    }
}

/// How long a workload lasts.
#[derive(Args)]
struct Length {
    /// Virtual length of each measurement, after as much again for warming up.
    #[arg(long, value_parser = seconds, default_value = "0.001")]
    seconds: Duration,
}

impl Length {
    fn schedule(&self) -> Schedule {
        Schedule::even(self.seconds)
    }
}

/// A workload by which range locks are compared.
#[derive(Args)]
struct Ranges<W: Args> {
    #[command(flatten)]
    locks: Locks,
    #[command(flatten)]
    workload: W,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    simulated: Simulated,
}

impl<W: Args + Workload> Ranges<W>
where
    W::Load: workload::Workload<Simulated = &'static Lock>,
{
    fn run(&self) -> Result {
        let (locks, schedule) = (self.locks.chosen(), self.length.schedule());
        let Self { workload, .. } = self;
        self.simulated.run(workload, MAX_THREADS, &locks, schedule)
    }
}

#[derive(Args)]
#[command(arg(without_seconds("it ends when all --parts were locked")))]
#[command(mut_arg("parts", |parts| parts.default_value("16384")))]
struct Latency {
    #[command(flatten)]
    locks: Locks,
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    simulated: Simulated,
}

impl Latency {
    fn run(&self) -> Result {
        /// Acquisitions in a second lock before the first that counts.
        const WARMUP: usize = 100;
        let loads = vec![latency::Load {
            parts: self.parts.parts,
            warmup: WARMUP,
            rounds: 1,
        }];
        let locks = self.locks.chosen();
        self.simulated
            .run(&loads, MAX_THREADS, &locks, Schedule::NONE)
    }
}

#[derive(Args)]
struct Set {
    /// Sets, by name; by default, all that can be simulated.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sets::find_simulated, value_name = "NAME,...")]
    sets: Vec<&'static sets::Simulated>,
    #[command(flatten)]
    workload: SimulatedSets,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    simulated: Simulated,
}

impl Set {
    fn run(&self) -> Result {
        let all = sets::simulated();
        let rows = chosen(self.sets.clone(), all, |row| row.described.name);
        let schedule = self.length.schedule();
        self.simulated
            .run(&self.workload, MAX_THREADS, &rows, schedule)
    }
}

#[cfg(target_os = "linux")]
#[derive(Args)]
struct Store {
    /// Locks of files, by name; all of them by default.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = store::Simulated::find, value_name = "NAME,...")]
    locks: Vec<&'static store::Simulated>,
    #[command(flatten)]
    workload: Files,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    simulated: Simulated,
}

#[cfg(target_os = "linux")]
impl Store {
    fn run(&self) -> Result {
        let all = store::Simulated::all();
        let rows = chosen(self.locks.clone(), all, |row| row.name());
        let schedule = self.length.schedule();
        self.simulated
            .run(&self.workload, MAX_THREADS, &rows, schedule)
    }
}

#[derive(Args)]
struct Micro {
    #[command(flatten)]
    kernels: Kernels,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    simulated: Simulated,
}

impl Micro {
    fn run(&self) -> Result {
        let (kernels, schedule) = (self.kernels.distinct(), self.length.schedule());
        self.simulated
            .run(&self.kernels, MAX_THREADS, &kernels, schedule)
    }
}
