//! `spanlock bench memory` and `many-locks`: each measurement runs in a process of its own, which is this program
//! again.

use super::fresh;
use super::measure::measured;
use crate::allocator;
use crate::failure::{Failure, Result};
use crate::options::{Locks, Output, Threads, number, without_seconds};
use crate::output::print_lines;
use crate::workloads::turns;
use clap::Args;
use spanlock_bench::many_locks::Many;
use spanlock_bench::registry::Lock;
use spanlock_bench::{costs, many_locks};
use spanlock_records::record::{Line, plural};
use spanlock_records::stats::distinct;
use spanlock_report::table;
use spanlock_workbench::batch::MAX_HOLD;

#[derive(Args)]
#[command(arg(without_seconds("it ends when each number of ranges of --hold was held once")))]
pub(super) struct Memory {
    #[command(flatten)]
    locks: Locks<&'static Lock>,
    /// Ranges that one thread holds at once.
    #[arg(long, value_parser = number(1..=MAX_HOLD), default_value = "1,16,256", value_name = "N,...")]
    hold: Vec<usize>,
    /// Measure in this process, which has measured nothing before: the first lock and number of ranges only.
    #[arg(long, hide = true)]
    here: bool,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(args: Memory) -> Result {
    let locks = args.locks.chosen();
    let holds = distinct(args.hold);
    if args.here {
        allocator::begin();
        let record = costs::memory(locks[0], holds[0], &allocator::allocated);
        return print_lines([Line::Memory(record)]);
    }
    measured(
        &args.output,
        turns(locks, &holds),
        |(hold, lock)| format!("{}, {hold} held", lock.name),
        |(hold, lock)| elsewhere("memory", lock.name, ["--hold", &hold.to_string()]),
        Line::Memory,
        table::memory,
    )
    .map(drop)
}

#[derive(Args)]
#[command(arg(without_seconds("it ends when each thread has used each lock once")))]
#[command(mut_arg("threads", |threads| threads.default_value("1,2,8")))]
pub(super) struct ManyLocks {
    #[command(flatten)]
    locks: Locks<&'static Lock>,
    /// Locks that each thread uses once.
    #[arg(long, value_parser = number(1..=many_locks::MAX_LOCKS), default_value_t = many_locks::LOCKS, value_name = "N")]
    number: usize,
    #[command(flatten)]
    threads: Threads,
    /// Measure in this process, which has measured nothing before: the first lock and number of threads only.
    #[arg(long, hide = true)]
    here: bool,
    #[command(flatten)]
    output: Output,
}

pub(super) fn many_locks(args: ManyLocks) -> Result {
    let locks = args.locks.chosen();
    let (number, threads) = (args.number, args.threads.numbers());
    if let Some(many) = threads.iter().find(|many| **many > many_locks::MAX_THREADS) {
        let (many, most) = (plural(*many), many_locks::MAX_THREADS);
        return Err(Failure::Arguments(format!(
            "{many}: expected at most {most}"
        )));
    }
    if args.here {
        allocator::begin();
        let (lock, many) = (
            locks[0],
            Many {
                locks: number,
                threads: threads[0],
            },
        );
        let record = costs::many_locks(lock, many, &allocator::allocated);
        return print_lines([Line::ManyLocks(record)]);
    }
    measured(
        &args.output,
        turns(locks, &threads),
        |(threads, lock)| format!("{}, {}", lock.name, plural(*threads)),
        |(threads, lock)| {
            let [number, threads] = [number, *threads].map(|number| number.to_string());
            let words = ["--number", &number, "--threads", &threads];
            elsewhere("many-locks", lock.name, words)
        },
        Line::ManyLocks,
        table::many_locks,
    )
    .map(drop)
}

/// Runs a command of `bench` for one lock in a fresh process, which writes one line.
fn elsewhere<'a, R: TryFrom<Line>>(
    command: &'a str,
    lock: &'a str,
    numbers: impl IntoIterator<Item = &'a str>,
) -> Result<R> {
    let words = ["bench", command, "--here", "--locks", lock];
    let line = || {
        let mut lines = fresh::lines(fresh::own()?.args(words).args(numbers))?;
        let only = lines.pop().filter(|_| lines.is_empty());
        let record = only.and_then(|line| R::try_from(line).ok());
        record.ok_or_else(|| "it measured something else".to_owned())
    };
    line().map_err(Failure::Probe)
}
