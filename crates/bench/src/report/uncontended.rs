//! What one thread pays.

use super::{SPREADS, Table, Width, measured, or_dash, source, wrapped};
use crate::compare::distinct;
use crate::provenance::Provenance;
use crate::stats::Summary;
use crate::uncontended::Record;

/// What others are compared with in the last column.
const YARDSTICK: (&str, &str) = ("parking-lot", "write");

/// A table with a row for each lock and mode.
#[must_use]
pub fn uncontended(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let subject = |record: &Record| {
        let Record {
            lock,
            mode,
            rmw_by_reading,
            ..
        } = record;
        (lock.clone(), mode.clone(), rmw_by_reading.clone())
    };
    let cost = |lock: &str, mode: &str| {
        let rounds = records
            .iter()
            .filter(|record| record.lock == lock && record.mode == mode);
        Summary::of(rounds.map(|record| record.ns_per_pair))
    };
    let yardstick = cost(YARDSTICK.0, YARDSTICK.1);
    let header = [
        "lock",
        "mode",
        "ns",
        "of parking-lot's write",
        "RMW (by reading)",
    ];
    let mut table = Table::new(2, header);
    for (lock, mode, rmw) in distinct(records.iter().map(subject)) {
        let cost = cost(&lock, &mode);
        let ratio = cost
            .zip(yardstick)
            .map(|(cost, yardstick)| format!("{:.2}", cost.median / yardstick.median));
        let cost = cost.map(|cost| measured(cost, 1.0, 1));
        table.add_row([lock, mode, or_dash(cost), or_dash(ratio), rmw]);
    }
    let text = format!(
        "one thread, acquisition and release of one range; RMW: atomic read-modify-writes per pair\n{}\
         {SPREADS}\n\n{}",
        table.text(width),
        source(provenance)
    );
    wrapped(&text, width)
}
