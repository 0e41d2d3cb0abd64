//! Nothing but reading: each thread acquires one lock for reading, and releases it, without a pause.

use super::{
    Deserialize, Kind, OnWhole, Outcome, Rng, Run, Serialize, Settings, Signal, Tally, Workload,
    fmt,
};

/// The settings, of which there are none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("readers")
    }
}

impl Settings for Load {
    const NAME: &'static str = "readers";
    const KIND: Kind = Kind::Whole;
}

impl Workload for Load {
    const ABOUT: &'static str = "Nothing but reading, beside what no lock can do better";
}

impl OnWhole for Load {
    fn run(run: Run<'_, Self>) -> Outcome {
        let lock = run.lock();
        let work = |_: usize, _: Rng, signal: &Signal, tally: &mut Tally| {
            tally.reads = lock.reads(signal);
        };
        run.work(work, |_| 0)
    }
}
