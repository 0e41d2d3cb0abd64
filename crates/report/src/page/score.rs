//! How often each lock leads, and where the library's default is behind.

use crate::compare::{Contest, Dataset, KINDS, Kind};
use spanlock_records::stats::{Summary, distinct};

/// How many losses a sentence names.
const NAMED: usize = 3;

/// Locks of one kind in one place, over all contests of two locks or more.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// What kind of locks.
    pub of: &'static str,
    /// How many contests there were.
    pub contests: usize,
    /// The locks, by how often they led.
    pub locks: Vec<Tally>,
    /// Where the library's default is behind, beyond the spreads, the worst first: its throughput as a part of the
    /// leader's, and the contest with the leader.
    pub losses: Vec<(f64, String)>,
}

/// How one lock did.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Its name.
    pub lock: String,
    /// How often it led.
    pub led: usize,
    /// How often it did not lead, but was within the spreads.
    pub level: usize,
    /// How often it was behind.
    pub behind: usize,
    /// Its throughput as a part of the leader's: the median over contests.
    pub median: f64,
    /// The least.
    pub least: f64,
}

fn defaults() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.defaults).copied()
}

/// The score of each kind of locks that met in a place.
#[must_use]
pub fn scores(data: &Dataset) -> Vec<Score> {
    let score = |kind: &Kind| {
        let contests = data.contests(|panel| panel.kind() == kind.of);
        let contests: Vec<_> = contests.filter(|one| one.ranked.len() > 1).collect();
        (!contests.is_empty()).then(|| Score {
            of: kind.name,
            contests: contests.len(),
            locks: tallies(&contests),
            losses: losses(&contests),
        })
    };
    KINDS.iter().filter_map(score).collect()
}

fn tallies(contests: &[Contest<'_>]) -> Vec<Tally> {
    let tally = |lock: &str| {
        let here = contests.iter();
        let led = here.filter(|one| one.leader() == Some(lock)).count();
        let lags: Vec<_> = contests.iter().filter_map(|one| one.lag_of(lock)).collect();
        let behind = lags.iter().filter(|lag| lag.behind).count();
        let parts = lags.iter().map(|lag| lag.of_leader);
        Some(Tally {
            lock: lock.to_owned(),
            led,
            level: lags.len() - led - behind,
            behind,
            median: Summary::of(parts.clone())?.median,
            least: parts.reduce(f64::min)?,
        })
    };
    let names = contests.iter().flat_map(|one| &one.ranked);
    let names = distinct(names.map(|(lock, _)| lock.name.as_str())).into_iter();
    let mut tallies: Vec<_> = names.filter_map(tally).collect();
    tallies.sort_by(|a, b| b.led.cmp(&a.led).then(b.median.total_cmp(&a.median)));
    tallies
}

fn losses(contests: &[Contest<'_>]) -> Vec<(f64, String)> {
    let loss = |one: &Contest<'_>| {
        let mut lags = defaults().filter_map(|lock| one.lag_of(lock));
        let lag = lags.find(|lag| lag.behind)?.of_leader;
        Some((lag, format!("{one}, {lag:.2} of {}", one.leader()?)))
    };
    let mut losses: Vec<_> = contests.iter().filter_map(loss).collect();
    losses.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    losses
}

impl Score {
    /// What its table shows.
    #[must_use]
    pub fn caption(&self, place: &str) -> String {
        let Self { of, contests, .. } = self;
        format!("{place}: {of} in {contests} panels by threads")
    }

    /// Which locks led, and how often.
    #[must_use]
    pub fn leaders(&self) -> String {
        let led = self.locks.iter().filter(|tally| tally.led > 0);
        let led = led.map(|tally| format!("{} in {}", tally.lock, tally.led));
        let led: Vec<_> = led.collect();
        format!(
            "Of {} panels by threads in which {} met, these led: {}.",
            self.contests,
            self.of,
            led.join(", ")
        )
    }

    /// How the library's default did; empty if it did not run.
    #[must_use]
    pub fn default(&self) -> String {
        let is_default = |tally: &&Tally| defaults().any(|lock| lock == tally.lock);
        let Some(tally) = self.locks.iter().find(is_default) else {
            return String::new();
        };
        let Tally {
            lock,
            led,
            level,
            behind,
            ..
        } = tally;
        let ran = led + level + behind;
        let losses = self.losses.iter().map(|(_, loss)| loss.as_str());
        let worst: Vec<_> = losses.take(NAMED).collect();
        let lost = match worst[..] {
            [] => String::new(),
            _ => format!(" It lost most in: {}.", worst.join("; ")),
        };
        format!(
            "{lock}, the library's default, led in {led} of {ran}, was level with the leader in {level} and behind in \
             {behind}.{lost}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Tally, scores};
    use crate::compare::tests::{arr, dataset};

    #[test]
    fn the_leader_and_where_the_default_is_behind() {
        let (full, disjoint) = (arr("full", 80), arr("disjoint", 80));
        let of = |lock, runs: &[_]| {
            let runs = runs.iter();
            let runs =
                runs.map(move |&(panel, threads, ops): &(_, _, _)| (panel, lock, threads, ops));
            runs.collect::<Vec<_>>()
        };
        let alone = (disjoint, 4, 2e6); // no contest
        let list = [
            (full, 1, 4e6),
            (full, 2, 1e6),
            (disjoint, 2, 1.999e6),
            alone,
        ];
        let kernel = [(full, 1, 2e6), (full, 2, 4e6), (disjoint, 2, 2e6)];
        let all = [
            of("slots", &list),
            of("kernel-rw", &kernel),
            of("null", &[(full, 1, 9e6)]),
        ];
        let data = dataset(all.concat());
        let all = scores(&data);
        let [score] = &all[..] else { panic!("{all:?}") };
        let tally =
            |lock: &str, [led, level, behind]: [usize; 3], [median, least]: [f64; 2]| Tally {
                lock: lock.to_owned(),
                led,
                level,
                behind,
                median,
                least,
            };
        let kernel = tally("kernel-rw", [2, 0, 1], [1.0, 0.5]);
        let list = tally("slots", [1, 1, 1], [0.9995, 0.25]);
        assert_eq!(score.locks, [kernel, list]);
        let loss = "full range, 80 % reads, 2 threads, 0.25 of kernel-rw";
        assert_eq!(score.losses, [(0.25, loss.to_owned())]);
        let text = [score.leaders(), score.default()].join(" ");
        for wanted in [
            "Of 3 panels by threads in which range locks met, these led: kernel-rw in 2, slots in 1. slots, ",
            "led in 1 of 3, was level with the leader in 1 and behind in 1. ",
            &format!("It lost most in: {loss}."),
        ] {
            assert!(text.contains(wanted), "{text}");
        }
    }
}
