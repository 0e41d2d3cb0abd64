//! `spanlock bench memory`: each measurement runs in a process of its own, which is this program again.

use super::{Result, chosen, distinct, measure, print};
use crate::args::Memory;
use crate::{Failure, allocator};
use spanlock_bench::memory::Record;
use spanlock_bench::registry::{LOCKS, Lock};
use spanlock_bench::report::{self, Line};
use std::process::Command;

pub(super) fn run(args: Memory) -> Result {
    let locks = chosen(args.locks, LOCKS, |lock| lock.name);
    let holds = distinct(args.hold, |hold| *hold);
    let mut steps = locks
        .iter()
        .flat_map(|&lock| holds.iter().map(move |&hold| (lock, hold)));
    if args.here {
        return steps.next().map_or(Ok(()), |(lock, hold)| here(lock, hold));
    }
    measure(
        args.output.format,
        steps,
        |(lock, hold)| format!("{}, {hold} held", lock.name),
        |(lock, hold)| elsewhere(lock, *hold),
        Line::Memory,
        report::memory,
    )
}

/// Measures in this process.
fn here(lock: &Lock, hold: usize) -> Result {
    allocator::begin();
    let record = Record::measure(lock, hold, &allocator::allocated);
    print(&format!("{}\n", Line::Memory(record)))
}

/// Measures in a fresh process.
fn elsewhere(lock: &Lock, hold: usize) -> Result<Record> {
    let failed = |what: String| Failure::Probe(format!("{}, {hold} held: {what}", lock.name));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let output = Command::new(program)
        .args(["bench", "memory", "--here", "--locks", lock.name])
        .args(["--hold", &hold.to_string()])
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.parse() {
        Ok(Line::Memory(record)) if output.status.success() => Ok(record),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(failed(format!("{}: {text}{errors}", output.status)))
        }
    }
}
