//! The locks there are.

use super::{Width, hanging};
use crate::registry::LOCKS;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A lock, as it is listed: a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub lock: String,
    /// Locks of one family differ in what was tuned.
    pub family: String,
    /// What it is.
    pub about: String,
    /// When to use it.
    pub use_when: String,
    /// When to use another.
    pub avoid_when: String,
    /// Atomic read-modify-writes of an uncontended acquisition and release.
    pub cost: String,
    /// What it takes of memory.
    pub memory: String,
    /// Where it comes from.
    pub source: String,
    /// What users may choose, as `key=least..=most (what it is)`.
    pub parameters: Vec<String>,
}

/// All locks.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let entry = |lock: &crate::registry::Lock| Entry {
        lock: lock.name.to_owned(),
        family: lock.family.to_owned(),
        about: lock.about.to_owned(),
        use_when: lock.when.to_owned(),
        avoid_when: lock.avoid.to_owned(),
        cost: format!("{} atomic read-modify-writes, uncontended", lock.rmw),
        memory: lock.memory.to_owned(),
        source: lock.source.to_owned(),
        parameters: lock.knobs.iter().map(ToString::to_string).collect(),
    };
    LOCKS.iter().map(entry).collect()
}

/// All locks, for people.
#[must_use]
pub fn locks(width: Width) -> String {
    let (name, what) = (" ".repeat(16), " ".repeat(28));
    let mut text = String::new();
    for entry in entries() {
        let Entry { lock, about, .. } = &entry;
        let first = format!("{lock:<16}");
        let _ = writeln!(text, "{}", hanging(about, &first, &name, width));
        for (label, told) in [
            ("use when", &entry.use_when),
            ("avoid when", &entry.avoid_when),
            ("cost", &entry.cost),
            ("memory", &entry.memory),
            ("source", &entry.source),
        ] {
            let first = format!("{name}{label:<12}");
            let _ = writeln!(text, "{}", hanging(told, &first, &what, width));
        }
        for parameter in &entry.parameters {
            let first = format!("{name}{:<12}{lock}:", "parameter");
            let _ = writeln!(text, "{}", hanging(parameter, &first, &what, width));
        }
    }
    text
}
