//! The findings as Markdown.

use super::figure::PAPERS;
use super::findings::{Findings, lead, leaders, notes, rankings};
use super::input::Input;
use super::validation;
use crate::compare::plural;
use std::fmt::Write;

/// All but the figures.
#[must_use]
pub fn summary(input: &Input, findings: &Findings) -> String {
    let mut text = format!(
        "# Range locks and reader-writer locks, measured and simulated\n\n{}\n",
        lead(input)
    );
    for note in notes(input, findings) {
        let _ = write!(text, "\n{note}\n");
    }
    for (place, scores) in &findings.scores {
        let _ = write!(text, "\n## In short: {place}\n");
        for score in scores {
            let ours = score.ours().unwrap_or_default();
            let _ = write!(text, "\n{}\n{ours}\n", score.winners());
        }
    }
    text += "\n## What the papers say, judged\n";
    for (paper, title) in PAPERS {
        claims(&mut text, findings, paper, title);
    }
    text +=
        "\n## Who wins where\n\nThe best of each family of locks; ties are within the spreads.\n";
    for (place, standings) in &findings.standings {
        let _ = write!(text, "\n### {place}\n\n");
        let rows = standings.iter().map(|standing| {
            vec![
                standing.panel.clone(),
                standing.threads.to_string(),
                leaders(standing),
            ]
        });
        table(&mut text, &["panel", "threads", "leads"], rows);
    }
    let _ = write!(
        text,
        "\n## What simulation is worth\n\n{}\n\n",
        validation::verdict(&findings.checks)
    );
    let rows = findings.checks.iter().map(|check| {
        let [least, middle, most] = &check.ratios;
        vec![
            format!(
                "{}, {}, {}",
                check.panel,
                plural(check.threads),
                check.simulated
            ),
            check.locks.to_string(),
            check
                .correlation
                .map_or("-".to_owned(), |rho| format!("{rho:.2}")),
            format!("{:.2}, {:.2}, {:.2}", least.1, middle.1, most.1),
            check.words(),
        ]
    });
    let header = [
        "where",
        "locks",
        "rank correlation",
        "ratios: least, middle, most",
        "in words",
    ];
    table(&mut text, &header, rows);
    for (machine, orders) in rankings(input) {
        let _ = write!(
            text,
            "\n### Orders of locks that outlast other numbers: {machine}\n\n```text\n{orders}```\n"
        );
    }
    text += "\n## Where the numbers come from\n\n";
    let rows = input.sources.iter().map(|source| {
        let from = &source.provenance;
        let simulated = source.simulated.as_ref();
        let machine = simulated.map_or(from.machine.clone(), |name| {
            format!("simulated {name}, on {}", from.machine)
        });
        vec![
            format!("`{}`", source.file),
            format!("`{}`", from.command),
            from.commit.clone(),
            format!("{machine}, {} processors, {}", from.cores, from.kernel),
        ]
    });
    table(&mut text, &["file", "command", "commit", "machine"], rows);
    text
}

/// A table of verdicts, and below what each follows from.
fn claims(text: &mut String, findings: &Findings, paper: &str, title: &str) {
    let its = || {
        findings
            .figures
            .iter()
            .filter(move |shown| shown.figure.paper() == paper)
    };
    let rows = its().flat_map(|shown| &shown.rulings).flat_map(|ruling| {
        ruling.verdicts.iter().map(|(place, judgement)| {
            vec![
                ruling.claim.says.to_owned(),
                ruling.claim.source.to_owned(),
                place.clone(),
                format!("**{}**", judgement.verdict),
                judgement.because.clone(),
            ]
        })
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        let _ = write!(text, "\n### {paper}: {title}\n\n");
        table(
            text,
            &["says", "source", "where", "verdict", "because"],
            rows.into_iter(),
        );
    }
}

fn table(text: &mut String, header: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "| {} |", header.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(header.len()));
    for row in rows {
        let cells: Vec<_> = row
            .iter()
            .map(|cell| cell.replace('|', "\\|").replace('\n', " "))
            .collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}
