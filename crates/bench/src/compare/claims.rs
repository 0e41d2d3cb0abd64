//! What the papers say of these workloads, as data.
//!
//! P1's list locks have neither fast path nor fairness, and P3's tree no fairness; ours stand for them with both. Of the
//! thesis' levels (P4) each has half of the nodes of the one below, of ours a quarter: so half as many do the same. P1
//! set pnova-rw to 256 segments of a slot each, as it is made here. Where a paper's words have no number ("almost
//! linearly"), [`Relation`] has ours.

use super::Panel;
use crate::arr::Variant;

/// From the first to the last, both included.
type Span<T> = (T, T);

/// A statement of a paper that measurements can decide.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// Which paper and section.
    pub source: &'static str,
    /// What it says, in our words.
    pub says: &'static str,
    /// Where it says so.
    pub place: Place,
    /// The numbers of threads it speaks of; each is taken to have a processor.
    pub threads: Span<usize>,
    /// What must hold there.
    pub relation: Relation,
    /// In how many places.
    pub quorum: Quorum,
}

/// Some panels.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// Of ArrBench, with these shares of reads.
    Arr(Variant, Span<u8>),
    /// W1.
    W1,
    /// W2.
    W2,
}

impl Place {
    /// Whether a panel is one of them.
    #[must_use]
    pub fn has(self, panel: Panel) -> bool {
        match (self, panel) {
            (Self::Arr(wanted, (least, most)), Panel::Arr { variant, reads }) => {
                wanted == variant && (least..=most).contains(&reads)
            }
            (Self::W1, Panel::Batch { hold, .. }) => hold == 1,
            (Self::W2, Panel::Batch { hold, .. }) => hold > 1,
            (Self::Arr(..), Panel::Batch { .. }) | (Self::W1 | Self::W2, Panel::Arr { .. }) => {
                false
            }
        }
    }
}

/// What must hold between throughputs.
#[derive(Debug, Clone, Copy)]
pub enum Relation {
    /// Each of some locks does more than so many times as much as each of others.
    Above(&'static [&'static str], &'static [&'static str], f64),
    /// Each of some locks does so much as each of others, up to this factor.
    Alike(&'static [&'static str], &'static [&'static str], f64),
    /// So many threads do more than the next smaller number of them, by each lock.
    Rises(&'static [&'static str]),
    /// Each thread adds at least this part of what one alone does.
    Linear(&'static [&'static str], f64),
    /// So many threads do at most this much more than one, by each lock.
    Flat(&'static [&'static str], f64),
    /// So many threads do less than this number of them, by each lock.
    Falls(&'static [&'static str], usize),
}

impl Relation {
    /// The locks it compares, and those with which, if they are others.
    #[must_use]
    pub fn locks(&self) -> (&'static [&'static str], &'static [&'static str]) {
        match *self {
            Self::Above(some, others, _) | Self::Alike(some, others, _) => (some, others),
            Self::Rises(locks)
            | Self::Linear(locks, _)
            | Self::Flat(locks, _)
            | Self::Falls(locks, _) => (locks, &[]),
        }
    }
}

/// Where it must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quorum {
    /// Everywhere.
    All,
    /// In more than half of all places.
    Most,
    /// Somewhere.
    Some,
}

const FULL: Place = Place::Arr(Variant::Full, (60, 100));
const DISJOINT: Place = Place::Arr(Variant::Disjoint, (60, 100));
const RANDOM: Place = Place::Arr(Variant::Random, (60, 100));
const READERS: Place = Place::Arr(Variant::Disjoint, (100, 100));

/// "Almost linearly": each thread adds this much.
const ALMOST: f64 = 0.8;
/// "Does not scale": no more than this, for some of the work is outside the lock.
const HARDLY: f64 = 1.2;
/// "Similar": up to this factor.
const SIMILAR: f64 = 1.1;

