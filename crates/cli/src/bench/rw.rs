//! `spanlock bench rw`.

use super::fresh::{self, Start};
use super::measure::{Pairs, Sampling, measured};
use super::preload::{self, Preload};
use crate::failure::{Failure, Result};
use crate::options::{self, Locks, Output, Threads, rw_locks, times, without_seconds};
use crate::output::{print, width};
use crate::workloads::{is_in, turns, usual};
use clap::{Args, Subcommand};
use spanlock_bench::costs;
use spanlock_bench::rw::locks::{FLOORS, LOCKS, Lock, families, find};
use spanlock_bench::rw::revocation::{self, Sleepers};
use spanlock_bench::workload::{WORKLOADS, name};
use spanlock_records::record::lock::NULL;
use spanlock_records::record::{Line, Panel, plural};
use spanlock_report::table;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(super) struct Rw {
    /// List the reader-writer locks and exit.
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    cost: Option<Cost>,
}

#[derive(Subcommand)]
enum Cost {
    /// The cost of a lock that only one thread uses, beside floors that no lock can beat.
    Uncontended(Uncontended),
    /// The cost of revoking a bias, by the number of threads that have read.
    Revocation(Revocation),
    /// Every workload on locks with and without a bias: does the bias slow any down?
    Harm(Harm),
    /// Every workload on `pthread_rwlock_t` with and without the preload library: does that slow any down?
    Preload(Preload),
}

type Named = options::Named<&'static Lock>;

/// Locks that others are made of.
fn bases(text: &str) -> Result<Named, String> {
    rw_locks(text, families().into_iter().map(|(base, _)| base))
}

/// The arguments of all of that.
#[derive(Args)]
#[command(mut_arg("repeat", |repeat| repeat.default_value("7")))] // the paper's, as are other defaults here but for time
#[command(mut_arg("threads", |threads| {
    threads.help("Threads: each a number, a:b or a:b:step. Where roles are fixed, those that read")
}))]
struct Runs {
    #[command(flatten)]
    locks: Locks<&'static Lock>,
    #[command(flatten)]
    sampling: Sampling,
}

pub(super) fn run(command: Rw) -> Result {
    match command.cost {
        Some(Cost::Uncontended(args)) => run_uncontended(args),
        Some(Cost::Revocation(args)) => run_revocation(&args),
        Some(Cost::Harm(args)) => harm(args),
        Some(Cost::Preload(args)) => preload::run(&args),
        None => {
            let locks: Vec<_> = LOCKS.iter().map(|lock| (lock.name, lock.about)).collect();
            print(&table::rw_locks(&locks, width()))
        }
    }
}

/// One of each workload, and the paper's mixtures: what a bias or the preload library may slow down.
pub(super) fn panels() -> Vec<Panel> {
    let rows = WORKLOADS.iter().filter(|row| is_in(row, "rw"));
    let pools = [1, 64, 4096];
    let is_wanted = |panel: &Panel| {
        panel
            .number("pool")
            .is_none_or(|pool| pools.contains(&pool))
    };
    rows.flat_map(usual).filter(is_wanted).collect()
}

#[derive(Args)]
#[command(mut_arg("threads", |it| it.default_value("1,2")), mut_arg("seconds", |it| it.default_value("0.02")))]
#[command(mut_arg("locks", |locks| {
    locks.help("Underlying locks, by name; all by default").value_parser(bases)
}))]
struct Harm {
    #[command(flatten)]
    runs: Runs,
}

fn harm(Harm { runs }: Harm) -> Result {
    let named = runs.locks.chosen();
    let mut families = families();
    families.retain(|(base, _)| named.iter().any(|lock| lock.name == base.name));
    let trials = runs.sampling.trials(&panels());
    // An underlying lock and what is made of it: runs that are compared follow each other, and the first of them
    // changes from repeat to repeat.
    let steps = turns(trials, &families.iter().collect::<Vec<_>>());
    let steps = steps.into_iter().flat_map(|((base, made), trial)| {
        let mut family: Vec<_> = std::iter::once(*base).chain(made.iter().copied()).collect();
        family.extend(find(NULL));
        let first = trial.repeat as usize % family.len();
        family.rotate_left(first);
        family.into_iter().map(move |lock| (lock, trial))
    });
    measured(
        &runs.sampling.output,
        steps.collect(),
        |(lock, trial)| name(trial, *lock),
        |(lock, trial)| fresh::measure(lock.name, Start::Plain, trial).map_err(Failure::Check),
        Line::from,
        table::harm,
    )
    .map(drop)
}

#[derive(Args)]
#[command(arg(without_seconds("it ends after so many --pairs in each round: see --repeat")))]
#[command(mut_arg("pairs", |pairs| {
    pairs.help("Acquisitions and releases in each round, for reading and again for writing")
}))]
struct Uncontended {
    #[command(flatten)]
    locks: Locks<&'static Lock>,
    #[command(flatten)]
    pairs: Pairs,
}

fn run_uncontended(Uncontended { locks, pairs }: Uncontended) -> Result {
    measured(
        &pairs.output,
        turns(0..pairs.repeat, &locks.or(LOCKS.iter().chain(FLOORS))),
        |(lock, round)| format!("{}, round {}", lock.name, round + 1),
        |(lock, round)| Ok(costs::rw_uncontended(lock, pairs.pairs, *round)),
        Line::RwUncontended,
        table::rw_uncontended,
    )
    .map(drop)
}

#[derive(Args)]
#[command(arg(without_seconds("it ends after so many rounds at each size: see --repeat")))]
#[command(mut_arg("threads", |threads| {
    let help = "Threads that have read, each with a row of the table: each a number, a:b or a:b:step";
    threads.help(help).default_value("1,2,4,8,16,32")
}))]
struct Revocation {
    #[command(flatten)]
    threads: Threads,
    /// Rounds at each size.
    #[arg(long, value_parser = times(), default_value_t = 7, value_name = "N")]
    repeat: u32,
    #[command(flatten)]
    output: Output,
}

fn run_revocation(args: &Revocation) -> Result {
    let mut sizes = args.threads.numbers();
    sizes.sort_unstable();
    let rounds: Vec<_> = (0..args.repeat).collect();
    let mut sleepers = Sleepers::default();
    measured(
        &args.output,
        turns(sizes, &rounds),
        |(round, size)| format!("{}, round {}", plural(*size), round + 1),
        |&(round, size)| {
            sleepers.grow(size);
            Ok(revocation::measure(size, round))
        },
        Line::RwRevocation,
        table::rw_revocation,
    )
    .map(drop)
}
