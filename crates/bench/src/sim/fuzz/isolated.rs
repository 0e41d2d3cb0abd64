//! Searching in a process of its own: a mutant may free what it has not, and bring its process down.
//!
//! The searching process tells on its standard output what it does, line by line; the other one listens.

use super::{Case, Mutant, Run};
use prim_sim::Trace;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{fmt, process, thread};

/// How a line begins that tells the seed that is tried.
const TRIES: &str = "fuzz tries ";

/// How one begins that tells what a thread is about.
const MARKS: &str = "fuzz marks ";

/// The line that a failure's text follows.
const FAILS: &str = "fuzz fails";

/// What is told of a process that ended without a word.
const LAST: usize = 60;

/// A seed takes far less, on any machine. A mutant may go round and round in what it has broken.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The seed that fails.
    pub seed: u64,
    /// How it does.
    pub what: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Looks for a seed that fails with a mutant, and tells the process that has started this one; whether there is one. A
/// seed that does not end ends the process.
pub fn search_aloud(
    run: impl Fn(&Case) -> Run,
    seeds: impl IntoIterator<Item = u64>,
    mutant: Mutant,
) -> bool {
    let tried = Arc::new(AtomicU64::new(0));
    end_if_stuck(Arc::clone(&tried));
    for seed in seeds {
        println!("{TRIES}{seed}");
        let mut case = Case::new(seed, Some(mutant));
        case.setup.listener = Some(|mark: &Trace| println!("{MARKS}{mark}"));
        if let Err(failure) = run(&case) {
            println!("{FAILS}\n{failure}");
            return true;
        }
        tried.fetch_add(1, Relaxed);
    }
    false
}

/// Ends the process when a seed takes too long.
fn end_if_stuck(tried: Arc<AtomicU64>) {
    thread::spawn(move || {
        let mut before = None;
        while before != Some(tried.load(Relaxed)) {
            before = Some(tried.load(Relaxed));
            thread::sleep(PATIENCE);
        }
        process::abort();
    });
}

/// Starts a process that [searches aloud](search_aloud); what it finds. Tells each seed that it tries.
///
/// # Errors
/// When it cannot be started or heard.
pub fn listen(command: &mut Command, mut tries: impl FnMut(u64)) -> io::Result<Option<Found>> {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut seed = 0;
    let mut marks = VecDeque::new();
    let mut failure: Option<String> = None;
    if let Some(heard) = child.stdout.take() {
        for line in BufReader::new(heard).lines() {
            let line = line?;
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
