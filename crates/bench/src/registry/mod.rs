//! All the locks, by name.

mod locks;

pub use locks::{FLOORS, LOCKS};

use crate::pairs;
use crate::peers::{AnyLock, Target, any};
use derive_more::Deref;
use spanlock::range::raw::Mode;
use spanlock_records::trial::lock::Described;
use spanlock_records::trial::setting::{Resource, Setting, Values};
use std::time::Duration;

/// A lock that can be measured. It derefs to its row.
#[derive(Deref, Clone, Copy)]
pub struct Lock {
    /// Its row.
    #[deref]
    pub described: Described,
    /// The parameters that users chose.
    pub values: Values,
    /// How it is made and measured.
    pub measure: &'static dyn Measure,
}

/// A lock of one type.
pub trait Measure: Sync {
    /// Makes one for a workload.
    fn make(&self, setting: &Setting) -> Box<dyn AnyLock>;

    /// Runs [`pairs`]: how long so many acquisitions and releases take one thread.
    fn uncontended(&self, setting: &Setting, mode: Mode, pairs: u32) -> Duration;
}

/// How to make a lock.
pub struct Make<F>(pub F);

impl<T: Target + 'static, F: Fn(&Setting) -> T + Sync> Measure for Make<F> {
    fn make(&self, setting: &Setting) -> Box<dyn AnyLock> {
        any((self.0)(setting))
    }

    fn uncontended(&self, setting: &Setting, mode: Mode, pairs: u32) -> Duration {
        pairs::time(&(self.0)(setting), mode, pairs)
    }
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

    /// Makes one for a resource.
    #[must_use]
    pub fn make(&self, resource: Resource) -> Box<dyn AnyLock> {
        self.measure.make(&self.setting(resource))
    }

    /// How long so many acquisitions and releases of a fresh lock take one thread.
    #[must_use]
    pub fn uncontended(&self, mode: Mode, pairs: u32) -> Duration {
        let setting = self.setting(Resource::ARRAY);
        self.measure.uncontended(&setting, mode, pairs)
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
