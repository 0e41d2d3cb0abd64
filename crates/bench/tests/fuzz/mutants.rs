//! Which weakened edges random schedules find.

use crate::runs;
use spanlock_bench::sim::fuzz::{Mutant, search};
use std::process::{Command, Stdio};

/// Edges, and the locks that have them.
pub type Mutants = &'static [(&'static [&'static str], &'static [&'static str])];

/// Whether a schedule fails. In a process of its own: a mutant may free what it has not.
fn is_caught(edge: &str, lock: &str) -> bool {
    let own = std::env::current_exe().expect("a test has a file");
    let status = Command::new(own)
        .args(["--exact", "mutants::one_mutant", "--ignored"])
        .env("SPANLOCK_FUZZ_MUTANT", format!("{edge} {lock}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !status.expect("it can be started").success()
}

/// Prints which are caught.
///
/// # Panics
/// When one that is to be is not.
pub fn hunt(mutants: Mutants, to_be_caught: &[&str]) {
    let mut missed = Vec::new();
    for (edges, locks) in mutants {
        for &edge in *edges {
            match locks.iter().find(|lock| is_caught(edge, lock)) {
                Some(lock) => println!("{edge:<20} caught in {lock}"),
                None => {
                    println!("{edge:<20} missed in {}", locks.join(", "));
                    missed.push(edge);
                }
            }
        }
    }
    let lost: Vec<_> = to_be_caught
        .iter()
        .filter(|edge| missed.contains(edge))
        .collect();
    assert!(lost.is_empty(), "{lost:?} are not caught any more");
}

#[test]
#[ignore = "started by `hunt`"]
fn one_mutant() {
    let told = std::env::var("SPANLOCK_FUZZ_MUTANT").expect("edge and lock");
    let (edge, lock) = told.split_once(' ').expect("edge and lock");
    let mutant = Mutant::find(edge).expect("an edge's name");
    let run = crate::find(lock).expect("a lock's name");
    if let Err(failure) = search(run, 0..runs(), Some(mutant), |_| ()) {
        panic!("{failure}");
    }
}
