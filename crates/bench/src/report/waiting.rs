//! What waiting costs.

use super::{Table, Width, or_dash, source, wrapped};
use crate::compare::plural;
use crate::provenance::Provenance;
use crate::waiting::{HOLD, Record};

/// A table with a row for each lock.
#[must_use]
pub fn waiting(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let header = [
        "lock",
        "Mops/s",
        "CPU share",
        "max wait, ms",
        "min ops/thread",
        "max ops/thread",
        "sleeper CPU, ms",
    ];
    let mut table = Table::new(1, header);
    for record in records {
        let run = &record.contention;
        table.add_row([
            run.lock.clone(),
            format!("{:.3}", run.ops_per_sec / 1e6),
            or_dash(record.cpu_share.map(|share| format!("{share:.2}"))),
            or_dash(
                run.acquire_ns
                    .map(|times| format!("{:.2}", times.max as f64 / 1e6)),
            ),
            run.min_ops_per_thread.to_string(),
            run.max_ops_per_thread.to_string(),
            or_dash(record.sleeper_cpu_ms.map(|ms| format!("{ms:.3}"))),
        ]);
    }
    let threads = records
        .first()
        .map_or(0, |record| record.contention.threads);
    let who = match threads {
        1 => "1 thread writes".to_owned(),
        _ => format!("{} write", plural(threads)),
    };
    let text = format!(
        "{who} the whole array without a pause. CPU share: of all cores' time; one core's is 1/{}\n\
         sleeper: waits while another thread holds for {} ms\n{}\n{}",
        provenance.cores,
        HOLD.as_millis(),
        table.text(width),
        source(provenance)
    );
    wrapped(&text, width)
}
