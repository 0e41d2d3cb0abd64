//! Ranges in reports, which outlive what the words of a span name.

use super::mode::Mode;
use super::span::Span;
use std::fmt::{self, Write};
use std::panic::Location;

/// What somebody holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldRange {
    /// The range; of a segment lock, what it has in common with what is asked for.
    pub span: Span,
    /// In a lock over keys, what of them it is: then `span` is everything. `None` there: the keys cannot be shown.
    pub keys: Option<ShownKeys>,
    /// How it is held.
    pub mode: Mode,
    /// The line that locked it, if it is known: always in debug builds.
    pub place: Option<&'static Location<'static>>,
}

impl HeldRange {
    pub(crate) fn new(span: Span, mode: Mode, place: Option<&'static Location<'static>>) -> Self {
        Self {
            span,
            keys: None,
            mode,
            place,
        }
    }

    pub(crate) fn shown(&self) -> Shown {
        Shown(self.span, self.keys)
    }
}

/// A range, as people read it: of a lock over keys, its keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown(pub(crate) Span, pub(crate) Option<ShownKeys>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(keys) => keys.fmt(f),
            None => self.0.fmt(f),
        }
    }
}

/// A range of keys as people read it, for reports and observers: as a [`KeyRange`](super::keys::KeyRange) is printed,
/// where each key is cut to 48 bytes.
///
/// Keys are printed by their `Debug`, or as [`Builder::shown_by`](super::keys::Builder::shown_by) says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShownKeys {
    len: u8,
    text: [u8; Self::ROOM],
}

impl ShownKeys {
    /// The most of a key that is shown, in bytes.
    const MOST: usize = 48;

    /// What says that a key is cut.
    const CUT: char = '\u{2026}';

    /// Two keys, and what stands around them.
    const ROOM: usize = 2 * (Self::MOST + Self::CUT.len_utf8()) + ">..=".len();

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.len.into()]).expect("it is made of characters")
    }

    /// What is between two ends, each with what stands before its key. What a format refuses to print, or prints beyond
    /// the most, is not shown.
    pub(super) fn between<K: fmt::Display>(ends: [(&str, Option<K>); 2]) -> Self {
        let mut shown = Self {
            len: 0,
            text: [0; Self::ROOM],
        };
        let [(before, first), (between, last)] = ends;
        shown.push(before);
        shown.key(first);
        shown.push("..");
        shown.push(between);
        shown.key(last);
        shown
    }

    fn key(&mut self, key: Option<impl fmt::Display>) {
        let Some(key) = key else {
            return;
        };
        let mut cut = Cut {
            shown: self,
            left: Some(Self::MOST),
        };
        // An error ends the key: it is cut there, or its format has failed.
        _ = write!(cut, "{key}");
    }

    fn push(&mut self, text: &str) {
        let at = usize::from(self.len);
        self.text[at..at + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len() as u8;
    }
}

/// Takes a key's text as long as there is room.
struct Cut<'s> {
    shown: &'s mut ShownKeys,
    /// `None`: it is cut. A format may go on after an error.
    left: Option<usize>,
}

impl Write for Cut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            let left = self.left.ok_or(fmt::Error)?;
            self.left = left.checked_sub(letter.len_utf8());
            let letter = if self.left.is_some() {
                letter
            } else {
                ShownKeys::CUT
            };
            self.shown.push(letter.encode_utf8(&mut [0; 4]));
        }
        Ok(())
    }
}

impl fmt::Display for ShownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ShownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
