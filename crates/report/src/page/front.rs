//! The page's front: what was won and lost, in a sentence and a picture for each kind of locks, and how sure that is.
//!
//! The picture of a kind shows what the library's default does beside the best of all other locks that ran, by threads:
//! above 1 the default does more. A workload has a curve; its bars go from the least to the most of the workload's
//! panels.
//!
//! ```text
//!   default's throughput        o---o  a workload
//!   as a part of the best  1 --+----+------------ level
//!   other lock's               threads
//! ```

use super::chart::{Chart, Curve, Mark, STYLES, Scale};
use super::figure::words;
use super::findings::Findings;
use super::input::{Input, Platform, Site};
use crate::compare::{Certainty, Duel, KINDS, Kind, Outcome};
use spanlock_records::record::finding::Verdict;
use spanlock_records::record::plural;
use spanlock_records::stats::{distinct, ends};

/// What the page says of one kind of locks.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The kind.
    pub title: &'static str,
    /// What was won and lost.
    pub says: String,
    /// A picture of the largest machine that was measured, and one of the largest that was simulated: as SVG, each
    /// with its caption.
    pub pictures: Vec<(String, String)>,
}

/// One card for each kind of locks that met anywhere.
#[must_use]
pub fn cards(input: &Input) -> Vec<Card> {
    let card = |kind: &Kind| {
        let all = input
            .sites
            .iter()
            .map(|site| (site, site.dataset.duels(kind)));
        let all: Vec<_> = all.filter(|(_, found)| !found.is_empty()).collect();
        (!all.is_empty()).then(|| Card {
            title: kind.title,
            says: sentence(kind, &all),
            pictures: pictures(kind, &all),
        })
    };
    KINDS.iter().filter_map(card).collect()
}

/// A site, and what one kind's default did there beside the best of the others.
type Met<'a> = (&'a Site, Vec<Duel<'a>>);

fn sentence(kind: &Kind, all: &[Met<'_>]) -> String {
    let duels: Vec<_> = all.iter().flat_map(|(_, duels)| duels).collect();
    let outcome = Outcome::of(&duels);
    let worst = outcome.worst.map(|worst| format!(", most in: {worst}"));
    format!(
        "{} is ahead of every other lock in {} of {} contests, level with the best in {}, and behind it in {}{}.",
        kind.default,
        outcome.ahead,
        duels.len(),
        outcome.level,
        outcome.behind,
        worst.unwrap_or_default()
    )
}

/// Of the largest machine that was measured, and of the largest that was simulated.
fn pictures(kind: &Kind, all: &[Met<'_>]) -> Vec<(String, String)> {
    let is_simulated = |site: &Site| matches!(site.platform, Platform::Simulated { .. });
    let largest = |simulated: bool| {
        let here = all.iter();
        let here = here.filter(|(site, _)| is_simulated(site) == simulated);
        here.max_by_key(|(site, _)| site.platform.cores())
    };
    let met = [largest(false), largest(true)].into_iter().flatten();
    let picture = |(site, duels): &Met<'_>| {
        let place = site.platform.to_string();
        let chart = chart(kind, &place, duels);
        let id = words(&format!("front {} {place}", kind.title));
        (chart.svg(&id), place)
    };
    met.map(picture).collect()
}

/// The chart of a kind at one place.
fn chart(kind: &Kind, place: &str, duels: &[Duel<'_>]) -> Chart {
    let mut counts = distinct(duels.iter().map(|duel| duel.contest.threads));
    counts.sort_unstable();
    let workloads = distinct(duels.iter().map(|duel| duel.contest.panel.workload()));
    let mark = |of: &str, threads: usize| {
        let is_here = |duel: &&Duel<'_>| {
            duel.contest.threads == threads && duel.contest.panel.workload() == of
        };
        let ratios: Vec<_> = duels.iter().filter(is_here).map(Duel::ratio).collect();
        let mean = geometric_mean(&ratios)?;
        let label = format!(
            "{}, {}: {mean:.2} times the best other lock",
            of,
            plural(threads)
        );
        Some(Mark {
            x: threads as f64,
            y: mean,
            bar: ends(ratios.into_iter())?,
            label,
        })
    };
    let curve = |(style, of): (usize, &str)| Curve {
        name: of.to_owned(),
        style: style % STYLES,
        marks: counts.iter().filter_map(|&count| mark(of, count)).collect(),
    };
    let curves: Vec<_> = workloads.into_iter().enumerate().map(curve).collect();
    let values = curves
        .iter()
        .flat_map(|curve| &curve.marks)
        .map(|mark| mark.y);
    let most = values.fold(1.0, f64::max);
    Chart {
        title: format!(
            "{}, {place}: throughput of {} beside the best of all other locks, by threads; 1 is level.",
            kind.title, kind.default
        ),
        x_label: "threads",
        y_label: "times the best other lock".to_owned(),
        ticks: counts
            .iter()
            .map(|&count| (count as f64, count.to_string()))
            .collect(),
        scale: if most > MOST {
            Scale::Powers
        } else {
            Scale::Linear
        },
        level: Some(1.0),
        curves,
    }
}

/// Beyond so many times the best other lock, what is near 1 cannot be told apart on a linear axis.
const MOST: f64 = 8.0;

fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.max(1e-3).ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// How many of the papers' claims hold, and how sure all of it is.
#[must_use]
pub fn certainty(input: &Input, found: &Findings) -> Vec<String> {
    let figures = found.papers.iter().flat_map(|(_, figures)| figures);
    let verdicts = figures
        .flat_map(|of| &of.claims)
        .flat_map(|judged| &judged.verdicts);
    let verdicts: Vec<_> = verdicts.map(|(_, judgement)| judgement.verdict).collect();
    let count = |wanted| verdicts.iter().filter(|one| **one == wanted).count();
    let (holds, fails) = (count(Verdict::Holds), count(Verdict::Fails));
    let claims = format!(
        "Of what the papers claim, these runs decide {} statements: {holds} {} and {fails} {}; {} they cannot tell.",
        holds + fails,
        if holds == 1 { "holds" } else { "hold" },
        if fails == 1 { "fails" } else { "fail" },
        count(Verdict::CannotTell)
    );
    vec![claims, spreads(input)]
}

/// How far equal runs lie apart.
fn spreads(input: &Input) -> String {
    let all = input.sites.iter().map(|site| &site.dataset);
    Certainty::of(all).to_string()
}

/// A warning for each real machine that was busy with something else.
#[must_use]
pub fn warnings(input: &Input) -> Vec<String> {
    let warning = |site: &Site| {
        let busy = site.shares.warning()?;
        Some(format!("{}: {busy}", site.platform))
    };
    input.sites.iter().filter_map(warning).collect()
}
