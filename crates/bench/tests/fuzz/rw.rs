//! Every reader-writer lock of the library, and BRAVO as published.

use crate::mutants::{Hunt, hunt};
use crate::{Runner, on_all_cores, runs};
use spanlock_bench::sim::fuzz::search;
use spanlock_bench::sim::rw::{FUZZED, LOCKS, Lock};

fn all() -> impl Iterator<Item = &'static Lock> + Clone {
    LOCKS.iter().chain(FUZZED)
}

pub fn find(lock: &str) -> Result<Runner, String> {
    let lock = Lock::find(lock, all())?;
    Ok(Box::new(|case| lock.fuzz(case)))
}

#[test]
fn no_schedule_breaks_a_lock() {
    on_all_cores(all(), |lock| {
        let found = search(|case| lock.fuzz(case), 0..runs(), None, |_| ());
        if let Err(failure) = found {
            panic!("{}: {failure}", lock.name);
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for lock in all() {
        let digests = || {
            let mut digests = Vec::new();
            let run = |case: &_| lock.fuzz(case);
            let ended = search(run, 0..10, None, |ended| digests.push(ended.digest));
            assert!(ended.is_ok());
            digests
        };
        let first = digests();
        let disturbance: Vec<_> = (1..50).map(|size| vec![0_u8; size * 16]).collect();
        assert_eq!(first, digests(), "{}", lock.name);
        drop(disturbance);
    }
}

const BRAVO: &[&str] = &["bravo-futex", "bravo-pf-t", "bravo-mutex"];
const PHASE_FAIR: &[&str] = &["pf-t", "pf-q"];

/// Steps, and the locks that have them. Orderings are not among them: the simulated memory is never weaker. Nor are steps
/// of locks without tokens, which nothing here runs, and `bias-forget`, which leaked guards take. Without `bias-withdraw` a
/// lock is slower, and that is all.
const HUNTS: &[Hunt] = &[
    Hunt {
        caught: &[
            "await",
            "bias-arrived",
            "bias-closed",
            "bias-drain",
            "bias-reader",
            "bias-recheck",
            "bias-writer",
            "leave",
            "rouse",
            "row-in-use",
        ],
        others: &["bias-checked", "bias-withdraw", "rouse-count"],
        locks: BRAVO,
    },
    Hunt {
        caught: &[
            "cohort-handed",
            "cohort-queue",
            "cohort-reader",
            "cohort-turn-back",
            "cohort-wake-readers",
            "cohort-wake-writer",
            "cohort-writer",
        ],
        others: &["cohort-uncounted"],
        locks: &["c-rw-wp"],
    },
    Hunt {
        caught: &[
            "futex-conservative",
            "futex-downgrade",
            "futex-mark",
            "futex-signal",
        ],
        others: &[
            "futex-next-upgradable",
            "futex-pass-on",
            "futex-wake-upgrader",
        ],
        locks: &["futex", "futex-readers"],
    },
    Hunt {
        caught: &["mutex-conservative", "mutex-wake"],
        others: &[],
        locks: &["mutex"],
    },
    Hunt {
        caught: &["paper-reader", "paper-writer"],
        others: &[],
        locks: &["bravo-futex-paper"],
    },
    Hunt {
        caught: &[
            "phase-alternate",
            "phase-try",
            "phase-wake-readers",
            "phase-wake-writer",
        ],
        others: &["phase-share"],
        locks: PHASE_FAIR,
    },
    Hunt {
        caught: &["ticket-parity", "ticket-wake"],
        others: &[],
        locks: &["pf-t"],
    },
];

#[test]
fn mutants_are_caught() {
    hunt(HUNTS);
}
