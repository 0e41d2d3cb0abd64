//! Tables: verdicts, winners, validation, parameters, sources.

use super::super::figure::PAPERS;
use super::super::findings::{Findings, leaders};
use super::super::grid::Percentiles;
use super::super::input::{Ground, Input};
use super::super::parameters;
use super::super::score::{Score, Tally};
use crate::compare::distinct;
use crate::times::AcquireTimes;
use maud::{Markup, html};

/// A table that may be wider than the page: it scrolls, by keys too.
pub(super) fn wide(caption: &str, content: &Markup) -> Markup {
    html! {
        div class="wide" role="region" aria-label=(caption) tabindex="0" {
            table { caption { (caption) } (content) }
        }
    }
}

/// A table of texts.
fn texts(caption: &str, header: &[&str], rows: &[Vec<String>]) -> Markup {
    wide(
        caption,
        &html! {
            thead { tr { @for name in header { th scope="col" { (name) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (at, cell) in row.iter().enumerate() {
                            @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                        }
                    }
                }
            }
        },
    )
}

/// How many claims hold, paper by paper and place by place.
pub(super) fn verdicts(findings: &Findings) -> Markup {
    let places = findings.places();
    let header: Vec<_> = std::iter::once("paper")
        .chain(places.iter().copied())
        .collect();
    let row = |(paper, _): &(&str, &str)| {
        let cell = |place: &&str| match findings.count(paper, place) {
            [0, 0, 0] => "-".to_owned(),
            [holds, fails, open] => format!("holds {holds}, fails {fails}, cannot tell {open}"),
        };
        let cells: Vec<_> = places.iter().map(cell).collect();
        std::iter::once((*paper).to_owned()).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = PAPERS.iter().map(row).collect();
    texts("What the papers say, judged", &header, &rows)
}

/// How each lock did in one place, folded.
pub(super) fn tallies(place: &str, score: &Score) -> Markup {
    let header = [
        "lock",
        "led",
        "level with the leader",
        "behind",
        "of the leader's throughput: median",
        "least",
    ];
    let row = |tally: &Tally| {
        let (median, least) = tally.of_leader;
        vec![
            tally.lock.clone(),
            tally.led.to_string(),
            tally.level.to_string(),
            (tally.ran - tally.led - tally.level).to_string(),
            format!("{median:.2}"),
            format!("{least:.2}"),
        ]
    };
    let rows: Vec<_> = score.locks.iter().map(row).collect();
    let caption = format!(
        "{place}: {} in {} panels by threads",
        score.of, score.contests
    );
    html! {
        details { summary { "All " (score.of) ", lock by lock" } (texts(&caption, &header, &rows)) }
    }
}

/// Who leads, panel by panel and by threads.
pub(super) fn winners(findings: &Findings) -> Markup {
    html! {
        @if findings.standings.is_empty() { p { "No lock ran." } }
        @else { p { "The best of each family of locks; those level with the leader are within the spreads of both." } }
        @for (place, standings) in &findings.standings {
            @let counts = sorted(standings.iter().map(|standing| standing.threads));
            @let panels = distinct(standings.iter().map(|standing| standing.panel.as_str()));
            @let header: Vec<String> = std::iter::once("panel, by threads".to_owned()).chain(counts.iter().map(usize::to_string)).collect();
            @let rows: Vec<Vec<String>> = panels.iter().map(|panel| {
                let cell = |count: &usize| {
                    let mut here = standings.iter();
                    let found = here.find(|one| one.panel == *panel && one.threads == *count);
                    found.map_or("-".to_owned(), leaders)
                };
                std::iter::once((*panel).to_owned()).chain(counts.iter().map(cell)).collect()
            }).collect();
            (texts(place, &header.iter().map(String::as_str).collect::<Vec<_>>(), &rows))
        }
    }
}

fn sorted(counts: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut counts = distinct(counts);
    counts.sort_unstable();
    counts
}

/// Simulated runs against real ones.
pub(super) fn checks(findings: &Findings) -> Markup {
    let header = [
        "panel",
        "threads",
        "simulated",
        "locks",
        "rank correlation",
        "least ratio",
        "middle",
        "most",
        "in words",
    ];
    let row = |check: &super::super::validation::Check| {
        let [least, middle, most] = &check.ratios;
        let with_lock = |(lock, ratio): &(String, f64)| format!("{ratio:.2} ({lock})");
        vec![
            check.panel.to_string(),
            check.threads.to_string(),
            check.simulated.clone(),
            check.locks.to_string(),
            check
                .correlation
                .map_or("-".to_owned(), |rho| format!("{rho:.2}")),
            with_lock(least),
            format!("{:.2}", middle.1),
            with_lock(most),
            check.words(),
        ]
    };
    let rows: Vec<_> = findings.checks.iter().map(row).collect();
    texts("Simulated and measured throughput", &header, &rows)
}

/// Of each simulated machine.
pub(super) fn parameters(input: &Input) -> Markup {
    let machines = distinct(input.stages.iter().filter_map(|stage| match &stage.ground {
        Ground::Simulated { machine, .. } => Some(machine.as_ref()),
        Ground::Real { .. } => None,
    }));
    html! {
        @if machines.is_empty() { p { "Nothing simulated was given." } }
        @for machine in machines {
            @let (remarks, numbers) = parameters::parameters(machine);
            h3 { (machine.name) }
            p { (machine.about) ". " (remarks) }
            @let rows: Vec<_> = numbers.into_iter().map(|one| vec![one.name, one.value, one.source]).collect();
            details {
                summary { "Numbers of " (machine.name) }
                (texts(&format!("{}, in cycles but for counts and gigahertz", machine.name), &["number", "value", "source"], &rows))
            }
        }
    }
}

/// Machine, commit and command of each input, and what it has beside figures.
pub(super) fn sources(input: &Input) -> Markup {
    html! {
        @for source in &input.sources {
            @let from = &source.provenance;
            h3 { code { (source.file) } }
            dl {
                dt { "command" } dd { code { (from.command) } }
                dt { "commit" } dd { code { (from.commit) } }
                dt { "machine" }
                dd {
                    (from.machine) ", " (from.cores) " processors, " (from.kernel)
                    @if let Some(name) = &source.simulated { "; it simulated " (name) }
                }
                @if let Some(time) = from.time { dt { "begun, in seconds since 1970" } dd { (time) } }
                dt { "runs" } dd { (source.runs) }
            }
            @for table in source.tables() {
                details { summary { "What else it has" } pre tabindex="0" { (table) } }
            }
        }
    }
}

/// Percentiles of each lock.
pub(super) fn percentiles(of: &str, rows: &[Percentiles<'_>]) -> Markup {
    let header: Vec<_> = std::iter::once("lock")
        .chain(AcquireTimes::COLUMNS)
        .collect();
    let cells = |(lock, times): &Percentiles<'_>| {
        let times = times.iter().map(u64::to_string);
        std::iter::once((*lock).to_owned()).chain(times).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    html! {
        details { summary { "Numbers: " (of) } (texts(&format!("{of}, nanoseconds"), &header, &rows)) }
    }
}
