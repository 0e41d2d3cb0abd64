//! Ranges of keys in reports: short texts, which outlive the keys.

use super::cells::{End, Side};
use std::fmt::{self, Write};

/// A range of keys as people read it, for reports and observers: as a [`KeyRange`](super::KeyRange) is printed, where
/// each key is cut to 48 bytes.
///
/// Keys are printed by their `Debug`, or as [`Builder::shown_by`](super::Builder::shown_by) says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShownKeys {
    len: u8,
    text: [u8; Self::ROOM],
}

/// How a key is printed.
pub(super) type Show<K> = fn(&K, &mut fmt::Formatter<'_>) -> fmt::Result;

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

    /// What is between two ends. What a format refuses to print, or prints beyond the most, is not shown.
    pub(super) fn between<K: ?Sized>(from: End<'_, K>, to: End<'_, K>, show: Show<K>) -> Self {
        let mut shown = Self {
            len: 0,
            text: [0; Self::ROOM],
        };
        if from.0 == Side::After {
            shown.push(">");
        }
        shown.key(from, show);
        shown.push("..");
        if to.0 == Side::After {
            shown.push("=");
        }
        shown.key(to, show);
        shown
    }

    fn key<K: ?Sized>(&mut self, (_, key): End<'_, K>, show: Show<K>) {
        let Some(key) = key else {
            return;
        };
        let mut cut = Cut {
            shown: self,
            left: Some(Self::MOST),
        };
        // An error ends the key: it is cut there, or its format has failed.
        _ = write!(cut, "{}", By(key, show));
    }

    fn push(&mut self, text: &str) {
        let at = usize::from(self.len);
        self.text[at..at + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len() as u8;
    }
}

/// A key with its format.
struct By<'k, K: ?Sized>(&'k K, Show<K>);

impl<K: ?Sized> fmt::Display for By<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.1)(self.0, f)
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
