//! Simulated runs against real ones: do they rank locks alike, and how much faster are they?

use super::input::{Ground, Input, Stage, threads};
use crate::compare::{Kind, Panel};
use crate::stats::Summary;
use std::fmt::Write;

/// Fewer locks than this have no order to speak of.
const FEWEST: usize = 4;
/// Rank correlation from which the order is taken to be the same.
const ALIKE: f64 = 0.7;
/// Ratios up to this factor from 1 are taken to be near.
const NEAR: f64 = 1.5;

/// One panel with so many threads, in both worlds.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The simulated place.
    pub simulated: String,
    /// The panel.
    pub panel: Panel,
    /// Threads.
    pub threads: usize,
    /// Locks that ran in both.
    pub locks: usize,
    /// Spearman's rank correlation; `None` of too few locks, or of locks that all do the same.
    pub correlation: Option<f64>,
    /// Simulated throughput as a multiple of the real one: the least, the middle and the most, with locks.
    pub ratios: [(String, f64); 3],
}

impl Check {
    /// Whether the order and the ratios are near.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.is_ordered() != Some(false) && self.is_scaled()
    }

    fn is_ordered(&self) -> Option<bool> {
        self.correlation.map(|correlation| correlation >= ALIKE)
    }

    fn is_scaled(&self) -> bool {
        let [(_, least), (_, middle), (_, most)] = &self.ratios;
        let near = |ratio: f64| (1.0 / NEAR..=NEAR).contains(&ratio);
        near(*middle) && most / least <= NEAR * NEAR
    }

    /// What it says.
    #[must_use]
    pub fn words(&self) -> String {
        let [(slowest, least), (_, middle), (fastest, most)] = &self.ratios;
        let mut words = match self.is_ordered() {
            Some(true) => "the same order, but for neighbours".to_owned(),
            Some(false) => "off: another order of locks".to_owned(),
            None => "no order to compare".to_owned(),
        };
        if !(1.0 / NEAR..=NEAR).contains(middle) {
            let _ = write!(words, "; off: simulated does {middle:.2} times as much");
        }
        if most / least > NEAR * NEAR {
            let _ = write!(
                words,
                "; off: from {least:.2} times ({slowest}) to {most:.2} times ({fastest})"
            );
        }
        words
    }
}

/// All checks that the input allows. A simulated machine stands for a real one when it runs as many threads at a time.
#[must_use]
pub fn checks(input: &Input) -> Vec<Check> {
    let mut checks = Vec::new();
    let real = |stage: &&Stage| matches!(stage.ground, Ground::Real { .. });
    for measured in input.stages.iter().filter(real) {
        for simulated in input.stages.iter().filter(|stage| !real(stage)) {
            if simulated.ground.cores() == measured.ground.cores() {
                checks.extend(between(simulated, measured));
            }
        }
    }
    checks
}

fn between(simulated: &Stage, measured: &Stage) -> Vec<Check> {
    let mut checks = Vec::new();
    let panels = simulated.field.panels().into_iter();
    for panel in panels.filter(|panel| panel.kind() != Kind::Latency) {
        let mut counts = simulated.field.threads(panel);
        counts.retain(|&count| count + panel.more_threads() <= measured.ground.cores());
        counts.sort_unstable();
        checks.extend(
            counts
                .into_iter()
                .filter_map(|count| check(simulated, measured, panel, count)),
        );
    }
    checks
}

fn check(simulated: &Stage, measured: &Stage, panel: Panel, count: usize) -> Option<Check> {
    let of = |stage: &Stage, lock: &str| Some(stage.field.throughput(panel, lock, count)?.median);
    let locks = simulated.field.locks(panel).into_iter();
    let both: Vec<(&str, f64, f64)> = locks
        .filter_map(|lock| Some((lock, of(simulated, lock)?, of(measured, lock)?)))
        .filter(|(_, _, real)| *real > 0.0)
        .collect();
    let mut ratios: Vec<(&str, f64)> = both
        .iter()
        .map(|&(lock, virtual_, real)| (lock, virtual_ / real))
        .collect();
    ratios.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let named = |&(lock, ratio): &(&str, f64)| (lock.to_owned(), ratio);
    let middle = Summary::of(ratios.iter().map(|(_, ratio)| *ratio))?;
    let (one, other): (Vec<f64>, Vec<f64>) = both.iter().map(|&(_, a, b)| (a, b)).unzip();
    Some(Check {
        simulated: simulated.ground.to_string(),
        panel,
        threads: count,
        locks: both.len(),
        correlation: spearman(&one, &other).filter(|_| both.len() >= FEWEST),
        ratios: [
            named(ratios.first()?),
            ("the middle".to_owned(), middle.median),
            named(ratios.last()?),
        ],
    })
}

/// Spearman's correlation: Pearson's of the ranks, where equals share the middle of theirs. `None` if all of one side
/// are equal.
fn spearman(one: &[f64], other: &[f64]) -> Option<f64> {
    let (one, other) = (ranks(one), ranks(other));
    let middle = (one.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    (scale > 0.0).then(|| product(&one, &other) / scale)
}

/// From 1; equals have the middle of what they take.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// What all of them say together.
#[must_use]
pub fn verdict(checks: &[Check]) -> String {
    if checks.is_empty() {
        return "Nothing to compare: no simulated machine here runs as many threads at a time as a measured one, in the \
                same panels."
            .to_owned();
    }
    let near = checks.iter().filter(|check| check.is_near()).count();
    let all = checks.len();
    let worst = checks.iter().filter(|check| !check.is_near());
    let mut text = format!(
        "Simulation and measurement agree in {near} of {all} panels and numbers of threads: the rank correlation is \
         {ALIKE} or more, the middle ratio within a factor of {NEAR}, and locks within a factor of {} of each other.",
        NEAR * NEAR
    );
    let off: Vec<_> = worst
        .map(|check| format!("{}, {}", check.panel, threads(check.threads)))
        .collect();
    if !off.is_empty() {
        let _ = write!(text, " It is off in: {}.", off.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::spearman;

    #[test]
    fn ranks_are_correlated_and_equals_share_theirs() {
        let rounded = |a: &[f64], b: &[f64]| spearman(a, b).map(|rho| (rho * 1000.0).round());
        assert_eq!(rounded(&[1.0, 2.0, 3.0], &[10.0, 20.0, 99.0]), Some(1000.0));
        assert_eq!(rounded(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1000.0));
        // By hand: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
        let (one, other) = ([1.0, 5.0, 5.0, 9.0], [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(rounded(&one, &other), Some(949.0));
        assert_eq!(rounded(&[1.0, 1.0], &[1.0, 2.0]), None);
    }
}
