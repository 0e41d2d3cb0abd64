//! Readers of random locks of a pool (P2 §5.1): locks that share a table of readers may get in each other's way.
//!
//! A thread reads a lock of the pool, chosen at random, and advances its random numbers 20 steps inside and 100
//! outside. Nobody writes, so there is nothing to check. Each lock lies on
//! lines of its own.

use super::{
    Argument, Deserialize, Kind, OnWhole, Outcome, Rng, Run, Serialize, Settings, Signal, Tally,
    WHOLE, Workload, fmt, steps, until_stop,
};

const INSIDE: u32 = 20;
const OUTSIDE: u32 = 100;

/// Pools of the paper's figure: powers of two from 1 to this.
pub const MAX_POOL: usize = 8192;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Locks in the pool: up to [`MAX_POOL`].
    pub pool: usize,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pool {
            1 => f.write_str("interference, 1 lock"),
            pool => write!(f, "interference, {pool} locks"),
        }
    }
}

impl Settings for Load {
    const NAME: &'static str = "interference";
    const KIND: Kind = Kind::Whole;
}

impl Workload for Load {
    const ABOUT: &'static str =
        "Threads read random locks of a pool: do locks get in each other's way?";
    const ARGUMENTS: &'static [Argument] = &[Argument::whole(
        "pool",
        1..=MAX_POOL,
        "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192",
        "Locks in the pool",
    )];
    /// The paper's.
    const THREADS: &'static str = "64";
}

impl OnWhole for Load {
    fn run(run: Run<'_, Self>) -> Outcome {
        let Self { pool } = run.load();
        assert!((1..=MAX_POOL).contains(&pool));
        let pool: Vec<_> = (0..pool).map(|_| run.lock()).collect();
        let work = |_: usize, mut rng: Rng, signal: &Signal, tally: &mut Tally| {
            until_stop(signal, |counts| {
                let lock = &pool[rng.usize(..pool.len())];
                let held = lock.read(WHOLE);
                steps(&mut rng, INSIDE);
                drop(held);
                steps(&mut rng, OUTSIDE);
                tally.reads += counts;
            });
        };
        run.work(work, |_| 0)
    }
}
