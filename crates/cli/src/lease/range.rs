//! Ranges of positions, as people write them.

use spanlock_lease::Span;

/// Reads a range that is not empty.
pub(super) fn parse(text: &str) -> Result<Span, String> {
    let what = || format!("--range {text}: expected a number, A..B, A..=B, A.. or `..`");
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
    span.ok_or_else(|| format!("--range {text}: nothing is between {from} and {end}"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges_are_read_as_rust_writes_them() {
        let ends = |text| parse(text).map(|span| (span.start(), span.last()));
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
            assert!(
                said.contains(why) && said.contains(wrong),
                "{wrong}: {said}"
            );
        }
    }
}
