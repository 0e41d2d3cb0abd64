//! A case, and the search for one that fails.

use crate::fuzz::Mutant;
use crate::fuzz::crew::{Crew, Work};
use fastrand::Rng;
use prim_sim::{Asymmetry, Ended, Failure, Fuzz, Machine, Placement, Rmw, Setup, Stock, thread};
use std::sync::Arc;

/// One run. It follows from a seed, the name of a lock and that of a mutant.
#[derive(Debug, Clone)]
pub struct Case {
    pub(crate) setup: Setup,
    threads: usize,
    operations: u32,
    /// The choices that are made once for all threads draw from this.
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

    /// Runs it: all threads work on the resource that `make` makes in the run.
    pub(crate) fn run<R: Work>(&self, make: impl FnOnce(&mut Rng) -> R + Send + 'static) -> Run {
        let case = self.clone();
        prim_sim::run(&self.setup, move || {
            let mut rng = case.rng;
            let crew = Arc::new(Crew::new(make(&mut rng), case.threads));
            let threads: Vec<_> = (0..case.threads)
                .map(|number| {
                    let crew = Arc::clone(&crew);
                    let rng = spanlock_workbench_sim::crew::rng(case.setup.seed, 0, number);
                    thread::spawn(move || crew.work(number, case.operations, rng))
                })
                .collect();
            for thread in threads {
                let _ = thread.join();
            }
        })
    }
}

/// Runs the cases of these seeds until one fails. Calls `ran` for each run that ended well.
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
