//! Ranges of byte strings.

use crate::{Acquire, Extent, Mode, RangeLease};
use std::error::Error;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

/// Leases of ranges of byte strings, such as the keys of a table.
///
/// ```
/// use spanlock_lease::{KeyLease, Memory, Mode, between, point, prefix};
/// use std::time::Duration;
///
/// let table = KeyLease::open(Memory::over_keys()).wait()?;
/// let ttl = Duration::from_secs(10);
/// let users = table.acquire(prefix(b"user/"), Mode::Exclusive, ttl).wait()?;
/// let orders = table.acquire(between(b"order/1", b"order/2"), Mode::Shared, ttl).wait()?;
/// let order = table.acquire(point(b"order/17"), Mode::Shared, ttl).wait()?;
/// assert!(users.span().contains(b"user/7"));
/// # drop((users, orders, order));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The order is that of the bytes. Which keys exist no engine knows: between two different keys there may be another
/// one. So a lease cannot grow to a block of so many keys, and there is no [`Cache`](crate::Cache) of them.
pub type KeyLease = RangeLease<KeySpan>;

impl KeyLease {
    /// A request for a range of keys, which begins with [`start`](Acquire::start), [`wait`](Acquire::wait) or `.await`.
    /// [`point`](crate::point), [`between`](crate::between) and [`prefix`](crate::prefix) write ranges, and so does a
    /// pair of [`Bound`]s.
    ///
    /// # Panics
    /// When the range starts after it ends.
    #[track_caller]
    pub fn acquire(
        &self,
        range: impl RangeBounds<[u8]>,
        mode: Mode,
        ttl: Duration,
    ) -> Acquire<'_, KeySpan> {
        self.request(KeySpan::of(range), mode, ttl)
    }
}

/// A range of byte strings that is not empty.
///
/// The string that follows another one is that and a zero. So each range is one that begins with a string and ends
/// before another one, or has no end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeySpan {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl KeySpan {
    /// Every byte string.
    pub const ALL: Self = Self {
        start: Vec::new(),
        end: None,
    };

    /// The span of a range as users write it; `None` for an empty one.
    ///
    /// # Errors
    /// [`ReversedKeys`] when it starts after it ends.
    pub fn new(range: impl RangeBounds<[u8]>) -> Result<Option<Self>, ReversedKeys> {
        let behind = |key: &[u8]| [key, &[0]].concat();
        let start = match range.start_bound() {
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => Vec::new(),
        };
        let end = match range.end_bound() {
            Bound::Included(key) => Some(behind(key)),
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Unbounded => None,
        };
        match end {
            Some(end) if start > end => Err(ReversedKeys { start, end }),
            Some(end) if start == end => Ok(None),
            end => Ok(Some(Self { start, end })),
        }
    }

    /// As [`new`](Self::new), for callers to whom a reversed range is a mistake.
    ///
    /// # Panics
    /// When the range starts after it ends.
    #[must_use]
    #[track_caller]
    pub fn of(range: impl RangeBounds<[u8]>) -> Option<Self> {
        match Self::new(range) {
            Ok(span) => span,
            Err(error) => panic!("{error}"),
        }
    }

    /// The first byte string.
    #[must_use]
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// The first byte string behind it, if there is one.
    #[must_use]
    pub fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// Whether it has the key.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        RangeBounds::contains(self, key)
    }

    /// Whether the two have a key in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let begins_in = |one: &Self, other: &Self| other.contains(&one.start);
        begins_in(self, other) || begins_in(other, self)
    }
}

impl RangeBounds<[u8]> for KeySpan {
    fn start_bound(&self) -> Bound<&[u8]> {
        Bound::Included(&self.start)
    }

    fn end_bound(&self) -> Bound<&[u8]> {
        self.end().map_or(Bound::Unbounded, Bound::Excluded)
    }
}

impl Extent for KeySpan {
    fn meets(&self, other: &Self) -> bool {
        self.overlaps(other)
    }

    /// Nobody can count byte strings.
    fn block(&self, _k: u32) -> Option<Self> {
        None
    }
}

/// As ranges are written: `"b".."m"`. Bytes that are no printable ASCII are escaped. If the end is the string that
/// follows a key, it is the key, as in `"b"..="m"`.
impl fmt::Display for KeySpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |key: &[u8]| format!("\"{}\"", key.escape_ascii());
        if *self == Self::ALL {
            return f.write_str("..");
        }
        write!(f, "{}..", shown(&self.start))?;
        match self.end() {
            Some([key @ .., 0]) => write!(f, "={}", shown(key)),
            Some(end) => f.write_str(&shown(end)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for KeySpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A range of byte strings that starts after it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReversedKeys {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl fmt::Display for ReversedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = (self.start.escape_ascii(), self.end.escape_ascii());
        write!(
            f,
            "the range starts at \"{start}\", after its end \"{end}\""
        )
    }
}

impl Error for ReversedKeys {}

#[cfg(test)]
mod tests {
    use super::{KeySpan, ReversedKeys};
    use crate::{between, point, prefix};
    use std::ops::Bound::{self, Excluded, Included, Unbounded};
    use std::ops::RangeBounds;

    fn bounds<'k>(
        start: Bound<&'k str>,
        end: Bound<&'k str>,
    ) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
        (start.map(str::as_bytes), end.map(str::as_bytes))
    }

    /// Of a range that is neither empty nor reversed.
    fn shown(range: impl RangeBounds<[u8]>) -> String {
        KeySpan::of(range).expect("it has keys").to_string()
    }

    #[test]
    fn every_way_to_write_a_range() {
        for (range, expected) in [
            (bounds(Included("a"), Excluded("b")), r#""a".."b""#),
            (bounds(Included("a"), Included("b")), r#""a"..="b""#),
            (bounds(Excluded("a"), Included("b")), r#""a\x00"..="b""#),
            (bounds(Unbounded, Excluded("b")), r#""".."b""#),
            (bounds(Included("ä"), Unbounded), r#""\xc3\xa4".."#),
            (bounds(Included(""), Unbounded), ".."),
            (bounds(Unbounded, Included("")), r#"""..="""#),
        ] {
            assert_eq!(shown(range), expected);
        }
        assert_eq!(KeySpan::of(..), Some(KeySpan::ALL));
        assert_eq!(shown(point(b"a")), r#""a"..="a""#);
        assert_eq!(shown(between(b"a", b"b")), r#""a".."b""#);
        assert_eq!(shown(prefix(b"a\xff\xff")), r#""a\xff\xff".."b""#);
        assert_eq!(shown(prefix(b"\xff\xff")), r#""\xff\xff".."#);
        assert_eq!(shown(prefix(b"")), "..");
    }

    #[test]
    fn empty_ranges_are_none_and_reversed_ones_are_errors() {
        for empty in [
            bounds(Included("a"), Excluded("a")),
            bounds(Excluded("a"), Included("a")),
            bounds(Excluded("a"), Excluded("a\0")),
            bounds(Unbounded, Excluded("")),
        ] {
            assert_eq!(KeySpan::new(empty), Ok(None));
        }
        for reversed in [
            bounds(Included("b"), Excluded("a")),
            bounds(Excluded("a"), Excluded("a")),
            bounds(Included("a\0"), Excluded("a")),
        ] {
            let error: ReversedKeys = KeySpan::new(reversed).unwrap_err();
            assert!(error.to_string().contains("\"a\""), "{error}");
        }
    }
}
