//! The arguments.

mod rw;

pub(crate) use rw::{Rw, RwHarm, RwLoad, RwPreload, RwRevocation, RwRuns, RwUncontended};

use crate::values::{
    Locks, Sweep, locks, locks_or_floors, number_to, seconds, seconds_or_none, sweep,
};
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use spanlock_bench::arr::{MAX_THREADS, Percent, Variant};
use spanlock_bench::batch::{MAX_HOLD, MAX_RANGES, RANGES};
use spanlock_bench::latency::{MAX_PARTS, PARTS};
use spanlock_bench::micro::Kernel;
use std::ffi::OsString;
use std::time::Duration;

/// Range locks, measured.
#[derive(Parser)]
#[command(name = "spanlock", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure locks.
    Bench(Box<Bench>),
    /// Make a page of what was measured and simulated, beside what the papers say.
    Report(crate::report::Report),
    /// Run a program with its pthread_rwlock functions replaced.
    ///
    /// The program takes the place of this process. With `--stats` it is a child: this process sends it the signals
    /// that it gets, and exits with its status, or with 128 and the number of the signal that ended it. 126: the
    /// program cannot be run so; 127: there is none of that name.
    Run(Run),
    /// Run locks on simulated machines.
    Sim(Box<crate::sim::Sim>),
}

#[derive(Args)]
pub(crate) struct Run {
    /// What its locks become.
    #[arg(long, value_enum, default_value_t = Underlying::Bravo, value_name = "NAME")]
    pub(crate) lock: Underlying,
    /// Count, and print the hottest locks to the standard error when the program ends. Counting slows locks down.
    #[arg(long)]
    pub(crate) stats: bool,
    /// For people, or one JSON object per line and lock.
    #[arg(long, value_enum, default_value_t = Format::Table, requires = "stats")]
    pub(crate) format: Format,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// What `pthread_rwlock_t` becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Underlying {
    /// Ours, with a bias towards readers while that pays.
    Bravo,
    /// The same, biased from birth and again after each write: for tests.
    BravoEager,
    /// The lock under the bias, without one.
    Futex,
    /// glibc's, called through the library: the baseline.
    Glibc,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Bench {
    /// List the locks and exit.
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) workload: Option<Workload>,
}

#[derive(Subcommand)]
pub(crate) enum Workload {
    /// ArrBench: threads read or increment ranges of an array.
    Arr(Arr),
    /// W1 and W2: threads write 1 KB ranges, held one at a time or in batches.
    Batch(Batch),
    /// How long acquisitions take, those of fresh parts of a resource and later ones: percentiles and the longest.
    Latency(Latency),
    /// What locks and their holders take of memory, as the allocator counts it.
    Memory(Memory),
    /// Contended words and the simplest locks on them: what the machine is like.
    Micro(Micro),
    /// Random work on all locks for a long time, checked: exclusion, progress, concurrency, memory.
    Soak(Soak),
    /// Reader-writer locks, under workloads of their own.
    Rw(Rw),
    /// What one thread pays for a lock that nobody else wants.
    Uncontended(Uncontended),
    /// What waiting costs: processor time of those who wait, and how evenly a lock serves.
    Waiting(Waiting),
}

/// `--seconds` of a command that no time ends: the error says what does.
pub(crate) fn without_seconds(ends: &'static str) -> Arg {
    let told = UnknownArgumentValueParser::suggest(ends);
    Arg::new("seconds")
        .long("seconds")
        .value_name("SECONDS")
        .value_parser(told)
        .hide(true)
}

/// What all workloads have that compare throughput.
#[derive(Args)]
pub(crate) struct Runs {
    /// List the locks and exit.
    #[arg(long)]
    pub(crate) list: bool,
    /// Locks, by name; all of them unless told. Some take parameters (song:h=4), of which several values make several
    /// locks (song:h=1..8, both included, or song:h=1,2,4).
    #[arg(long, num_args = 1.., value_parser = locks, value_name = "NAME,...")]
    pub(crate) locks: Vec<Locks>,
    /// Threads: each a number, a:b or a:b:step.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sweep, default_value = "1,2,4", value_name = "N,...")]
    pub(crate) threads: Vec<Sweep>,
    /// Count cycles, instructions and L1 data misses per operation, if the machine can; this costs a little.
    #[arg(long)]
    pub(crate) counters: bool,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
}

/// How long, how often and how it is told.
#[derive(Args)]
pub(crate) struct Sampling {
    /// Length of each measurement.
    #[arg(long, value_parser = seconds, default_value = "0.05", allow_negative_numbers = true)]
    pub(crate) seconds: Duration,
    /// Time that threads already work before each measurement.
    #[arg(long, value_parser = seconds_or_none, default_value = "0.01", value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) warmup: Duration,
    /// Measurements of each point; they take turns over the locks.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 3, value_name = "N", allow_negative_numbers = true)]
    pub(crate) repeat: u32,
    /// What random numbers follow from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct Arr {
    /// Ranges: full, disjoint, random.
    #[arg(
        long,
        num_args = 1.., value_delimiter = ',',
        default_value = "full,disjoint,random",
        value_name = "NAME,..."
    )]
    pub(crate) variant: Vec<Variant>,
    /// Of a hundred operations, those that read.
    #[arg(
        long,
        num_args = 1.., value_delimiter = ',',
        default_value = "100,80,60",
        value_name = "PERCENT,..."
    )]
    pub(crate) reads: Vec<Percent>,
    /// Time each acquisition, which costs two looks at the clock.
    #[arg(long)]
    pub(crate) latency: bool,
    #[command(flatten)]
    pub(crate) runs: Runs,
}

