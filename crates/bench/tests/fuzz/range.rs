//! Every range lock of the library.

use crate::mutants::Mutants;
use crate::{Run, runs};
use spanlock_bench::sim::fuzz::{Mutant, search};
use spanlock_bench::sim::{LOCKS, Lock};

pub fn find(lock: &str) -> Result<Run, String> {
    Ok(Box::new(Lock::find(lock)?.fuzz))
}

#[test]
fn no_schedule_breaks_a_lock() {
    for lock in LOCKS {
        if let Err(failure) = search(lock.fuzz, 0..runs(), None, |_| ()) {
            panic!("{}: {failure}", lock.name);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for lock in LOCKS {
        let digests = || {
            let mut digests = Vec::new();
            let ended = search(lock.fuzz, 0..20, None, |ended| digests.push(ended.digest));
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
    let mutant = Mutant::find("roll-back").expect("it is there");
    let fail = || search(lock.fuzz, 0..runs(), Some(mutant), |_| ()).expect_err("it is caught");
    assert_eq!(fail().to_string(), fail().to_string());
}

const LISTS: &[&str] = &["list-rw", "list-rw-at-once", "list-rw-nofast"];
const SEGMENTS: &[&str] = &["srl-array", "srl-array-at-once"];

const SKIP_LISTS: &[&str] = &["skip-rw", "skip-rw-at-once"];

/// Edges, and the locks that have them.
const MUTANTS: Mutants = &[
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

#[test]
fn mutants_are_caught() {
    crate::mutants::hunt(MUTANTS, CAUGHT);
}
