//! How long acquisitions took.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longer times are recorded as this, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

/// Times of one kind, in nanoseconds.
#[derive(Debug)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        Self(Histogram::new_with_max(LONGEST, 3).expect("bounds and precision are valid"))
    }
}

impl Times {
    /// Adds one.
    #[inline]
    pub fn record(&mut self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(LONGEST);
        self.0.saturating_record(nanoseconds);
    }

    /// Adds all of another.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// All of several.
    #[must_use]
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.into_iter().for_each(|one| sum.add(one));
        sum
    }

    /// The mean, in nanoseconds; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }
}

/// How long acquisitions took, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcquireTimes {
    /// Half of them took no longer.
    pub p50: u64,
    /// 90 % took no longer.
    pub p90: u64,
    /// 99 % took no longer.
    pub p99: u64,
    /// 99.9 % took no longer.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

impl From<&Times> for AcquireTimes {
    fn from(Times(times): &Times) -> Self {
        Self {
            p50: times.value_at_quantile(0.5),
            p90: times.value_at_quantile(0.9),
            p99: times.value_at_quantile(0.99),
            p999: times.value_at_quantile(0.999),
            max: times.max(),
        }
    }
}

impl AcquireTimes {
    /// The columns of a table of these.
    pub const COLUMNS: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

    /// The largest of each over several, as columns.
    #[must_use]
    pub fn worst(all: impl IntoIterator<Item = Self>) -> [u64; 5] {
        let columns = all.into_iter().map(|times| times.columns());
        let worst = columns.reduce(|a, b| std::array::from_fn(|k| a[k].max(b[k])));
        worst.unwrap_or_default()
    }

    /// What belongs in those columns.
    #[must_use]
    pub fn columns(&self) -> [u64; 5] {
        let Self {
            p50,
            p90,
            p99,
            p999,
            max,
        } = *self;
        [p50, p90, p99, p999, max]
    }
}

#[cfg(test)]
mod tests {
    use super::{AcquireTimes, Duration, Times};

    #[test]
    fn percentiles_of_all_that_was_recorded() {
        let (mut some, mut more) = (Times::default(), Times::default());
        (1..=500).for_each(|ns| some.record(Duration::from_nanos(ns)));
        (501..=1000).for_each(|ns| more.record(Duration::from_nanos(ns)));
        some.add(&more);
        assert_eq!(some.count(), 1000);
        assert!((some.mean() - 500.5).abs() < 1.0);
        let times = AcquireTimes::from(&some);
        assert_eq!(times.columns(), [500, 900, 990, 999, 1000]);
        some.record(Duration::MAX);
        assert!(AcquireTimes::from(&some).max >= 3_600_000_000_000);
    }
}
