//! Every reader-writer lock of the library, and BRAVO as published.

use crate::mutants::Mutants;
use crate::{Run, runs};
use spanlock_bench::sim::fuzz::{Mutant, search};
use spanlock_bench::sim::rw::{FUZZED, LOCKS, Lock};

fn all() -> impl Iterator<Item = &'static Lock> + Clone {
    LOCKS.iter().chain(FUZZED)
}

pub fn find(lock: &str) -> Result<Run, String> {
    let lock = Lock::find(lock, all())?;
    Ok(Box::new(|case| lock.fuzz(case)))
}

#[test]
fn no_schedule_breaks_a_lock() {
    for lock in all() {
        let found = search(|case| lock.fuzz(case), 0..runs(), None, |_| ());
        if let Err(failure) = found {
            panic!("{}: {failure}", lock.name);
        }
    }
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
/// of locks without tokens, which nothing here runs, and `bias-forget`, which leaked guards take.
const MUTANTS: Mutants = &[
    (
        &[
            "await",
            "bias-arrived",
            "bias-checked",
            "bias-closed",
            "bias-drain",
            "bias-reader",
            "bias-recheck",
            "bias-withdraw",
            "bias-writer",
            "leave",
            "rouse",
            "rouse-count",
            "row-in-use",
        ],
        BRAVO,
    ),
    (
        &[
            "cohort-handed",
            "cohort-queue",
            "cohort-reader",
            "cohort-turn-back",
            "cohort-uncounted",
            "cohort-wake-readers",
            "cohort-wake-writer",
            "cohort-writer",
        ],
        &["c-rw-wp"],
    ),
    (
        &[
            "futex-conservative",
            "futex-downgrade",
            "futex-mark",
            "futex-next-upgradable",
            "futex-pass-on",
            "futex-signal",
            "futex-wake-upgrader",
        ],
        &["futex", "futex-readers"],
    ),
    (&["mutex-conservative", "mutex-wake"], &["mutex"]),
    (&["paper-reader", "paper-writer"], &["bravo-futex-paper"]),
    (
        &[
            "phase-alternate",
            "phase-share",
            "phase-try",
            "phase-wake-readers",
            "phase-wake-writer",
        ],
        PHASE_FAIR,
    ),
    (&["ticket-parity", "ticket-wake"], &["pf-t"]),
];

/// Those that so few schedules catch; `bias-withdraw` cannot be seen: without it a lock is slower.
const CAUGHT: &[&str] = &[
    "await",
    "bias-arrived",
    "bias-closed",
    "bias-drain",
    "bias-reader",
    "bias-recheck",
    "bias-writer",
    "cohort-handed",
    "cohort-queue",
    "cohort-reader",
    "cohort-turn-back",
    "cohort-wake-readers",
    "cohort-wake-writer",
    "cohort-writer",
    "futex-conservative",
    "futex-downgrade",
    "futex-mark",
    "futex-signal",
    "mutex-conservative",
    "mutex-wake",
    "paper-reader",
    "paper-writer",
    "phase-alternate",
    "phase-try",
    "phase-wake-readers",
    "phase-wake-writer",
    "rouse",
    "row-in-use",
    "ticket-parity",
    "ticket-wake",
];

#[test]
fn mutants_are_caught() {
    for edge in MUTANTS.iter().flat_map(|(edges, _)| *edges) {
        assert!(Mutant::find(edge).is_ok(), "there is no {edge} any more");
    }
    crate::mutants::hunt(MUTANTS, CAUGHT);
}
