//! The papers' statements about these workloads. They are data: `claims/*.toml` has an entry for each, by figure.
//!
//! Some of the papers' locks are not ours, and others stand for them. P1's list locks have neither fast path nor
//! fairness, and P3's tree no fairness; ours stand for them with both. Of the thesis' levels (P4) each has half of the
//! nodes of the level below, of ours a quarter: so half as many do the same. P1 set pnova-rw to 256 segments of a slot
//! each, as it is made here. P2's BA is `pf-q`, its Cohort-RW `c-rw-wp`; its pthread, whose readers sleep when they
//! wait, is `futex`; its BRAVO over them is ours.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use spanlock_records::record::Panel;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The first and the last, both included.
type Span<T> = (T, T);

/// Locks, by name.
type Locks = Vec<&'static str>;

/// A paper's statement that measurements can decide.
#[derive(Debug, Clone, Deserialize)]
pub struct Claim {
    /// The paper, section and figure.
    #[serde(skip)]
    pub source: &'static str,
    /// Our words for the statement.
    pub says: &'static str,
    /// The panels that it is about; unless given, those of its figure.
    #[serde(default)]
    pub place: Place,
    /// The numbers of threads that it is about; unless given, those of its figure. Each thread is taken to have a
    /// processor.
    #[serde(default)]
    pub threads: Span<usize>,
    /// What must hold there.
    pub relation: Relation,
    /// The locks that it is about.
    #[serde(default)]
    pub locks: Locks,
    /// The locks that these are compared with, if they are others.
    #[serde(default)]
    pub than: Locks,
    /// The factor of the relation.
    #[serde(default = "one", deserialize_with = "bound")]
    pub bound: f64,
    /// The number of threads, or the share of reads, that the relation compares with.
    #[serde(default, alias = "reads")]
    pub from: usize,
    /// The places where it must hold.
    #[serde(default)]
    pub quorum: Quorum,
}

/// Some panels: those of which the named fields are as wanted. Their fields are those of lines of JSON, and one is
/// always the workload. Without fields it is a workload that is not measured here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Place(BTreeMap<String, Wanted>);

/// What a field is to be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Wanted {
    /// A number between these, both included.
    Between(f64, f64),
    /// One of these words.
    Among(Vec<String>),
    /// This.
    Is(Value),
}

impl Place {
    /// Whether a panel is one of them.
    #[must_use]
    pub fn has(&self, panel: Panel) -> bool {
        let is = |(name, wanted): (&String, &Wanted)| {
            panel.get(name).is_some_and(|value| wanted.is(&value))
        };
        !self.0.is_empty() && self.0.iter().all(is)
    }
}

impl Wanted {
    fn is(&self, found: &Value) -> bool {
        match self {
            Self::Between(least, most) => found
                .as_f64()
                .is_some_and(|number| (*least..=*most).contains(&number)),
            Self::Among(words) => words.iter().any(|word| found == word),
            Self::Is(wanted) => found == wanted,
        }
    }
}

/// What must hold between measurements of a claim's locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Each lock does more than `bound` times as much as each of the others.
    Above,
    /// Each lock does as much as each of the others, up to the factor `bound`.
    Alike,
    /// More threads do more than the next smaller number of them.
    Rises,
    /// Each thread adds at least the fraction `bound` of what one thread does alone.
    Linear,
    /// Several threads do less than as many times what one thread does.
    Sublinear,
    /// Several threads do at most `bound` times what one thread does.
    Flat,
    /// More threads do less than `from` threads.
    Falls,
    /// More threads do as much as `from` threads, up to the factor `bound`.
    Steady,
    /// Several threads do a larger multiple of what one thread does than with each of the others.
    ScalesBeyond,
    /// Each lock does as much as with `from` % reads, up to the factor `bound`.
    LikeReads,
    /// More threads do more than `bound` times what `from` threads do.
    NotBelow,
    /// Each lock's value is more than `bound`.
    Exceeds,
    /// Nothing that is measured here decides it, and why.
    Unmeasured(&'static str),
}

/// The places where a claim must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quorum {
    /// Everywhere.
    #[default]
    All,
    /// In more than half of all places.
    Most,
    /// Somewhere.
    Some,
}

/// Bounds for the papers' words that are no numbers.
const WORDS: [(&str, f64); 7] = [
    ("almost", 0.8), // "almost linearly": each thread adds this much
    ("close", 0.8),  // "competitive", "close to": at least this part
    ("hardly", 1.2), // "does not scale": no more than this, for some of the work is outside the lock
    ("wide", 1.5),   // "significantly", "by a wide margin", "substantial": so many times as much
    ("similar", 1.1),
    ("roughly", 1.25), // "similar", of locks that have nothing in common
    ("loosely", 1.5),  // "similar", of mixtures of reads and writes that differ
];

