//! Findings as records: the best lock of each family, rankings on other machines, and judged claims.

use crate::stats::distinct;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The families of locks in one panel at one number of threads, best first: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The panel.
    pub panel: String,
    /// Threads.
    pub threads: usize,
    /// Where the runs were made, among those of several places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The best lock of each family.
    pub families: Vec<Placed>,
}

/// The best lock of a family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// The family.
    pub family: String,
    /// The lock.
    pub lock: String,
    /// Operations per second: the median.
    pub ops_per_sec: f64,
    /// Half the distance between extremes, as a fraction of the median.
    pub spread: f64,
    /// The number of equal runs; a single run has no spread. 0 in lines of an older program, which lack it.
    #[serde(default)]
    pub repeats: usize,
    /// The median as a fraction of the leader's.
    pub of_leader: f64,
    /// Whether the difference to the leader is beyond the spreads.
    pub behind: bool,
}

/// The order of locks in one panel at one number of threads, and its changes on other machines: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The panel.
    pub panel: String,
    /// Virtual threads.
    pub threads: usize,
    /// The machine with this order.
    pub machine: String,
    /// The locks, best first.
    pub order: Vec<Ranked>,
    /// The pairs that are not level.
    pub pairs: usize,
    /// The number of other machines.
    pub machines: usize,
    /// The pairs whose order is reversed on another machine.
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

/// Two locks whose order is reversed on another machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swap {
    /// The better one.
    pub above: String,
    /// The other one.
    pub below: String,
    /// Its throughput as a multiple of the other's.
    pub times: f64,
    /// The machine with the reversed order.
    pub machine: String,
    /// The same multiple there: less than one.
    pub times_there: f64,
}

impl fmt::Display for Ranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order: Vec<_> = self
            .order
            .iter()
            .map(|ranked| ranked.lock.as_str())
            .collect();
        let pair = |swap: &Swap| (swap.above.clone(), swap.below.clone());
        let swapped = distinct(self.swaps.iter().map(pair));
        let (panel, order) = (&self.panel, order.join(" > "));
        write!(f, "{panel}, threads: {}: {order}", self.threads)?;
        let (pairs, machines) = (self.pairs, self.machines);
        let kept = pairs - swapped.len();
        write!(
            f,
            "\n    {kept} of {pairs} pairs keep their order on {machines} other machines"
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

/// The verdict of measurements on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It holds.
    #[serde(rename = "holds")]
    Holds,
    /// It does not.
    #[serde(rename = "fails")]
    Fails,
    /// These measurements, or this machine, do not decide.
    #[serde(rename = "cannot tell")]
    CannotTell,
}

/// A judged claim: a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The paper and section.
    pub source: String,
    /// Our words for the statement.
    pub says: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The figures, or why there are none.
    pub because: String,
    /// Where the runs were made, among those of several places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
