//! One run of a reader-writer lock in a fresh process, which is this program again: where code, stacks and locks lie is
//! drawn anew, and can make a tenth.

use spanlock_bench::report::Line;
use spanlock_bench::rw::{Load, Record, Trial, handoff};
use std::process::Command;
use std::time::Duration;

/// What a process needs until it is as it stays, at least: to register for `membarrier`, which the first fast reader does,
/// takes the kernel tens of milliseconds, once.
const WARMUP: Duration = Duration::from_millis(50);

/// How the process is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Plain,
    /// With the preload library.
    Preloaded,
}

/// Measures the lock of that name, with a warm-up of 50 milliseconds if not longer.
///
/// # Errors
/// What went wrong, in words.
pub(super) fn measure(lock: &str, start: Start, trial: &Trial) -> Result<Record, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let warmup = trial.schedule.warmup.max(WARMUP);
    let mut command = Command::new(&own);
    if start == Start::Preloaded {
        command.args(["run", "--"]).arg(&own);
    }
    let before = handoff::nanoseconds();
    let output = command
        .args(["bench", "rw"])
        .args(words(trial.load))
        .args(["--locks", lock, "--format", "json", "--repeat", "1"])
        .args(["--threads", &trial.threads.to_string()])
        .args(["--seed", &trial.seed.to_string()])
        .args([
            "--seconds",
            &trial.schedule.measured.as_secs_f64().to_string(),
        ])
        .args(["--warmup", &warmup.as_secs_f64().to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    let handoff_ns = before.zip(handoff::nanoseconds()).map(<[f64; 2]>::from);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(str::parse);
    let record = lines.flatten().find_map(|line| match line {
        Line::Rw(record) => Some(record),
        _ => None,
    });
    match record {
        Some(record) if output.status.success() => Ok(Record {
            repeat: trial.repeat,
            handoff_ns,
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
