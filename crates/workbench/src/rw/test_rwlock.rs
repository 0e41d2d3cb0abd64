//! Readers and one writer, with fixed roles (P2 §5.3: `test_rwlock T 1 10 -c 10 -e 10 -d 1000`).
//!
//! All count down from 10 inside; the writer counts down from 1000 between its writes, readers read without a pause.
//! The writer's waits are timed, so that it shows whether readers starve it.

use super::guarded::Guarded;
use super::{
    Argument, Deserialize, Kind, OnWhole, Outcome, Rng, Run, Serialize, Settings, Signal, Tally,
    Timekeeper, WHOLE, Workload, count_down, crew, fmt,
};

/// Work inside.
const INSIDE: u32 = 10;

/// The longest pause.
const MAX_PAUSE: usize = 1 << 20;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Work of the writer between its writes.
    pub pause: u32,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "test_rwlock, pause {}", self.pause)
    }
}

impl Settings for Load {
    const NAME: &'static str = "test_rwlock";
    const KIND: Kind = Kind::Whole;
    const BESIDE: usize = 1;
}

impl Workload for Load {
    const ABOUT: &'static str = "Readers without a pause, and one writer";
    const ARGUMENTS: &'static [Argument] = &[Argument::whole(
        "pause",
        0..=MAX_PAUSE,
        "1000",
        "Work of the writer between its writes",
    )];
}

impl OnWhole for Load {
    fn run(run: Run<'_, Self>) -> Outcome {
        let Self { pause } = run.load();
        let lock = run.lock();
        let data = Guarded::default();
        // Thread 0 writes.
        let work = |thread: usize, _: Rng, signal: &Signal, tally: &mut Tally| {
            if thread == 0 {
                tally.times = Some(Default::default());
                signal.until_stop(|phase| {
                    let held = crew::acquire(tally, phase, || lock.write(WHOLE));
                    data.write(|| count_down(INSIDE));
                    drop(held);
                    count_down(pause);
                    tally.writes += phase.counts();
                    tally.added += 1;
                });
            } else {
                signal.until_stop(|phase| {
                    let held = lock.read(WHOLE);
                    tally.torn += data.read(|| count_down(INSIDE));
                    drop(held);
                    tally.reads += phase.counts();
                });
            }
        };
        run.work(work, |wrote| data.lost(wrote))
    }
}
