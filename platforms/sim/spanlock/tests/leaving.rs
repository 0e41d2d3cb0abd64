//! Readers leave a lock that was biased for them. One thread goes on alone, and reads and writes in turn: a bias costs
//! it a revocation for each write and gains it nothing.

use lock_api::RwLock;
use prim::clock::{Duration, Instant};
use prim::{Machine, Setup, run, workload};
use spanlock_sim::rw::{Bias, Bravo, FutexRwLock};

/// How long all threads of a machine read. Few lives of the bias are shorter.
const TOGETHER: Duration = Duration::from_millis(1);

/// How many times the one that stays writes before it is measured, and then while it is.
const BEFORE: u32 = 50_000;
const MEASURED: u32 = 1_000;

/// How long the writes take that are measured.
fn alone(bias: Bias) -> Duration {
    let machine = Machine::find("xeon-2x10x2").expect("it is built in");
    let threads = machine.contexts() - 1;
    let ended = run(&Setup::new(machine), move || {
        let lock = RwLock::from_raw(Bravo::with_policy(<FutexRwLock>::new(), bias), 0);
        let begin = Instant::now();
        let write = |times| {
            let start = Instant::now();
            for _ in 0..times {
                let read = *lock.read();
                *lock.write() = read + 1;
            }
            start.elapsed()
        };
        let work = |thread| {
            for turn in 0_u32.. {
                if begin.elapsed() > TOGETHER {
                    break;
                }
                match turn % 1000 {
                    999 => *lock.write() += 1,
                    _ => drop(lock.read()),
                }
            }
            if thread > 0 {
                return Duration::ZERO;
            }
            write(BEFORE);
            write(MEASURED)
        };
        workload::crew(threads, work, || ())[0]
    });
    ended.unwrap_or_else(|failure| panic!("{failure}")).value
}

#[test]
fn a_bias_ends_whose_readers_have_left() {
    let (adaptive, off) = (alone(Bias::STANDARD), alone(Bias::Off));
    assert!(adaptive < 2 * off, "{adaptive:?}, {off:?} without a bias");
}
