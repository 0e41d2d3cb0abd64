//! A soak.

use super::{Table, Width, or_dash, source, wrapped};
use crate::compare::{distinct, plural};
use crate::provenance::Provenance;
use crate::soak::Record;

/// A table with a row for each lock, over all rounds.
#[must_use]
pub fn soak(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let header = [
        "lock",
        "rounds",
        "acquired",
        "gave up",
        "held at once",
        "met inside",
        "longest wait, ms",
        "grown, bytes",
    ];
    let mut table = Table::new(1, header);
    for lock in distinct(records.iter().map(|record| &record.lock)) {
        let rounds = || records.iter().filter(move |record| record.lock == *lock);
        let Some(last) = rounds().next_back() else {
            continue;
        };
        let gave_up: u64 = rounds().map(|record| record.gave_up).sum();
        let held = rounds().map(|record| record.most_held).max().unwrap_or(0);
        let longest = rounds().map(|record| record.longest_wait_ms);
        let met: Vec<_> = last.meetings.iter().map(ToString::to_string).collect();
        table.add_row([
            lock.clone(),
            rounds().count().to_string(),
            rounds()
                .map(|record| record.acquired)
                .sum::<u64>()
                .to_string(),
            match last.gives_up.as_str() {
                "never" => "cannot".to_owned(),
                how => format!("{gave_up}, {how}"),
            },
            format!("{held}, {}", last.several),
            or_dash((!met.is_empty()).then(|| met.join(", "))),
            format!("{:.1}", longest.fold(0.0, f64::max)),
            last.grown_bytes.to_string(),
        ]);
    }
    let threads = records.first().map_or(0, |record| record.threads);
    let threads = plural(threads);
    let text = format!(
        "{threads}; nobody met whom it excludes, nobody was stuck, and no lock kept what piles up\n\
         gave up: tries (at once), and waits of limited time too (in time)\n\
         held at once: waiting for all, or trying for those after the first; or why not several\n\
         grown: what is allocated beyond what was after the first round\n{}\n{}",
        table.text(width),
        source(provenance)
    );
    wrapped(&text, width)
}
