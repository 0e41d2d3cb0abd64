//! Papers: their figures, and what they say of them.

use super::super::chart;
use super::super::figure::Figure;
use super::super::findings::{Findings, NOWHERE, Ruling, Shown};
use super::super::grid::{Grid, charts, grids};
use super::super::input::Input;
use super::tables::wide;
use crate::compare::Verdict;
use maud::{Markup, html};

/// All figures of a paper.
pub(super) fn paper(input: &Input, findings: &Findings, name: &str) -> Markup {
    let figures: Vec<_> = findings
        .figures
        .iter()
        .filter(|shown| shown.figure.paper() == name)
        .collect();
    let (drawn, empty): (Vec<&Shown>, Vec<&Shown>) = figures
        .into_iter()
        .partition(|shown| !shown.panels.is_empty());
    let claims: usize = empty.iter().map(|shown| shown.rulings.len()).sum();
    html! {
        @for shown in drawn { (figure(input, shown)) }
        @if !empty.is_empty() {
            details class="empty" {
                summary { (counted(empty.len(), "figure")) " without runs, " (counted(claims, "claim")) " that cannot be told" }
                @for shown in empty { (figure(input, shown)) }
            }
        }
    }
}

/// So many of something.
fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn figure(input: &Input, shown: &Shown) -> Markup {
    let figure = shown.figure;
    let id = figure.anchor();
    html! {
        section id=(id) aria-labelledby=(format!("{id}-title")) {
            h3 id=(format!("{id}-title")) { (figure.title) " " span class="source" { (figure.source) } }
            @if shown.panels.is_empty() {
                p { "Left out: no runs of it were given." }
            }
            @let panels = grids(input, shown);
            @let beside = if panels.iter().all(|(_, grids)| grids.len() < 2) { "panels beside" } else { "panels" };
            div class=(beside) {
                @for (number, (title, grids)) in panels.iter().enumerate() {
                    (panel(figure, title, grids, &format!("{id}-{number}")))
                }
            }
            @if !shown.rulings.is_empty() {
                h4 { "Claims, and what runs say of them" }
                (claims(&shown.rulings))
            }
        }
    }
}

/// Its charts, place by place, and the numbers.
fn panel(figure: &Figure, title: &str, grids: &[Grid], id: &str) -> Markup {
    html! {
        div {
            h4 { (title) }
            div class="charts" {
                @for (at, (grid, drawn)) in charts(figure, title, grids).iter().enumerate() {
                    figure {
                        (chart::svg(drawn, &format!("{id}-{at}")))
                        figcaption { (grid.place) }
                    }
                }
            }
            details {
                summary { "Numbers: " (title) }
                @for grid in grids { (table(grid)) }
            }
        }
    }
}

/// Claims that runs decide, and folded those that they do not.
fn claims(rulings: &[Ruling]) -> Markup {
    let is_open = |ruling: &&Ruling| {
        let mut verdicts = ruling.verdicts.iter();
        verdicts.all(|(_, judgement)| judgement.verdict == Verdict::CannotTell)
    };
    let (open, decided): (Vec<_>, Vec<_>) = rulings.iter().partition(is_open);
    let list = |rulings: &[&Ruling]| {
        html! { ul class="claims" { @for ruling in rulings { (claim(ruling)) } } }
    };
    html! {
        @if !decided.is_empty() { (list(&decided)) }
        @if !open.is_empty() {
            details { summary { (counted(open.len(), "claim")) " that cannot be told" } (list(&open)) }
        }
    }
}

fn claim(ruling: &Ruling) -> Markup {
    html! {
        li {
            p { (ruling.claim.says) }
            ul {
                @for (place, judgement) in &ruling.verdicts {
                    li {
                        (verdict(judgement.verdict))
                        @if place != NOWHERE { " " (place) }
                        " " span class="because" { (judgement.because) }
                    }
                }
            }
        }
    }
}

/// In words, with a sign and a colour.
fn verdict(verdict: Verdict) -> Markup {
    let (class, sign) = match verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Fails => ("fails", "✗"),
        Verdict::CannotTell => ("open", "?"),
    };
    html! {
        span class=(format!("verdict {class}")) { span aria-hidden="true" { (sign) " " } (verdict) "." }
    }
}

/// All locks, also those without a curve.
fn table(grid: &Grid) -> Markup {
    let caption = format!("{}: {} by {}", grid.place, grid.unit.name(), grid.across);
    wide(
        &caption,
        &html! {
            thead {
                tr {
                    th scope="col" { "lock" }
                    @for (_, column) in &grid.columns { th class="n" scope="col" { (column) } }
                }
            }
            tbody {
                @for (lock, cells) in &grid.rows {
                    tr {
                        th scope="row" { (lock) }
                        @for cell in cells {
                            td class="n" { @match cell { Some(value) => (grid.unit.told(value)), None => "-" } }
                        }
                    }
                }
            }
        },
    )
}
