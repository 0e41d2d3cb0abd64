//! Every range lock of the library under random schedules, and what the same schedules find in mutants.

use spanlock_bench::sim::fuzz::search;
use spanlock_bench::sim::{LOCKS, Lock};

#[global_allocator]
static HEAP: prim_sim::heap::OnLines = prim_sim::heap::OnLines;

fn runs(default: u64) -> u64 {
    std::env::var("SPANLOCK_FUZZ_RUNS")
        .map_or(default, |text| text.parse().expect("a whole number"))
}

#[test]
fn no_schedule_breaks_a_lock() {
    for lock in LOCKS {
        if let Err(failure) = search(lock, 0..runs(150), None, || ()) {
            panic!("{}: {failure}", lock.name);
        }
    }
}

fn seeds_until_caught(edge: &str, lock: &str, most: u64) -> Option<u64> {
    let lock = Lock::find(lock).expect("a lock's name");
    search(lock, 0..most, Some(edge), || ())
        .err()
        .map(|failure| failure.seed)
}

#[test]
fn probe() {
    for edge in [
        "reader-handshake",
        "writer-handshake",
        "reader-validation",
        "writer-validation",
        "fresh-node",
        "withdraw",
        "holder-bypass",
        "roll-back",
        "gate-bypass",
        "wake",
        "sleeper",
        "mark-sleeper",
        "wake-sleeper",
        "mark-inherited",
        "inherit",
        "downgrade-wake",
        "share-wake",
        "holder-dispatch",
        "sleep-dispatch",
        "give-up-dispatch",
        "no-fast-release",
        "demote",
        "cut-off",
        "pin",
        "seal",
        "grace",
        "newcomers",
        "gate",
        "age",
        "lost-race",
    ] {
        for lock in ["list-rw", "list-rw-at-once", "srl-array", "srl-tree"] {
            let start = std::time::Instant::now();
            if let Some(seed) = seeds_until_caught(edge, lock, runs(150)) {
                eprintln!("{edge}: {lock} seed {seed} {:?}", start.elapsed());
            }
        }
    }
}
