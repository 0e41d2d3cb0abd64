//! `spanlock bench rw`.

use super::fresh::{self, Start};
use super::{Repeat, Result, chosen_of, distinct, measured, preload, print, take_turns};
use crate::Failure;
use crate::args::{Rw, RwHarm, RwLoad, RwRevocation, RwRuns, RwUncontended, Sampling};
use crate::values::Sweep;
use spanlock_bench::compare::plural;
use spanlock_bench::report::{self, Line};
use spanlock_bench::rw::locks::{FLOORS, LOCKS, Lock, NULL, families, find};
use spanlock_bench::rw::revocation::{self, Sleepers};
use spanlock_bench::rw::{Load, Record, Trial, uncontended};

pub(super) fn run(command: Rw) -> Result {
    match command.load {
        Some(RwLoad::Interference(args)) => {
            let pools = distinct(args.pool, |pool| *pool);
            let loads = pools.into_iter().map(|pool| Load::Interference { pool });
            throughput(args.runs, &[LOCKS], loads.collect())
        }
        Some(RwLoad::Alternator(args)) => throughput(args.runs, &[LOCKS], vec![Load::Alternator]),
        Some(RwLoad::TestRwlock(args)) => {
            let pauses = distinct(args.pause, |pause| *pause);
            let loads = pauses.into_iter().map(|pause| Load::TestRwlock { pause });
            throughput(args.runs, &[LOCKS], loads.collect())
        }
        Some(RwLoad::Rwbench(args)) => {
            let mixtures = distinct(args.writes, |writes| *writes);
            let loads = mixtures.into_iter().map(|writes| Load::Rwbench { writes });
            throughput(args.runs, &[LOCKS], loads.collect())
        }
        Some(RwLoad::HashTable(args)) => {
            let entries = args.entries;
            throughput(args.runs, &[LOCKS], vec![Load::HashTable { entries }])
        }
        Some(RwLoad::Readers(args)) => throughput(args.runs, &[LOCKS, FLOORS], vec![Load::Readers]),
        Some(RwLoad::Uncontended(args)) => run_uncontended(args),
        Some(RwLoad::Revocation(args)) => run_revocation(args),
        Some(RwLoad::Harm(args)) => harm(args),
        Some(RwLoad::Preload(args)) => preload::run(args),
        None => print(&report::rw_locks(crate::terminal::width())),
    }
}

fn throughput(runs: RwRuns, all: &[&'static [Lock]], loads: Vec<Load>) -> Result {
    let all = all.iter().copied().flatten();
    let locks = chosen_of(runs.locks.clone(), all, |lock| lock.name);
    let trials = trials_of(&runs.sampling, runs.threads, &loads);
    take_turns(
        &locks,
        &trials,
        runs.sampling.output.format,
        describe,
        |lock, trial| Record::measure(lock, trial).map_err(|found| found.to_string()),
        Line::Rw,
        report::rw,
    )?;
    Ok(())
}

fn harm(RwHarm { runs }: RwHarm) -> Result {
    let named = chosen_of(runs.locks.clone(), LOCKS, |lock| lock.name);
    let mut families = families();
    families.retain(|(base, _)| named.iter().any(|lock| lock.name == base.name));
    let trials = trials_of(&runs.sampling, runs.threads, &Load::all());
    // An underlying lock and what is made of it: runs that are compared follow each other, and who is first changes from
    // repeat to repeat.
    let steps = trials.iter().flat_map(|trial| {
        families.iter().flat_map(move |(base, made)| {
            let mut family: Vec<_> = std::iter::once(*base).chain(made.iter().copied()).collect();
            family.extend(find(NULL));
            let first = trial.repeat as usize % family.len();
            family.rotate_left(first);
            family.into_iter().map(move |lock| (lock, trial))
        })
    });
    measured(
        runs.sampling.output.format,
        steps,
        |(lock, trial)| describe(lock, trial),
        |(lock, trial)| {
            let failed = |what| Failure::Check(format!("{}: {what}", describe(lock, trial)));
            fresh::measure(lock.name, Start::Plain, trial).map_err(failed)
        },
        Line::Rw,
        report::harm,
    )?;
    Ok(())
}

fn describe(lock: &Lock, Trial { load, threads, .. }: &Trial) -> String {
    format!("{}, {load}, {}", lock.name, plural(*threads))
}

/// Repeats outside, workloads and threads inside.
pub(super) fn trials_of(sampling: &Sampling, threads: Vec<Sweep>, loads: &[Load]) -> Vec<Trial> {
    let trials = |repeat: Repeat<'_>| {
        let mut trials = Vec::new();
        for &load in loads {
            trials.extend(repeat.threads.iter().map(|&threads| Trial {
                load,
                threads,
                schedule: repeat.schedule,
                seed: repeat.seed,
                repeat: repeat.number,
            }));
        }
        trials
    };
    sampling.trials(threads, &[], trials)
}

fn run_uncontended(args: RwUncontended) -> Result {
    let locks = chosen_of(args.locks, LOCKS.iter().chain(FLOORS), |lock| lock.name);
    let steps = (0..args.repeat).flat_map(|round| locks.iter().map(move |&lock| (lock, round)));
    measured(
        args.output.format,
        steps,
        |(lock, round)| format!("{}, round {}", lock.name, round + 1),
        |(lock, round)| Ok(uncontended::Record::measure(lock, args.pairs, *round)),
        Line::RwUncontended,
        report::rw_uncontended,
    )?;
    Ok(())
}

fn run_revocation(args: RwRevocation) -> Result {
    let sizes = args.threads.into_iter().flat_map(|Sweep(numbers)| numbers);
    let mut sizes = distinct(sizes, |size| *size);
    sizes.sort_unstable();
    let steps = sizes
        .iter()
        .flat_map(|&size| (0..args.repeat).map(move |round| (size, round)));
    let mut sleepers = Sleepers::default();
    measured(
        args.output.format,
        steps,
        |(size, round)| format!("{}, round {}", plural(*size), round + 1),
        |&(size, round)| {
            sleepers.grow(size);
            Ok(revocation::Record::measure(size, round))
        },
        Line::RwRevocation,
        report::rw_revocation,
    )?;
    Ok(())
}
