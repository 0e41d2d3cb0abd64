//! Whether a claim holds here.

use super::Dataset;
use super::claims::{Claim, Quorum, Relation};
use spanlock_records::record::finding::{Judgement, Verdict};
use spanlock_records::record::{Panel, plural};
use spanlock_records::stats::{Order, Summary};

/// Judges a claim by runs on a machine of so many processors. Runs with more threads do not count.
#[must_use]
pub fn judge(claim: &Claim, data: &Dataset, cores: usize) -> Judgement {
    let decided = decide(claim, data, cores);
    let (verdict, because) = decided.unwrap_or_else(|because| (Verdict::CannotTell, because));
    Judgement {
        source: claim.source.to_owned(),
        says: claim.says.to_owned(),
        verdict,
        because,
        place: None,
    }
}

/// The verdict and its figures; or why the claim stays open.
fn decide(claim: &Claim, data: &Dataset, cores: usize) -> Result<(Verdict, String), String> {
    if let Relation::Unmeasured(why) = claim.relation {
        return Err(why.to_owned());
    }
    let panels = data.panels().into_iter();
    let panels: Vec<_> = panels.filter(|panel| claim.place.has(*panel)).collect();
    let (least, most) = claim.threads;
    let more = panels.iter().map(|panel| panel.more_threads()).min();
    let fewest = least + more.unwrap_or(0);
    if fewest > cores {
        return Err(format!(
            "it is about {fewest} threads or more, each on a processor; there are {cores}"
        ));
    }
    let places = panels.iter().flat_map(|&panel| {
        let threads = data.threads(panel).into_iter();
        let busy = move |n: &usize| n + panel.more_threads() <= cores;
        let threads = threads.filter(move |n| (least..=most).contains(n) && busy(n));
        threads.map(move |threads| (panel, threads))
    });
    let comparisons = places.flat_map(|(panel, threads)| at(claim, data, panel, threads));
    let comparisons: Vec<_> = comparisons.collect();
    let ran = |lock: &&str| {
        let mut panels = panels.iter();
        panels.any(|&panel| data.locks(panel).contains(lock))
    };
    let locks: Vec<_> = claim.locks.iter().chain(&claim.than).copied().collect();
    let missing = locks.iter().copied();
    let missing: Vec<_> = missing
        .filter(|lock| !panels.is_empty() && !ran(lock))
        .collect();
    if comparisons.is_empty() {
        return Err(format!(
            "not all it compares was measured: {}",
            locks.join(", ")
        ));
    }
    let lone = |one: &&Comparison| one.larger.count.min(one.smaller.count) < 2;
    if let Some(one) = comparisons.iter().find(lone) {
        return Err(format!(
            "a single run has no spread ({}): repeat it",
            one.name
        ));
    }
    let (verdict, because) = count(claim.quorum, &comparisons);
    // Locks that did not run could turn a verdict that needs all of its places.
    let is_settled = missing.is_empty()
        || matches!(
            (verdict, claim.quorum),
            (Verdict::Holds, Quorum::Some) | (Verdict::Fails, Quorum::All)
        );
    match verdict {
        _ if is_settled => Ok((verdict, because)),
        Verdict::CannotTell => Err(because),
        _ => Err(format!("{because}; not run: {}", missing.join(", "))),
    }
}

