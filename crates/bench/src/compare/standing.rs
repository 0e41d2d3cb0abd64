//! The best of each family of locks, panel by panel.

use super::{Field, Kind, Panel, distinct};
use crate::stats::Order;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// The families of locks in one panel at one number of threads, best first: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The panel.
    pub panel: String,
    /// Threads.
    pub threads: usize,
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
    /// Equal runs that these are of: one has no spread. 0 in lines of an older program, which do not tell.
    #[serde(default)]
    pub repeats: usize,
    /// The median as a fraction of the leader's.
    pub of_leader: f64,
    /// Whether the difference to the leader is beyond the spreads.
    pub behind: bool,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { panel, threads, .. } = self;
        let threads = plural(*threads);
        let Some((leader, rest)) = self.families.split_first() else {
            return write!(f, "{panel}, {threads}: no lock ran");
        };
        let Placed {
            lock,
            ops_per_sec,
            spread,
            repeats,
            ..
        } = leader;
        write!(
            f,
            "{panel}, {threads}: {lock} leads, {:.3}",
            ops_per_sec / 1e6
        )?;
        if *repeats != 1 {
            write!(f, " ±{:.0}%", spread * 100.0)?;
        }
        for (word, behind) in [("level with it", false), ("behind", true)] {
            let mut names = String::new();
            for placed in rest.iter().filter(|placed| placed.behind == behind) {
                let comma = if names.is_empty() { "" } else { "," };
                write!(names, "{comma} {} {:.2}", placed.lock, placed.of_leader)?;
            }
            if !names.is_empty() {
                write!(f, "; {word}:{names}")?;
            }
        }
        Ok(())
    }
}

/// So many threads, in words.
#[must_use]
pub fn plural(threads: usize) -> String {
    match threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }
}

/// The standings of all panels in which more is better.
#[must_use]
pub fn standings(field: &Field) -> Vec<Standing> {
    let panels = field.panels().into_iter();
    panels
        .filter(|panel| !matches!(panel.kind(), Kind::Latency | Kind::Micro))
        .flat_map(|panel| {
            let threads = field.threads(panel).into_iter();
            threads.map(move |threads| standing(field, panel, threads))
        })
        .collect()
}

fn standing(field: &Field, panel: Panel, threads: usize) -> Standing {
    let mut measured: Vec<_> = field
        .locks(panel)
        .into_iter()
        .filter(|lock| panel.competes(lock))
        .filter_map(|lock| Some((lock, field.throughput(panel, lock, threads)?)))
        .collect();
    measured.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
    let leader = measured.first().map(|&(_, summary)| summary);
    let families = distinct(measured.iter().map(|(lock, _)| panel.family(lock)));
    let best = families.into_iter().filter_map(|name| {
        let (lock, summary) = measured
            .iter()
            .find(|(lock, _)| panel.family(lock) == name)?;
        let leader = leader?;
        Some(Placed {
            family: name.to_owned(),
            lock: (*lock).to_owned(),
            ops_per_sec: summary.median,
            spread: summary.spread,
            repeats: summary.count,
            of_leader: summary.median / leader.median,
            behind: summary.order(&leader) == Order::Below,
        })
    });
    Standing {
        panel: panel.to_string(),
        threads,
        families: best.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::standings;
    use crate::arr::Variant;
    use crate::compare::tests::{arr, field};

    #[test]
    fn families_are_placed_by_their_best_and_ties_are_told_apart() {
        let at = arr(Variant::Full, 80);
        let field = field([
            (at, "kernel-rw", 2, 1.00e6),
            (at, "list-rw-of-a-kind", 2, 2.5e6),
            (at, "lustre-ex", 2, 1.50e6),
            (at, "list-ex", 2, 1.0e6),
            (at, "list-rw", 2, 2.99e6),
            (at, "song:h=2", 2, 3.00e6),
            (at, "song", 2, 2.9e6),
            (at, "null", 2, 9e6),
        ]);
        let all = standings(&field);
        let [standing] = &all[..] else {
            panic!("{all:?}")
        };
        let places: Vec<_> = standing
            .families
            .iter()
            .map(|placed| (placed.lock.as_str(), placed.behind))
            .collect();
        let expected = [("song:h=2", false), ("list-rw", false), ("lustre-ex", true)];
        assert_eq!(places, expected);
        assert_eq!(
            standing.to_string(),
            "full range, 80 % reads, 2 threads: song:h=2 leads, 3.000 ±1%; level with it: list-rw 1.00; \
             behind: lustre-ex 0.50"
        );
    }
}
