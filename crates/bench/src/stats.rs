//! Median and spread.

/// Several measurements of one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The middle one; with an even number, the mean of the two in the middle.
    pub median: f64,
    /// Half the distance from the smallest to the largest, as a fraction of the median.
    pub spread: f64,
}

impl Summary {
    /// Of these values; `None` if there are none.
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
        Some(Self { median, spread })
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;

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
