//! Duels: the library's default beside the best of all other locks.

use super::{Contest, Dataset, OURS};
use derive_more::Display;
use spanlock_records::record::{self, Panel};
use spanlock_records::stats::{Order, Summary};

/// A kind of locks.
#[derive(Debug)]
pub struct Kind {
    /// Its name, as a title.
    pub title: &'static str,
    /// Its name in a sentence.
    pub name: &'static str,
    /// What a user of the library gets who chooses nothing, in a word.
    pub choice: &'static str,
    /// The same at the beginning of a sentence.
    pub default: &'static str,
    /// The names of that in runs.
    pub defaults: &'static [&'static str],
    /// What runs beside them and cannot do the same, such as a table without an order beside ordered sets.
    pub aside: &'static [&'static str],
    /// What panels of the kind compare.
    pub of: record::Kind,
}

/// The kinds, one for each group of readers.
pub const KINDS: [Kind; 3] = [
    Kind {
        title: "Range locks",
        name: "range locks",
        choice: OURS,
        default: "slots, which is under RangeLock,",
        defaults: &[OURS],
        aside: &[],
        of: record::Kind::Ranges,
    },
    Kind {
        title: "Reader-writer locks",
        name: "reader-writer locks",
        choice: "bravo-futex",
        default: "bravo-futex, which is under rw::RwLock,",
        defaults: &["bravo-futex"],
        aside: &[],
        of: record::Kind::Whole,
    },
    Kind {
        title: "What is built on them",
        name: "ordered sets, files and address spaces",
        choice: "the default",
        default: "The library's default (range-slots for sets, slots for files, ours for address spaces)",
        defaults: &["range-slots", OURS, "ours"],
        aside: &["dashmap", "plain-file"],
        of: record::Kind::Built,
    },
];

/// The library's default beside the best of all others, in one contest.
#[derive(Debug, Clone, Display)]
#[display("{contest}, {:.2} of {}", self.ratio(), best.0)]
pub struct Duel<'a> {
    /// The contest.
    pub contest: Contest<'a>,
    /// What the default did.
    pub ours: Summary,
    /// The best of the others, and what it did.
    pub best: (&'a str, Summary),
}

impl Duel<'_> {
    /// The default's throughput as a part of the best other lock's.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.ours.median / self.best.1.median
    }

    /// Whether the default is ahead or behind, beyond the spreads, which single runs do not have.
    #[must_use]
    pub fn order(&self) -> Order {
        match self.ours.count.min(self.best.1.count) {
            0 | 1 => Order::Level,
            _ => self.ours.order(&self.best.1),
        }
    }
}

impl Dataset {
    /// The contests in which a kind's default met another lock that got anything done.
    #[must_use]
    pub fn duels<'a>(&'a self, kind: &Kind) -> Vec<Duel<'a>> {
        let duel = |contest: Contest<'a>| {
            let is_ours = |name: &str| kind.defaults.contains(&name);
            let is_aside = |name: &str| kind.aside.contains(&name);
            let find = |wanted: bool| {
                let mut ranked = contest.ranked.iter().copied();
                ranked.find(|(lock, _)| is_ours(&lock.name) == wanted && !is_aside(&lock.name))
            };
            let ((_, ours), (lock, best)) = find(true).zip(find(false))?;
            let best = (lock.name.as_str(), best);
            (best.1.median > 0.0).then_some(Duel {
                contest,
                ours,
                best,
            })
        };
        self.contests(|panel| panel.kind() == kind.of)
            .filter_map(duel)
            .collect()
    }
}

/// How several duels ended.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    /// In how many of them the default was ahead, beyond the spreads.
    pub ahead: usize,
    /// In how many it was within the spreads.
    pub level: usize,
    /// In how many it was behind.
    pub behind: usize,
    /// The one of these in which it did the least, beside the best of the others.
    pub worst: Option<&'a Duel<'a>>,
}

impl<'a> Outcome<'a> {
    /// The outcome of these duels.
    #[must_use]
    pub fn of(duels: &[&'a Duel<'a>]) -> Self {
        let count = |wanted| duels.iter().filter(|duel| duel.order() == wanted).count();
        let lost = duels.iter().filter(|duel| duel.order() == Order::Below);
        Self {
            ahead: count(Order::Above),
            level: count(Order::Level),
            behind: count(Order::Below),
            worst: lost
                .copied()
                .min_by(|one, other| one.ratio().total_cmp(&other.ratio())),
        }
    }
}

/// What threads do in a panel, in a word or two: its workload, and the first of its settings that is a word.
#[must_use]
pub fn workload(panel: Panel) -> String {
    match panel.word() {
        Some(word) => format!("{} {word}", panel.workload()),
        None => panel.workload().to_owned(),
    }
}
