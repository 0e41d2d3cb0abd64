//! Every range lock of the library.

use crate::mutants::{Hunt, hunt};
use crate::{Runner, on_all_cores, runs};
use spanlock_bench::sim::fuzz::{Mutant, search};
use spanlock_bench::sim::{CONFIGURATIONS, LOCKS, Lock};

pub fn find(lock: &str) -> Result<Runner, String> {
    Ok(Box::new(Lock::find(lock)?.fuzz))
}

fn all() -> impl Iterator<Item = &'static Lock> {
    LOCKS.iter().chain(CONFIGURATIONS)
}

#[test]
fn no_schedule_breaks_a_lock() {
    on_all_cores(all(), |lock| {
        if let Err(failure) = search(lock.fuzz, 0..runs(), None, |_| ()) {
            panic!("{}: {failure}", lock.name);
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for lock in all() {
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

/// Those that no schedule shows are left out: the simulated memory is never weaker than Release and Acquire.
const HUNTS: &[Hunt] = &[
    Hunt {
        caught: &[
            "barrier",
            "cut-off",
            "demote",
            "downgrade-wake",
            "fresh-node",
            "gate",
            "give-up-dispatch",
            "grace",
            "inherit",
            "no-fast-release",
            "reader-handshake",
            "reader-validation",
            "seal",
            "sleep-dispatch",
            "sleeper",
            "turn",
            "wake",
            "withdraw",
            "writer-handshake",
            "writer-validation",
        ],
        // Without the bypass a holder only waits longer.
        others: &["holder-bypass", "newcomers", "pin"],
        locks: &["list-rw-at-once", "list-rw", "list-rw-nofast"],
    },
    Hunt {
        caught: &["reach", "rung-cut-off", "barrier", "seal"],
        others: &["rung-prepare", "last-link"],
        locks: &["skip-rw-at-once", "skip-rw"],
    },
    Hunt {
        caught: &["granules"],
        others: &[],
        locks: &["srl-array-wide"],
    },
    Hunt {
        caught: &["lost-race"],
        others: &[],
        locks: &["srl-tree"],
    },
    Hunt {
        caught: &[
            "age",
            "gate",
            "give-up-dispatch",
            "mark-inherited",
            "mark-sleeper",
            "roll-back",
            "share-wake",
            "sleep-dispatch",
            "turn",
            "wake-sleeper",
        ],
        others: &[],
        locks: &["srl-array-wide", "srl-array-at-once"],
    },
];

#[test]
fn mutants_are_caught() {
    hunt(HUNTS);
}
