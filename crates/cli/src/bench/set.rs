//! Ordered sets: their list, and their memory.

use crate::allocator;
use crate::failure::Result;
use crate::output::{print, width};
use spanlock_bench::sets::{self, STOCKS, Stock};
use spanlock_records::record::SetMemory;
use spanlock_report::table;

/// The keys from which the sets are filled whose memory is counted.
const COUNTED: usize = 1 << 17;

/// Lists the sets.
pub(crate) fn list() -> Result {
    let rows = STOCKS.iter().map(|set| set.described);
    let all: Vec<_> = rows.map(|row| (row.name, row.about)).collect();
    print(&table::rw_locks(&all, width()))
}

/// The memory of these. First of all, because afterwards a peer frees what its runs have left.
pub(crate) fn memory(sets: &[&'static Stock]) -> Vec<SetMemory> {
    allocator::counting(|| {
        let memory = sets.iter();
        memory
            .map(|set| sets::memory(set, COUNTED, &allocator::allocated))
            .collect()
    })
}
