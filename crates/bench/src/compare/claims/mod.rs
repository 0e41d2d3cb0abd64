//! What the papers say of these workloads, as data.
//!
//! Some of the papers' locks are not ours, and others stand for them. P1's list locks have neither fast path nor
//! fairness, and P3's tree no fairness; ours stand for them with both. Of the thesis' levels (P4) each has half of the
//! nodes of the one below, of ours a quarter: so half as many do the same. P1 set pnova-rw to 256 segments of a slot each,
//! as it is made here. P2's BA is [`pf-q`](crate::rw::locks), its Cohort-RW `c-rw-wp`; its pthread, whose readers sleep
//! when they wait, is `futex`; its BRAVO over them is ours. Where a paper's words have no number ("almost linearly",
//! "higher thread counts"), ours are here.

mod micro;
mod p1;
mod p2;
mod p3;
mod p4;

use super::{Kind, Panel, Phase};
use crate::arr::Variant;
use crate::rw::Load;

/// From the first to the last, both included.
type Span<T> = (T, T);

/// A statement of a paper that measurements can decide.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// Which paper, section and figure.
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
    /// The longest acquisition, of parts locked for the first time or not.
    Longest(&'static [Phase]),
    /// Readers of random locks of a pool.
    Interference,
    /// Readers in a ring.
    Alternator,
    /// Readers and one writer.
    TestRwlock,
    /// Readers and writers by chance: with these parts of writes.
    Rwbench(Span<f64>),
    /// A table under a lock.
    HashTable,
    /// A microbenchmark.
    Micro,
    /// What is not measured here.
    Nowhere,
}

impl Place {
    /// The kind of its panels; `None` if it has none.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        match self {
            Self::Arr(..) => Some(Kind::Arr),
            Self::W1 | Self::W2 => Some(Kind::Batch),
            Self::Longest(_) => Some(Kind::Latency),
            Self::Interference
            | Self::Alternator
            | Self::TestRwlock
            | Self::Rwbench(_)
            | Self::HashTable => Some(Kind::Rw),
            Self::Micro => Some(Kind::Micro),
            Self::Nowhere => None,
        }
    }

    /// Whether a panel is one of them.
    #[must_use]
    pub fn has(self, panel: Panel) -> bool {
        match (self, panel) {
            (Self::Arr(wanted, (least, most)), Panel::Arr { variant, reads }) => {
                wanted == variant && (least..=most).contains(&reads)
            }
            (Self::W1, Panel::Batch { hold, .. }) => hold == 1,
            (Self::W2, Panel::Batch { hold, .. }) => hold > 1,
            (Self::Longest(phases), Panel::Longest(phase)) => phases.contains(&phase),
            (Self::Rwbench((least, most)), Panel::Rw(Load::Rwbench { writes })) => {
                (least..=most).contains(&writes)
            }
            (Self::Interference, Panel::Rw(Load::Interference { .. }))
            | (Self::Alternator, Panel::Rw(Load::Alternator))
            | (Self::TestRwlock, Panel::Rw(Load::TestRwlock { .. }))
            | (Self::HashTable, Panel::Rw(Load::HashTable { .. }))
            | (Self::Micro, Panel::Micro) => true,
            _ => false,
        }
    }
}

/// What must hold between measurements.
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
    /// So many threads do less than so many times what one does, by each lock.
    Sublinear(&'static [&'static str]),
    /// So many threads do at most this much more than one, by each lock.
    Flat(&'static [&'static str], f64),
    /// So many threads do less than this number of them, by each lock.
    Falls(&'static [&'static str], usize),
    /// So many threads do as much as this number of them, up to a factor, by each lock.
    Steady(&'static [&'static str], usize, f64),
    /// Of what one thread does, so many do a larger multiple by each of some locks than by each of others.
    ScalesBeyond(&'static [&'static str], &'static [&'static str]),
    /// Each lock does as much as with another share of reads, up to a factor.
    LikeReads(&'static [&'static str], u8, f64),
    /// Nobody can say here, and why.
    Unmeasured(&'static str),
}

impl Relation {
    /// The locks it compares, and those with which, if they are others.
    #[must_use]
    pub fn locks(&self) -> (&'static [&'static str], &'static [&'static str]) {
        match *self {
            Self::Above(some, others, _)
            | Self::Alike(some, others, _)
            | Self::ScalesBeyond(some, others) => (some, others),
            Self::Rises(locks)
            | Self::Linear(locks, _)
            | Self::Sublinear(locks)
            | Self::Flat(locks, _)
            | Self::Falls(locks, _)
            | Self::Steady(locks, ..)
            | Self::LikeReads(locks, ..) => (locks, &[]),
            Self::Unmeasured(_) => (&[], &[]),
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

/// "Almost linearly": each thread adds this much.
const ALMOST: f64 = 0.8;
/// "Does not scale": no more than this, for some of the work is outside the lock.
const HARDLY: f64 = 1.2;
/// "Similar": up to this factor.
const SIMILAR: f64 = 1.1;
/// "Competitive", "close to": at least this part.
const CLOSE: f64 = 0.8;
/// "Significantly", "by a wide margin", "substantial": so many times as much.
const WIDE: f64 = 1.5;
/// "Higher thread counts": more than a socket of P2's machine has cores.
const MANY: usize = 19;

/// All of them, paper by paper.
pub fn claims() -> impl Iterator<Item = &'static Claim> {
    [
        p1::CLAIMS,
        p2::CLAIMS,
        p3::CLAIMS,
        p4::CLAIMS,
        micro::CLAIMS,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::{Kind, Relation, claims};
    use crate::{micro, registry, rw};

    #[test]
    fn they_speak_of_locks_that_there_are() {
        let is_there = |kind: Option<Kind>, lock: &str| match kind {
            Some(Kind::Rw) => rw::locks::find(lock).is_some(),
            Some(Kind::Micro) => lock.parse::<micro::Kernel>().is_ok(),
            _ => registry::find(lock).is_some(),
        };
        for claim in claims() {
            let (some, others) = claim.relation.locks();
            for lock in some.iter().chain(others) {
                assert!(is_there(claim.place.kind(), lock), "{lock}");
            }
        }
    }

    #[test]
    fn what_is_nowhere_is_unmeasured_and_the_other_way_round() {
        for claim in claims() {
            let unmeasured = matches!(claim.relation, Relation::Unmeasured(_));
            assert!(claim.place.kind().is_some() || unmeasured, "{claim:?}");
        }
    }
}
