//! `spanlock bench`.

use crate::failure::Result;
use crate::options::{Format, Output};
use crate::output::{print, print_lines, width};
use clap::{Args, Subcommand};
use ranges::{Uncontended, Waiting};
use spanlock_bench::known::entries;
use spanlock_records::record::Line;
use spanlock_report::table;

mod fresh;
pub(crate) mod measure;
mod memory;
#[cfg(target_os = "linux")]
mod mount;
mod preload;
mod ranges;
mod rw;
pub(crate) mod set;
#[cfg(feature = "async")]
mod tasks;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Bench {
    /// List the locks and exit.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    cost: Option<Cost>,
}

/// What is no workload that is compared by its throughput: see `workloads`.
#[derive(Subcommand)]
enum Cost {
    /// Tasks of an executor, beside the locks of tokio and `saa`: what they get done, and how long they wait.
    #[cfg(feature = "async")]
    Async(tasks::Tasks),
    /// The memory of locks and of their holders, as the allocator counts it.
    Memory(memory::Memory),
    /// The memory of many locks that each thread uses once.
    ManyLocks(memory::ManyLocks),
    /// Reader-writer locks, under workloads of their own.
    Rw(rw::Rw),
    /// A mounted store beside other file systems and a mount that passes everything on, and where the time goes.
    #[cfg(target_os = "linux")]
    Mount(mount::Mount),
    /// The cost of a lock that only one thread uses.
    Uncontended(Uncontended),
    /// The cost of waiting: processor time of the threads that wait, and how evenly a lock serves them.
    Waiting(Waiting),
}

pub(crate) fn run(command: Bench) -> Result {
    match command.cost {
        #[cfg(feature = "async")]
        Some(Cost::Async(args)) => tasks::run(&args),
        Some(Cost::Memory(args)) => memory::run(args),
        Some(Cost::ManyLocks(args)) => memory::many_locks(args),
        Some(Cost::Rw(args)) => rw::run(args),
        #[cfg(target_os = "linux")]
        Some(Cost::Mount(args)) => mount::run(&args),
        Some(Cost::Uncontended(args)) => ranges::uncontended(args),
        Some(Cost::Waiting(args)) => ranges::waiting(args),
        None => list(command.output.format),
    }
}

/// Lists the range locks.
fn list(format: Format) -> Result {
    match format {
        Format::Table => print(&table::locks(&entries(), width())),
        Format::Json => print_lines(entries().into_iter().map(Line::Lock)),
    }
}
