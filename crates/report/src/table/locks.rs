//! The locks there are.

use super::Width;
use super::layout::hanging;
use spanlock_records::record::lock::Entry;
use std::fmt::Write;

/// Range locks, with all that is to know of each.
#[must_use]
pub fn locks(entries: &[Entry], width: Width) -> String {
    let (name, what) = (" ".repeat(16), " ".repeat(28));
    let mut text = String::new();
    for entry in entries {
        let Entry { lock, about, .. } = entry;
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

/// Reader-writer locks, each with what it is.
#[must_use]
pub fn rw_locks(locks: &[(&str, &str)], width: Width) -> String {
    let longest = locks.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let indent = " ".repeat(longest + 3);
    let told = locks.iter().map(|(name, about)| {
        let first = format!(" {name:<0$}", longest + 2);
        hanging(about, &first, &indent, width) + "\n"
    });
    told.collect()
}
