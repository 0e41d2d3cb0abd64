//! Who wins where: runs of [`arr`] and [`batch`], compared by one path.
//!
//! Throughputs are medians over equal runs, and a difference within their spreads is a tie.

mod claims;
mod judge;
mod standing;

pub use claims::{CLAIMS, Claim, Place, Quorum, Relation};
pub use judge::{Judgement, Verdict, judge};
pub use standing::{Placed, Standing, standings};

use crate::arr::Variant;
use crate::counters::Rate;
use crate::registry::{Exclusion, exclusion};
use crate::stats::Summary;
use crate::{arr, batch};
use std::fmt;

/// What runs have in common that can be compared: a panel of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// Of ArrBench.
    Arr {
        /// Which ranges are locked.
        variant: Variant,
        /// Of a hundred operations, those that read.
        reads: u8,
    },
    /// Of W1 or W2.
    Batch {
        /// Ranges held together.
        hold: usize,
        /// Ranges in the area.
        ranges: usize,
    },
}

impl fmt::Display for Panel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arr { variant, reads } => write!(f, "{variant} range, {reads} % reads"),
            Self::Batch { hold: 1, .. } => f.write_str("W1, ranges held one at a time"),
            Self::Batch { hold, .. } => write!(f, "W2, {hold} ranges held together"),
        }
    }
}

/// One run, as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What it can be compared with.
    pub panel: Panel,
    /// The lock's name.
    pub lock: String,
    /// Threads.
    pub threads: usize,
    /// Operations per second; or why there are none.
    pub ops_per_sec: Result<f64, String>,
    /// What was counted.
    pub counters: Vec<Rate>,
}

impl From<&arr::Record> for Point {
    fn from(run: &arr::Record) -> Self {
        Self {
            panel: Panel::Arr {
                variant: run.variant,
                reads: run.reads,
            },
            lock: run.lock.clone(),
            threads: run.threads,
            ops_per_sec: Ok(run.ops_per_sec),
            counters: run.counters.clone(),
        }
    }
}

impl From<&batch::Record> for Point {
    fn from(run: &batch::Record) -> Self {
        let why = || run.skipped.clone().unwrap_or_else(|| "not run".to_owned());
        Self {
            panel: Panel::Batch {
                hold: run.hold,
                ranges: run.ranges,
            },
            lock: run.lock.clone(),
            threads: run.threads,
            ops_per_sec: run.ops_per_sec.ok_or_else(why),
            counters: run.counters.clone(),
        }
    }
}

/// All runs that were made.
#[derive(Debug, Clone, PartialEq)]
pub struct Field(Vec<Point>);

impl Field {
    /// Of these runs.
    #[must_use]
    pub fn of<'a, R: 'a>(runs: impl IntoIterator<Item = &'a R>) -> Self
    where
        Point: From<&'a R>,
    {
        Self(runs.into_iter().map(Point::from).collect())
    }

    #[cfg(test)]
    pub(crate) fn of_points(points: impl IntoIterator<Item = Point>) -> Self {
        Self(points.into_iter().collect())
    }

    /// All of them.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.0.iter()
    }

    /// The panels there are.
    #[must_use]
    pub fn panels(&self) -> Vec<Panel> {
        distinct(self.0.iter().map(|point| point.panel))
    }

    /// The runs of a panel.
    pub fn of_panel(&self, panel: Panel) -> impl Iterator<Item = &Point> {
        self.0.iter().filter(move |point| point.panel == panel)
    }

    /// The numbers of threads in a panel.
    #[must_use]
    pub fn threads(&self, panel: Panel) -> Vec<usize> {
        distinct(self.of_panel(panel).map(|point| point.threads))
    }

    /// The locks in a panel.
    #[must_use]
    pub fn locks(&self, panel: Panel) -> Vec<&str> {
        distinct(self.of_panel(panel).map(|point| point.lock.as_str()))
    }

    /// Equal runs.
    pub fn runs(&self, panel: Panel, lock: &str, threads: usize) -> impl Iterator<Item = &Point> {
        self.of_panel(panel)
            .filter(move |point| point.lock == lock && point.threads == threads)
    }

    /// Operations per second, over equal runs; `None` if there are none.
    #[must_use]
    pub fn throughput(&self, panel: Panel, lock: &str, threads: usize) -> Option<Summary> {
        let runs = self.runs(panel, lock, threads);
        Summary::of(runs.filter_map(|point| point.ops_per_sec.as_ref().ok().copied()))
    }
}

/// Whether a lock of that name can be the best: no lock at all cannot.
pub(crate) fn competes(lock: &str) -> bool {
    exclusion(lock) == Exclusion::Promised
}

/// Distinct values, in order of their first appearance.
pub(crate) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Field, Panel, Point, Variant};

    /// A panel of ArrBench.
    pub(crate) const fn arr(variant: Variant, reads: u8) -> Panel {
        Panel::Arr { variant, reads }
    }

    /// Three runs each, a hundredth apart.
    pub(crate) fn field(
        runs: impl IntoIterator<Item = (Panel, &'static str, usize, f64)>,
    ) -> Field {
        let three = |(panel, lock, threads, ops): (Panel, &str, usize, f64)| {
            [0.99, 1.0, 1.01].map(|factor| Point {
                panel,
                lock: lock.to_owned(),
                threads,
                ops_per_sec: Ok(ops * factor),
                counters: Vec::new(),
            })
        };
        Field(runs.into_iter().flat_map(three).collect())
    }
}