/// A number, or one of [`WORDS`].
fn bound<'de, D: Deserializer<'de>>(text: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Bound {
        Number(f64),
        Word(String),
    }
    match Bound::deserialize(text)? {
        Bound::Number(number) => Ok(number),
        Bound::Word(word) => {
            let mut words = WORDS.into_iter();
            let found = words.find(|(known, _)| *known == word);
            found
                .map(|(_, bound)| bound)
                .ok_or_else(|| D::Error::custom(word))
        }
    }
}

fn one() -> f64 {
    1.0
}

/// A paper, or what is measured beside the papers.
#[derive(Debug, Clone, Deserialize)]
pub struct Paper {
    /// Its name in sources.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its figures, in the paper's order.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

/// A figure, or a section without one.
#[derive(Debug, Clone, Deserialize)]
pub struct Figure {
    /// The paper, section and figure.
    pub source: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Its panels, each of which is drawn; unless given, those that its claims are about.
    #[serde(default)]
    pub places: Vec<Place>,
    /// The locks that are drawn, or a word for them.
    #[serde(default)]
    pub locks: &'static str,
    /// What the paper says of it.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Claims are about these panels and numbers of threads, unless they say otherwise.
    #[serde(default)]
    place: Place,
    #[serde(default)]
    threads: Span<usize>,
}

impl Figure {
    /// With what claims and places inherit.
    fn complete(&mut self) {
        for claim in &mut self.claims {
            claim.source = self.source;
            if claim.place == Place::default() {
                claim.place = self.place.clone();
            }
            if claim.threads == (0, 0) {
                claim.threads = self.threads;
            }
        }
        if self.places.is_empty() && !self.locks.is_empty() {
            self.places.push(self.place.clone());
        }
    }
}

/// All papers.
///
/// # Panics
/// Panics when a file of claims is not well-formed, which a test would show.
#[must_use]
pub fn papers() -> &'static [Paper] {
    const FILES: [&str; 7] = [
        include_str!("claims/p1.toml"),
        include_str!("claims/p2.toml"),
        include_str!("claims/p3.toml"),
        include_str!("claims/p4.toml"),
        include_str!("claims/patterns.toml"),
        include_str!("claims/files.toml"),
        include_str!("claims/micro.toml"),
    ];
    static ALL: LazyLock<Vec<Paper>> = LazyLock::new(|| {
        let read = |text| {
            let mut paper: Paper = toml::from_str(text).expect("the claims are well-formed");
            paper.figures.iter_mut().for_each(Figure::complete);
            paper
        };
        FILES.map(read).into()
    });
    &ALL
}

/// All figures of all papers.
pub fn figures() -> impl Iterator<Item = &'static Figure> {
    papers().iter().flat_map(|paper| &paper.figures)
}

/// All claims, in the order of papers and figures.
pub fn claims() -> impl Iterator<Item = &'static Claim> {
    figures().flat_map(|figure| &figure.claims)
}

#[cfg(test)]
mod tests {
    use super::{Place, Relation, claims};

    #[test]
    fn claims_without_a_place_or_locks_are_unmeasured() {
        assert_eq!(claims().count(), 143);
        for claim in claims() {
            let unmeasured = matches!(claim.relation, Relation::Unmeasured(_));
            assert!(claim.place != Place::default() || unmeasured, "{claim:?}");
            assert_eq!(claim.locks.is_empty(), unmeasured, "{claim:?}");
        }
    }

    #[test]
    fn relations_have_what_they_need() {
        for claim in claims() {
            let (others, factor, from) = match claim.relation {
                Relation::Above => (true, None, false),
                Relation::ScalesBeyond => (true, Some(false), false),
                Relation::Alike => (true, Some(true), false),
                Relation::Linear | Relation::Flat | Relation::Exceeds => (false, Some(true), false),
                Relation::NotBelow => (false, None, true),
                Relation::Falls => (false, Some(false), true),
                Relation::Steady | Relation::LikeReads => (false, Some(true), true),
                Relation::Rises | Relation::Sublinear | Relation::Unmeasured(_) => {
                    (false, Some(false), false)
                }
            };
            assert_eq!(!claim.than.is_empty(), others, "{claim:?}");
            assert_eq!(claim.from > 0, from, "{claim:?}");
            assert!(
                factor.is_none_or(|factor| factor == (claim.bound != 1.0)),
                "{claim:?}"
            );
        }
    }
}
