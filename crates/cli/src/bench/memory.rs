//! `spanlock bench memory`: each measurement runs in a process of its own, which is this program again.

use super::fresh;
use super::measure::measured;
use crate::allocator;
use crate::failure::{Failure, Result};
use crate::options::{Output, RangeLocks, number_to, without_seconds};
use crate::output::print_lines;
use crate::workloads::turns;
use clap::Args;
use spanlock_bench::batch::MAX_HOLD;
use spanlock_bench::costs;
use spanlock_bench::registry::LOCKS;
use spanlock_judge::record::{Line, Memory as Record};
use spanlock_judge::stats::distinct;
use spanlock_judge::table;

#[derive(Args)]
#[command(arg(without_seconds("it ends when each number of ranges of --hold was held once")))]
pub(super) struct Memory {
    #[command(flatten)]
    locks: RangeLocks,
    /// Ranges that one thread holds at once.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = number_to(MAX_HOLD), default_value = "1,16,256", value_name = "N,...", allow_negative_numbers = true)]
    hold: Vec<usize>,
    /// Measure in this process, which has measured nothing before: the first lock and number of ranges only.
    #[arg(long, hide = true)]
    here: bool,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(args: Memory) -> Result {
    let locks = args.locks.or(LOCKS.iter());
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
        |(hold, lock)| elsewhere(lock.name, *hold).map_err(Failure::Probe),
        Line::Memory,
        table::memory,
    )
    .map(drop)
}

/// Measures in a fresh process.
fn elsewhere(lock: &str, hold: usize) -> Result<Record, String> {
    let hold = hold.to_string();
    let words = [
        "bench", "memory", "--here", "--locks", lock, "--hold", &hold,
    ];
    match &fresh::lines(fresh::own()?.args(words))?[..] {
        [Line::Memory(record)] => Ok(record.clone()),
        _ => Err("it measured something else".to_owned()),
    }
}
