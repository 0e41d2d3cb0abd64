//! Comparisons: the fastest locks, and whether the papers' claims hold. One path serves all workloads.
//!
//! | module | what it does |
//! |---|---|
//! | `dataset` | holds all runs, as they are compared |
//! | `contest` | ranks the locks of one panel at one number of threads |
//! | `duel` | sets the library's default beside the best of the others |
//! | `certainty` | says how sure that is |
//! | `standing` | finds the best lock of each family |
//! | `ranking` | finds the orders of locks that survive on other machines |
//! | `claims` | lists the papers' statements: data alone |
//! | `judge` | decides whether a claim holds here |
//!
//! Throughputs are medians over equal runs, and a difference within their spreads is a tie. A new claim is an entry in
//! `claims`; a rule for all claims belongs into `judge`.

mod certainty;
mod claims;
mod contest;
mod dataset;
mod duel;
mod judge;
mod ranking;
mod standing;

pub use certainty::{Certainty, Shares, busy};
pub use claims::{Claim, Figure, Paper, Place, Quorum, Relation, claims, figures, papers};
pub use contest::{Contest, Lag};
pub use dataset::{Dataset, Point};
pub use duel::{Duel, KINDS, Kind, Outcome, workload};
pub use judge::judge;
pub use ranking::{LEVEL, rankings};
pub use standing::standings;

/// The default range lock.
pub const OURS: &str = "slots";

#[cfg(test)]
pub(crate) mod tests {
    use super::{Dataset, Point};
    use serde_json::json;
    use spanlock_records::record::lock::Lock;
    use spanlock_records::record::{Kind, Panel, Record};

    /// A panel of ArrBench.
    pub(crate) fn arr(variant: &str, reads: u8) -> Panel {
        let says = format!("{variant} range, {reads} % reads");
        let settings = json!({ "variant": variant, "reads": reads });
        Panel::new("arr", Kind::Ranges, &says, &settings)
    }

    /// A run of a lock.
    pub(crate) fn record(panel: Panel, lock: &str, threads: usize, ops: f64) -> Record {
        Record {
            ops_per_sec: Some(ops),
            ..Record::new(panel, Lock::named(lock), threads, 1)
        }
    }

    /// Three runs each, a hundredth apart.
    pub(crate) fn records(
        runs: impl IntoIterator<Item = (Panel, &'static str, usize, f64)>,
    ) -> Vec<Record> {
        let three = |(panel, lock, threads, ops): (Panel, &str, usize, f64)| {
            [0.99, 1.0, 1.01].map(|factor| record(panel, lock, threads, ops * factor))
        };
        runs.into_iter().flat_map(three).collect()
    }

    /// The same of one panel, as a list of locks, threads and operations per second: `lock 2 1e6, …`.
    pub(crate) fn listed(panel: Panel, runs: &'static str) -> Vec<Record> {
        records(runs.split(", ").map(|run| {
            let [lock, threads, ops] = run.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{run}")
            };
            (panel, lock, threads.parse().unwrap(), ops.parse().unwrap())
        }))
    }

    /// The same as [`records`], as they are compared.
    pub(crate) fn dataset(
        runs: impl IntoIterator<Item = (Panel, &'static str, usize, f64)>,
    ) -> Dataset {
        Dataset::of(&records(runs))
    }

    /// Has the runs of these locks say that they are of one family.
    pub(crate) fn make_family(data: &mut Dataset, family: &str, locks: &[&str]) {
        let of_them = |point: &&mut Point| locks.contains(&point.lock.name.as_str());
        for point in data.0.iter_mut().filter(of_them) {
            point.lock.family = family.to_owned();
        }
    }
}
