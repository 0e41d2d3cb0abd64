//! All the locks, by name.

mod locks;
mod measure;

pub use locks::{FLOORS, LOCKS};
pub use measure::{Make, Measure};

use crate::setting::{Resource, Setting, Values};
use derive_more::Deref;
pub use spanlock_trial::lock::{Described, Exclusion, WaitsFor};

/// A lock that can be measured. It derefs to its row.
#[derive(Deref, Clone, Copy)]
pub struct Lock {
    /// Its row.
    #[deref]
    pub described: Described,
    /// The parameters that users chose.
    pub values: Values,
    /// How it is measured.
    pub measure: &'static dyn Measure,
}

impl Lock {
    /// For a resource, with what users chose.
    #[must_use]
    pub fn setting(&self, resource: Resource) -> Setting {
        Setting {
            resource,
            values: self.values,
        }
    }

    /// Why a thread cannot hold several ranges of a resource at a time; `None` if it can.
    #[must_use]
    pub fn holds_one_because(&self, resource: Resource) -> Option<&'static str> {
        self.holds.one_because(&self.setting(resource))
    }
}

/// The lock of that name, whatever its parameters.
pub fn find(name: &str) -> Option<&'static Lock> {
    let name = name.split(':').next().unwrap_or(name);
    LOCKS
        .iter()
        .chain(FLOORS.iter())
        .find(|lock| lock.name == name)
}

/// The locks of a text `name,name,…`, among those lists. A name may be followed by `:key=value:key=value:…`, and a
/// value may be several, for so many locks: `a..b`, both included, or `a,b,…`.
///
/// A lock with parameters lives as long as the program, which reads its arguments once.
///
/// # Errors
/// The part that was not understood, and what was expected instead.
pub fn parse(text: &str, among: &[&'static [Lock]]) -> Result<Vec<&'static Lock>, String> {
    let mut locks = Vec::new();
    let mut parts = text.split(',').peekable();
    while let Some(part) = parts.next() {
        let mut one = part.to_owned();
        // No lock's name begins with a digit: that is one more value.
        while let Some(more) = parts.next_if(|next| next.starts_with(|c: char| c.is_ascii_digit()))
        {
            one = one + "," + more;
        }
        locks.extend(parse_one(&one, among)?);
    }
    Ok(locks)
}

fn parse_one(text: &str, among: &[&'static [Lock]]) -> Result<Vec<&'static Lock>, String> {
    let (name, chosen) = match text.split_once(':') {
        Some((name, chosen)) => (name, Some(chosen)),
        None => (text, None),
    };
    let all = || among.iter().copied().flatten();
    let lock = all().find(|lock| lock.name == name).ok_or_else(|| {
        let names: Vec<_> = all().map(|lock| lock.name).collect();
        format!("'{name}' is not one of {}", names.join(", "))
    })?;
    let Some(chosen) = chosen else {
        return Ok(vec![lock]);
    };
    let with = |values: Values| {
        let named = Lock {
            described: Described {
                name: format!("{name}:{values}").leak(),
                ..lock.described
            },
            values,
            ..*lock
        };
        &*Box::leak(Box::new(named))
    };
    let all = Values::parse(name, lock.params, chosen)?;
    Ok(all.into_iter().map(with).collect())
}

#[cfg(test)]
mod tests {
    use super::{FLOORS, LOCKS, find, parse};
    use spanlock_judge::compare::{OURS, RIVALS};
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_found() {
        let all = || LOCKS.iter().chain(FLOORS.iter());
        let names: HashSet<_> = all().map(|lock| lock.name).collect();
        assert_eq!(names.len(), all().count());
        for name in RIVALS.iter().chain([&OURS]) {
            assert!(find(name).is_some_and(|lock| lock.name == *name), "{name}");
        }
    }

    #[test]
    fn every_lock_says_when_to_use_it_and_what_it_costs() {
        for lock in LOCKS.iter().chain(FLOORS.iter()) {
            let texts = [
                lock.family,
                lock.about,
                lock.when,
                lock.avoid,
                lock.rmw,
                lock.memory,
                lock.source,
            ];
            assert!(
                texts.iter().all(|text| !text.is_empty()),
                "{}: {texts:?}",
                lock.name
            );
            assert!(
                !lock.name.starts_with(|c: char| c.is_ascii_digit()),
                "{}",
                lock.name
            );
        }
    }

    #[test]
    fn parameters_make_a_lock_of_their_own_name() {
        let named = |text| {
            let locks = parse(text, &[&LOCKS]).unwrap().into_iter();
            locks
                .map(|lock| (lock.name, lock.values.get("h")))
                .collect::<Vec<_>>()
        };
        assert_eq!(named("song:h=4"), [("song:h=4", Some(4))]);
        assert_eq!(named("null,song"), [("null", None), ("song", None)]);
        let swept = [
            ("song:h=1", Some(1)),
            ("song:h=2", Some(2)),
            ("song:h=9", Some(9)),
        ];
        assert_eq!(named("song:h=1,2,9"), swept);
        assert_eq!(named("song:h=1..2,9"), swept);
        assert_eq!(named("song:h=1..=2,song:h=9"), swept);
        assert_eq!(named("song:h=4,null").len(), 2);
        for (wrong, expected) in [
            ("song:h=99", "h=1..=16"),
            ("song:", "h=1..=16"),
            ("bitmap:h=4", "block=1.."),
            ("null:h=4", "takes no parameters"),
            ("sung:h=4", "'sung' is not one of list-rw"),
            ("floor", "'floor' is not one of list-rw"),
            ("song:h=4..2", "h=4..2"),
            ("song:h=1..99", "h=1..99"),
            ("song,7", "'song,7' is not one of"),
            ("7", "'7' is not one of"),
            ("", "'' is not one of"),
            ("song,,null", "'' is not one of"),
        ] {
            let error = parse(wrong, &[&LOCKS]).err().unwrap();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }
}
