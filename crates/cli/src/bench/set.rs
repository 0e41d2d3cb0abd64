//! Ordered sets: `spanlock bench set`.

use super::measure::{Compared, compared};
use crate::allocator;
use crate::failure::Result;
use crate::output::{print, width};
use crate::workloads::Sets;
use clap::Args;
use spanlock_bench::sets::{self, STOCKS};
use spanlock_report::table;

/// The keys from which the sets are filled whose memory is counted.
const COUNTED: usize = 1 << 17;

#[derive(Args)]
pub(super) struct Set {
    /// List the sets and exit.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    compared: Compared<Sets>,
}

pub(super) fn run(set: &Set) -> Result {
    if set.list {
        let rows = STOCKS.iter().map(|set| set.described);
        let all: Vec<_> = rows.map(|row| (row.name, row.about)).collect();
        return print(&table::rw_locks(&all, width()));
    }
    let args = &set.compared;
    let sets = args.locks.chosen();
    // First, because afterwards a peer frees what its runs have left.
    let memory: Vec<_> = allocator::counting(|| {
        let memory = sets.iter();
        memory
            .map(|set| sets::memory(set, COUNTED, &allocator::allocated))
            .collect()
    });
    compared(&args.workload, &sets, &args.sampled, &memory)
}
