//! The library's locks under random schedules, and what the same schedules find in mutants.
//!
//! `cargo test -p spanlock-bench --test fuzz -- --nocapture` prints what is caught, and by which seed. To replay one:
//! `SPANLOCK_FUZZ='LOCK SEED EDGE' cargo test -p spanlock-bench --test fuzz -- --ignored replay`, without an edge if
//! none is weakened. `SPANLOCK_FUZZ_RUNS` sets how many schedules are tried.

mod mutants;

use spanlock_bench::fuzz::{Lock, Mutant, search};
use spanlock_testkit::{assert_repeats, do_all, on_all_processors, setting};
use std::env;

/// Memory on lines: runs repeat exactly.
#[global_allocator]
static HEAP: prim_sim::heap::OnLines = prim_sim::heap::OnLines;

/// How many schedules are tried on each lock.
fn runs() -> u64 {
    setting("SPANLOCK_FUZZ_RUNS", if do_all() { 150 } else { 15 })
}

fn no_schedule_breaks(locks: impl Iterator<Item = &'static Lock> + Send) {
    on_all_processors(locks, |lock| {
        if let Err(failure) = search(|case| lock.run(case), 0..runs(), None, |_| ()) {
            panic!("{}: {failure}", lock.name());
        }
    });
}

macro_rules! no_schedule_breaks {
    ($($(#[$documented:meta])* $name:ident: $locks:expr;)+) => {$(
        $(#[$documented])*
        #[test]
        fn $name() {
            no_schedule_breaks($locks);
        }
    )+};
}

no_schedule_breaks! {
    no_schedule_breaks_a_range_lock: Lock::range().filter(|lock| !lock.is_baseline());

    /// BRAVO as published is among them.
    no_schedule_breaks_a_reader_writer_lock: Lock::rw();

    /// Each history of an address space is one that a single thread could have made.
    no_schedule_breaks_an_address_space: Lock::vm().filter(|variant| !variant.is_baseline());

    /// Histories are linearisable, and views keep what they have found.
    no_schedule_breaks_an_ordered_map: Lock::maps();
}

/// The runs of a lock are the same whatever was allocated meanwhile.
fn runs_repeat(locks: impl Iterator<Item = &'static Lock>, seeds: u64) {
    for lock in locks {
        let digests = || {
            let mut digests = Vec::new();
            let run = |case: &_| lock.run(case);
            let ended = search(run, 0..seeds, None, |ended| digests.push(ended.digest));
            assert!(ended.is_ok());
            digests
        };
        assert_repeats(lock.name(), digests);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    runs_repeat(Lock::range().filter(|lock| !lock.is_baseline()), 20);
    runs_repeat(Lock::rw(), 10);
    runs_repeat(Lock::vm().filter(|variant| !variant.is_baseline()), 5);
    runs_repeat(Lock::maps(), 10);
}

#[test]
fn the_same_seed_gives_the_same_failure() {
    let lock = Lock::find("srl-array").expect("it is there");
    let mutant = Mutant::find("roll-back").expect("it is there");
    let fail = || {
        let run = |case: &_| lock.run(case);
        search(run, 0..mutants::PATIENCE, Some(mutant), |_| ()).expect_err("it is caught")
    };
    assert_eq!(fail().to_string(), fail().to_string());
}

#[test]
#[ignore = "for people who have a seed that fails"]
fn replay() {
    let told = env::var("SPANLOCK_FUZZ").expect("lock, seed and perhaps an edge");
    let mut words = told.split_whitespace();
    let lock = words.next().expect("a lock");
    let seed = words.next().expect("a seed").parse().expect("a number");
    let found = match words.next() {
        Some(edge) => mutants::search_in_a_process(edge, lock, seed, 1),
        None => {
            let lock = Lock::find(lock).expect("a lock's name");
            let ended = search(|case| lock.run(case), [seed], None, |_| ());
            ended.err().map(|failure| failure.to_string())
        }
    };
    match found {
        Some(what) => panic!("{what}"),
        None => println!("nothing found"),
    }
}

#[test]
fn an_unknown_edge_is_an_error_that_lists_the_known_ones() {
    let error = Mutant::find("no such edge").expect_err("there is none");
    for mutant in ["reader-handshake", "granules", "grace-nonblocking"] {
        assert!(error.contains(mutant), "{mutant} in {error}");
        assert_eq!(Mutant::find(mutant).expect("known").name(), mutant);
    }
}
