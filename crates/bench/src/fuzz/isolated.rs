//! The search in a process of its own: a mutant may free what it does not own, and end its process.
//!
//! The searching process prints its steps on its standard output, line by line. The process that has started it reads
//! them.

use crate::fuzz::{Case, Mutant, Run};
use prim_sim::Trace;
use spanlock_testkit::watchdog;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A line begins so that names the seed that is tried.
const TRIES: &str = "fuzz tries ";

/// A line begins so that reports the next step of a thread.
const MARKS: &str = "fuzz marks ";

/// The line before a failure's text.
const FAILS: &str = "fuzz fails";

/// So many of the last steps are reported of a process that ended without a failure's text.
const LAST: usize = 60;

/// A seed takes far less, on any machine. A mutant may break a list so that a walk has no end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A failure that a search has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The seed that fails.
    pub seed: u64,
    /// The failure.
    pub what: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Searches for a seed that fails with a mutant, and prints each step. Returns whether a seed fails. A seed that does
/// not end ends the process.
pub fn search_aloud(
    run: impl Fn(&Case) -> Run,
    seeds: impl IntoIterator<Item = u64>,
    mutant: Mutant,
) -> bool {
    let tried = AtomicU64::new(0);
    let progress = || tried.load(Relaxed);
    let report = |tried: &u64| format!("the seed after {tried} others does not end");
    watchdog::watched(PATIENCE, progress, report, || {
        seeds.into_iter().any(|seed| {
            println!("{TRIES}{seed}");
            let mut case = Case::new(seed, Some(mutant));
            case.setup.listener = Some(|mark: &Trace| println!("{MARKS}{mark}"));
            tried.fetch_add(1, Relaxed);
            match run(&case) {
                Ok(_) => false,
                Err(failure) => {
                    println!("{FAILS}\n{failure}");
                    true
                }
            }
        })
    })
}

/// Starts a process that [searches aloud](search_aloud) and returns the failure that it finds. Calls `tries` with each
/// seed.
///
/// # Errors
/// When the process cannot be started, or its output cannot be read.
pub fn listen(command: &mut Command, mut tries: impl FnMut(u64)) -> io::Result<Option<Found>> {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut seed = 0;
    let mut marks = VecDeque::new();
    let mut failure: Option<String> = None;
    if let Some(heard) = child.stdout.take() {
        for line in BufReader::new(heard).split(b'\n') {
            // A mutant may print a name that it has overwritten.
            let line = String::from_utf8_lossy(&line?).into_owned();
            if let Some(failure) = &mut failure {
                failure.push_str(&line);
                failure.push('\n');
            } else if let Some(next) = line.strip_prefix(TRIES).and_then(|text| text.parse().ok()) {
                seed = next;
                marks.clear();
                tries(seed);
            } else if let Some(mark) = line.strip_prefix(MARKS) {
                if marks.len() == LAST {
                    marks.pop_front();
                }
                marks.push_back(mark.to_owned());
            } else if line == FAILS {
                failure = Some(String::new());
            }
        }
    }
    let status = child.wait()?;
    Ok(match failure {
        Some(what) => Some(Found { seed, what }),
        None if status.success() => None,
        None => {
            let marks: Vec<_> = marks.into();
            let what = format!(
                "its process ended ({status}), seed {seed}\n\nWhat threads were about:\n    cycles  thread\n{}\n",
                marks.join("\n")
            );
            Some(Found { seed, what })
        }
    })
}
