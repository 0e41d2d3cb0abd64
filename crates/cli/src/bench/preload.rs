//! `spanlock bench rw preload`: `pthread_rwlock_t` with and without the preload library, in processes of their own,
//! which are this program again.

use super::{Repeat, Result, measured};
use crate::Failure;
use crate::args::RwPreload;
use spanlock_bench::report::{self, Line};
use spanlock_bench::rw::locks::{PRELOADED, PTHREAD};
use spanlock_bench::rw::{Load, Record, Trial};
use std::process::Command;

pub(super) fn run(RwPreload { threads, sampling }: RwPreload) -> Result {
    let trials = |repeat: Repeat<'_>| {
        let trial = |load, threads| Trial {
            load,
            threads,
            schedule: repeat.schedule,
            seed: repeat.seed,
            repeat: repeat.number,
        };
        let loads = Load::all().into_iter();
        loads
            .flat_map(|load| {
                repeat
                    .threads
                    .iter()
                    .map(move |&threads| trial(load, threads))
            })
            .collect()
    };
    let trials = sampling.trials(threads, &[], trials);
    let steps = trials.iter().flat_map(|trial| {
        // Who is first changes from repeat to repeat.
        let mut ways = [PTHREAD, PRELOADED];
        ways.rotate_left(trial.repeat as usize % 2);
        ways.map(|way| (way, trial))
    });
    let describe = |way: &str, trial: &Trial| {
        let Trial { load, threads, .. } = trial;
        format!("{way}, {load}, {threads} threads")
    };
    measured(
        sampling.output.format,
        steps,
        |(way, trial)| describe(way, trial),
        |(way, trial)| {
            let failed = |what| Failure::Probe(format!("{}: {what}", describe(way, trial)));
            elsewhere(way, trial).map_err(failed)
        },
        Line::Rw,
        report::preload,
    )?;
    Ok(())
}

/// Measures in a fresh process.
fn elsewhere(way: &str, trial: &Trial) -> std::result::Result<Record, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(&own);
    if way == PRELOADED {
        command.args(["run", "--"]).arg(&own);
    }
    let output = command
        .args(["bench", "rw"])
        .args(words(trial.load))
        .args(["--locks", PTHREAD, "--format", "json", "--repeat", "1"])
        .args(["--threads", &trial.threads.to_string()])
        .args(["--seed", &trial.seed.to_string()])
        .args([
            "--seconds",
            &trial.schedule.measured.as_secs_f64().to_string(),
        ])
        .args(["--warmup", &trial.schedule.warmup.as_secs_f64().to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(str::parse);
    let record = lines.flatten().find_map(|line| match line {
        Line::Rw(record) => Some(record),
        _ => None,
    });
    match record {
        Some(record) if output.status.success() => Ok(Record {
            lock: way.to_owned(),
            repeat: trial.repeat,
            ..record
        }),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{}: {text}{errors}", output.status))
        }
    }
}

/// The command for a workload.
fn words(load: Load) -> Vec<String> {
    match load {
        Load::Interference { pool } => vec!["interference".into(), format!("--pool={pool}")],
        Load::Alternator => vec!["alternator".into()],
        Load::TestRwlock { pause } => vec!["test_rwlock".into(), format!("--pause={pause}")],
        Load::Rwbench { writes } => vec!["rwbench".into(), format!("--writes={writes}")],
        Load::HashTable { entries } => vec!["hash_table".into(), format!("--entries={entries}")],
        Load::Readers => vec!["readers".into()],
    }
}