/// All of them.
pub static CLAIMS: &[Claim] = &[
    Claim {
        source: "P1 §7.1, Fig. 3 (a, b)",
        says: "on the full range, lustre-ex does not scale at all",
        place: FULL,
        threads: (2, 40),
        relation: Relation::Flat(&["lustre-ex"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (a, b)",
        says: "on the full range, list-ex scales to a few threads, as there is work outside the lock",
        place: FULL,
        threads: (2, 4),
        relation: Relation::Rises(&["list-ex"]),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (a, b)",
        says: "on the full range, list-ex is mostly above kernel-rw, though that lets readers share",
        place: FULL,
        threads: (2, 40),
        relation: Relation::Above(&["list-ex"], &["kernel-rw"], 1.0),
        quorum: Quorum::Most,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (a, b)",
        says: "on the full range, segment locks do not scale: each acquisition takes all segments",
        place: FULL,
        threads: (2, 40),
        relation: Relation::Flat(&["pnova-rw"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (a, b)",
        says: "on the full range, list-rw scales with most numbers of threads",
        place: FULL,
        threads: (2, 40),
        relation: Relation::Rises(&["list-rw"]),
        quorum: Quorum::Most,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (c, d)",
        says: "on disjoint ranges, all scale almost linearly up to 4 to 8 threads",
        place: DISJOINT,
        threads: (2, 4),
        relation: Relation::Linear(
            &["lustre-ex", "kernel-rw", "list-ex", "list-rw", "pnova-rw"],
            ALMOST,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (c, d)",
        says: "on disjoint ranges, lustre-ex and kernel-rw degrade beyond 8 threads",
        place: DISJOINT,
        threads: (9, 40),
        relation: Relation::Falls(&["lustre-ex", "kernel-rw"], 8),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (c, d)",
        says: "on disjoint ranges, list-ex and list-rw scale with all numbers of threads",
        place: DISJOINT,
        threads: (2, 40),
        relation: Relation::Rises(&["list-ex", "list-rw"]),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (c, d)",
        says: "on disjoint ranges, segment locks top the charts",
        place: DISJOINT,
        threads: (2, 40),
        relation: Relation::Above(
            &["pnova-rw"],
            &["lustre-ex", "kernel-rw", "list-ex", "list-rw"],
            1.0,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (e, f)",
        says: "on random ranges, lustre-ex does not scale",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::Flat(&["lustre-ex"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (e, f)",
        says: "on random ranges, kernel-rw scales to a few threads",
        place: RANDOM,
        threads: (2, 4),
        relation: Relation::Rises(&["kernel-rw"]),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (e, f)",
        says: "on random ranges, list-ex is above kernel-rw, though exclusive",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::Above(&["list-ex"], &["kernel-rw"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (e, f)",
        says: "on random ranges, segment locks do poorly: below list-rw",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::Above(&["list-rw"], &["pnova-rw"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: "P1 §7.1, Fig. 3 (e, f)",
        says: "on random ranges, list-rw is above all others",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::Above(
            &["list-rw"],
            &["lustre-ex", "kernel-rw", "list-ex", "pnova-rw"],
            1.0,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: "P3 §VI-C, Fig. 12 (a)",
        says: "writers of their own parts do as much by SRL(tree) as by SRL(array), once segments exist",
        place: Place::W1,
        threads: (1, 56),
        relation: Relation::Alike(&["srl-tree"], &["srl-array"], SIMILAR),
        quorum: Quorum::All,
    },
    Claim {
        source: "P3 §VI-C, Fig. 12 (a)",
        says: "writers of their own parts do the same by segment locks and by an interval tree up to 8 threads",
        place: Place::W1,
        threads: (1, 8),
        relation: Relation::Alike(&["srl-array", "srl-tree"], &["kernel-rw"], SIMILAR),
        quorum: Quorum::All,
    },
    Claim {
        source: "P3 §VI-C, Fig. 12 (b)",
        says: "readers of their own parts do not scale with an interval tree",
        place: READERS,
        threads: (2, 56),
        relation: Relation::Flat(&["kernel-rw"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: "P3 §VI-C, Fig. 12 (b)",
        says: "readers of their own parts scale with segment locks",
        place: READERS,
        threads: (2, 56),
        relation: Relation::Rises(&["srl-array", "srl-tree"]),
        quorum: Quorum::All,
    },
    Claim {
        source: "P4 §4.3.3, Fig. 4.2",
        says: "in W1, the skip list's lock is above the list's and Song's",
        place: Place::W1,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex"], &["list-ex", "song"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: "P4 §4.3.3, Fig. 4.2",
        says: "in W1, the skip list's lock reaches four times the list's",
        place: Place::W1,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex"], &["list-ex"], 4.0),
        quorum: Quorum::Some,
    },
    Claim {
        source: "P4 §4.3.3, Fig. 4.2",
        says: "in W1, the skip list's lock reaches twelve times Song's",
        place: Place::W1,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex"], &["song"], 12.0),
        quorum: Quorum::Some,
    },
    Claim {
        source: "P4 §4.3.3, Fig. 4.2",
        says: "in W1, Song's lock is below the list's: all meet at its spin lock",
        place: Place::W1,
        threads: (2, 32),
        relation: Relation::Above(&["list-ex"], &["song"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: "P4 §4.3.3, Fig. 4.3",
        says: "in W2, the skip list's lock does at least twice as much as the list's and Song's",
        place: Place::W2,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex"], &["list-ex", "song"], 2.0),
        quorum: Quorum::All,
    },
    Claim {
        source: "P4 §4.3.3, Fig. 4.3",
        says: "in W2, Song's lock is above the list's up to 16 threads",
        place: Place::W2,
        threads: (1, 16),
        relation: Relation::Above(&["song"], &["list-ex"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: "P4 §4.3.3, Fig. 4.3",
        says: "in W2, the list's lock is above Song's beyond 16 threads",
        place: Place::W2,
        threads: (17, 32),
        relation: Relation::Above(&["list-ex"], &["song"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: "P4 §4.3.2, Fig. 4.1",
        says: "in W1, the skip list's height does not matter",
        place: Place::W1,
        threads: (1, 32),
        relation: Relation::Alike(&["skip-ex:h=2", "skip-ex:h=3"], &["skip-ex:h=5"], SIMILAR),
        quorum: Quorum::All,
    },
    Claim {
        source: "P4 §4.3.2, Fig. 4.1",
        says: "in W2, ten levels (here five) are better than few",
        place: Place::W2,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex:h=5"], &["skip-ex:h=1", "skip-ex:h=2"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: "P4 §4.3.2, Fig. 4.1",
        says: "in W2, more than ten levels (here five) are no better than ten",
        place: Place::W2,
        threads: (1, 32),
        relation: Relation::Alike(&["skip-ex:h=6", "skip-ex:h=8"], &["skip-ex:h=5"], SIMILAR),
        quorum: Quorum::All,
    },
];
