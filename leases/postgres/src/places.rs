//! What resources are leased by, as the database has it.

use spanlock_lease::{Extent, KeySpan, Span};
use std::ops::Bound::{Excluded, Included, Unbounded};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Positions, or keys.
pub trait Places: Extent {
    /// By which the database knows them.
    const KIND: &'static str;

    /// SQL of the ranges that may be granted, of the parameters from the sixth on.
    const SPANS: &'static str;

    /// Those parameters. A block that it may grow to has `2^grow` positions.
    fn parameters(&self, grow: Option<u32>) -> Vec<Box<dyn ToSql + Sync>>;

    /// The range of a row that has it in `lo` and `behind`.
    fn of(row: &Row) -> Self;

    /// All of a resource.
    fn all() -> Self;
}

impl Places for Span {
    const KIND: &'static str = "positions";

    const SPANS: &'static str = "@.spans($6, $7, $8)";

    fn parameters(&self, grow: Option<u32>) -> Vec<Box<dyn ToSql + Sync>> {
        let signed = |position: u64| position.cast_signed() ^ i64::MIN;
        // A block of 2^64 positions is the whole space, and that can be asked for.
        let grow = grow.map_or(-1, |k| k.min(63).cast_signed());
        vec![
            Box::new(signed(self.start())),
            Box::new(signed(self.last())),
            Box::new(grow),
        ]
    }

    fn of(row: &Row) -> Self {
        let position = |column| {
            let string = row.get::<_, &[u8]>(column).first_chunk();
            u64::from_be_bytes(*string.expect("a position has 8 bytes"))
        };
        let span = Self::inclusive(position("lo"), position("behind"));
        span.expect("the database has no empty range")
    }

    fn all() -> Self {
        Self::ALL
    }
}

impl Places for KeySpan {
    const KIND: &'static str = "keys";

    const SPANS: &'static str = "array[@.strings($6, $7)]";

    fn parameters(&self, _grow: Option<u32>) -> Vec<Box<dyn ToSql + Sync>> {
        let end = self.end().map(<[u8]>::to_vec);
        vec![Box::new(self.start().to_vec()), Box::new(end)]
    }

    fn of(row: &Row) -> Self {
        let end = row
            .get::<_, Option<&[u8]>>("behind")
            .map_or(Unbounded, Excluded);
        let span = Self::of((Included(row.get("lo")), end));
        span.expect("the database has no empty range")
    }

    fn all() -> Self {
        Self::ALL
    }
}
