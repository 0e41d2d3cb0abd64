//! Types whose values are positions: integers of other widths, signed ones, addresses, pairs and times.
//!
//! Each has a map to `u64` that keeps the order. So its ranges are ranges of positions, in any range lock, at no cost.

use prim::clock::Duration;
use std::net::Ipv4Addr;
use std::ops::{Bound, RangeBounds};

/// A type whose values can be mapped to positions, each to its own, in order.
///
/// What has more than 64 bits does not fit. A [`KeyRangeLock`](super::keys::KeyRangeLock) locks ranges of any ordered
/// type: of `u128`, of `Ipv6Addr`, of `SystemTime`.
pub trait Position: Copy {
    /// Where the value is among all of its type: a greater one has a greater position.
    fn position(self) -> u64;
}

/// A range of values as a range of positions, for any range lock: of [`RangeLock`](super::RangeLock), of owners, of
/// tasks.
///
/// ```
/// use spanlock::range::{RangeLock, positions};
/// use std::net::Ipv4Addr;
///
/// let degrees = RangeLock::new();
/// let frost = degrees.write(positions(..0_i32));
/// assert!(degrees.try_read(positions(-5..=-5)).is_none());
/// assert!(degrees.try_read(positions(0..)).is_some());
/// drop(frost);
///
/// let networks = RangeLock::new();
/// let home = networks.write(positions(Ipv4Addr::new(10, 0, 0, 0)..=Ipv4Addr::new(10, 255, 255, 255)));
/// # drop(home);
/// ```
///
/// # Cost
/// None: a comparison of integers is a comparison of positions.
#[inline]
pub fn positions<T: Position>(range: impl RangeBounds<T>) -> (Bound<u64>, Bound<u64>) {
    let position = |bound: Bound<&T>| bound.map(|&value| value.position());
    (position(range.start_bound()), position(range.end_bound()))
}

macro_rules! unsigned {
    ($($Type:ty)+) => {$(
        impl Position for $Type {
            #[inline]
            fn position(self) -> u64 {
                self as u64
            }
        }
    )+};
}

unsigned!(u8 u16 u32 u64 usize char bool);

macro_rules! signed {
    ($($Type:ty)+) => {$(
        impl Position for $Type {
            #[inline]
            fn position(self) -> u64 {
                // The least is 0.
                (self as i64 as u64) ^ (1 << 63)
            }
        }
    )+};
}

signed!(i8 i16 i32 i64 isize);

impl Position for Ipv4Addr {
    #[inline]
    fn position(self) -> u64 {
        self.to_bits().into()
    }
}

/// By the first, and then by the second.
impl Position for (u32, u32) {
    #[inline]
    fn position(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.1)
    }
}

/// By the first, and then by the second.
impl Position for (i32, u32) {
    #[inline]
    fn position(self) -> u64 {
        u64::from(self.0 as u32 ^ 1 << 31) << 32 | u64::from(self.1)
    }
}

/// Whole nanoseconds, for some 584 years. Longer ones share the last position.
impl Position for Duration {
    #[inline]
    fn position(self) -> u64 {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Position, positions};
    use crate::range::Span;
    use prim::clock::Duration;
    use std::net::Ipv4Addr;
    use std::ops::Bound;

    fn ascends<T: Position + std::fmt::Debug>(values: &[T]) {
        for pair in values.windows(2) {
            assert!(pair[0].position() < pair[1].position(), "{pair:?}");
        }
    }

    #[test]
    fn positions_keep_the_order() {
        ascends(&[i8::MIN, -1, 0, 1, i8::MAX]);
        ascends(&[i64::MIN, -1, 0, 1, i64::MAX]);
        ascends(&[0_u16, 1, u16::MAX]);
        ascends(&['a', 'b', char::MAX]);
        ascends(&[(0, 5), (0, u32::MAX), (1, 0), (u32::MAX, u32::MAX)]);
        ascends(&[(i32::MIN, 0), (-1, u32::MAX), (0, 0), (i32::MAX, 7)]);
        ascends(&[
            Ipv4Addr::UNSPECIFIED,
            Ipv4Addr::LOCALHOST,
            Ipv4Addr::BROADCAST,
        ]);
        ascends(&[
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_secs(1 << 30),
        ]);
    }

    #[test]
    fn a_range_of_values_is_a_range_of_positions() {
        assert_eq!(Span::of(positions::<i64>(..)), Some(Span::ALL));
        assert_eq!(Span::of(positions(i64::MIN..=i64::MAX)), Some(Span::ALL));
        assert_eq!(Span::of(positions(3_u8..5)), Span::of(3..5));
        assert_eq!(Span::of(positions(5_u8..5)), None);
        let reversed = (Bound::Included(0_i32), Bound::Excluded(-1));
        assert!(Span::new(positions(reversed)).is_err());
    }
}
