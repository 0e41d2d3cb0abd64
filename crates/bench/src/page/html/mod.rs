//! The page. It needs no network and no scripts.

mod figures;
mod tables;

use super::figure::PAPERS;
use super::findings::Findings;
use super::grid::{distributions, percentiles};
use super::input::Input;
use super::{chart, validation};
use figures::paper;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use tables::{parameters, sources, verdicts, winners};

/// The whole of it.
#[must_use]
pub fn page(input: &Input, findings: &Findings) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (TITLE) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                a class="skip" href="#main" { "Skip to the findings" }
                header {
                    h1 { (TITLE) }
                    p { (super::findings::lead(input)) }
                }
                (contents())
                main id="main" {
                    (section("summary", "In short", &summary(input, findings)))
                    @for (name, title) in PAPERS {
                        (section(&name.to_lowercase(), &format!("{name}: {title}"), &paper(input, findings, name)))
                    }
                    (section("latency", LATENCY, &latencies(input)))
                    (section("winners", WINNERS, &winners(findings)))
                    (section("validation", VALIDATION, &checks(input, findings)))
                    (section("machines", MACHINES, &parameters(input)))
                    (section("sources", SOURCES, &sources(input)))
                }
                footer { p { "Made by " code { "spanlock report" } ". " code { "docs/report.md" } " says how to read it." } }
            }
        }
    };
    markup.into_string()
}

const TITLE: &str = "Range locks and reader-writer locks, measured and simulated";
const LATENCY: &str = "How long acquisitions take";
const WINNERS: &str = "Who wins where";
const VALIDATION: &str = "What simulation is worth";
const MACHINES: &str = "Simulated machines";
const SOURCES: &str = "Where the numbers come from";

fn section(id: &str, title: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby=(format!("{id}-title")) {
            h2 id=(format!("{id}-title")) { (title) }
            (content)
        }
    }
}

fn contents() -> Markup {
    let papers = PAPERS.map(|(name, title)| (name.to_lowercase(), format!("{name}: {title}")));
    let others = [
        ("latency", LATENCY),
        ("winners", WINNERS),
        ("validation", VALIDATION),
        ("machines", MACHINES),
        ("sources", SOURCES),
    ]
    .map(|(id, title)| (id.to_owned(), title.to_owned()));
    html! {
        nav aria-label="Contents" {
            ul {
                li { a href="#summary" { "In short" } }
                @for (id, title) in papers.iter().chain(&others) {
                    li { a href=(format!("#{id}")) { (title) } }
                }
            }
        }
    }
}

fn summary(input: &Input, findings: &Findings) -> Markup {
    html! {
        @if findings.scores.is_empty() { p { "No two locks met, so none has won." } }
        @for (place, scores) in &findings.scores {
            h3 { (place) }
            @for score in scores {
                p { (score.winners()) " " @if let Some(ours) = score.ours() { (ours) } }
                (tables::tallies(place, score))
            }
        }
        h3 { "What the papers say" }
        (verdicts(findings))
        @if !findings.checks.is_empty() { p { (validation::verdict(&findings.checks)) } }
        @for note in super::findings::notes(input, findings) { p { (note) } }
    }
}

fn latencies(input: &Input) -> Markup {
    let timed: Vec<_> = input
        .stages
        .iter()
        .filter(|stage| !stage.distributions.is_empty())
        .collect();
    html! {
        @if timed.is_empty() {
            p { "No acquisitions were timed: " code { "spanlock bench latency" } " does that." }
        } @else {
            p { "Of each percentile the largest over repeats. A curve is drawn for the locks of the figures above, a row written for each." }
        }
        @for (number, stage) in timed.into_iter().enumerate() {
            h3 { (stage.ground) }
            div class="charts" {
                @for (at, (of, rows)) in distributions(stage).into_iter().enumerate() {
                    figure {
                        (chart::svg(&percentiles(format!("Percentiles of acquisition times, {of}, {}. The numbers are in the table below.", stage.ground), &rows), &format!("latency-{number}-{at}")))
                        figcaption { (of) }
                        (tables::percentiles(of, &rows))
                    }
                }
            }
        }
    }
}

fn checks(input: &Input, findings: &Findings) -> Markup {
    html! {
        p { (validation::verdict(&findings.checks)) }
        @if !findings.checks.is_empty() {
            p {
                "A simulated machine stands for the measured one that runs as many threads at a time. Locks are ranked by \
                 median throughput; 1 is the same order, 0 none, -1 the opposite. Ratios are simulated to measured."
            }
            (tables::checks(findings))
        }
        @for (machine, text) in super::findings::rankings(input) {
            h3 { "Orders of locks that outlast other numbers: " (machine) }
            p { "From the most to the least throughput; and the pairs that turn round when a number of the machine is another." }
            pre tabindex="0" { (text) }
        }
    }
}
