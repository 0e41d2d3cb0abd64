//! The numbers of the workloads of reader-writer locks.

use super::{all, each};
use crate::options::{number, part};
use clap::{Args, Subcommand};
use spanlock_records::trial::rw::{
    ENTRIES, INSIDE, Load, MAX_ENTRIES, MAX_PAUSE, MAX_POOL, MAX_WORK, OUTSIDE, PAUSE, WRITES,
};

/// The workloads of reader-writer locks. Besides its own numbers each has those of `R`.
#[derive(Subcommand)]
pub(crate) enum Loads<R: Args> {
    /// Threads read random locks of a pool: do locks get in each other's way?
    #[command(mut_arg("threads", |threads| threads.default_value("64")))] // the paper's
    Interference(With<Pool, R>),
    /// Threads read one after the other, in a ring.
    Alternator(R),
    /// Readers without a pause, and one writer.
    #[command(name = "test_rwlock")]
    TestRwlock(With<Pause, R>),
    /// Threads that read or write by chance.
    Rwbench(With<Writes, R>),
    /// Lookups in a hash table, with an inserter and an eraser.
    #[command(name = "hash_table")]
    HashTable(With<Entries, R>),
    /// Nothing but reading.
    Readers(R),
}

/// A workload's own numbers, and what it has in common with others.
#[derive(Args)]
pub(crate) struct With<W: Args, R: Args> {
    #[command(flatten)]
    own: W,
    #[command(flatten)]
    common: R,
}

#[derive(Args)]
pub(crate) struct Pool {
    /// Locks in the pool.
    #[arg(
        long, value_parser = number(1..=MAX_POOL), value_name = "N,...",
        default_value = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192"
    )]
    pool: Vec<usize>,
}

#[derive(Args)]
pub(crate) struct Pause {
    /// Work of the writer between its writes.
    #[arg(
        long, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_PAUSE)),
        default_values_t = [PAUSE], value_name = "N,..."
    )]
    pause: Vec<u32>,
}

#[derive(Args)]
pub(crate) struct Writes {
    /// The part of operations that write, from 0 to 1.
    #[arg(long, value_parser = part, default_values_t = WRITES, value_name = "PART,...")]
    writes: Vec<f64>,
    /// Steps of work in the critical section.
    #[arg(long, value_parser = work(), default_value_t = INSIDE, value_name = "N")]
    inside: u32,
    /// The largest number of steps of work between critical sections; the number is drawn for each operation.
    #[arg(long, value_parser = work(), default_value_t = OUTSIDE, value_name = "N")]
    outside: u32,
}

fn work() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(..=i64::from(MAX_WORK))
}

#[derive(Args)]
pub(crate) struct Entries {
    /// Elements to begin with.
    #[arg(long, value_parser = number(1..=MAX_ENTRIES), default_value_t = ENTRIES, value_name = "N")]
    entries: usize,
}

impl<R: Args> Loads<R> {
    /// The workload with each of its numbers, and what it has in common with others.
    pub(crate) fn split(self) -> (Vec<Load>, R) {
        match self {
            Self::Interference(With { own, common }) => (
                all(each(&own.pool), |pool| Load::Interference { pool }),
                common,
            ),
            Self::Alternator(common) => (vec![Load::Alternator], common),
            Self::TestRwlock(With { own, common }) => (
                all(each(&own.pause), |pause| Load::TestRwlock { pause }),
                common,
            ),
            Self::Rwbench(With { own, common }) => {
                let load = |writes| Load::Rwbench {
                    writes,
                    inside: own.inside,
                    outside: own.outside,
                };
                (all(each(&own.writes), load), common)
            }
            Self::HashTable(With { own, common }) => {
                let entries = own.entries;
                (vec![Load::HashTable { entries }], common)
            }
            Self::Readers(common) => (vec![Load::Readers], common),
        }
    }
}
