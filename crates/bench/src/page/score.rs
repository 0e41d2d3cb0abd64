//! Which lock leads how often, and where the library's own is behind.

use super::input::Stage;
use crate::compare::{Field, Kind, Panel, distinct, plural};
use crate::registry::OURS;
use crate::stats::{Order, Summary};

/// What users of the library get who choose nothing: `RangeLock` and `rw::RwLock`.
const DEFAULTS: [&str; 2] = [OURS, "bravo-futex"];

/// Kinds of locks, with the workloads that compare them.
const KINDS: [(&str, &[Kind]); 2] = [
    ("range locks", &[Kind::Arr, Kind::Batch]),
    ("reader-writer locks", &[Kind::Rw]),
];

/// Locks of one kind in one place, over all contests: panels by numbers of threads in which two locks ran or more.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// What kind of locks.
    pub of: &'static str,
    /// How many contests there were.
    pub contests: usize,
    /// The locks, those that led most often first.
    pub locks: Vec<Tally>,
    /// Where the library's default is behind, worst first.
    pub losses: Vec<Loss>,
}

/// How one lock did.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Its name.
    pub lock: String,
    /// How often it led.
    pub led: usize,
    /// How often it did not, but was within the spreads.
    pub level: usize,
    /// How often it ran.
    pub ran: usize,
    /// Its throughput as a part of the leader's: the median over contests, and the least.
    pub of_leader: (f64, f64),
}

/// A contest in which a default is behind, beyond the spreads.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// The panel and the number of threads.
    pub place: String,
    /// The lock that led.
    pub leader: String,
    /// The default's throughput as a part of the leader's.
    pub of_leader: f64,
}

/// The locks that compete in one panel with one number of threads, the leader first.
struct Contest<'a> {
    panel: Panel,
    threads: usize,
    locks: Vec<(&'a str, Summary)>,
}

impl Contest<'_> {
    /// A lock's throughput as a part of the leader's, and whether the difference is beyond the spreads.
    fn part(&self, lock: &str) -> Option<(f64, bool)> {
        let (_, leader) = self.locks.first()?;
        let (_, summary) = self.locks.iter().find(|(name, _)| *name == lock)?;
        let is_behind = summary.order(leader) == Order::Below;
        Some((summary.median / leader.median, is_behind))
    }

    fn is_led_by(&self, lock: &str) -> bool {
        self.locks
            .first()
            .is_some_and(|(leader, _)| *leader == lock)
    }
}

/// Of each kind of locks that met in a place.
#[must_use]
pub fn scores(stage: &Stage) -> Vec<Score> {
    let score = |(of, kinds): (&'static str, &[Kind])| {
        let contests = contests(&stage.field, kinds);
        (!contests.is_empty()).then(|| Score {
            of,
            contests: contests.len(),
            locks: tallies(&contests),
            losses: losses(&contests),
        })
    };
    KINDS.into_iter().filter_map(score).collect()
}

fn contests<'a>(field: &'a Field, kinds: &[Kind]) -> Vec<Contest<'a>> {
    let panels = field.panels().into_iter();
    let panels = panels.filter(|panel| kinds.contains(&panel.kind()));
    let places = panels.flat_map(|panel| {
        let threads = field.threads(panel).into_iter();
        threads.map(move |threads| (panel, threads))
    });
    let contest = |(panel, threads): (Panel, usize)| {
        let locks = field.locks(panel).into_iter();
        let locks = locks.filter(|lock| panel.competes(lock));
        let mut locks: Vec<_> = locks
            .filter_map(|lock| Some((lock, field.throughput(panel, lock, threads)?)))
            .collect();
        locks.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
        Contest {
            panel,
            threads,
            locks,
        }
    };
    let contests = places.map(contest);
    contests.filter(|contest| contest.locks.len() > 1).collect()
}

