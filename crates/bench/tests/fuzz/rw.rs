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

const HUNTS: &[Hunt] = &[
    Hunt {
        caught: &["bias-reader", "bias-writer"],
        others: &[
            "await",
            "bias-arrived",
            "bias-checked",
            "bias-closed",
            "bias-drain",
            "bias-recheck",
            "bias-seen",
            "bias-set",
            "bias-withdraw",
            "depart",
            "leave",
            "rouse",
            "rouse-count",
            "row-in-use",
        ],
        locks: BRAVO,
    },
    Hunt {
        caught: &[],
        others: &[
            "cohort-handed",
            "cohort-queue",
            "cohort-reader",
            "cohort-turn-back",
            "cohort-wake-readers",
            "cohort-wake-writer",
            "cohort-writer",
        ],
        locks: &["c-rw-wp"],
    },
    Hunt {
        caught: &[],
        others: &[
            "futex-conservative",
            "futex-downgrade",
            "futex-mark",
            "futex-pass-on",
            "futex-signal",
        ],
        locks: &["futex", "futex-readers"],
    },
    Hunt {
        caught: &[],
        others: &["mutex-conservative", "mutex-wake"],
        locks: &["mutex"],
    },
    Hunt {
        caught: &[],
        others: &["paper-reader", "paper-writer"],
        locks: &["bravo-futex-paper"],
    },
    Hunt {
        caught: &[],
        others: &["phase-alternate", "phase-try", "phase-wake"],
        locks: PHASE_FAIR,
    },
    Hunt {
        caught: &[],
        others: &["queue-closed", "queue-enter", "queue-free", "queue-open"],
        locks: &["pf-q"],
    },
    Hunt {
        caught: &[],
        others: &["ticket-parity", "ticket-wake-readers", "ticket-wake-turn"],
        locks: &["pf-t"],
    },
];

#[test]
fn mutants_are_caught() {
    hunt(HUNTS);
}
