//! Who holds, and who waits.

use crate::Format;
use crate::failure::Result;
use crate::server::{Places, Server};
use serde::Serialize;
use spanlock_lease::{KeySpan, Listed, Mode, Span, State};
use std::io::{self, Write};

pub(super) fn run(server: &Server, resource: Option<&str>, format: Format) -> Result {
    let positions = Span::list(server)?.into_iter().map(|listed| {
        let ends = (listed.span.start(), listed.span.last());
        Row::new(listed, Some(ends))
    });
    let keys = KeySpan::list(server)?
        .into_iter()
        .map(|listed| Row::new(listed, None));
    let mut all: Vec<_> = positions.chain(keys).collect();
    all.retain(|row| resource.is_none_or(|resource| row.resource == resource));
    all.sort_by(|one, other| one.resource.cmp(&other.resource));
    let text = match format {
        Format::Table => table(&all),
        Format::Json => all.iter().map(line).collect(),
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// What is listed, whatever the resource is leased by.
#[derive(Serialize)]
struct Row {
    resource: String,
    state: &'static str,
    range: String,
    /// Of positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u64>,
    mode: &'static str,
    client: String,
    id: String,
    age_seconds: f64,
    ends_in_seconds: f64,
}

impl Row {
    fn new<R: Places>(listed: Listed<R>, ends: Option<(u64, u64)>) -> Self {
        Self {
            range: listed.span.written(),
            resource: listed.resource,
            state: state(listed.state),
            start: ends.map(|(start, _)| start),
            last: ends.map(|(_, last)| last),
            mode: mode(listed.mode),
            client: listed.client,
            id: listed.id.to_string(),
            age_seconds: listed.age.as_secs_f64(),
            ends_in_seconds: listed.left.as_secs_f64(),
        }
    }
}

fn line(row: &Row) -> String {
    serde_json::to_string(row).expect("numbers and strings") + "\n"
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

fn table(all: &[Row]) -> String {
    if all.is_empty() {
        return "nothing is held, and nobody waits\n".to_owned();
    }
    let time = |seconds: f64| format!("{seconds:.1} s");
    let head = ["RESOURCE", "RANGE", "MODE", "STATE", "FOR", "ENDS IN", "BY"].map(str::to_owned);
    let rows = all.iter().map(|row| {
        [
            in_one_line(&row.resource),
            row.range.clone(),
            row.mode.to_owned(),
            row.state.to_owned(),
            time(row.age_seconds),
            time(row.ends_in_seconds),
            in_one_line(&row.client),
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
