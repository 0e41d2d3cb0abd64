//! The library's locks under random schedules, and what the same schedules find in mutants.
//!
//! `cargo test -p spanlock-bench --test fuzz -- --nocapture` prints what is caught, and by which seed. To replay one:
//! `SPANLOCK_FUZZ='LOCK SEED EDGE' cargo test -p spanlock-bench --test fuzz -- --ignored replay`, without an edge if none
//! is weakened. `SPANLOCK_FUZZ_RUNS` sets how many schedules are tried.

mod mutants;
mod range;
mod rw;

use spanlock_bench::sim::fuzz::{Case, Mutant, Run, search};
use std::sync::Mutex;
use std::{env, thread};

/// Memory on lines: runs repeat exactly.
#[global_allocator]
static HEAP: prim_sim::heap::OnLines = prim_sim::heap::OnLines;

/// How many schedules are tried, unless told.
const RUNS: u64 = 300;

fn runs() -> u64 {
    let told = env::var("SPANLOCK_FUZZ_RUNS");
    told.map_or(RUNS, |text| text.parse().expect("a whole number"))
}

/// Does something with each, on all cores.
fn on_all_cores<T: Send>(all: impl Iterator<Item = T> + Send, f: impl Fn(T) + Sync) {
    let all = Mutex::new(all);
    let next = || all.lock().expect("no panic while held").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(one) = next() {
                    f(one);
                }
            });
        }
    });
}

/// Runs a case on a lock.
type Runner = Box<dyn Fn(&Case) -> Run>;

/// How to run a case on the lock of that name.
fn find(lock: &str) -> Result<Runner, String> {
    range::find(lock).or_else(|_| rw::find(lock))
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
            let ended = search(find(lock).expect("a lock's name"), [seed], None, |_| ());
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
    for mutant in ["reader-handshake", "granules", "barrier"] {
        assert!(error.contains(mutant), "{mutant} in {error}");
        assert_eq!(Mutant::find(mutant).expect("known").name(), mutant);
    }
}
