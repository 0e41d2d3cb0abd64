//! Ranges, as people write them.

use clap::Args;
use spanlock_lease::{KeySpan, Span, between, point, prefix};
use std::ops::{Bound, RangeBounds};

/// What is to be held, all of it together.
#[derive(Args)]
pub(crate) struct Ranges {
    /// Positions: a number, A..B, A..=B, A.. or `..` for all, which is the default. May be given several times.
    #[arg(long, value_name = "RANGE", value_parser = positions)]
    range: Vec<Span>,
    /// A key, in place of positions: any text. May be given several times. Over PostgreSQL.
    #[arg(long, value_name = "KEY", conflicts_with = "range")]
    key: Vec<String>,
    /// Keys from A on and before B: A..B, A.. or ..B. May be given several times.
    #[arg(long, value_name = "A..B", conflicts_with = "range", value_parser = keys)]
    keys: Vec<KeySpan>,
    /// All keys that begin so. May be given several times.
    #[arg(long, value_name = "TEXT", conflicts_with = "range")]
    prefix: Vec<String>,
}

/// Ranges that do not overlap, in order.
pub(crate) enum Chosen {
    Positions(Vec<Span>),
    Keys(Vec<KeySpan>),
}

impl Ranges {
    pub(crate) fn chosen(&self) -> Chosen {
        let points = self.key.iter().map(|key| some(point(key.as_bytes())));
        let prefixes = self.prefix.iter().map(|text| some(prefix(text.as_bytes())));
        let mut keys: Vec<_> = points
            .chain(prefixes)
            .chain(self.keys.iter().cloned())
            .collect();
        if !keys.is_empty() {
            keys.sort_by(|one, other| one.start().cmp(other.start()));
            let joined = |one: &KeySpan, other: &KeySpan| {
                let end = one
                    .end()
                    .zip(other.end())
                    .map(|(one, other)| one.max(other));
                some((
                    Bound::Included(one.start()),
                    end.map_or(Bound::Unbounded, Bound::Excluded),
                ))
            };
            return Chosen::Keys(apart(keys, KeySpan::overlaps, joined));
        }
        let mut ranges = match self.range.is_empty() {
            true => vec![Span::ALL],
            false => self.range.clone(),
        };
        ranges.sort_by_key(|span| span.start());
        let joined = |one: &Span, other: &Span| {
            let span = Span::inclusive(one.start(), one.last().max(other.last()));
            span.expect("it is as long as the first one")
        };
        Chosen::Positions(apart(ranges, |one, other| one.overlaps(*other), joined))
    }
}

/// Joins those that overlap: nobody can hold a position twice.
fn apart<R>(
    ordered: Vec<R>,
    overlap: impl Fn(&R, &R) -> bool,
    joined: impl Fn(&R, &R) -> R,
) -> Vec<R> {
    let mut all: Vec<R> = Vec::new();
    for next in ordered {
        match all.last_mut() {
            Some(last) if overlap(last, &next) => *last = joined(last, &next),
            _ => all.push(next),
        }
    }
    all
}

fn some(range: impl RangeBounds<[u8]>) -> KeySpan {
    KeySpan::of(range).expect("it has a key")
}

/// Reads a range of keys that is not empty.
fn keys(text: &str) -> Result<KeySpan, String> {
    let expected = || "expected A..B, A.. or ..B".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let range = match to {
        "" => KeySpan::new((Bound::Included(from.as_bytes()), Bound::Unbounded)),
        _ => KeySpan::new(between(from.as_bytes(), to.as_bytes())),
    };
    let range = range.map_err(|error| error.to_string())?;
    range.ok_or_else(|| format!("nothing is between {from} and {to}"))
}

/// Reads a range of positions that is not empty.
fn positions(text: &str) -> Result<Span, String> {
    let what = || "expected a number, A..B, A..=B, A.. or `..`".to_owned();
    let number = |text: &str| text.parse::<u64>().map_err(|_| what());
    let start = |text: &str| match text {
        "" => Ok(0),
        _ => number(text),
    };
    let Some((from, to)) = text.split_once("..") else {
        let only = number(text)?;
        return Ok(Span::inclusive(only, only).expect("it holds a position"));
    };
    let from = start(from)?;
    let (end, last) = match (to.strip_prefix('='), to) {
        (Some(last), _) => (last, Some(number(last)?)),
        (None, "") => (to, Some(u64::MAX)),
        (None, end) => (end, number(end)?.checked_sub(1)),
    };
    let span = last.and_then(|last| Span::inclusive(from, last));
    span.ok_or_else(|| format!("nothing is between {from} and {end}"))
}

#[cfg(test)]
mod tests {
    use super::{Chosen, Ranges, keys, positions};

    #[test]
    fn ranges_are_read_as_rust_writes_them() {
        let ends = |text| positions(text).map(|span| (span.start(), span.last()));
        assert_eq!(ends("7"), Ok((7, 7)));
        assert_eq!(ends("0..10"), Ok((0, 9)));
        assert_eq!(ends("..=10"), Ok((0, 10)));
        assert_eq!(ends("5.."), Ok((5, u64::MAX)));
        assert_eq!(ends(".."), Ok((0, u64::MAX)));
        assert_eq!(ends("18446744073709551615"), Ok((u64::MAX, u64::MAX)));
        for (wrong, why) in [
            ("", "expected a number"),
            ("-1", "expected a number"),
            ("1..b", "expected a number"),
            ("1..=", "expected a number"),
            ("18446744073709551616", "expected a number"),
            ("3..3", "nothing is between 3 and 3"),
            ("..0", "nothing is between 0 and 0"),
            ("5..=4", "nothing is between 5 and 4"),
        ] {
            let said = ends(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    /// Each once and in order, so that two commands never wait for each other.
    #[test]
    fn ranges_that_overlap_are_one() {
        let ranges = Ranges {
            range: ["7..9", "0..5", "4..=4", "8..20"]
                .map(|text| positions(text).expect(text))
                .into(),
            key: Vec::new(),
            keys: Vec::new(),
            prefix: Vec::new(),
        };
        let Chosen::Positions(chosen) = ranges.chosen() else {
            panic!("they are positions");
        };
        let ends: Vec<_> = chosen
            .iter()
            .map(|span| (span.start(), span.last()))
            .collect();
        assert_eq!(ends, [(0, 4), (7, 19)]);
        let ranges = Ranges {
            range: Vec::new(),
            key: vec!["m".to_owned(), "eu/7".to_owned()],
            keys: ["x..", "y..z"].map(|text| keys(text).expect(text)).into(),
            prefix: vec!["eu/".to_owned()],
        };
        let Chosen::Keys(chosen) = ranges.chosen() else {
            panic!("they are keys");
        };
        let shown: Vec<_> = chosen.iter().map(ToString::to_string).collect();
        assert_eq!(shown, [r#""eu/".."eu0""#, r#""m"..="m""#, r#""x".."#]);
        for wrong in ["a", "b..a", "a..a"] {
            assert!(keys(wrong).is_err(), "{wrong}");
        }
    }
}
