//! `spanlock sim rw`.

use super::engine::{Simulated, simulate};
use crate::Failure;
use crate::values::{number_to, part, seconds};
use clap::{Args, Subcommand};
use spanlock_bench::arr::MAX_THREADS;
use spanlock_bench::rw::{Load, hash_table, interference, rwbench, test_rwlock};
use spanlock_bench::sim::rw::{LOCKS, Lock, Point};
use std::time::Duration;

/// Reader-writer locks under the workloads of `bench rw`, in virtual time.
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Rw {
    #[command(subcommand)]
    load: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// Threads read random locks of a pool: do locks get in each other's way?
    Interference(Interference),
    /// Threads read one after the other, in a ring.
    Alternator(Runs),
    /// Readers without a pause, and one writer.
    #[command(name = "test_rwlock")]
    TestRwlock(TestRwlock),
    /// Threads that read or write by chance.
    Rwbench(Rwbench),
    /// Lookups in a hash table, with an inserter and an eraser.
    #[command(name = "hash_table")]
    HashTable(HashTable),
    /// Nothing but reading.
    Readers(Runs),
}

/// What all workloads have.
#[derive(Args)]
#[command(mut_arg("machine", |machine| machine.default_value(MACHINE)))]
struct Runs {
    /// Locks, by name; all of them unless told.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = lock, value_name = "NAME,...")]
    locks: Vec<&'static Lock>,
    /// Virtual length of each measurement, after as much again for warming up.
    #[arg(long, value_parser = seconds, default_value = "0.001")]
    seconds: Duration,
    #[command(flatten)]
    simulated: Simulated,
}

/// The paper's.
const MACHINE: &str = "xeon-2x18x2";
const THREADS: &str = "64";

#[derive(Args)]
#[command(mut_arg("threads", |threads| threads.default_value(THREADS)))]
struct Interference {
    /// Locks in the pool.
    #[arg(
        long, num_args = 1.., value_delimiter = ',', value_parser = number_to(interference::MAX_POOL), value_name = "N,...",
        default_value = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192", allow_negative_numbers = true
    )]
    pool: Vec<usize>,
    #[command(flatten)]
    runs: Runs,
}

#[derive(Args)]
struct TestRwlock {
    /// Work of the writer between its writes.
    #[arg(
        long, num_args = 1.., value_delimiter = ',', value_parser = clap::value_parser!(u32).range(..=i64::from(test_rwlock::MAX_PAUSE)),
        default_values_t = [test_rwlock::PAUSE], value_name = "N,...", allow_negative_numbers = true
    )]
    pause: Vec<u32>,
    #[command(flatten)]
    runs: Runs,
}

#[derive(Args)]
struct Rwbench {
    /// The part of operations that write.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = part, default_values_t = rwbench::WRITES, value_name = "PART,...", allow_negative_numbers = true)]
    writes: Vec<f64>,
    #[command(flatten)]
    runs: Runs,
}

#[derive(Args)]
struct HashTable {
    /// Elements to begin with.
    #[arg(long, value_parser = number_to(hash_table::MAX_ENTRIES), default_value_t = hash_table::ENTRIES, value_name = "N", allow_negative_numbers = true)]
    entries: usize,
    #[command(flatten)]
    runs: Runs,
}

fn lock(name: &str) -> Result<&'static Lock, String> {
    Lock::find(name, LOCKS.iter())
}

pub(super) fn run(Rw { load }: Rw) -> Result<(), Failure> {
    match load {
        Workload::Interference(args) => {
            let loads = args.pool.into_iter();
            let loads = loads.map(|pool| Load::Interference { pool });
            run_loads(args.runs, &loads.collect::<Vec<_>>(), 0)
        }
        Workload::Alternator(runs) => run_loads(runs, &[Load::Alternator], 0),
        Workload::TestRwlock(args) => {
            let loads = args.pause.into_iter();
            let loads = loads.map(|pause| Load::TestRwlock { pause });
            run_loads(args.runs, &loads.collect::<Vec<_>>(), 1)
        }
        Workload::Rwbench(args) => {
            let loads = args.writes.into_iter();
            let loads = loads.map(|writes| Load::Rwbench { writes });
            run_loads(args.runs, &loads.collect::<Vec<_>>(), 0)
        }
        Workload::HashTable(args) => {
            let entries = args.entries;
            run_loads(args.runs, &[Load::HashTable { entries }], 2)
        }
        Workload::Readers(runs) => run_loads(runs, &[Load::Readers], 0),
    }
}

/// With so many threads besides those that are told.
fn run_loads(runs: Runs, loads: &[Load], writers: usize) -> Result<(), Failure> {
    let locks: Vec<_> = if runs.locks.is_empty() {
        LOCKS.iter().collect()
    } else {
        runs.locks
    };
    let most = runs.simulated.contexts().saturating_sub(writers);
    let threads = runs.simulated.threads(most.min(MAX_THREADS));
    let mut points = Vec::new();
    for &load in loads {
        for &threads in &threads {
            points.extend(locks.iter().map(|&lock| Point {
                lock,
                load,
                threads,
                measured: runs.seconds,
            }));
        }
    }
    simulate(runs.simulated, &points)
}
