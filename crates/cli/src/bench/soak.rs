//! `spanlock bench soak`.

use super::{Result, chosen, measure, wrong_arguments};
use crate::args::Soak as Arguments;
use crate::{Failure, allocator};
use spanlock_bench::registry::{Exclusion, LOCKS};
use spanlock_bench::report::{self, Line};
use spanlock_bench::soak::Soak;

pub(super) fn run(args: Arguments) -> Result {
    let promises = |exclusion| exclusion == Exclusion::Promised;
    let all = LOCKS.iter().filter(|lock| promises(lock.exclusion));
    let locks = chosen(args.locks, all);
    if let Some(lock) = locks.iter().find(|lock| !promises(lock.exclusion)) {
        wrong_arguments(&format!(
            "--locks {}: it promises nothing to check\n",
            lock.name
        ));
    }
    allocator::begin();
    let soak = |&lock| Soak::new(lock, args.threads, args.stall, args.seed);
    let mut soaks: Vec<_> = locks.iter().map(soak).collect();
    let time = args.seconds / args.rounds / u32::try_from(locks.len()).unwrap_or(u32::MAX);
    let steps = (0..args.rounds).flat_map(|round| (0..locks.len()).map(move |lock| (round, lock)));
    measure(
        args.output.format,
        steps,
        |&(round, lock)| format!("lock {}, round {}", locks[lock].name, round + 1),
        |&(round, lock)| {
            let record = soaks[lock].round(round, time, &allocator::allocated);
            record.map_err(|fault| Failure::Check(format!("lock {}: {fault}", locks[lock].name)))
        },
        Line::Soak,
        report::soak,
    )
}
