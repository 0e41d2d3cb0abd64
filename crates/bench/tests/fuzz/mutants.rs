//! Which weakened edges random schedules find.

use crate::{find, on_all_cores, runs};
use spanlock_bench::sim::fuzz::Mutant;
use spanlock_bench::sim::fuzz::isolated::{listen, search_aloud};
use std::env;
use std::process::{self, Command};
use std::sync::Mutex;

/// Edges, and the locks in which they are looked for, one after the other until one is caught.
pub struct Hunt {
    /// Caught by so few schedules that a search which misses one has lost something.
    pub caught: &'static [&'static str],
    /// Those that need more, or luck.
    pub others: &'static [&'static str],
    pub locks: &'static [&'static str],
}

/// Schedules per lock before an edge that is to be caught counts as missed: what needs most needs a tenth of these.
const PATIENCE: u64 = 2000;

/// What the first schedule that fails says, with its seed. In a process of its own: a mutant may free what it has not.
pub fn search_in_a_process(edge: &str, lock: &str, first: u64, runs: u64) -> Option<String> {
    let own = env::current_exe().expect("a test has a file");
    let mut command = Command::new(own);
    command
        .args([
            "--exact",
            "mutants::in_a_process",
            "--ignored",
            "--nocapture",
        ])
        .env(
            "SPANLOCK_FUZZ_SEARCH",
            format!("{edge} {lock} {first} {runs}"),
        );
    let found = listen(&mut command, |_| ()).expect("it can be started");
    found.map(|found| found.what)
}

#[test]
#[ignore = "started by `search_in_a_process`"]
fn in_a_process() {
    let told = env::var("SPANLOCK_FUZZ_SEARCH").expect("edge, lock, first seed and how many");
    let mut words = told.split_whitespace();
    let mut word = || words.next().expect("four words");
    let mutant = Mutant::find(word()).expect("an edge's name");
    let run = find(word()).expect("a lock's name");
    let [first, runs] = [word(), word()].map(|text| text.parse::<u64>().expect("a number"));
    search_aloud(run, first..first + runs, mutant);
    // Nothing that a mutant has broken is cleaned up.
    process::exit(0);
}

/// Prints which are caught.
///
/// # Panics
/// When one that is to be is not.
pub fn hunt(hunts: &[Hunt]) {
    let sought = hunts.iter().flat_map(|hunt| {
        let caught = hunt.caught.iter().map(move |&edge| (edge, hunt, PATIENCE));
        let others = hunt.others.iter().map(move |&edge| (edge, hunt, runs()));
        caught.chain(others)
    });
    let missed = Mutex::new(Vec::new());
    on_all_cores(sought, |(edge, hunt, runs)| {
        if !is_caught(edge, hunt, runs) && hunt.caught.contains(&edge) {
            missed.lock().expect("no panic while held").push(edge);
        }
    });
    let missed = missed.into_inner().expect("no panic while held");
    assert!(missed.is_empty(), "{missed:?} are not caught any more");
}

fn is_caught(edge: &str, hunt: &Hunt, runs: u64) -> bool {
    for lock in hunt.locks {
        if let Some(what) = search_in_a_process(edge, lock, 0, runs) {
            let what: Vec<_> = what
                .lines()
                .take_while(|line| !line.starts_with("  "))
                .collect();
            println!("{edge:<18} caught in {lock:<18} {}", what.join(" "));
            return true;
        }
    }
    println!("{edge:<18} missed in {}", hunt.locks.join(", "));
    false
}
