//! The weakened edges that random schedules find.

use crate::runs;
use spanlock_bench::fuzz::isolated::{listen, search_aloud};
use spanlock_bench::fuzz::{Lock, Mutant};
use spanlock_testkit::on_all_processors;
use std::env;
use std::process::{self, Command};
use std::sync::Mutex;

/// Edges, and the locks in which they are searched for, one lock after the other until the edge is caught.
struct Hunt {
    /// Caught by so few schedules that a search which misses one has lost something.
    caught: &'static [&'static str],
    /// Those that need more schedules, or luck.
    others: &'static [&'static str],
    locks: &'static [&'static str],
}

/// Schedules per lock before an edge that is to be caught counts as missed: no edge needs a tenth of these.
pub const PATIENCE: u64 = 2000;

/// The failure of the first schedule that fails, with its seed. In a process of its own: a mutant may free what it does
/// not own.
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
    let lock = Lock::find(word()).expect("a lock's name");
    let [first, runs] = [word(), word()].map(|text| text.parse::<u64>().expect("a number"));
    search_aloud(|case| lock.run(case), first..first + runs, mutant);
    // A mutant may have broken what would be cleaned up.
    process::exit(0);
}

/// Prints which are caught.
///
/// # Panics
/// When one that is to be is not.
fn hunt(hunts: &[Hunt]) {
    let sought = hunts.iter().flat_map(|hunt| {
        let caught = hunt.caught.iter().map(move |&edge| (edge, hunt, PATIENCE));
        let others = hunt.others.iter().map(move |&edge| (edge, hunt, runs()));
        caught.chain(others)
    });
    let missed = Mutex::new(Vec::new());
    on_all_processors(sought, |(edge, hunt, runs)| {
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

/// Range locks. Edges that no schedule shows are left out: the simulated memory is never weaker than Release and
/// Acquire. So is `fresh-node`: without it a walk runs in a circle, which only the watchdog ends, minutes later.
const RANGE: &[Hunt] = &[
    Hunt {
        caught: &[
            "grace-nonblocking",
            "cut-off",
            "demote",
            "downgrade-wake",
            "admission",
            "give-up-dispatch",
            "grace",
            "inherit",
            "no-fast-release",
            "reader-handshake",
            "reader-validation",
            "seal",
            "sleep-dispatch",
            "sleeper",
            "turn-ends",
            "wake",
            "withdraw",
            "writer-handshake",
            "writer-validation",
        ],
        // Without the bypass a holder only waits longer.
        others: &["holder-bypass", "new-threads", "pin"],
        locks: &["list-rw-at-once", "list-rw", "list-rw-nofast"],
    },
    Hunt {
        caught: &[
            "max-shared-len",
            "tower-cut-off",
            "grace-nonblocking",
            "seal",
        ],
        others: &["tower-prepare", "last-link"],
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
            "reserve-asleep",
            "admission",
            "give-up-dispatch",
            "mark-inherited",
            "mark-sleeper",
            "roll-back",
            "share-wake",
            "sleep-dispatch",
            "turn-ends",
            "wake-sleeper",
        ],
        others: &[],
        locks: &["srl-array-wide", "srl-array-at-once"],
    },
];

const BRAVO: &[&str] = &["bravo-futex", "bravo-pf-t", "bravo-mutex"];
const PHASE_FAIR: &[&str] = &["pf-t", "pf-q"];

/// Reader-writer locks: steps, and the locks that have them. Orderings are not among them: the simulated memory is
/// never weaker. Nor are steps of locks without tokens, which nothing here runs, nor `bias-forget` and
/// `bias-unpublished`, which are for leaked guards. Without `bias-withdraw` a lock is slower, and that is all.
/// Schedules reach both grades of bias.
const RW: &[Hunt] = &[
    Hunt {
        caught: &[
            "slot-await",
            "await-bounded",
            "bias-kept-last",
            "bias-no-writer",
            "bias-closed",
            "bias-drain",
            "bias-reader",
            "bias-reader-fenced",
            "bias-recheck",
            "bias-writer",
            "bias-writer-fenced",
            "slot-leave",
            "slot-wake",
            "row-in-use",
        ],
        others: &[
            "bias-checked",
            "bias-grade",
            "bias-withdraw",
            "slot-wake-count",
        ],
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
            "futex-downgrade-wake",
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
        others: &["phase-downgrade"],
        locks: PHASE_FAIR,
    },
    Hunt {
        caught: &["ticket-parity", "ticket-wake"],
        others: &[],
        locks: &["pf-t"],
    },
];

/// Address spaces. Orderings are left out, as above.
const VM: &[Hunt] = &[Hunt {
    caught: &["cover", "reserve", "search-again"],
    others: &[
        "fresh-area",
        "limit",
        "number",
        "search-grace",
        "search-seal",
    ],
    locks: &["ours"],
}];

#[test]
fn mutants_of_address_spaces_are_caught() {
    hunt(VM);
}

/// Ordered maps. Orderings are not among the edges, as above.
const MAPS: &[Hunt] = &[Hunt {
    caught: &[
        "set-grace",
        "set-mark",
        "set-neighbourhood",
        "set-replacement",
        "set-seal",
        "set-validate",
        "set-victim",
    ],
    others: &["set-new-threads", "set-pin"],
    locks: &["range-list-ex", "orig"],
}];

#[test]
fn mutants_of_ordered_maps_are_caught() {
    hunt(MAPS);
}

#[test]
fn mutants_of_range_locks_are_caught() {
    hunt(RANGE);
}

#[test]
fn mutants_of_reader_writer_locks_are_caught() {
    hunt(RW);
}
