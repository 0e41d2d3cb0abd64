//! The report as a page: `templates/page.html`, which has headings and tables. Titles are here, and so are the
//! functions that the template calls.

use super::findings::{Findings, Judged, NOWHERE, OfFigure};
use super::front::{cards, certainty, warnings};
use super::grid::{of_figure, of_percentiles};
use super::input::{Input, Platform};
use super::parameters::parameters;
use super::validation::verdict;
use askama::Template;
use machines::Machine;
use spanlock_records::record::finding::{Standing, Verdict};
use spanlock_records::stats::distinct;

const TITLE: &str = "Range locks and reader-writer locks, measured and simulated";
const LATENCY: &str = "How long acquisitions take";
const WINNERS: &str = "Who wins where";
const VALIDATION: &str = "What simulation is worth";
const RANKINGS: &str = "Orders of locks that outlast other numbers";
const MACHINES: &str = "Simulated machines";
const SOURCES: &str = "Where the numbers come from";

/// The page. It needs no network and no scripts.
#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    input: &'a Input,
    found: &'a Findings,
}

/// The page.
#[must_use]
pub fn html(input: &Input, found: &Findings) -> String {
    Page { input, found }.to_string()
}

/// Rows of a table: the name of each, and its other cells.
type Rows<'a> = Vec<(&'a str, Vec<String>)>;

impl Input {
    /// What was given, in a sentence.
    fn lead(&self) -> String {
        let runs: usize = self.sources.iter().map(|source| source.runs).sum();
        let places = self.sites.iter().map(|site| site.platform.to_string());
        let places: Vec<_> = places.collect();
        format!(
            "{runs} runs by {} commands; {}. Numbers are medians over equal runs, and what is within the spreads is a \
             tie. Simulated throughput is in virtual time, and of use for comparisons only.",
            self.sources.len(),
            places.join("; ")
        )
    }

    /// Whether any acquisitions were timed.
    fn is_timed(&self) -> bool {
        self.sites.iter().any(|site| !site.distributions.is_empty())
    }

    /// The simulated machines: each with remarks and its numbers.
    fn machines(&self) -> Vec<(&Machine, String, Vec<[String; 3]>)> {
        let machines = self.sites.iter().filter_map(|site| match &site.platform {
            Platform::Simulated { machine, .. } => Some(machine.as_ref()),
            Platform::Measured { .. } => None,
        });
        let machines = distinct(machines).into_iter();
        let described = machines.map(|machine| {
            let (remarks, numbers) = parameters(machine);
            (machine, remarks, numbers)
        });
        described.collect()
    }
}

impl Findings {
    /// What a reader should know of the input before the findings.
    fn notes(&self, input: &Input) -> Vec<String> {
        let mut notes = Vec::new();
        let commits = input.sources.iter();
        let commits = distinct(commits.map(|source| source.provenance.commit.as_str()));
        if commits.len() > 1 {
            notes.push(format!(
                "The runs are of different commits: {}.",
                commits.join(", ")
            ));
        }
        let figures = self.papers.iter().flat_map(|(_, figures)| figures);
        let left_out = figures.filter(|of| of.panels.is_empty());
        let left_out: Vec<_> = left_out.map(|of| of.figure.source).collect();
        if !left_out.is_empty() {
            let left_out = left_out.join("; ");
            notes.push(format!(
                "Left out, as no runs of them were given: {left_out}."
            ));
        }
        notes
    }

    /// How many claims hold: the places, and a row for each paper.
    fn verdict_counts(&self) -> (Vec<&str>, Rows<'_>) {
        let papers = self.papers.iter().map(|(paper, figures)| {
            let claims = figures.iter().flat_map(|of| &of.claims);
            let verdicts = claims.flat_map(|judged| &judged.verdicts);
            let verdicts = verdicts.map(|(place, one)| (place.as_str(), one.verdict));
            (paper.name, verdicts.collect::<Vec<_>>())
        });
        let papers: Vec<_> = papers.collect();
        let verdicts = papers.iter().flat_map(|(_, verdicts)| verdicts);
        let places = distinct(verdicts.map(|(place, _)| *place));
        let row = |(paper, verdicts): (_, Vec<(&str, Verdict)>)| {
            let cell = |place: &&str| {
                let count = |wanted| {
                    verdicts
                        .iter()
                        .filter(|one| **one == (place, wanted))
                        .count()
                };
                match [Verdict::Holds, Verdict::Fails, Verdict::CannotTell].map(count) {
                    [0, 0, 0] => "-".to_owned(),
                    [holds, fails, open] => {
                        format!("holds {holds}, fails {fails}, cannot tell {open}")
                    }
                }
            };
            (paper, places.iter().map(cell).collect())
        };
        let rows = papers.into_iter().map(row).collect();
        (places, rows)
    }

    /// The result of all checks of the simulator.
    fn validation(&self) -> String {
        verdict(&self.checks)
    }
}

/// The leaders of a place: the numbers of threads, and a row for each panel.
fn by_threads(standings: &[Standing]) -> (Vec<usize>, Rows<'_>) {
    let mut counts = distinct(standings.iter().map(|standing| standing.threads));
    counts.sort_unstable();
    let panels = distinct(standings.iter().map(|standing| standing.panel.as_str()));
    let row = |panel| {
        let cell = |count: &usize| {
            let mut here = standings.iter();
            let found = here.find(|one| one.panel == panel && one.threads == *count);
            found.map_or("-".to_owned(), leaders)
        };
        (panel, counts.iter().map(cell).collect())
    };
    let rows = panels.into_iter().map(row).collect();
    (counts, rows)
}

/// A cell names the leader, and no more of the locks level with it than this.
const NAMED: usize = 4;

/// The leader, and the locks that are level with it.
fn leaders(standing: &Standing) -> String {
    let level = standing.families.iter().filter(|placed| !placed.behind);
    let names: Vec<_> = level.map(|placed| placed.lock.as_str()).collect();
    match names.split_first() {
        None => "-".to_owned(),
        Some((leader, [])) => (*leader).to_owned(),
        Some((leader, rest)) if rest.len() <= NAMED => {
            format!("{leader}, level with {}", rest.join(", "))
        }
        Some((leader, rest)) => {
            let (named, more) = rest.split_at(NAMED - 1);
            let (named, more) = (named.join(", "), more.len());
            format!("{leader}, level with {named} and {more} more")
        }
    }
}

/// The figures of which nothing ran, and their claims.
fn left_out(figures: &[OfFigure]) -> (Vec<&OfFigure>, Vec<&Judged>) {
    let empty: Vec<_> = figures.iter().filter(|of| of.panels.is_empty()).collect();
    let claims = empty.iter().flat_map(|of| &of.claims).collect();
    (empty, claims)
}

/// So many of something.
fn counted<T>(all: &[T], what: &str) -> String {
    match all.len() {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
