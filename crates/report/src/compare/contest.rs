//! Contests: the locks that compete in one panel with one number of threads.

use super::Dataset;
use derive_more::Display;
use spanlock_records::record::lock::Lock;
use spanlock_records::record::{Panel, plural};
use spanlock_records::stats::{Order, Summary};

/// The competing locks of one panel with one number of threads.
#[derive(Debug, Display, Clone)]
#[display("{panel}, {}", plural(*threads))]
pub struct Contest<'a> {
    /// The panel.
    pub panel: Panel,
    /// Threads.
    pub threads: usize,
    /// The locks and their throughputs, the leader first.
    pub ranked: Vec<(&'a Lock, Summary)>,
}

/// How a lock stands to the leader of a contest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lag {
    /// Its throughput as a part of the leader's.
    pub of_leader: f64,
    /// Whether it is behind, beyond the spreads.
    pub behind: bool,
}

impl Contest<'_> {
    /// The leader's name.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        Some(self.ranked.first()?.0.name.as_str())
    }

    /// How a throughput stands to the leader's. Where nobody completed an operation, all are level.
    #[must_use]
    pub fn lag(&self, summary: &Summary) -> Option<Lag> {
        let (_, leader) = self.ranked.first()?;
        let of_leader = summary.median / leader.median;
        Some(Lag {
            of_leader: if of_leader.is_nan() { 1.0 } else { of_leader },
            behind: summary.order(leader) == Order::Below,
        })
    }

    /// How a lock stands to the leader; `None` if it did not compete.
    #[must_use]
    pub fn lag_of(&self, lock: &str) -> Option<Lag> {
        let found = self.ranked.iter().find(|(one, _)| one.name == lock);
        self.lag(&found?.1)
    }
}

/// For captions.
impl Dataset {
    /// The contests of these panels.
    pub fn contests(&self, has: impl Fn(Panel) -> bool) -> impl Iterator<Item = Contest<'_>> {
        let cells = self.cells().into_iter();
        let cells = cells.filter(move |(panel, _)| has(*panel));
        cells.map(|(panel, threads)| Contest {
            panel,
            threads,
            ranked: self.ranked(panel, threads),
        })
    }

    /// Each panel with each number of threads that ran in it.
    #[must_use]
    pub fn cells(&self) -> Vec<(Panel, usize)> {
        let panels = self.panels().into_iter();
        let cells = panels.flat_map(|panel| {
            let threads = self.threads(panel).into_iter();
            threads.map(move |threads| (panel, threads))
        });
        cells.collect()
    }
}
