//! Simulated runs against measured ones: whether they rank locks alike, and how their throughputs compare.

use super::input::{Input, Platform, Site};
use spanlock_records::record::{Panel, plural};
use spanlock_records::stats::Summary;
use std::fmt::Write;

/// Fewer locks than this have no order to compare.
const FEWEST: usize = 4;
/// From this rank correlation on, the order counts as the same.
const ALIKE: f64 = 0.7;
/// Ratios within this factor of 1 count as near.
const NEAR: f64 = 1.5;

/// One panel with one number of threads, simulated and measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The simulated place.
    pub simulated: String,
    /// The panel.
    pub panel: Panel,
    /// Threads.
    pub threads: usize,
    /// How many locks ran in both places.
    pub locks: usize,
    /// Spearman's rank correlation; `None` of too few locks, or of locks that all do the same.
    pub correlation: Option<f64>,
    /// Simulated throughput as a multiple of the measured one: the least, with the lock.
    pub least: (String, f64),
    /// The median over locks.
    pub middle: f64,
    /// The most, with the lock.
    pub most: (String, f64),
}

impl Check {
    /// The panel, with the number of threads.
    #[must_use]
    pub fn contest(&self) -> String {
        format!("{}, {}", self.panel, plural(self.threads))
    }

    /// The correlation, or a dash.
    #[must_use]
    pub fn correlation(&self) -> String {
        let text = self.correlation.map(|rho| format!("{rho:.2}"));
        text.unwrap_or_else(|| "-".to_owned())
    }

    fn is_ordered(&self) -> Option<bool> {
        Some(self.correlation? >= ALIKE)
    }

    /// What is off: nothing if simulation and measurement agree.
    fn deviations(&self) -> Vec<String> {
        let ((slowest, least), (fastest, most)) = (&self.least, &self.most);
        let mut off = Vec::new();
        if self.is_ordered() == Some(false) {
            off.push("off: another order of locks".to_owned());
        }
        if !(1.0 / NEAR..=NEAR).contains(&self.middle) {
            off.push(format!(
                "off: simulated does {:.2} times as much",
                self.middle
            ));
        }
        if most / least > NEAR * NEAR {
            off.push(format!(
                "off: from {least:.2} times ({slowest}) to {most:.2} times ({fastest})"
            ));
        }
        off
    }

    /// The result in words.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = self.deviations();
        match self.is_ordered() {
            Some(true) => words.insert(0, "the same order, but for neighbours".to_owned()),
            Some(false) => {}
            None => words.insert(0, "no order to compare".to_owned()),
        }
        words.join("; ")
    }
}

/// All checks that the input allows. A simulated machine stands for a measured one that runs as many threads at a time.
#[must_use]
pub fn checks(input: &Input) -> Vec<Check> {
    let is_measured = |site: &&Site| matches!(site.platform, Platform::Measured { .. });
    let (measured, simulated): (Vec<&Site>, Vec<&Site>) = input.sites.iter().partition(is_measured);
    let pairs = measured.into_iter().flat_map(|real| {
        let twins = simulated.iter();
        let twins = twins.filter(|site| site.platform.cores() == real.platform.cores());
        twins.flat_map(|site| between(site, real))
    });
    pairs.collect()
}

fn between(simulated: &Site, measured: &Site) -> Vec<Check> {
    let panels = simulated.dataset.panels().into_iter();
    let follows = |panel: &Panel| ["longest", "vm-stat"].contains(&panel.workload());
    let panels = panels.filter(|panel| !follows(panel));
    let of_panel = panels.flat_map(|panel| {
        let mut counts = simulated.dataset.threads(panel);
        counts.retain(|count| count + panel.more_threads() <= measured.platform.cores());
        counts.sort_unstable();
        counts
            .into_iter()
            .filter_map(move |count| check(simulated, measured, panel, count))
    });
    of_panel.collect()
}

fn check(simulated: &Site, measured: &Site, panel: Panel, threads: usize) -> Option<Check> {
    let median =
        |site: &Site, lock: &str| Some(site.dataset.throughput(panel, lock, threads)?.median);
    let both = simulated.dataset.locks(panel).into_iter();
    let both =
        both.filter_map(|lock| Some((lock, median(simulated, lock)?, median(measured, lock)?)));
    let both: Vec<_> = both.filter(|(.., real)| *real > 0.0).collect();
    let ratios = both
        .iter()
        .map(|(lock, virtual_, real)| ((*lock).to_owned(), virtual_ / real));
    let mut ratios: Vec<_> = ratios.collect();
    ratios.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let (one, other): (Vec<f64>, Vec<f64>) = both.iter().map(|&(_, a, b)| (a, b)).unzip();
    Some(Check {
        simulated: simulated.platform.to_string(),
        panel,
        threads,
        locks: both.len(),
        correlation: spearman(&one, &other).filter(|_| both.len() >= FEWEST),
        middle: Summary::of(ratios.iter().map(|(_, ratio)| *ratio))?.median,
        least: ratios.first()?.clone(),
        most: ratios.last()?.clone(),
    })
}

/// Spearman's correlation: Pearson's of the ranks, where equal values share the mean of their ranks. `None` if all
/// values of one side are equal.
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

/// Ranks from 1. Equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The result of all of them, in words.
#[must_use]
pub fn verdict(checks: &[Check]) -> String {
    if checks.is_empty() {
        return "Nothing to compare: no simulated machine here runs as many threads at a time as a measured one, in the \
                same panels."
            .to_owned();
    }
    let off = checks.iter().filter(|check| !check.deviations().is_empty());
    let off: Vec<_> = off.map(Check::contest).collect();
    let mut text = format!(
        "Simulation and measurement agree in {} of {} panels and numbers of threads: the rank correlation is {ALIKE} \
         or more, the middle ratio within a factor of {NEAR}, and locks within a factor of {} of each other.",
        checks.len() - off.len(),
        checks.len(),
        NEAR * NEAR
    );
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
