//! The description of a lock: its row in the table of locks, without its constructor.
//!
//! Range locks are described in `locks.toml`. The table is in `workbench`, with the locks of both builds; peers that
//! run on hardware only are in `bench`.

use crate::trial::setting::{Holds, Param};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The promise of a lock, which the check at the end of a run demands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exclusion {
    /// Holders that conflict never meet: no update may be lost.
    #[default]
    Promised,
    /// Conflicting holders may meet: updates get lost when threads overlap.
    None,
}

/// The threads that a request waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsFor {
    /// Holders; and only holders, if the request's thread holds something.
    #[default]
    Holders,
    /// Earlier requests too, though they wait themselves. So a thread that holds a range and waits for another may wait
    /// for one that waits for it, whatever the order of their ranges.
    EarlierRequests,
}

/// How often a request may be overtaken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overtaking {
    /// Not without end.
    #[default]
    Bounded,
    /// Without end: it may starve.
    Endless,
}

/// The purpose of a lock in the harness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A lock of the library, which is measured.
    Library,
    /// A lock that the library's are compared with.
    #[default]
    Baseline,
    /// A further configuration of a library lock, which takes other paths: it is fuzzed, and simulated on request.
    Configuration,
}

/// The description of a range lock.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Described {
    /// Its name for users.
    #[serde(skip)]
    pub name: &'static str,
    /// Locks of one family differ in what was tuned, and not in what they are.
    pub family: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// When to use it.
    pub when: &'static str,
    /// When to use another.
    pub avoid: &'static str,
    /// Its memory.
    pub memory: &'static str,
    /// Its origin.
    pub source: &'static str,
    /// Its promise.
    pub exclusion: Exclusion,
    /// How many ranges a thread may hold.
    pub holds: Holds,
    /// The threads that a request waits for.
    pub waits_for: WaitsFor,
    /// The atomic read-modify-writes of an uncontended acquisition and release, found by reading its code.
    pub rmw: &'static str,
    /// The parameters that users may choose.
    #[serde(skip)]
    pub params: &'static [Param],
    /// How often a request may be overtaken.
    pub overtaking: Overtaking,
    /// Its purpose in the harness.
    pub role: Role,
}

/// A fair range lock to compare with.
impl Default for Described {
    fn default() -> Self {
        Self {
            name: "",
            family: "",
            about: "",
            when: "",
            avoid: "",
            memory: "",
            source: "",
            exclusion: Exclusion::default(),
            holds: Holds::default(),
            waits_for: WaitsFor::default(),
            rmw: "2",
            params: &[],
            overtaking: Overtaking::default(),
            role: Role::default(),
        }
    }
}

impl Described {
    /// The same, with parameters that users may choose.
    #[must_use]
    pub fn taking(self, params: &'static [Param]) -> Self {
        Self { params, ..self }
    }
}

/// The range lock of that name, as `locks.toml` describes it.
///
/// # Panics
/// Panics when the file does not describe it, or is not well-formed: tests make all locks.
#[must_use]
pub fn described(name: &'static str) -> Described {
    static ALL: LazyLock<HashMap<&str, Described>> = LazyLock::new(|| {
        toml::from_str(include_str!("locks.toml")).expect("the descriptions are well-formed")
    });
    let found = ALL.get(name);
    let found = *found.unwrap_or_else(|| panic!("{name} has no description"));
    Described { name, ..found }
}

/// Whether readers of a reader-writer lock share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// They do.
    Share,
    /// They do, and one may read again while it reads.
    Recur,
    /// They exclude each other, always or at times.
    Exclude,
}

/// The description of a reader-writer lock.
#[derive(Debug, Clone, Copy)]
pub struct RwDescribed {
    /// Its name for users.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its promise.
    pub exclusion: Exclusion,
    /// Whether readers share it.
    pub readers: Readers,
    /// Its underlying lock, which it is compared with, if it has one.
    pub over: Option<Over>,
    /// Its purpose in the harness.
    pub role: Role,
}

/// The underlying lock of a composed lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// The name of the underlying lock.
    pub lock: &'static str,
    /// When it is biased, or `again` for what is the underlying lock itself: a column of the table of harm.
    pub policy: &'static str,
}

impl RwDescribed {
    /// The defaults of rows: a further configuration of a lock.
    pub const ANY: Self = Self {
        name: "",
        about: "",
        exclusion: Exclusion::Promised,
        readers: Readers::Share,
        over: None,
        role: Role::Configuration,
    };
}

#[cfg(test)]
mod tests {
    use super::{Exclusion, Overtaking, Role, WaitsFor, described};
    use crate::trial::setting::Holds;

    #[test]
    fn descriptions_say_what_differs_from_most_locks() {
        let of = described("list-rw");
        assert_eq!((of.name, of.family, of.rmw), ("list-rw", "list", "2"));
        assert_eq!((of.role, of.holds), (Role::Library, Holds::Many));
        let of = described("bitmap");
        assert_eq!((of.role, of.holds), (Role::Baseline, Holds::OnePerBlock));
        assert_eq!(described("song").overtaking, Overtaking::Endless);
        assert_eq!(described("pnova-rw").waits_for, WaitsFor::EarlierRequests);
        assert_eq!(described("std-rwlock").holds, Holds::One);
        assert_eq!(described("null").exclusion, Exclusion::None);
        let role = described("slots-unfair").role;
        assert_eq!(role, Role::Configuration);
    }
}
