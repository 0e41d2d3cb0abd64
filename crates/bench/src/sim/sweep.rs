//! Which rankings survive when a machine's assumed numbers are others.

use super::Record;
use crate::compare::distinct;
use crate::stats::Summary;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Locks whose throughputs differ by less than this factor are level.
pub const LEVEL: f64 = 1.05;

/// The locks of one panel with so many threads, and what becomes of their order on other machines: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The panel.
    pub panel: String,
    /// Virtual threads.
    pub threads: usize,
    /// The machine whose order it is.
    pub machine: String,
    /// The locks, best first.
    pub order: Vec<Ranked>,
    /// How many pairs are not level.
    pub pairs: usize,
    /// How many other machines there are.
    pub machines: usize,
    /// The pairs that are the other way round on one of them.
    pub swaps: Vec<Swap>,
}

/// A lock in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// The lock.
    pub lock: String,
    /// Operations per virtual second: the median of all seeds.
    pub ops_per_sec: f64,
}

/// Two locks that are the other way round on another machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swap {
    /// The better one.
    pub above: String,
    /// The other one.
    pub below: String,
    /// By what factor it is better.
    pub times: f64,
    /// Where it is worse.
    pub machine: String,
    /// By what factor it is there: less than one.
    pub times_there: f64,
}

impl fmt::Display for Ranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            panel,
            threads,
            pairs,
            machines,
            ..
        } = self;
        let order: Vec<_> = self
            .order
            .iter()
            .map(|ranked| ranked.lock.as_str())
            .collect();
        let pair = |swap: &Swap| (swap.above.clone(), swap.below.clone());
        let swapped = distinct(self.swaps.iter().map(pair));
        let kept = pairs - swapped.len();
        write!(
            f,
            "{panel}, threads: {threads}: {}\n    {kept} of {pairs} pairs keep their order on {machines} other machines",
            order.join(" > ")
        )?;
        for (above, below) in swapped {
            let of_pair = |swap: &&Swap| swap.above == above && swap.below == below;
            let swaps: Vec<_> = self.swaps.iter().filter(of_pair).collect();
            let machines = swaps.iter().map(|swap| {
                let change = swap.machine.strip_prefix(&self.machine);
                let change = change.unwrap_or(&swap.machine).trim_start_matches(':');
                format!("{change} ({:.2})", swap.times_there)
            });
            let machines: Vec<_> = machines.collect();
            let times = swaps.first().map_or(1.0, |swap| swap.times);
            let machines = machines.join(", ");
            write!(
                f,
                "\n    {above} is {times:.2} of {below}, but not with {machines}"
            )?;
        }
        Ok(())
    }
}

/// The rankings on the machine of that name, held against those on all others in the records.
#[must_use]
pub fn rankings<R: Record>(records: &[R], machine: &str) -> Vec<Ranking> {
    let place = |record: &R| (record.panel(), record.run().threads);
    let names = distinct(records.iter().map(|record| record.run().machine.as_str()));
    let others: Vec<_> = names.into_iter().filter(|name| *name != machine).collect();
    let ranking = |(panel, threads): (String, usize)| {
        let here: Vec<_> = records
            .iter()
            .filter(|record| place(record) == (panel.clone(), threads))
            .map(Record::run)
            .collect();
        let median = |machine: &str, lock: &str| {
            let runs = here
                .iter()
                .filter(|run| run.machine == machine && run.lock == lock);
            Summary::of(runs.map(|run| run.ops_per_sec)).map(|summary| summary.median)
        };
        let locks = distinct(here.iter().map(|run| run.lock.as_str()));
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
            panel,
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
    use crate::arr::Variant;
    use crate::sim::arr::Record;
    use crate::sim::{Machine, Run, Setup};
    use std::time::Duration;

    fn record(machine: &str, lock: &str, seed: u64, ops: u64) -> Record {
        let setup = Setup {
            seed,
            ..Setup::new(Machine::find(machine).unwrap())
        };
        Record {
            variant: Variant::Full,
            reads: 60,
            acquire_ns: None,
            run: Run::new(lock, &setup, Duration::from_secs(1), &[ops], 0),
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
        .map(|(machine, lock, seed, ops)| record(machine, lock, seed, ops));
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
