//! Traffic by name, as users choose it: a recorded trace, the pattern of a program, or a file.

use super::metis::Program;
use super::trace::Trace;
use super::{samples, text};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Mutex;

/// Traces that were named, for as long as the process runs.
static KEPT: Mutex<BTreeMap<String, &'static Trace>> = Mutex::new(BTreeMap::new());

/// The name of a pattern, of a recorded trace, or of that in a file. Traces are read and kept.
///
/// # Errors
/// Why there is no such trace.
pub fn named(chosen: &str) -> Result<String, String> {
    if chosen.parse::<Program>().is_ok() {
        return Ok(chosen.to_owned());
    }
    if let Some(sample) = samples::ALL.iter().find(|sample| sample.name == chosen) {
        let trace = sample.read().map_err(|error| error.to_string())?;
        return Ok(keep(chosen, trace));
    }
    let file = File::open(chosen).map_err(|error| {
        format!("{error}, and no recorded trace has that name: `spanlock vm list` lists them")
    })?;
    let trace = text::read(BufReader::new(file)).map_err(|error| error.to_string())?;
    if trace.events.is_empty() {
        return Err("the trace has no events".to_owned());
    }
    let name = Path::new(chosen).file_stem();
    let name = name.map_or(chosen.into(), |name| name.to_string_lossy());
    Ok(keep(&name, trace))
}

/// Keeps a trace by that name.
pub fn keep(name: &str, trace: Trace) -> String {
    let mut kept = KEPT.lock().expect("nothing panics while it is held");
    kept.insert(name.to_owned(), Box::leak(Box::new(trace)));
    name.to_owned()
}

/// The trace of that name, if it was kept.
#[must_use]
pub fn kept(name: &str) -> Option<&'static Trace> {
    let kept = KEPT.lock().expect("nothing panics while it is held");
    kept.get(name).copied()
}