fn tallies(contests: &[Contest<'_>]) -> Vec<Tally> {
    let locks = contests.iter().flat_map(|contest| &contest.locks);
    let tally = |lock: &str| {
        let led = contests
            .iter()
            .filter(|contest| contest.is_led_by(lock))
            .count();
        let parts: Vec<_> = contests
            .iter()
            .filter_map(|contest| contest.part(lock))
            .collect();
        let ahead = parts.iter().filter(|(_, is_behind)| !is_behind).count();
        let ratios = parts.iter().map(|(part, _)| *part);
        Some(Tally {
            lock: lock.to_owned(),
            led,
            level: ahead - led,
            ran: parts.len(),
            of_leader: (
                Summary::of(ratios.clone())?.median,
                ratios.reduce(f64::min)?,
            ),
        })
    };
    let names = distinct(locks.map(|(lock, _)| *lock)).into_iter();
    let mut tallies: Vec<_> = names.filter_map(tally).collect();
    tallies.sort_by(|a, b| {
        let by_median = b.of_leader.0.total_cmp(&a.of_leader.0);
        b.led.cmp(&a.led).then(by_median)
    });
    tallies
}

fn losses(contests: &[Contest<'_>]) -> Vec<Loss> {
    let loss = |contest: &Contest<'_>| {
        let parts = DEFAULTS.iter().filter_map(|lock| contest.part(lock));
        let (of_leader, _) = parts.into_iter().find(|(_, is_behind)| *is_behind)?;
        Some(Loss {
            place: format!("{}, {}", contest.panel, plural(contest.threads)),
            leader: contest.locks.first()?.0.to_owned(),
            of_leader,
        })
    };
    let mut losses: Vec<_> = contests.iter().filter_map(loss).collect();
    losses.sort_by(|a, b| a.of_leader.total_cmp(&b.of_leader));
    losses
}

/// How many losses have a place in a sentence.
const NAMED: usize = 3;

impl Score {
    /// Who led how often.
    #[must_use]
    pub fn winners(&self) -> String {
        let led = self.locks.iter().filter(|tally| tally.led > 0);
        let led: Vec<_> = led
            .map(|tally| format!("{} in {}", tally.lock, tally.led))
            .collect();
        format!(
            "Of {} panels by threads in which {} met, these led: {}.",
            self.contests,
            self.of,
            led.join(", ")
        )
    }

    /// How the library's default did; `None` if it did not run.
    #[must_use]
    pub fn ours(&self) -> Option<String> {
        let is_ours = |tally: &&Tally| DEFAULTS.contains(&tally.lock.as_str());
        let Tally {
            lock,
            led,
            level,
            ran,
            of_leader: (median, _),
        } = self.locks.iter().find(is_ours)?;
        let behind = ran - led - level;
        let mut text = format!(
            "{lock}, the library's default, led in {led} of {ran}, was level with the leader in {level} and behind in \
             {behind}; its throughput was {median:.2} of the leader's in the median."
        );
        if !self.losses.is_empty() {
            let named = self.losses.iter().take(NAMED);
            let named = named.map(|loss| {
                let Loss {
                    place,
                    leader,
                    of_leader,
                } = loss;
                format!("{place}, {of_leader:.2} of {leader}")
            });
            let named: Vec<_> = named.collect();
            text += &format!(" It lost most in: {}.", named.join("; "));
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Loss, Score, Tally};
    use super::{contests, losses, scores, tallies};
    use crate::arr::Variant;
    use crate::compare::Kind;
    use crate::compare::tests::{arr, field};

    #[test]
    fn who_leads_and_where_the_default_is_behind() {
        let (full, disjoint) = (arr(Variant::Full, 80), arr(Variant::Disjoint, 80));
        let field = field([
            (full, "list-rw", 1, 4e6),
            (full, "kernel-rw", 1, 2e6),
            (full, "null", 1, 9e6),
            (full, "list-rw", 2, 1e6),
            (full, "kernel-rw", 2, 4e6),
            (disjoint, "list-rw", 2, 1.999e6),
            (disjoint, "kernel-rw", 2, 2e6),
            (disjoint, "list-rw", 4, 2e6), // alone: no contest
        ]);
        let contests = contests(&field, &[Kind::Arr]);
        let tally = |lock: &str, [led, level]: [usize; 2], of_leader| Tally {
            lock: lock.to_owned(),
            led,
            level,
            ran: 3,
            of_leader,
        };
        let kernel = tally("kernel-rw", [2, 0], (1.0, 0.5));
        let list = tally("list-rw", [1, 1], (0.9995, 0.25));
        assert_eq!(tallies(&contests), [kernel, list]);
        let loss = Loss {
            place: "full range, 80 % reads, 2 threads".to_owned(),
            leader: "kernel-rw".to_owned(),
            of_leader: 0.25,
        };
        assert_eq!(losses(&contests), [loss]);
        let stage = super::Stage {
            ground: super::super::input::Ground::Real {
                machine: String::new(),
                cores: 4,
            },
            field,
            distributions: Vec::new(),
        };
        let all = scores(&stage);
        let [score] = &all[..] else { panic!("{all:?}") };
        let words = [Some(Score::winners(score)), score.ours()].map(Option::unwrap);
        assert_eq!(
            words[0],
            "Of 3 panels by threads in which range locks met, these led: kernel-rw in 2, list-rw in 1."
        );
        assert!(words[1].contains("led in 1 of 3, was level with the leader in 1 and behind in 1"));
        assert!(
            words[1].ends_with(
                "It lost most in: full range, 80 % reads, 2 threads, 0.25 of kernel-rw."
            )
        );
    }
}
