//! Median and spread; distinct values.

/// Several measurements of one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The middle value; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// Half the distance from the smallest to the largest, as a fraction of the median.
    pub spread: f64,
    /// The number of values.
    pub count: usize,
}

impl Summary {
    /// The summary of these values; `None` if there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (first, last) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        let spread = if median == 0.0 {
            0.0
        } else {
            (last - first) / 2.0 / median
        };
        Some(Self {
            median,
            spread,
            count: values.len(),
        })
    }

    /// The spread in percent; `None` of a single value, which has none.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        (self.count > 1).then_some(self.spread * 100.0)
    }

    /// The median less the spread, and with it.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        let half = self.median * self.spread;
        (self.median - half, self.median + half)
    }

    /// Whether it is larger or smaller than another; neither, if the spreads meet.
    #[must_use]
    pub fn order(&self, other: &Self) -> Order {
        let ((low, high), (others_low, others_high)) = (self.bounds(), other.bounds());
        if low > others_high {
            Order::Above
        } else if high < others_low {
            Order::Below
        } else {
            Order::Level
        }
    }

    /// As if each value had been so many times as large.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            median: self.median * factor,
            ..self
        }
    }
}

/// How one measurement stands to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Larger, beyond the spreads.
    Above,
    /// Within the spreads: a tie.
    Level,
    /// Smaller, beyond the spreads.
    Below,
}

/// The least and the largest value.
pub fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let both = values.map(|value| (value, value));
    both.reduce(|(least, most), (low, high)| (least.min(low), most.max(high)))
}

/// Distinct values, in order of their first appearance.
#[must_use]
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::{Order, Summary};

    #[test]
    fn a_difference_within_the_spreads_is_a_tie() {
        let of = |values: &[f64]| Summary::of(values.iter().copied()).unwrap();
        let (low, high) = (of(&[9.0, 10.0, 11.0]), of(&[14.0, 15.0, 16.0]));
        assert_eq!(low.order(&high), Order::Below);
        assert_eq!(high.order(&low), Order::Above);
        assert_eq!(low.order(&of(&[11.0, 12.0, 13.0])), Order::Level);
        assert_eq!(low.order(&low), Order::Level);
        assert_eq!(low.times(2.0).order(&high), Order::Above);
        assert_eq!(low.times(1.4).order(&high), Order::Level);
    }

    #[test]
    fn medians_and_spreads() {
        let summary =
            |values: &[f64]| Summary::of(values.iter().copied()).map(|s| (s.median, s.spread));
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[3.0]), Some((3.0, 0.0)));
        assert_eq!(summary(&[4.0, 1.0, 2.0]), Some((2.0, 0.75)));
        assert_eq!(summary(&[4.0, 2.0]), Some((3.0, 1.0 / 3.0)));
        assert_eq!(summary(&[0.0, 0.0]), Some((0.0, 0.0)));
    }
}
