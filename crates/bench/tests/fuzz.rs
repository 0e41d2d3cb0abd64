//! Every range lock of the library under random schedules, and what the same schedules find in mutants.
//!
//! `cargo test -p spanlock-bench --test fuzz -- --nocapture` prints what is caught. `SPANLOCK_FUZZ_RUNS` sets how many
//! schedules are tried.

use spanlock_bench::sim::fuzz::search;
use spanlock_bench::sim::{LOCKS, Lock};
use std::process::{Command, Stdio};

#[global_allocator]
static HEAP: prim_sim::heap::OnLines = prim_sim::heap::OnLines;

const RUNS: u64 = 500;

fn runs() -> u64 {
    let told = std::env::var("SPANLOCK_FUZZ_RUNS");
    told.map_or(RUNS, |text| text.parse().expect("a whole number"))
}

#[test]
fn no_schedule_breaks_a_lock() {
    for lock in LOCKS {
        if let Err(failure) = search(lock, 0..runs(), None, |_| ()) {
            panic!("{}: {failure}", lock.name);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for lock in LOCKS {
        let digests = || {
            let mut digests = Vec::new();
            let ended = search(lock, 0..20, None, |ended| digests.push(ended.digest));
            assert!(ended.is_ok());
            digests
        };
        let first = digests();
        let disturbance: Vec<_> = (1..50).map(|size| vec![0_u8; size * 16]).collect();
        assert_eq!(first, digests(), "{}", lock.name);
        drop(disturbance);
    }
}

#[test]
fn the_same_seed_gives_the_same_failure() {
    let lock = Lock::find("srl-array").expect("it is there");
    let fail = || search(lock, 0..runs(), Some("roll-back"), |_| ()).expect_err("it is caught");
    assert_eq!(fail().to_string(), fail().to_string());
}

const LISTS: &[&str] = &["list-rw", "list-rw-at-once", "list-rw-nofast"];
const SEGMENTS: &[&str] = &["srl-array", "srl-array-at-once"];

const SKIP_LISTS: &[&str] = &["skip-rw", "skip-rw-at-once"];

/// Edges, and the locks that have them.
const MUTANTS: &[(&[&str], &[&str])] = &[
    (
        &[
            "cut-off",
            "demote",
            "downgrade-wake",
            "fresh-node",
            "give-up-dispatch",
            "grace",
            "holder-dispatch",
            "inherit",
            "newcomers",
            "no-fast-release",
            "pin",
            "reader-handshake",
            "reader-validation",
            "seal",
            "sleep-dispatch",
            "sleeper",
            "wake",
            "withdraw",
            "writer-handshake",
            "writer-validation",
        ],
        LISTS,
    ),
    (&["reach", "rung-cut-off", "rung-prepare"], SKIP_LISTS),
    (
        &[
            "age",
            "gate",
            "holder-bypass",
            "mark-inherited",
            "mark-sleeper",
            "roll-back",
            "share-wake",
            "wake-sleeper",
        ],
        SEGMENTS,
    ),
];

/// Those that so few schedules catch. The others need more, or cannot be seen: the simulated memory is never weaker
/// than Release and Acquire, and nobody notices that a request waited longer than it had to.
const CAUGHT: &[&str] = &[
    "cut-off",
    "fresh-node",
    "holder-bypass",
    "mark-sleeper",
    "reader-handshake",
    "reader-validation",
    "roll-back",
    "wake",
    "writer-handshake",
    "writer-validation",
];

/// Whether a schedule fails. In a process of its own: a mutant may free what it has not.
fn is_caught(edge: &str, lock: &str) -> bool {
    let own = std::env::current_exe().expect("a test has a file");
    let status = Command::new(own)
        .args(["--exact", "one_mutant", "--ignored"])
        .env("SPANLOCK_FUZZ_MUTANT", format!("{edge} {lock}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !status.expect("it can be started").success()
}

#[test]
fn mutants_are_caught() {
    let mut missed = Vec::new();
    for (edges, locks) in MUTANTS {
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
    let lost: Vec<_> = CAUGHT.iter().filter(|edge| missed.contains(edge)).collect();
    assert!(lost.is_empty(), "{lost:?} are not caught any more");
}

#[test]
#[ignore = "started by `mutants_are_caught`"]
fn one_mutant() {
    let told = std::env::var("SPANLOCK_FUZZ_MUTANT").expect("edge and lock");
    let (edge, lock) = told.split_once(' ').expect("edge and lock");
    let lock = Lock::find(lock).expect("a lock's name");
    if let Err(failure) = search(lock, 0..runs(), Some(edge), |_| ()) {
        panic!("{failure}");
    }
}
