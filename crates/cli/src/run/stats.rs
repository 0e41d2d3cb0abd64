//! What the preload library has counted.

use crate::Failure;
use crate::args::Format;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

/// Rows of the table; JSON has all locks.
const HOTTEST: usize = 20;

/// One lock of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lock {
    process: u32,
    /// Its address, or 0x0: all that came after there was no more room.
    lock: String,
    /// Where it was acquired first; empty if that is not known.
    first: String,
    fast_reads: u64,
    slow_reads: u64,
    writes: u64,
    waited_ns: u64,
}

impl Lock {
    fn reads(&self) -> u64 {
        self.fast_reads + self.slow_reads
    }

    fn acquisitions(&self) -> u64 {
        self.reads() + self.writes
    }
}

/// The hottest first. A line that a dying process cut short is left out.
pub(super) fn read(text: &str) -> Vec<Lock> {
    let parsed = text.lines().map(serde_json::from_str);
    let mut locks: Vec<Lock> = parsed.filter_map(Result::ok).collect();
    locks.sort_by_key(|lock| std::cmp::Reverse(lock.acquisitions()));
    locks
}

/// To the standard error: the standard output is the program's.
pub(super) fn print(locks: &[Lock], format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Table => table(locks),
        Format::Json => lines(locks),
    };
    Ok(io::stderr().write_all(text.as_bytes())?)
}

fn lines(locks: &[Lock]) -> String {
    let line = |lock| serde_json::to_string(lock).expect("numbers and strings") + "\n";
    locks.iter().map(line).collect()
}

fn table(locks: &[Lock]) -> String {
    let processes: HashSet<u32> = locks.iter().map(|lock| lock.process).collect();
    let shown = locks.len().min(HOTTEST);
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "process",
        "lock",
        "reads",
        "fast",
        "writes",
        "waited",
        "first acquired in",
    ]);
    for column in table.column_iter_mut().skip(2).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for lock in &locks[..shown] {
        let fast = match lock.reads() {
            0 => "-".to_owned(),
            reads => format!("{:.1}%", 100.0 * lock.fast_reads as f64 / reads as f64),
        };
        table.add_row([
            lock.process.to_string(),
            lock.lock.clone(),
            lock.reads().to_string(),
            fast,
            lock.writes.to_string(),
            format!("{:.1?}", Duration::from_nanos(lock.waited_ns)),
            lock.first.clone(),
        ]);
    }
    format!(
        "{shown} hottest of {} pthread_rwlocks in {} process(es)\n{}\n",
        locks.len(),
        processes.len(),
        table.trim_fmt()
    )
}

#[cfg(test)]
mod tests {
    use super::{read, table};

    const LINES: &str = "\
        {\"process\":7,\"lock\":\"0x10\",\"first\":\"f+0x1 (a)\",\"fast_reads\":0,\"slow_reads\":0,\"writes\":2,\"waited_ns\":9}\n\
        {\"process\":7,\"lock\":\"0x20\",\"first\":\"\",\"fast_reads\":3,\"slow_reads\":1,\"writes\":0,\"waited_ns\":0}\n\
        {\"process\":8,\"lo";

    #[test]
    fn the_hottest_comes_first_and_what_was_cut_short_is_left_out() {
        let locks = read(LINES);
        let names: Vec<_> = locks.iter().map(|lock| lock.lock.as_str()).collect();
        assert_eq!(names, ["0x20", "0x10"]);
        let table = table(&locks);
        assert!(
            table.contains("75.0%") && table.contains("f+0x1 (a)"),
            "{table}"
        );
    }

    #[test]
    fn no_locks_are_a_table_too() {
        assert!(table(&read("")).starts_with("0 hottest of 0"));
    }
}
