//! Values of arguments: names of locks, sweeps of thread numbers, times.

use spanlock_bench::arr::MAX_THREADS;
use spanlock_bench::registry::{FLOORS, LOCKS, Lock, parse};
use spanlock_bench::rw::locks as rw;
use std::time::Duration;

/// Locks of one argument.
#[derive(Clone)]
pub(crate) struct Locks(pub(crate) Vec<&'static Lock>);

/// Locks that workloads run on.
pub(crate) fn locks(text: &str) -> Result<Locks, String> {
    parse(text, &[LOCKS]).map(Locks)
}

/// Such locks, or what stands for the least that a lock costs.
pub(crate) fn locks_or_floors(text: &str) -> Result<Locks, String> {
    parse(text, &[LOCKS, FLOORS]).map(Locks)
}

/// A reader-writer lock.
pub(crate) fn rw_lock(text: &str) -> Result<&'static rw::Lock, String> {
    rw::parse(text, rw::LOCKS.iter().chain(rw::CONTROLS))
}

/// Such a lock, or a floor.
pub(crate) fn rw_lock_or_floor(text: &str) -> Result<&'static rw::Lock, String> {
    rw::parse(text, rw::LOCKS.iter().chain(rw::CONTROLS).chain(rw::FLOORS))
}

/// A reader-writer lock that others are made of.
pub(crate) fn rw_base(text: &str) -> Result<&'static rw::Lock, String> {
    rw::parse(text, rw::families().iter().map(|(base, _)| *base))
}

/// A part of the whole.
pub(crate) fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok();
    part.filter(|part| (0.0..=1.0).contains(part))
        .ok_or_else(|| "expected a part from 0 to 1".to_owned())
}

/// A number from 1.
pub(crate) fn number_to(
    most: usize,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok();
        number
            .filter(|number| (1..=most).contains(number))
            .ok_or_else(|| format!("expected a number from 1 to {most}"))
    }
}

/// `n`, `a:b` or `a:b:step`: numbers of threads from `a` to `b`, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sweep(pub(crate) Vec<usize>);

pub(crate) fn sweep(text: &str) -> Result<Sweep, String> {
    let expected =
        || format!("expected n, a:b or a:b:step with 1 <= a <= b <= {MAX_THREADS} and step >= 1");
    let numbers: Option<Vec<usize>> = text.split(':').map(|part| part.parse().ok()).collect();
    let (first, last, step) = match numbers.as_deref() {
        Some(&[n]) => (n, n, 1),
        Some(&[first, last]) => (first, last, 1),
        Some(&[first, last, step]) => (first, last, step),
        _ => return Err(expected()),
    };
    if first == 0 || first > last || last > MAX_THREADS || step == 0 {
        return Err(expected());
    }
    Ok(Sweep((first..=last).step_by(step).collect()))
}

/// A time in seconds that is not zero.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    time(text)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected seconds, more than 0 and no more than 86400".to_owned())
}

/// A time in seconds.
pub(crate) fn seconds_or_none(text: &str) -> Result<Duration, String> {
    time(text).ok_or_else(|| "expected seconds, from 0 to 86400".to_owned())
}

fn time(text: &str) -> Option<Duration> {
    const DAY: Duration = Duration::from_secs(86_400);
    let seconds: f64 = text.parse().ok()?;
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (time <= DAY).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::{Sweep, locks, locks_or_floors, seconds, seconds_or_none, sweep};
    use std::time::Duration;

    #[test]
    fn sweeps() {
        let list = |text| sweep(text).map(|Sweep(numbers)| numbers).ok();
        assert_eq!(list("3"), Some(vec![3]));
        assert_eq!(list("1:4"), Some(vec![1, 2, 3, 4]));
        assert_eq!(list("1:8:3"), Some(vec![1, 4, 7]));
        assert_eq!(list("256"), Some(vec![256]));
        for wrong in [
            "",
            "0",
            "0:2",
            "4:1",
            "1:4:0",
            "1:2:3:4",
            "257",
            "a",
            "-1",
            "1:",
            "1.5",
            "99999999999999999999",
        ] {
            let error = sweep(wrong).unwrap_err();
            assert!(error.contains("expected n"), "{wrong}: {error}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds_or_none("0"), Ok(Duration::ZERO));
        for wrong in ["0", "-1", "nan", "inf", "1e300", "1e-300", "", "x"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert!(seconds_or_none("-0.1").is_err());
    }

    #[test]
    fn unknown_locks_are_told_the_names() {
        let error = locks("lsit-rw").err().unwrap();
        assert!(
            error.contains("list-rw") && error.contains("null"),
            "{error}"
        );
        assert!(locks("floor").is_err());
        assert!(locks_or_floors("floor").is_ok());
    }
}
