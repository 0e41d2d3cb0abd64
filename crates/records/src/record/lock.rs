//! A lock, as records describe it: everything that a comparison needs.

use crate::trial::lock::Exclusion;
use serde::{Deserialize, Serialize};

/// The policy of the control of a comparison: the underlying lock itself, compiled once more.
pub const CONTROL: &str = "again";

/// The lower bound of reader-writer locks: readers that share no cache line.
pub const FLOOR: &str = "floor-private";

/// The name of no lock at all.
pub const NULL: &str = "null";

/// The C library's lock.
pub const PTHREAD: &str = "pthread";

/// The C library's lock in a process with the preload library, as reports name it.
pub const PRELOADED: &str = "pthread, preloaded";

/// The lock that ran: part of the lines of JSON that are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Lock {
    /// Its name, with its parameters.
    #[serde(rename = "lock")]
    pub name: String,
    /// Its family. Locks of one family are variants of one algorithm; a biased lock is of its underlying lock's family.
    pub family: String,
    /// Its promise.
    pub exclusion: Exclusion,
    /// For a lock made of another lock: when it is biased, or [`CONTROL`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

impl Lock {
    /// A lock of which only the name is known. It has a family of its own, and its promise follows from its name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::from(Written {
            lock: name.to_owned(),
            ..Written::default()
        })
    }

    /// Whether it can be the best. A lock without exclusion cannot, nor can a control.
    #[must_use]
    pub fn competes(&self) -> bool {
        self.exclusion == Exclusion::Promised && !self.is_control()
    }

    /// Whether it is the control of a comparison.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.policy.as_deref() == Some(CONTROL)
    }
}

/// A lock as lines have it. Lines of an older program have the name alone.
#[derive(Default, Deserialize)]
struct Written {
    lock: String,
    family: Option<String>,
    exclusion: Option<Exclusion>,
    policy: Option<String>,
}

impl From<Written> for Lock {
    fn from(written: Written) -> Self {
        let name = written.lock;
        let is_none = name == NULL || name.starts_with("floor");
        let by_name = if is_none {
            Exclusion::None
        } else {
            Exclusion::Promised
        };
        Self {
            family: written.family.unwrap_or_else(|| name.clone()),
            exclusion: written.exclusion.unwrap_or(by_name),
            policy: written.policy,
            name,
        }
    }
}

/// A listed lock: a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub lock: String,
    /// Its family.
    pub family: String,
    /// What it is.
    pub about: String,
    /// When to use it.
    pub use_when: String,
    /// When to use another.
    pub avoid_when: String,
    /// Atomic read-modify-writes of an uncontended acquisition and release.
    pub cost: String,
    /// Its memory.
    pub memory: String,
    /// Its origin.
    pub source: String,
    /// Its parameters, as `key=least..=most (what it is)`.
    pub parameters: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::{CONTROL, Exclusion, Lock};

    #[test]
    fn lines_of_an_older_program_have_the_name_alone() {
        for (name, claims) in [
            ("list-rw", Exclusion::Promised),
            ("null", Exclusion::None),
            ("floor-private", Exclusion::None),
        ] {
            let read: Lock = serde_json::from_str(&format!("{{\"lock\":\"{name}\"}}")).unwrap();
            let expected = Lock {
                name: name.to_owned(),
                family: name.to_owned(),
                exclusion: claims,
                policy: None,
            };
            assert_eq!(read, expected);
            assert_eq!(read.competes(), claims == Exclusion::Promised);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let control = Lock {
            family: "futex".to_owned(),
            policy: Some(CONTROL.to_owned()),
            ..Lock::named("futex-again")
        };
        for lock in [control, Lock::named("futex")] {
            let text = serde_json::to_string(&lock).unwrap();
            assert_eq!(serde_json::from_str::<Lock>(&text).unwrap(), lock);
            assert_eq!(lock.competes(), lock.policy.is_none());
        }
    }
}
