//! Threads that read or write by chance (P2 §5.4).
//!
//! Each operation writes with a given probability and else reads; it advances the thread's random numbers inside and
//! outside. In the paper that is 10 steps inside, and outside from 0 to 199.

use super::guarded::Guarded;
use super::{
    Argument, Deserialize, Kind, OnWhole, Outcome, Rng, Run, Serialize, Settings, Signal, Tally,
    WHOLE, Workload, fmt, steps, until_stop,
};

/// The paper's work inside.
const INSIDE: u32 = 10;

/// The paper's most work outside.
const OUTSIDE: u32 = 199;

/// The most work.
const MAX_WORK: usize = 1 << 20;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The part of operations that write, from 0 to 1.
    pub writes: f64,
    /// Work inside.
    pub inside: u32,
    /// The most work outside: each operation has from none to this.
    pub outside: u32,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rwbench, {} % writes", self.writes * 100.0)?;
        match (self.inside, self.outside) {
            (INSIDE, OUTSIDE) => Ok(()),
            (inside, outside) => write!(f, ", {inside} inside, {outside} outside"),
        }
    }
}

impl Settings for Load {
    const NAME: &'static str = "rwbench";
    const KIND: Kind = Kind::Whole;
}

impl Workload for Load {
    const ABOUT: &'static str = "Threads that read or write by chance";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::part(
            "writes",
            "0.9,0.5,0.1,0.01,0.001,0.0001",
            "The part of operations that write, from 0 to 1",
        ),
        Argument::whole(
            "inside",
            0..=MAX_WORK,
            "10",
            "Steps of work in the critical section",
        ),
        Argument::whole(
            "outside",
            0..=MAX_WORK,
            "199",
            "The largest number of steps of work between critical sections; the number is drawn for each operation",
        ),
    ];
}

impl OnWhole for Load {
    fn run(run: Run<'_, Self>) -> Outcome {
        let Self {
            writes,
            inside,
            outside,
        } = run.load();
        assert!((0.0..=1.0).contains(&writes));
        let lock = run.lock();
        let data = Guarded::default();
        let work = |_: usize, mut rng: Rng, signal: &Signal, tally: &mut Tally| {
            until_stop(signal, |counts| {
                if rng.f64() < writes {
                    let held = lock.write(WHOLE);
                    data.write(|| steps(&mut rng, inside));
                    drop(held);
                    tally.writes += counts;
                    tally.added += 1;
                } else {
                    let held = lock.read(WHOLE);
                    tally.torn += data.read(|| steps(&mut rng, inside));
                    drop(held);
                    tally.reads += counts;
                }
                let pause = rng.u32(..=outside);
                steps(&mut rng, pause);
            });
        };
        run.work(work, |wrote| data.lost(wrote))
    }
}