#[derive(Args)]
pub(crate) struct Micro {
    /// What is repeated; all of them unless told.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_values_t = Kernel::ALL)]
    pub(crate) kernels: Vec<Kernel>,
    /// Threads: each a number, a:b or a:b:step.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sweep, default_value = "1,2,4", value_name = "N,...")]
    pub(crate) threads: Vec<Sweep>,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
}

#[derive(Args)]
pub(crate) struct Batch {
    /// Ranges held together: 1 is W1, 16 is W2.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = number_to(MAX_HOLD), default_value = "1,16", value_name = "N,...", allow_negative_numbers = true)]
    pub(crate) hold: Vec<usize>,
    /// Ranges in the memory that is written, 1 KB each.
    #[arg(long, value_parser = number_to(MAX_RANGES), default_value_t = RANGES, value_name = "N", allow_negative_numbers = true)]
    pub(crate) ranges: usize,
    #[command(flatten)]
    pub(crate) runs: Runs,
}

#[derive(Args)]
#[command(arg(without_seconds(
    "it ends when all --parts were locked in all rounds: see --repeat"
)))]
pub(crate) struct Latency {
    /// Locks, by name; all of them unless told. Some take parameters (song:h=4), of which several values make several
    /// locks (song:h=1..8, both included, or song:h=1,2,4).
    #[arg(long, num_args = 1.., value_parser = locks, value_name = "NAME,...")]
    pub(crate) locks: Vec<Locks>,
    /// Threads: each a number, a:b or a:b:step.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sweep, default_value = "1,2,4", value_name = "N,...")]
    pub(crate) threads: Vec<Sweep>,
    /// Parts of the resource; each thread locks its share of them, and then as many again.
    #[arg(long, value_parser = number_to(MAX_PARTS), default_value_t = PARTS, value_name = "N", allow_negative_numbers = true)]
    pub(crate) parts: usize,
    /// Rounds, each on a fresh lock; the times of all are put together.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    pub(crate) repeat: u32,
    /// What random numbers follow from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
#[command(arg(without_seconds("it ends when each number of ranges of --hold was held once")))]
pub(crate) struct Memory {
    /// Locks, by name; all of them unless told. Some take parameters (song:h=4), of which several values make several
    /// locks (song:h=1..8, both included, or song:h=1,2,4).
    #[arg(long, num_args = 1.., value_parser = locks, value_name = "NAME,...")]
    pub(crate) locks: Vec<Locks>,
    /// Ranges that one thread holds at once.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = number_to(MAX_HOLD), default_value = "1,16,256", value_name = "N,...", allow_negative_numbers = true)]
    pub(crate) hold: Vec<usize>,
    /// Measure in this process, which has measured nothing before: the first lock and number of ranges only.
    #[arg(long, hide = true)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct Soak {
    /// Locks, by name; all that promise exclusion unless told.
    #[arg(long, num_args = 1.., value_parser = locks, value_name = "NAME,...")]
    pub(crate) locks: Vec<Locks>,
    /// Threads.
    #[arg(long, value_parser = number_to(MAX_THREADS), default_value = "8", value_name = "N", allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// Length of it all, divided among locks and rounds.
    #[arg(long, value_parser = seconds, default_value = "60", allow_negative_numbers = true)]
    pub(crate) seconds: Duration,
    /// Rounds, in which locks take turns; memory is compared with what it was after the first.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..), default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    pub(crate) rounds: u32,
    /// How long a thread may get nowhere.
    #[arg(long, value_parser = seconds, default_value = "30", value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) stall: Duration,
    /// What random numbers follow from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
#[command(arg(without_seconds("it ends after so many --pairs in each round: see --repeat")))]
pub(crate) struct Uncontended {
    /// Locks, by name; all of them unless told.
    #[arg(long, num_args = 1.., value_parser = locks_or_floors, value_name = "NAME,...")]
    pub(crate) locks: Vec<Locks>,
    /// Rounds, in which locks take turns.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    pub(crate) repeat: u32,
    /// Acquisitions and releases in each round.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 200_000, value_name = "N", allow_negative_numbers = true)]
    pub(crate) pairs: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct Waiting {
    /// Locks, by name.
    #[arg(
        long, num_args = 1.., value_parser = locks, value_name = "NAME,...",
        default_values = ["list-rw", "list-rw-unfair", "list-ex", "kernel-rw", "parking-lot", "std-rwlock"]
    )]
    pub(crate) locks: Vec<Locks>,
    /// Threads that contend.
    #[arg(long, value_parser = number_to(MAX_THREADS), default_value = "8", value_name = "N", allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// Length of each measurement.
    #[arg(long, value_parser = seconds, default_value = "1", allow_negative_numbers = true)]
    pub(crate) seconds: Duration,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct Output {
    /// For people, or one JSON object per line.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_is_well_formed() {
        Cli::command().debug_assert();
    }
}
