//! `spanlock sim rw`.

use super::Length;
use super::engine::Simulated;
use crate::failure::Result;
use crate::options::chosen;
use crate::workloads::Loads;
use clap::Args;
use spanlock_bench::arr::MAX_THREADS;
use spanlock_bench::sim::RwLock;

/// Reader-writer locks under the workloads of `bench rw`, in virtual time.
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Rw {
    #[command(subcommand)]
    load: Loads<Runs>,
}

/// The arguments of all workloads.
#[derive(Args)]
#[command(mut_arg("machine", |machine| machine.default_value("xeon-2x18x2")))] // the paper's
struct Runs {
    /// Locks, by name; all of them by default.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = RwLock::find, value_name = "NAME,...")]
    locks: Vec<&'static RwLock>,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    simulated: Simulated,
}

pub(super) fn run(Rw { load }: Rw) -> Result {
    let (loads, runs) = load.split();
    let locks = chosen(runs.locks, RwLock::measured(), |lock| lock.name());
    // The machine has room for the threads that are not counted, too.
    let others = loads
        .iter()
        .map(|load| load.more_threads())
        .max()
        .unwrap_or(0);
    let most = runs.simulated.contexts().saturating_sub(others);
    let schedule = runs.length.schedule();
    runs.simulated
        .run(&loads, most.min(MAX_THREADS), &locks, schedule)
}
