//! Whether a claim holds here.

use super::claims::{Claim, Quorum, Relation};
use super::standing::plural;
use super::{Field, Panel};
use crate::stats::{Order, Summary};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What measurements say of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It holds.
    #[serde(rename = "holds")]
    Holds,
    /// It does not.
    #[serde(rename = "fails")]
    Fails,
    /// These measurements, or this machine, do not decide.
    #[serde(rename = "cannot tell")]
    CannotTell,
}

/// A claim, and what was measured: a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Which paper and section.
    pub source: String,
    /// What it says, in our words.
    pub says: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// The figures, or why there are none.
    pub because: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::CannotTell => "cannot tell",
        })
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            source,
            says,
            verdict,
            because,
        } = self;
        write!(f, "{verdict}: {says} ({source})\n    {because}")
    }
}

/// Two throughputs: the claim is that the first is more than so many times the second.
struct Comparison {
    /// The places and locks, for people.
    name: String,
    larger: Summary,
    smaller: Summary,
    times: f64,
}

impl Comparison {
    fn order(&self) -> Order {
        self.larger.order(&self.smaller.times(self.times))
    }

    fn ratio(&self) -> f64 {
        self.larger.median / self.smaller.median
    }
}

/// Why a claim cannot be told from runs, though from others it could.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Open {
    /// Not all that it compares was run: what of it these locks are, if it is locks.
    NotRun(Vec<&'static str>),
    /// It speaks of so many threads and more, and there are fewer processors.
    Processors(usize),
    /// Something ran once only.
    Single,
}

/// Judges a claim by runs on a machine of so many processors. Runs with more threads than that do not count.
#[must_use]
pub fn judge(claim: &Claim, field: &Field, cores: usize) -> Judgement {
    judge_and_say(claim, field, cores).0
}

/// The same; and if it cannot be told, what would have to be run.
#[must_use]
pub fn judge_and_say(claim: &Claim, field: &Field, cores: usize) -> (Judgement, Option<Open>) {
    let (least, most) = claim.threads;
    let panels = field.panels().into_iter();
    let panels: Vec<_> = panels.filter(|panel| claim.place.has(*panel)).collect();
    let more = panels.iter().map(|panel| panel.more_threads()).min();
    let fewest = least + more.unwrap_or(0);
    let Ruled {
        verdict,
        because,
        open,
    } = if let Relation::Unmeasured(why) = claim.relation {
        Ruled::open(why.to_owned(), None)
    } else if fewest > cores {
        let because = format!(
            "it speaks of {fewest} threads and more, each on a processor; here are {cores}"
        );
        Ruled::open(because, Some(Open::Processors(fewest)))
    } else {
        let places = panels.iter().flat_map(|&panel| {
            let threads = field.threads(panel).into_iter();
            let busy = move |n: &usize| n + panel.more_threads() <= cores;
            let threads = threads.filter(move |n| (least..=most).contains(n) && busy(n));
            threads.map(move |threads| (panel, threads))
        });
        let comparisons: Vec<_> = places
            .flat_map(|(panel, threads)| at(&claim.relation, field, panel, threads))
            .collect();
        decide(claim, &comparisons).open_if_partial(claim, &not_run(claim, field, &panels))
    };
    let judgement = Judgement {
        source: claim.source.to_owned(),
        says: claim.says.to_owned(),
        verdict,
        because,
    };
    (judgement, open)
}

/// The locks that a claim compares and that did not run where it speaks of them, if anything ran there.
fn not_run(claim: &Claim, field: &Field, panels: &[Panel]) -> Vec<&'static str> {
    let ran = |lock: &&'static str| {
        let mut panels = panels.iter();
        panels.any(|&panel| field.locks(panel).contains(lock))
    };
    let (some, others) = claim.relation.locks();
    let locks = some.iter().chain(others).copied();
    let locks = locks.filter(|lock| !panels.is_empty() && !ran(lock));
    locks.collect()
}

/// A verdict, before it is a judgement.
struct Ruled {
    verdict: Verdict,
    because: String,
    open: Option<Open>,
}

impl Ruled {
    fn open(because: String, open: Option<Open>) -> Self {
        Self {
            verdict: Verdict::CannotTell,
            because,
            open,
        }
    }

