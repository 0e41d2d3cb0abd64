//! Schedule fuzzing: random work by a few threads on a machine that is randomly late, and oracles.
//!
//! - *Exclusion*: each place knows who is inside, and panics when somebody is who should not be.
//! - *Liveness*: a run in which all threads wait fails, and so does one without end.
//! - *Concurrency*: threads hold what all can hold at a time, and let go only when all hold theirs.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | a case, its schedule and its crew; the search for a seed that fails |
//! | `mutant.rs` | the named edges that a run can weaken |
//! | `oracle.rs` | who is inside; meetings of all threads |
//! | `isolated.rs` | the search in a process of its own |
//! | `range.rs` | the work on range locks |
//! | `rw.rs` | the work on reader-writer locks |

pub mod isolated;
mod mutant;
mod oracle;
pub(super) mod range;
pub(super) mod rw;

pub use mutant::Mutant;

use fastrand::Rng;
use prim_sim::{Asymmetry, Ended, Failure, Fuzz, Machine, Placement, Rmw, Setup, Stock, thread};
use std::sync::Arc;

/// One run. It follows from a seed, the name of a lock and that of a mutant.
#[derive(Debug, Clone)]
pub struct Case {
    setup: Setup,
    threads: usize,
    operations: u32,
    /// What the work draws from, if it has to choose for all its threads.
    rng: Rng,
}

/// How a run ended.
pub type Run = Result<Ended<()>, Box<Failure>>;

/// More operations of the machine than any case needs: several times those of the longest seen.
const END: u64 = 1_000_000;

impl Case {
    /// The case of a seed; with a mutant, that edge is weakened.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let machine = rng.choice(["small-1x2x1", "xeon-2x10x2"]).expect("two");
        let machine = Machine::find(machine).expect("built in");
        let setup = Setup {
            placement: Placement::Unpinned,
            seed,
            rmw: rng.choice([Rmw::Fences, Rmw::Buffered]).expect("two"),
            asymmetry: if seed.is_multiple_of(2) {
                Asymmetry::Interrupts
            } else {
                Asymmetry::Fences
            },
            fuzz: Fuzz {
                jitter: rng.choice([20, 200, 2000]).expect("three"),
                preempted: rng.choice([0, 30, 300]).expect("three"),
                preemption: rng.choice([10_000, 300_000, 10_000_000]).expect("three"),
                drain: rng.choice([0, 1000, 30_000, 1_000_000]).expect("four"),
                stock: rng.choice([Stock::Ample, Stock::Scarce]).expect("two"),
            },
            mutant: mutant.map(|mutant| mutant.name().to_owned()),
            operations: END,
            ..Setup::new(machine)
        };
        Self {
            setup,
            threads: rng.usize(2..=5),
            operations: rng.u32(4..=24),
            rng,
        }
    }

    /// Runs it: all threads work on what `make` makes in the run.
    fn run<R: Send + Sync + 'static>(
        &self,
        make: impl FnOnce(&mut Rng, usize) -> R + Send + 'static,
        work: impl Fn(&Arc<R>, Hand) + Copy + Send + 'static,
    ) -> Run {
        let case = self.clone();
        prim_sim::run(&self.setup, move || {
            let mut rng = case.rng;
            let resource = Arc::new(make(&mut rng, case.threads));
            let crew: Vec<_> = (0..case.threads)
                .map(|number| {
                    let resource = Arc::clone(&resource);
                    let hand = Hand {
                        number,
                        operations: case.operations,
                        rng: crate::crew::rng(case.setup.seed, 0, number),
                    };
                    thread::spawn(move || work(&resource, hand))
                })
                .collect();
            for hand in crew {
                let _ = hand.join();
            }
        })
    }
}

/// A thread of a case's crew.
struct Hand {
    /// From 0.
    number: usize,
    /// How many things it is to do.
    operations: u32,
    rng: Rng,
}

/// Looks for a seed that fails when `run` runs its case, from the first on; tells each run that ended well.
///
/// # Errors
/// The first failure.
pub fn search(
    run: impl Fn(&Case) -> Run,
    seeds: impl IntoIterator<Item = u64>,
    mutant: Option<Mutant>,
    mut ran: impl FnMut(&Ended<()>),
) -> Result<(), Box<Failure>> {
    for seed in seeds {
        ran(&run(&Case::new(seed, mutant))?);
    }
    Ok(())
}