/// The verdict of these comparisons, of which there is one at least, and their figures.
fn count(quorum: Quorum, comparisons: &[Comparison]) -> (Verdict, String) {
    let count = |order| {
        let comparisons = comparisons.iter();
        comparisons.filter(|one| one.order() == order).count()
    };
    let (all, yes, no) = (comparisons.len(), count(Order::Above), count(Order::Below));
    let verdict = match quorum {
        Quorum::All if no > 0 => Verdict::Fails,
        Quorum::All if yes == all => Verdict::Holds,
        Quorum::Most if 2 * yes > all => Verdict::Holds,
        Quorum::Most if 2 * no >= all => Verdict::Fails,
        Quorum::Some if yes > 0 => Verdict::Holds,
        Quorum::Some if no == all => Verdict::Fails,
        Quorum::All | Quorum::Most | Quorum::Some => Verdict::CannotTell,
    };
    let mut sorted: Vec<_> = comparisons.iter().collect();
    sorted.sort_by(|a, b| a.ratio().total_cmp(&b.ratio())); // stable
    let side = |one: &Comparison| {
        format!(
            "{} {:.2} (more than {:.2} wanted)",
            one.name,
            one.ratio(),
            one.times
        )
    };
    let sides = match sorted[..] {
        [worst, .., best] => format!("from {} up to {}", side(worst), side(best)),
        _ => sorted.into_iter().map(side).collect(),
    };
    let level = all - yes - no;
    let because = format!("{yes} of {all} so, {no} not so, {level} within the spreads; {sides}");
    (verdict, because)
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

/// One side of a comparison: a lock with so many threads.
#[derive(Clone, Copy)]
struct Side {
    lock: &'static str,
    threads: usize,
    panel: Panel,
}

/// The comparisons of a claim in one place.
fn at(claim: &Claim, data: &Dataset, panel: Panel, threads: usize) -> Vec<Comparison> {
    let Claim {
        relation,
        bound,
        from,
        ..
    } = *claim;
    let fewer = data.threads(panel).into_iter().filter(|n| *n < threads);
    let fewer = fewer.max();
    let mut panels = data.panels().into_iter();
    let of_reads = panels.find(|other| panel.is_with(*other, "reads", from));
    let sides = |lock: &'static str| {
        let with = |threads| Side {
            lock,
            threads,
            panel,
        };
        let here = with(threads);
        match relation {
            Relation::Above | Relation::Alike | Relation::ScalesBeyond => {
                let others = claim.than.iter().map(|&lock| (here, Side { lock, ..here }));
                others.collect()
            }
            Relation::Rises => fewer.map(|fewer| (here, with(fewer))).into_iter().collect(),
            Relation::Linear => vec![(here, with(1))],
            Relation::Sublinear | Relation::Flat => vec![(with(1), here)],
            Relation::Falls | Relation::Steady => vec![(with(from), here)],
            Relation::LikeReads => {
                let other = of_reads.map(|panel| (here, Side { panel, ..here }));
                other.into_iter().collect()
            }
            Relation::NotBelow => vec![(here, with(from))],
            Relation::Exceeds => vec![(here, here)],
            Relation::Unmeasured(_) => Vec::new(),
        }
    };
    let times = match relation {
        Relation::Linear => bound * threads as f64,
        Relation::Sublinear => 1.0 / threads as f64,
        Relation::Alike | Relation::Flat | Relation::Steady | Relation::LikeReads => 1.0 / bound,
        _ => bound,
    };
    let is_mutual = matches!(
        relation,
        Relation::Alike | Relation::Steady | Relation::LikeReads
    );
    let sides = claim.locks.iter().flat_map(|&lock| sides(lock));
    sides
        .flat_map(|(a, b)| [Some((a, b)), is_mutual.then_some((b, a))])
        .flatten()
        .filter_map(|(larger, smaller)| compare(relation, data, larger, smaller, times))
        .collect()
}

/// Two sides with their values; `None` unless both were measured. A run that got nothing done was too short to measure
/// anything.
fn compare(
    relation: Relation,
    data: &Dataset,
    larger: Side,
    smaller: Side,
    times: f64,
) -> Option<Comparison> {
    let is_multiple = relation == Relation::ScalesBeyond;
    let one = Summary {
        median: 1.0,
        spread: 0.0,
        count: usize::MAX,
    };
    let throughput = |side: Side, threads| {
        let value = data.throughput(side.panel, side.lock, threads)?;
        (value.median > 0.0).then_some(value)
    };
    let value = |side: Side| {
        let value = throughput(side, side.threads)?;
        if !is_multiple {
            return Some(value);
        }
        let alone = throughput(side, 1)?;
        Some(value.times(1.0 / alone.median))
    };
    let Side {
        lock,
        threads,
        panel,
    } = larger;
    let name = if relation == Relation::Exceeds {
        format!("{panel}, {}: {lock}", plural(threads))
    } else if is_multiple {
        format!(
            "{panel}, {} of one: {lock} to {}",
            plural(threads),
            smaller.lock
        )
    } else if panel != smaller.panel {
        format!("{lock}, {}: {panel} to {}", plural(threads), smaller.panel)
    } else if threads == smaller.threads {
        format!("{panel}, {}: {lock} to {}", plural(threads), smaller.lock)
    } else {
        let with = |side: Side| format!("{} with {}", side.lock, plural(side.threads));
        format!("{panel}: {} to {}", with(larger), with(smaller))
    };
    Some(Comparison {
        name,
        larger: value(larger)?,
        smaller: if relation == Relation::Exceeds {
            one
        } else {
            value(smaller)?
        },
        times,
    })
}

#[cfg(test)]
mod tests;
