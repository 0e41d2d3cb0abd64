//! The rankings of locks that survive when an assumed number of the simulated machine changes.

use spanlock_records::record::finding::{Ranked, Ranking, Swap};
use spanlock_records::record::{Panel, Record};
use spanlock_records::stats::{Summary, distinct};

/// Locks whose throughputs differ by less than this factor are level.
pub const LEVEL: f64 = 1.05;

/// The rankings on the machine of that name, compared with those on all other machines in the records.
#[must_use]
pub fn rankings(records: &[Record], machine: &str) -> Vec<Ranking> {
    let place = |record: &Record| (record.panel, record.threads);
    let names = distinct(records.iter().filter_map(Record::machine));
    let others: Vec<_> = names.into_iter().filter(|name| *name != machine).collect();
    let ranking = |(panel, threads): (Panel, usize)| {
        let here: Vec<_> = records
            .iter()
            .filter(|record| place(record) == (panel, threads))
            .collect();
        let median = |machine: &str, lock: &str| {
            let runs = here
                .iter()
                .filter(|run| run.machine() == Some(machine) && run.lock.name == lock);
            Summary::of(runs.filter_map(|run| run.ops_per_sec)).map(|summary| summary.median)
        };
        let locks = distinct(here.iter().map(|run| run.lock.name.as_str()));
        let mut order: Vec<_> = locks
            .into_iter()
            .filter_map(|lock| Some((lock, median(machine, lock)?)))
            .collect();
        order.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let pairs = order.iter().enumerate().flat_map(|(at, above)| {
            let below = order[at + 1..].iter().map(move |below| (above, below));
            below.filter(|((_, a), (_, b))| a / b >= LEVEL)
        });
        let pairs: Vec<_> = pairs.collect();
        let mut swaps = Vec::new();
        for ((above, more), (below, less)) in &pairs {
            for other in &others {
                let there = median(other, above).zip(median(other, below));
                if let Some((a, b)) = there.filter(|(a, b)| b / a >= LEVEL) {
                    swaps.push(Swap {
                        above: (*above).to_owned(),
                        below: (*below).to_owned(),
                        times: more / less,
                        machine: (*other).to_owned(),
                        times_there: a / b,
                    });
                }
            }
        }
        let ranked = order.iter().map(|&(lock, ops_per_sec)| Ranked {
            lock: lock.to_owned(),
            ops_per_sec,
        });
        Ranking {
            order: ranked.collect(),
            pairs: pairs.len(),
            machines: others.len(),
            machine: machine.to_owned(),
            panel: panel.to_string(),
            threads,
            swaps,
        }
    };
    distinct(records.iter().map(place))
        .into_iter()
        .map(ranking)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Swap, rankings};
    use crate::compare::tests::{arr, record};
    use machines::Placement;
    use spanlock_records::record::{Record, Simulated};

    fn run(machine: &str, lock: &str, seed: u64, ops: u32) -> Record {
        Record {
            seed,
            simulated: Some(Simulated {
                machine: machine.to_owned(),
                placement: Placement::Unpinned,
                operations: 0,
            }),
            ..record(arr("full", 60), lock, 1, ops.into())
        }
    }

    #[test]
    fn pairs_that_turn_round_are_told_and_ties_are_none() {
        const BASE: &str = "xeon-2x10x2";
        const OTHER: &str = "xeon-2x10x2:favour=0";
        let records = [
            (BASE, "a", 1, 190),
            (BASE, "a", 2, 210),
            (BASE, "b", 1, 100),
            (BASE, "c", 1, 102),
            (OTHER, "a", 1, 100),
            (OTHER, "b", 1, 125),
            (OTHER, "c", 1, 103),
        ]
        .map(|(machine, lock, seed, ops)| run(machine, lock, seed, ops));
        let [ranking] = &rankings(&records, BASE)[..] else {
            panic!("one panel, one number of threads");
        };
        let order: Vec<_> = ranking.order.iter().map(|one| one.lock.as_str()).collect();
        assert_eq!(order, ["a", "c", "b"]);
        assert_eq!((ranking.pairs, ranking.machines), (2, 1));
        let swap = Swap {
            above: "a".to_owned(),
            below: "b".to_owned(),
            times: 2.0,
            machine: OTHER.to_owned(),
            times_there: 0.8,
        };
        assert_eq!(ranking.swaps, [swap]);
        let told = ranking.to_string();
        assert!(
            told.contains("1 of 2 pairs") && told.contains("not with favour=0 (0.80)"),
            "{told}"
        );
    }
}
