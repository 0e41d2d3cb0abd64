//! Who holds, and who waits.

use super::{Place, Server};
use crate::failure::{Failure, Result};
use crate::options::{Format, Output};
use crate::output::print;
use serde::Serialize;
use spanlock_lease::{Listed, Mode, Span, State};
use std::time::Duration;

pub(super) fn run(server: &Server, resource: Option<&str>, output: &Output) -> Result {
    let mut all = list(server)?;
    all.retain(|listed| resource.is_none_or(|resource| listed.resource == resource));
    match output.format {
        Format::Table => print(&table(&all)),
        Format::Json => print(&lines(&all)),
    }
}

/// All leases and wishes.
pub(super) fn list(server: &Server) -> Result<Vec<Listed>> {
    let place = server.place()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listed = runtime.block_on(async {
        match &place {
            Place::Postgres { config, schema } => {
                spanlock_lease_postgres::status(config, schema).await
            }
            Place::Etcd(config) => spanlock_lease_etcd::status(config).await,
        }
    });
    listed.map_err(|error| Failure::Input(format!("the leases: {error}")))
}

/// How a range is written, and read by `--range`.
pub(super) fn written(span: Span) -> String {
    match (span.start(), span.last()) {
        (0, u64::MAX) => "..".to_owned(),
        (start, u64::MAX) => format!("{start}.."),
        (start, last) => format!("{start}..={last}"),
    }
}

/// A name as people see it. Others have chosen it, so what a terminal obeys, or shows as another line, is escaped.
pub(super) fn in_one_line(name: &str) -> String {
    let shown = |c: char| match c.is_control() || is_unseen(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    name.chars().map(shown).collect()
}

/// What has no width, changes the direction of what follows, or looks like a space where none is: what Unicode ignores
/// by default, the separators of lines, and the marks of annotations.
#[rustfmt::skip]
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Shared => "shared",
        Mode::Exclusive => "exclusive",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Held => "held",
        State::Awaited => "awaited",
        State::Grace => "grace",
    }
}

fn table(all: &[Listed]) -> String {
    if all.is_empty() {
        return "nothing is held, and nobody waits\n".to_owned();
    }
    let time = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let head = ["RESOURCE", "RANGE", "MODE", "STATE", "FOR", "ENDS IN", "BY"].map(str::to_owned);
    let rows = all.iter().map(|listed| {
        [
            in_one_line(&listed.resource),
            written(listed.span),
            mode(listed.mode).to_owned(),
            state(listed.state).to_owned(),
            time(listed.age),
            time(listed.left),
            in_one_line(&listed.client),
        ]
    });
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..rows[0].len()).filter_map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[derive(Serialize)]
struct Line<'a> {
    resource: &'a str,
    state: &'static str,
    start: u64,
    last: u64,
    mode: &'static str,
    client: &'a str,
    id: String,
    age_seconds: f64,
    ends_in_seconds: f64,
}

fn lines(all: &[Listed]) -> String {
    let line = |listed: &Listed| {
        let line = Line {
            resource: &listed.resource,
            state: state(listed.state),
            start: listed.span.start(),
            last: listed.span.last(),
            mode: mode(listed.mode),
            client: &listed.client,
            id: listed.id.to_string(),
            age_seconds: listed.age.as_secs_f64(),
            ends_in_seconds: listed.left.as_secs_f64(),
        };
        serde_json::to_string(&line).expect("numbers and strings") + "\n"
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::in_one_line;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(in_one_line("größe 7/ß"), "größe 7/ß");
        assert_eq!(
            in_one_line("a\nb\u{1b}[2J\u{9b}"),
            "a\\u{a}b\\u{1b}[2J\\u{9b}"
        );
    }

    /// Overrides of the direction, what joins and separates without width, marks, tags, and letters that are blank.
    #[test]
    fn what_is_not_seen_is_escaped() {
        let unseen = "\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180e}\u{200b}\u{200f}\u{2028}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\
            \u{206f}\u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{fffb}\u{1bca0}\u{1d173}\u{e0001}\u{e0041}\u{e0100}";
        for c in unseen.chars() {
            let escaped = format!("a{}b", c.escape_unicode());
            assert_eq!(in_one_line(&format!("a{c}b")), escaped);
        }
        for seen in ["\u{600}", "é", "\u{3000}", "–", "字", "\u{1f512}"] {
            assert_eq!(in_one_line(seen), seen);
        }
    }
}
