//! Text for people, no wider than where it goes.
//!
//! A table that is too wide has heads of several lines. If that is not enough, it becomes several tables, which all
//! begin with the columns that name a row.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ColumnConstraint};
use std::ops::Range;

/// How many columns text for people may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width(usize);

impl Width {
    /// Of a terminal, unless it is known to be another.
    pub const USUAL: Self = Self(80);

    /// In fewer columns no table is readable: the least is 40.
    #[must_use]
    pub const fn of(columns: usize) -> Self {
        Self(if columns < 40 { 40 } else { columns })
    }

    /// The number of columns.
    #[must_use]
    pub const fn columns(self) -> usize {
        self.0
    }
}

/// What a column takes beside its content: a blank on each side, and a line.
const BESIDE: usize = 3;
/// A value that is not longer stays on one line.
const WHOLE: usize = 16;
/// As much of a row's name stays on one line.
const NAME: usize = 20;

/// A column: its head, and the text of its cell in a row.
pub(super) type Column<'a, R> = (&'static str, &'a dyn Fn(&R) -> String);

/// A table: names to the left, numbers to the right.
pub(super) struct Table {
    keys: usize,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table, with heads of names and of values. The first `keys` columns name a row.
    pub(super) fn new(
        keys: usize,
        names: impl IntoIterator<Item = impl ToString>,
        values: impl IntoIterator<Item = impl ToString>,
    ) -> Self {
        Self {
            keys,
            header: texts(names, values),
            rows: Vec::new(),
        }
    }

    /// A row for each of `rows`. The first `keys` columns name a row.
    pub(super) fn of<'a, R: 'a>(
        keys: usize,
        columns: &[Column<'_, R>],
        rows: impl IntoIterator<Item = &'a R>,
    ) -> Self {
        let cells = |row| columns.iter().map(|(_, cell)| cell(row)).collect();
        Self {
            keys,
            header: columns.iter().map(|(head, _)| (*head).to_owned()).collect(),
            rows: rows.into_iter().map(cells).collect(),
        }
    }

    /// Adds a row, with a cell for each column.
    pub(super) fn add_row(
        &mut self,
        names: impl IntoIterator<Item = impl ToString>,
        values: impl IntoIterator<Item = impl ToString>,
    ) {
        self.rows.push(texts(names, values));
    }

    /// Its lines, without blanks at their ends.
    pub(super) fn text(&self, width: Width) -> String {
        let parts = self.parts(width);
        parts
            .map(|values| self.part(values, width) + "\n")
            .collect()
    }

    /// The columns of values, part by part: as many in each as there is room for, and one at least.
    fn parts(&self, width: Width) -> impl Iterator<Item = Range<usize>> {
        let least: Vec<_> = (0..self.header.len()).map(|at| self.least(at)).collect();
        let keys: usize = 1 + least[..self.keys]
            .iter()
            .map(|least| least + BESIDE)
            .sum::<usize>();
        let mut parts = Vec::new();
        let (mut from, mut taken) = (self.keys, keys);
        for (at, least) in least.iter().enumerate().skip(self.keys) {
            if at > from && taken + least + BESIDE > width.columns() {
                parts.push(from..at);
                (from, taken) = (at, keys);
            }
            taken += least + BESIDE;
        }
        parts.push(from..least.len());
        parts.into_iter()
    }

    /// The columns that name a row, and some of the others.
    fn part(&self, values: Range<usize>, width: Width) -> String {
        let columns: Vec<usize> = (0..self.keys).chain(values).collect();
        let of = |cells: &[String]| {
            let cells = columns.iter().map(|&at| cells[at].clone());
            cells.collect::<Vec<_>>()
        };
        let mut table = comfy_table::Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header(of(&self.header));
        table.add_rows(self.rows.iter().map(|row| of(row)));
        let widths = self.widths(&columns, width);
        for (at, (column, width)) in table.column_iter_mut().zip(widths).enumerate() {
            if at >= self.keys {
                column.set_cell_alignment(CellAlignment::Right);
            }
            let width = u16::try_from(width + BESIDE - 1).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(comfy_table::Width::Fixed(width)));
        }
        table.trim_fmt()
    }

    /// Widths of columns: the least of each, and more for those that need it while there is room.
    fn widths(&self, columns: &[usize], width: Width) -> Vec<usize> {
        let mut widths: Vec<_> = columns.iter().map(|&at| self.least(at)).collect();
        let taken = 1 + widths.iter().map(|width| width + BESIDE).sum::<usize>();
        let mut room = width.columns().saturating_sub(taken);
        while room > 0 {
            let before = room;
            for (width, &at) in widths.iter_mut().zip(columns) {
                if room > 0 && *width < self.most(at) {
                    *width += 1;
                    room -= 1;
                }
            }
            if room == before {
                break;
            }
        }
        widths
    }