    /// The same, unless locks that did not run could have made it another.
    fn open_if_partial(self, claim: &Claim, missing: &[&'static str]) -> Self {
        let is_settled = match self.verdict {
            Verdict::Holds => claim.quorum == Quorum::Some,
            Verdict::Fails => claim.quorum == Quorum::All,
            Verdict::CannotTell => false,
        };
        if is_settled || missing.is_empty() {
            return self;
        }
        let because = match self.verdict {
            Verdict::CannotTell => self.because,
            _ => format!("{}; not run: {}", self.because, missing.join(", ")),
        };
        Self::open(because, Some(Open::NotRun(missing.to_vec())))
    }
}

/// What a relation compares in one place.
fn at(relation: &Relation, field: &Field, panel: Panel, threads: usize) -> Vec<Comparison> {
    let compare = |larger: (&str, usize), smaller: (&str, usize), times: f64| {
        let side = |(lock, threads)| field.throughput(panel, lock, threads);
        let name = |(lock, threads): (&str, usize)| format!("{lock} with {}", plural(threads));
        let name = if larger.1 == smaller.1 {
            format!(
                "{panel}, {}: {} to {}",
                plural(threads),
                larger.0,
                smaller.0
            )
        } else {
            format!("{panel}: {} to {}", name(larger), name(smaller))
        };
        Some(Comparison {
            name,
            larger: side(larger)?,
            smaller: side(smaller)?,
            times,
        })
    };
    let pairs = |some: &'static [&'static str], others: &'static [&'static str]| {
        let one = move |&lock: &&'static str| others.iter().map(move |&other| (lock, other));
        some.iter().flat_map(one)
    };
    match *relation {
        Relation::Above(some, others, times) => pairs(some, others)
            .filter_map(|(lock, other)| compare((lock, threads), (other, threads), times))
            .collect(),
        Relation::Alike(some, others, factor) => pairs(some, others)
            .flat_map(|(lock, other)| [(lock, other), (other, lock)])
            .filter_map(|(lock, other)| compare((lock, threads), (other, threads), 1.0 / factor))
            .collect(),
        Relation::Rises(locks) => {
            let fewer = field.threads(panel).into_iter().filter(|n| *n < threads);
            let fewer = fewer.max().unwrap_or(threads);
            let rise = |&lock: &&str| compare((lock, threads), (lock, fewer), 1.0);
            locks
                .iter()
                .filter(|_| fewer < threads)
                .filter_map(rise)
                .collect()
        }
        Relation::Linear(locks, share) => locks
            .iter()
            .filter_map(|&lock| compare((lock, threads), (lock, 1), share * threads as f64))
            .collect(),
        Relation::Sublinear(locks) => locks
            .iter()
            .filter_map(|&lock| compare((lock, 1), (lock, threads), 1.0 / threads as f64))
            .collect(),
        Relation::Flat(locks, times) => locks
            .iter()
            .filter_map(|&lock| compare((lock, 1), (lock, threads), 1.0 / times))
            .collect(),
        Relation::Falls(locks, from) => locks
            .iter()
            .filter_map(|&lock| compare((lock, from), (lock, threads), 1.0))
            .collect(),
        Relation::Steady(locks, from, factor) => locks
            .iter()
            .map(|&lock| ((lock, from), (lock, threads)))
            .flat_map(|(a, b)| [(a, b), (b, a)])
            .filter_map(|(larger, smaller)| compare(larger, smaller, 1.0 / factor))
            .collect(),
        Relation::ScalesBeyond(some, others) => {
            let multiple = |lock| {
                let alone = field.throughput(panel, lock, 1)?;
                Some(
                    field
                        .throughput(panel, lock, threads)?
                        .times(1.0 / alone.median),
                )
            };
            let beyond = |(lock, other)| {
                Some(Comparison {
                    name: format!("{panel}, {} of one: {lock} to {other}", plural(threads)),
                    larger: multiple(lock)?,
                    smaller: multiple(other)?,
                    times: 1.0,
                })
            };
            pairs(some, others).filter_map(beyond).collect()
        }
        Relation::LikeReads(locks, reads, factor) => {
            let Panel::Arr { variant, .. } = panel else {
                return Vec::new();
            };
            let other = Panel::Arr { variant, reads };
            let like = |(lock, [one, two]): (&str, [Panel; 2])| {
                Some(Comparison {
                    name: format!("{lock}, {}: {one} to {two}", plural(threads)),
                    larger: field.throughput(one, lock, threads)?,
                    smaller: field.throughput(two, lock, threads)?,
                    times: 1.0 / factor,
                })
            };
            locks
                .iter()
                .flat_map(|&lock| [(lock, [panel, other]), (lock, [other, panel])])
                .filter_map(like)
                .collect()
        }
        Relation::Unmeasured(_) => Vec::new(),
    }
}

fn decide(claim: &Claim, comparisons: &[Comparison]) -> Ruled {
    let by_ratio = |a: &&Comparison, b: &&Comparison| a.ratio().total_cmp(&b.ratio());
    let (Some(worst), Some(best)) = (
        comparisons.iter().min_by(by_ratio),
        comparisons.iter().max_by(by_ratio),
    ) else {
        let (some, others) = claim.relation.locks();
        let locks = [some, others].concat().join(", ");
        let because = format!("not all it compares was measured: {locks}");
        return Ruled::open(because, Some(Open::NotRun(Vec::new())));
    };
    let lone = |one: &&Comparison| one.larger.count.min(one.smaller.count) < 2;
    if let Some(one) = comparisons.iter().find(lone) {
        let because = format!("a single run has no spread ({}): repeat it", one.name);
        return Ruled::open(because, Some(Open::Single));
    }
    let count = |order| {
        comparisons
            .iter()
            .filter(|one| one.order() == order)
            .count()
    };
    let (all, yes, no) = (comparisons.len(), count(Order::Above), count(Order::Below));
    let verdict = match claim.quorum {
        Quorum::All if no > 0 => Verdict::Fails,
        Quorum::All if yes == all => Verdict::Holds,
        Quorum::Most if 2 * yes > all => Verdict::Holds,
        Quorum::Most if 2 * no >= all => Verdict::Fails,
        Quorum::Some if yes > 0 => Verdict::Holds,
        Quorum::Some if no == all => Verdict::Fails,
        Quorum::All | Quorum::Most | Quorum::Some => Verdict::CannotTell,
    };
    let side = |one: &Comparison| {
        format!(
            "{} {:.2} (more than {:.2} wanted)",
            one.name,
            one.ratio(),
            one.times
        )
    };
    let mut because = format!(
        "{yes} of {all} so, {no} not so, {} within the spreads; ",
        all - yes - no
    );
    because += &match all {
        1 => side(worst),
        _ => format!("from {} up to {}", side(worst), side(best)),
    };
    Ruled {
        verdict,
        because,
        open: None,
    }
}

#[cfg(test)]
mod tests;
