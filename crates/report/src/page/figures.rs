//! What the project's front page shows: measured throughput as tables in Markdown, and a simulated panel as a picture.

use super::grid::{Panel, of_panel};
use super::input::{Input, Platform, Site};
use crate::compare::{KINDS, Kind};
use crate::table::measured;
use askama::Template;
use spanlock_records::record::plural;
use spanlock_records::stats::{Order, Summary, distinct};

/// A chart as a file.
#[derive(Template)]
#[template(path = "picture.svg")]
struct Picture<'a> {
    input: &'a Input,
    of: String,
    chart: String,
}

/// The throughput of the range locks that ran, each by its name, in the first panel of the largest machine, a simulated
/// one if there is any: one chart, as a file of its own. It follows the reader's theme, and says where it comes from.
/// `None` if the default met no other lock.
#[must_use]
pub fn picture(input: &Input) -> Option<String> {
    let [kind, ..] = &KINDS;
    let met = |site: &&Site| !site.dataset.duels(kind).is_empty();
    let is_simulated = |site: &Site| matches!(site.platform, Platform::Simulated { .. });
    let sites = input.sites.iter().filter(met);
    let site = sites.max_by_key(|site| (is_simulated(site), site.platform.cores()))?;
    let mut panels = site.dataset.panels().into_iter();
    let panel = panels.find(|panel| panel.kind() == kind.of)?;
    let Panel { name, charts, .. } = of_panel(site, panel);
    let (chart, place) = charts.into_iter().next()?;
    let of = format!("{name}; {place}");
    Some(Picture { input, of, chart }.to_string())
}

/// Tables in Markdown, and where their numbers come from.
#[derive(Template)]
#[template(path = "figures.md")]
struct Figures<'a> {
    input: &'a Input,
    tables: Vec<Table<'a>>,
}

/// One kind of locks on one machine.
struct Table<'a> {
    title: &'static str,
    locks: Vec<&'a str>,
    /// A panel with a number of threads, and a cell for each lock.
    rows: Vec<(String, Vec<String>)>,
}

/// What was measured, as tables in Markdown: a row for each panel with each number of threads, and a column for each
/// lock. What no lock beats by more than the spreads is in bold.
#[must_use]
pub fn figures(input: &Input) -> String {
    let is_measured = |site: &&Site| matches!(site.platform, Platform::Measured { .. });
    let sites = input.sites.iter().filter(is_measured);
    let tables = sites.flat_map(|site| KINDS.iter().filter_map(|kind| table(site, kind)));
    let tables = tables.collect();
    Figures { input, tables }.to_string()
}

/// A command of a shell on lines that a reader of the source sees whole.
fn folded(command: &str) -> String {
    const COLUMNS: usize = 110;
    let (mut text, mut column) = (String::new(), 0);
    for word in command.split(' ') {
        if column + word.len() > COLUMNS {
            text.push_str(" \\\n   ");
            column = 3;
        }
        if column > 0 {
            text.push(' ');
        }
        text.push_str(word);
        column += word.len() + 1;
    }
    text
}

fn table<'a>(site: &'a Site, kind: &Kind) -> Option<Table<'a>> {
    let data = &site.dataset;
    let mut cells = data.cells();
    cells.retain(|(panel, _)| panel.kind() == kind.of);
    let locks = distinct(cells.iter().flat_map(|(panel, _)| data.locks(*panel)));
    let row = |&(panel, threads): &_| {
        let all = locks
            .iter()
            .map(|lock| data.throughput(panel, lock, threads));
        let all: Vec<_> = all.collect();
        let best = all.iter().copied().flatten();
        let best = best.max_by(|one, other| one.median.total_cmp(&other.median));
        let cell = |one: &Option<Summary>| {
            let text = measured(*one, 1e6, 2);
            let level = one
                .zip(best)
                .is_some_and(|(one, best)| one.order(&best) != Order::Below);
            if level { format!("**{text}**") } else { text }
        };
        let name = format!("{panel}, {}", plural(threads));
        (name, all.iter().map(cell).collect())
    };
    let rows: Vec<_> = cells.iter().map(row).collect();
    let title = kind.title;
    (!rows.is_empty()).then_some(Table { title, locks, rows })
}
