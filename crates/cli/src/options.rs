//! Arguments that several commands share, and how their values are read.

pub(crate) use crate::output::Format;

use clap::builder::{RangedI64ValueParser, UnknownArgumentValueParser};
use clap::{Arg, Args};
use spanlock_bench::known::Known;
use spanlock_bench::registry::{FLOORS, LOCKS, Lock, parse};
use spanlock_bench::rw::{self, locks::Lock as RwLock};
use spanlock_records::stats::distinct;
use spanlock_records::trial::setting::MAX_THREADS;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Where results go.
#[derive(Args)]
pub(crate) struct Output {
    /// Tables, or one JSON object per line.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// Numbers of threads.
#[derive(Args)]
pub(crate) struct Threads {
    /// Threads: each a number, a:b or a:b:step.
    #[arg(long, value_parser = sweep, default_value = "1,2,4", value_name = "N,...")]
    threads: Vec<Sweep>,
}

impl Threads {
    /// Each number once, in order of first mention.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        let numbers = self.threads.iter().flat_map(|Sweep(numbers)| numbers);
        distinct(numbers.copied())
    }
}

/// The seed of the random numbers.
#[derive(Args)]
pub(crate) struct Seed {
    /// The seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Locks, or what takes their place.
#[derive(Args)]
pub(crate) struct Locks<L: Known> {
    #[arg(
        id = L::ARGUMENT, long = L::ARGUMENT, help = L::ABOUT, num_args = 1.., value_parser = Named::<L>::parse,
        value_name = "NAME,..."
    )]
    named: Vec<Named<L>>,
}

/// Those that one word names.
#[derive(Clone)]
pub(crate) struct Named<L>(Vec<L>);

impl<L: Known> Named<L> {
    fn parse(text: &str) -> Result<Self, String> {
        L::parse(text).map(Self)
    }
}

impl<L: Known> Locks<L> {
    /// The locks named, each once, or else the usual ones.
    pub(crate) fn chosen(&self) -> Vec<L> {
        self.or(L::usual())
    }

    /// The locks named, each once, or else all of these.
    pub(crate) fn or(&self, all: impl IntoIterator<Item = L>) -> Vec<L> {
        let mut kept: Vec<L> = Vec::new();
        for &lock in self.named.iter().flat_map(|Named(locks)| locks) {
            if kept.iter().all(|other| other.known() != lock.known()) {
                kept.push(lock);
            }
        }
        if kept.is_empty() {
            kept.extend(all);
        }
        kept
    }
}

/// `--seconds` of a command that no time ends: the error says what does.
pub(crate) fn without_seconds(ends: &'static str) -> Arg {
    let error = UnknownArgumentValueParser::suggest(ends);
    Arg::new("seconds")
        .long("seconds")
        .value_name("SECONDS")
        .value_parser(error)
        .hide(true)
}

/// Such locks, and the floors.
pub(crate) fn locks_or_floors(text: &str) -> Result<Named<&'static Lock>, String> {
    parse(text, &[&LOCKS, &FLOORS]).map(Named)
}

/// One reader-writer lock or several, of these.
pub(crate) fn rw_locks(
    text: &str,
    among: impl Iterator<Item = &'static RwLock> + Clone,
) -> Result<Named<&'static RwLock>, String> {
    let find = |name| rw::locks::parse(name, among.clone());
    let found: Result<_, _> = text.split(',').map(find).collect();
    found.map(Named)
}

/// A number within these.
pub(crate) fn number(
    allowed: RangeInclusive<usize>,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok();
        let number = number.filter(|number| allowed.contains(number));
        let (least, most) = (allowed.start(), allowed.end());
        number.ok_or_else(|| format!("expected a number from {least} to {most}"))
    }
}

/// How often something is done: at least once.
pub(crate) fn times() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

/// `n`, `a:b` or `a:b:step`: numbers of threads from `a` to `b`, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sweep(Vec<usize>);

fn sweep(text: &str) -> Result<Sweep, String> {
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
    use super::{Lock, Named, Sweep, locks_or_floors, seconds, seconds_or_none, sweep};
    use std::time::Duration;

    #[test]
    fn sweeps() {
        let list = |text| sweep(text).map(|Sweep(numbers)| numbers).ok();
        assert_eq!(list("3"), Some(vec![3]));
        assert_eq!(list("1:4"), Some(vec![1, 2, 3, 4]));
        assert_eq!(list("1:8:3"), Some(vec![1, 4, 7]));
        assert_eq!(list("256"), Some(vec![256]));
        let too_large = u128::MAX.to_string();
        let wrong = "0,0:2,4:1,1:4:0,1:2:3:4,257,a,-1,1:,1.5,";
        for wrong in wrong.split(',').chain([&*too_large]) {
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
        let locks = Named::<&Lock>::parse;
        let error = locks("lsit-rw").err().unwrap();
        assert!(
            error.contains("list-rw") && error.contains("null"),
            "{error}"
        );
        assert!(locks("floor").is_err());
        assert!(locks_or_floors("floor").is_ok());
    }
}
