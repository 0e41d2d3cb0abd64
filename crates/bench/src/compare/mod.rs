//! Who wins where: runs of all workloads, compared by one path.
//!
//! Throughputs are medians over equal runs, and a difference within their spreads is a tie.

mod claims;
mod judge;
mod standing;

pub use claims::{Claim, Place, Quorum, Relation, claims};
pub use judge::{Judgement, Open, Verdict, judge, judge_and_say};
pub use standing::{Placed, Standing, plural, standings};

use crate::arr::Variant;
use crate::counters::Rate;
use crate::registry::{self, Exclusion};
use crate::rw::{self, Load};
use crate::stats::Summary;
use crate::{arr, batch, micro};
use std::fmt;

/// What runs have in common that can be compared: a panel of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// Of a workload of reader-writer locks.
    Rw(Load),
    /// The longest acquisition: nanoseconds.
    Longest(Phase),
    /// Microbenchmarks: each is a lock.
    Micro,
}

/// Which acquisitions of a part of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The first.
    First,
    /// Those after.
    Again,
}

impl Phase {
    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first acquisitions",
            Self::Again => "later acquisitions",
        }
    }
}

/// Workloads whose panels are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// ArrBench.
    Arr,
    /// W1 and W2.
    Batch,
    /// Workloads of reader-writer locks.
    Rw,
    /// How long acquisitions take.
    Latency,
    /// Microbenchmarks.
    Micro,
}

impl Panel {
    /// Which workload it is of.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Arr { .. } => Kind::Arr,
            Self::Batch { .. } => Kind::Batch,
            Self::Rw(_) => Kind::Rw,
            Self::Longest(_) => Kind::Latency,
            Self::Micro => Kind::Micro,
        }
    }

    /// Threads there are beside those that are counted.
    pub(crate) const fn more_threads(self) -> usize {
        match self {
            Self::Rw(load) => load.more_threads(),
            _ => 0,
        }
    }

    /// What a lock of that name claims here.
    fn exclusion(self, lock: &str) -> Exclusion {
        match self {
            Self::Rw(_) => rw::locks::exclusion(lock),
            _ => registry::exclusion(lock),
        }
    }

    /// Whether a lock of that name can be the best: no lock at all cannot, nor another's control.
    pub(crate) fn competes(self, lock: &str) -> bool {
        let is_control = matches!(self, Self::Rw(_)) && rw::locks::is_control(lock);
        self.exclusion(lock) == Exclusion::Promised && !is_control
    }

    /// Of a lock of that name; one that is not registered is its own.
    fn family(self, lock: &str) -> &str {
        match self {
            Self::Rw(_) => {
                let over = rw::locks::find(lock).and_then(|lock| lock.over);
                over.map_or(lock, |over| over.lock)
            }
            _ => {
                // Some forms are only simulated: `list-rw-writers` is of the family of `list-rw`.
                let ends = lock
                    .char_indices()
                    .filter(|(_, letter)| *letter == '-')
                    .map(|(at, _)| at);
                let names = ends.chain([lock.len()]).map(|end| &lock[..end]).rev();
                let mut known = names.filter_map(registry::find);
                known.next().map_or(lock, |lock| lock.family)
            }
        }
    }
}

impl fmt::Display for Panel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arr { variant, reads } => write!(f, "{variant} range, {reads} % reads"),
            Self::Batch { hold: 1, .. } => f.write_str("W1, ranges held one at a time"),
            Self::Batch { hold, .. } => write!(f, "W2, {hold} ranges held together"),
            Self::Rw(load) => load.fmt(f),
            Self::Longest(phase) => write!(f, "the longest of {}", phase.name()),
            Self::Micro => f.write_str("microbenchmarks"),
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
    /// Operations per second, or what else the panel is of; or why there is none.
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

impl From<&rw::Record> for Point {
    fn from(run: &rw::Record) -> Self {
        Self {
            panel: Panel::Rw(run.load),
            lock: run.lock.clone(),
            threads: run.threads,
            ops_per_sec: Ok(run.ops_per_sec),
            counters: Vec::new(),
        }
    }
}

impl From<&micro::Record> for Point {
    fn from(run: &micro::Record) -> Self {
        Self {
            panel: Panel::Micro,
            lock: run.lock.name().to_owned(),
            threads: run.threads,
            ops_per_sec: Ok(run.ops_per_sec),
            counters: Vec::new(),
        }
    }
}

/// All runs that were made.
#[derive(Debug, Clone, Default, PartialEq)]
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

    /// One more.
    pub fn add(&mut self, point: Point) {
        self.0.push(point);
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

    /// What was measured, over equal runs; `None` if there are none.
    #[must_use]
    pub fn throughput(&self, panel: Panel, lock: &str, threads: usize) -> Option<Summary> {
        let runs = self.runs(panel, lock, threads);
        Summary::of(runs.filter_map(|point| point.ops_per_sec.as_ref().ok().copied()))
    }
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