    /// The width of a column that breaks no word, and no short cell.
    fn least(&self, at: usize) -> usize {
        let whole = if at < self.keys { NAME } else { WHOLE };
        let of_cell = |cell: &String| match letters(cell) {
            short if short <= whole => short,
            _ if at < self.keys => whole.max(longest_word(cell)),
            _ => longest_word(cell),
        };
        let cells = self.rows.iter().map(|row| of_cell(&row[at]));
        cells.fold(longest_word(&self.header[at]), usize::max)
    }

    /// The width of a column in which nothing is broken.
    fn most(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| letters(&row[at]));
        cells.fold(letters(&self.header[at]), usize::max)
    }
}

/// Names, then values.
fn texts(
    names: impl IntoIterator<Item = impl ToString>,
    values: impl IntoIterator<Item = impl ToString>,
) -> Vec<String> {
    let names = names.into_iter().map(|name| name.to_string());
    let values = values.into_iter().map(|value| value.to_string());
    names.chain(values).collect()
}

fn letters(text: &str) -> usize {
    textwrap::core::display_width(text)
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(letters).max().unwrap_or(0)
}

/// Marks the line of the source that names the command: it stays whole, so that it can be copied.
pub(super) const COMMAND: &str = "command: ";

/// The text with its long lines broken between words, and what is left of them two blanks further in. Tables are of the
/// right width already.
pub(super) fn wrapped(text: &str, width: Width) -> String {
    let line = |line: &str| {
        let is_table = line.starts_with(['┌', '│', '╞', '├', '└']);
        if is_table || line.starts_with(COMMAND) || letters(line) <= width.columns() {
            return format!("{line}\n");
        }
        let content = line.trim_start();
        let indent = &line[..line.len() - content.len()];
        format!(
            "{}\n",
            hanging(content, indent, &format!("{indent}  "), width)
        )
    };
    text.lines().map(line).collect()
}

/// A text of which the first line begins with one indent, and the others with another.
pub(super) fn hanging(text: &str, first: &str, others: &str, width: Width) -> String {
    let options = textwrap::Options::new(width.columns())
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .initial_indent(first)
        .subsequent_indent(others);
    textwrap::fill(text, options)
}

#[cfg(test)]
mod tests {
    use super::{Table, Width, wrapped};

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap()
    }

    fn table(columns: usize) -> Table {
        let head = |at: usize| format!("operations of {at}");
        let mut table = Table::new(1, ["lock"], (0..columns).map(head));
        for lock in ["list-rw", "list-rw-of-a-rather-long-name"] {
            let cells = (0..columns).map(|at| format!("{at}.000 ±1%"));
            table.add_row([lock], cells);
        }
        table
    }

    #[test]
    fn a_table_is_as_wide_as_it_may_be_and_breaks_no_value() {
        for columns in 1..20 {
            let all = table(columns);
            for width in [60, 80, 100, 133, 1000] {
                let text = all.text(Width::of(width));
                assert!(widest(&text) <= width, "{width}:\n{text}");
                for at in 0..columns {
                    let value = format!(" {at}.000 ±1% ");
                    assert_eq!(text.matches(&value).count(), 2, "{width}:\n{text}");
                }
                let named = text.matches("│ list-rw ").count();
                assert_eq!(named, text.matches('┌').count(), "{text}");
            }
        }
    }

    #[test]
    fn a_table_with_room_has_heads_of_one_line() {
        let text = table(2).text(Width::USUAL);
        assert!(
            text.contains("┆ operations of 0 ┆ operations of 1 │"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 6, "{text}");
    }

    #[test]
    fn long_lines_are_broken_between_words_and_tables_and_commands_are_not() {
        let words = "word ".repeat(40);
        let command = format!("command: {words}");
        let text = format!("  {words}\n\n│ {words}│\n{command}\nshort\n");
        let broken = wrapped(&text, Width::USUAL);
        let lines: Vec<_> = broken.lines().collect();
        let (prose, rest) = lines.split_at(lines.len() - 4);
        assert!(
            prose[0].starts_with("  word") && prose.len() == 3,
            "{broken}"
        );
        assert!(prose[1..].iter().all(|line| line.starts_with("    word")));
        assert!(
            prose
                .iter()
                .all(|line| line.len() <= 80 && !line.ends_with(' '))
        );
        assert_eq!(rest, ["", &format!("│ {words}│"), &command, "short"]);
    }
}
