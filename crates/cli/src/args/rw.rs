//! The arguments of `bench rw`.

use super::{Output, Sampling, without_seconds};
use crate::values::{Sweep, number_to, part, rw_base, rw_lock, rw_lock_or_floor, sweep};
use clap::{Args, Subcommand};
use spanlock_bench::rw::locks::Lock;
use spanlock_bench::rw::{hash_table, interference, rwbench, test_rwlock};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Rw {
    /// List the reader-writer locks and exit.
    #[arg(long)]
    pub(crate) list: bool,
    #[command(subcommand)]
    pub(crate) load: Option<RwLoad>,
}

#[derive(Subcommand)]
pub(crate) enum RwLoad {
    /// Threads read random locks of a pool: do locks get in each other's way?
    Interference(Interference),
    /// Threads read one after the other, in a ring.
    Alternator(Alternator),
    /// Readers without a pause, and one writer.
    #[command(name = "test_rwlock")]
    TestRwlock(TestRwlock),
    /// Threads that read or write by chance.
    Rwbench(Rwbench),
    /// Lookups in a hash table, with an inserter and an eraser.
    #[command(name = "hash_table")]
    HashTable(HashTable),
    /// Nothing but reading, beside what no lock can do better.
    Readers(Readers),
    /// What one thread pays for a lock that nobody else wants, beside what no lock can do better.
    Uncontended(RwUncontended),
    /// What a writer that revokes a bias pays, by the threads that read.
    Revocation(RwRevocation),
    /// Every workload on locks with and without a bias: does the bias do harm?
    Harm(RwHarm),
    /// Every workload on `pthread_rwlock_t` with and without the preload library: does that do harm?
    Preload(RwPreload),
}

/// What all workloads have.
#[derive(Args)]
#[command(mut_arg("repeat", |repeat| repeat.default_value("7")))] // the paper's, as are other defaults here but for time
pub(crate) struct RwRuns {
    /// Locks, by name; all of them unless told.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = rw_lock, value_name = "NAME,...")]
    pub(crate) locks: Vec<&'static Lock>,
    /// Threads: each a number, a:b or a:b:step. Where roles are fixed, those that read.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sweep, default_value = "1,2,4", value_name = "N,...")]
    pub(crate) threads: Vec<Sweep>,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
}

#[derive(Args)]
#[command(mut_arg("threads", |threads| threads.default_value(THREADS)))]
pub(crate) struct Interference {
    /// Locks in the pool.
    #[arg(
        long, num_args = 1.., value_delimiter = ',', value_parser = number_to(interference::MAX_POOL), value_name = "N,...",
        default_value = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192", allow_negative_numbers = true
    )]
    pub(crate) pool: Vec<usize>,
    #[command(flatten)]
    pub(crate) runs: RwRuns,
}

/// The paper's.
const THREADS: &str = "64";

#[derive(Args)]
pub(crate) struct Alternator {
    #[command(flatten)]
    pub(crate) runs: RwRuns,
}

#[derive(Args)]
pub(crate) struct TestRwlock {
    /// Work of the writer between its writes.
    #[arg(
        long, num_args = 1.., value_delimiter = ',', value_parser = clap::value_parser!(u32).range(..=i64::from(test_rwlock::MAX_PAUSE)),
        default_values_t = [test_rwlock::PAUSE], value_name = "N,...", allow_negative_numbers = true
    )]
    pub(crate) pause: Vec<u32>,
    #[command(flatten)]
    pub(crate) runs: RwRuns,
}

#[derive(Args)]
pub(crate) struct Rwbench {
    /// The part of operations that write.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = part, default_values_t = rwbench::WRITES, value_name = "PART,...", allow_negative_numbers = true)]
    pub(crate) writes: Vec<f64>,
    #[command(flatten)]
    pub(crate) runs: RwRuns,
}

#[derive(Args)]
pub(crate) struct HashTable {
    /// Elements to begin with.
    #[arg(long, value_parser = number_to(hash_table::MAX_ENTRIES), default_value_t = hash_table::ENTRIES, value_name = "N", allow_negative_numbers = true)]
    pub(crate) entries: usize,
    #[command(flatten)]
    pub(crate) runs: RwRuns,
}

#[derive(Args)]
#[command(mut_arg("locks", |locks| locks.value_parser(rw_lock_or_floor)))]
pub(crate) struct Readers {
    #[command(flatten)]
    pub(crate) runs: RwRuns,
}

#[derive(Args)]
#[command(arg(without_seconds("it ends after so many --pairs in each round: see --repeat")))]
pub(crate) struct RwUncontended {
    /// Locks, by name; all of them unless told.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = rw_lock_or_floor, value_name = "NAME,...")]
    pub(crate) locks: Vec<&'static Lock>,
    /// Rounds, in which locks take turns.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    pub(crate) repeat: u32,
    /// Acquisitions and releases in each round, for reading and again for writing.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 200_000, value_name = "N", allow_negative_numbers = true)]
    pub(crate) pairs: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
#[command(arg(without_seconds("it ends after so many rounds at each size: see --repeat")))]
pub(crate) struct RwRevocation {
    /// Threads that have read, each with a row of the table: each a number, a:b or a:b:step.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sweep, default_value = "1,2,4,8,16,32", value_name = "N,...")]
    pub(crate) threads: Vec<Sweep>,
    /// Rounds at each size.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 7, value_name = "N", allow_negative_numbers = true)]
    pub(crate) repeat: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
#[command(mut_arg("threads", |threads| threads.default_value("1,2,4,8")))]
#[command(mut_arg("locks", |locks| {
    locks.help("Underlying locks, by name; all unless told").value_parser(rw_base)
}))]
pub(crate) struct RwHarm {
    #[command(flatten)]
    pub(crate) runs: RwRuns,
}

#[derive(Args)]
#[command(mut_arg("repeat", |repeat| repeat.default_value("7")))]
pub(crate) struct RwPreload {
    /// Threads: each a number, a:b or a:b:step. Where roles are fixed, those that read.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sweep, default_value = "1,2,4,8", value_name = "N,...")]
    pub(crate) threads: Vec<Sweep>,
    #[command(flatten)]
    pub(crate) sampling: Sampling,
}
