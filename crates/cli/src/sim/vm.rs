//! `spanlock sim vm`.

use super::engine::Simulated;
use crate::failure::{Failure, Result};
use crate::options::{chosen, without_seconds};
use crate::workloads::Space;
use clap::Args;
use spanlock_bench::arr::MAX_THREADS;
use spanlock_bench::named::Named;
use spanlock_bench::run::Schedule;
use spanlock_bench::space;

/// Traffic of an address space, in virtual time.
#[derive(Args)]
#[command(arg(without_seconds("it ends when all calls and faults were replayed")))]
#[command(mut_arg("machine", |machine| machine.default_value("xeon-4x18x2")))] // the paper's
pub(super) struct Vm {
    #[command(flatten)]
    space: Space,
    /// Variants of the address space, by name; all of them by default.
    #[arg(long, alias = "lock", num_args = 1.., value_delimiter = ',', value_parser = space::Simulated::find, value_name = "NAME,...")]
    locks: Vec<&'static space::Simulated>,
    #[command(flatten)]
    simulated: Simulated,
}

pub(super) fn run(args: &Vm) -> Result {
    let locks = chosen(args.locks.clone(), space::Simulated::all(), |lock| {
        lock.name()
    });
    if let Some(what) = args.space.too_many(&args.simulated.numbers()) {
        return Err(Failure::Arguments(what));
    }
    args.simulated
        .run(&args.space, MAX_THREADS, &locks, Schedule::NONE)
}
