//! `spanlock bench`.

#[cfg(not(feature = "async"))]
use crate::Absent;
use crate::failure::Result;
use crate::options::{Format, Output};
use crate::output::{print, print_lines, width};
#[cfg(target_os = "linux")]
use crate::workloads::Files;
use crate::workloads::{Arr, Batch, Keyed, Micro, Patterns, StoredBlob};
use clap::{Args, Subcommand};
use measure::{Compared, Sampling};
use ranges::{Latency, Uncontended, Waiting};
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
mod set;
mod soak;
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
    workload: Option<Workload>,
}

#[derive(Subcommand)]
enum Workload {
    /// ArrBench: threads read or increment ranges of an array.
    Arr(Compared<Arr>),
    /// W1 and W2: threads write 1 KB ranges, held one at a time or in batches.
    Batch(Compared<Batch>),
    /// Tasks of an executor, beside the locks of tokio and `saa`: what they get done, and how long they wait.
    #[cfg(feature = "async")]
    Async(tasks::Tasks),
    /// Tasks of an executor: for that, build this command with the feature `async`.
    #[cfg(not(feature = "async"))]
    Async(Absent),
    /// Large objects read from an aliasing area, whose ranges a lock gives out, beside copies without aliases.
    #[command(mut_arg("threads", |threads| threads.default_value("1,2,4,8")))]
    #[command(mut_arg("seconds", |seconds| seconds.default_value("0.2")))] // a read takes long
    Blob(Compared<StoredBlob>),
    /// Locks over keys: threads lock single byte strings, and ranges of them.
    #[command(mut_arg("threads", |threads| threads.default_value("1,2,4,8")))]
    Keys(Compared<Keyed>),
    /// Acquisition times of fresh parts of a resource, and later ones: percentiles and the maximum.
    Latency(Latency),
    /// The memory of locks and of their holders, as the allocator counts it.
    Memory(memory::Memory),
    /// The memory of many locks that each thread uses once.
    ManyLocks(memory::ManyLocks),
    /// Contended words and the simplest locks on them, to know the machine.
    Micro(Compared<Micro, Sampling>),
    /// Loads that users have and no paper measures, and loads meant to hurt a lock that adapts.
    Pattern(Compared<Patterns>),
    /// Random work on all locks for a long time, with checks of exclusion, progress, concurrency and memory.
    Soak(soak::Soak),
    /// Reader-writer locks, under workloads of their own.
    Rw(rw::Rw),
    /// Ordered sets: threads search, insert and remove keys.
    Set(set::Set),
    /// Files that many threads read and write, in stores with each lock, and plain files beside them.
    #[cfg(target_os = "linux")]
    #[command(mut_arg("threads", |threads| threads.default_value("1,2,4,8")))]
    Store(Compared<Files>),
    /// A mounted store beside other file systems and a mount that passes everything on, and where the time goes.
    #[cfg(target_os = "linux")]
    Mount(mount::Mount),
    /// The cost of a lock that only one thread uses.
    Uncontended(Uncontended),
    /// The cost of waiting: processor time of the threads that wait, and how evenly a lock serves them.
    Waiting(Waiting),
}

pub(crate) fn run(command: Bench) -> Result {
    match command.workload {
        Some(Workload::Arr(args)) => args.run(),
        Some(Workload::Batch(args)) => args.run(),
        #[cfg(feature = "async")]
        Some(Workload::Async(args)) => tasks::run(&args),
        #[cfg(not(feature = "async"))]
        Some(Workload::Async(args)) => args.run("tokio is not built in", "async", "bench async"),
        Some(Workload::Blob(args)) => args.run(),
        Some(Workload::Keys(args)) => args.run(),
        Some(Workload::Latency(args)) => ranges::latency(args),
        Some(Workload::Memory(args)) => memory::run(args),
        Some(Workload::ManyLocks(args)) => memory::many_locks(args),
        Some(Workload::Micro(args)) => args.run(),
        Some(Workload::Pattern(args)) => args.run(),
        Some(Workload::Soak(args)) => soak::run(args),
        Some(Workload::Rw(args)) => rw::run(args),
        Some(Workload::Set(args)) => set::run(&args),
        #[cfg(target_os = "linux")]
        Some(Workload::Store(args)) => args.run(),
        #[cfg(target_os = "linux")]
        Some(Workload::Mount(args)) => mount::run(&args),
        Some(Workload::Uncontended(args)) => ranges::uncontended(args),
        Some(Workload::Waiting(args)) => ranges::waiting(args),
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
