//! What waiting costs: processor time of those who wait, and how evenly a lock serves them.

use crate::arr::{self, LostUpdates, Pauses, Percent, Timing, Trial, Variant};
use crate::crew::Schedule;
use crate::processor;
use crate::provenance::cores;
use crate::registry::Lock;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Barrier;
use std::time::Duration;

/// How long a range is held while another thread waits for it.
pub const HOLD: Duration = Duration::from_millis(300);

/// Processor time of a thread that waits for a range while another thread holds it for so long; `None` where the
/// system does not tell.
///
/// # Panics
/// When the lock does.
pub fn sleeper<T: Target>(lock: &T, hold: Duration) -> Option<Duration> {
    const RANGE: Range<u64> = 0..64;
    let held = Barrier::new(2);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let guard = lock.write(RANGE);
            held.wait();
            std::thread::sleep(hold);
            drop(guard);
        });
        held.wait();
        let (used, guard) = processor::measure(processor::time_of_thread, || lock.write(RANGE));
        drop(guard);
        holder.join().expect("a holder sleeps and releases");
        used
    })
}

/// Threads that all write the whole array, one after the other and without a pause.
#[must_use]
pub fn contention(threads: usize, schedule: Schedule, seed: u64) -> Trial {
    Trial {
        variant: Variant::Full,
        reads: Percent::new(0).expect("at most 100"),
        threads,
        pauses: Pauses::None,
        schedule,
        events: &[],
        timing: Timing::On,
        seed,
        repeat: 0,
    }
}

/// One lock: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Under contention.
    #[serde(flatten)]
    pub contention: arr::Record,
    /// Processor time under contention, as a fraction of what all cores had. As only one thread at a time can do
    /// anything of use, what is beyond one core's share is the cost of waiting.
    pub cpu_share: Option<f64>,
    /// Processor time in milliseconds of a thread that waited while another held for [`HOLD`].
    pub sleeper_cpu_ms: Option<f64>,
}

impl Record {
    /// Measures a lock.
    ///
    /// # Errors
    /// When the lock lost updates although it promises exclusion.
    pub fn measure(lock: &Lock, trial: &Trial) -> Result<Self, LostUpdates> {
        let contention = arr::Record::measure(lock, trial)?;
        let available = contention.seconds * cores() as f64;
        Ok(Self {
            cpu_share: contention.cpu_seconds.map(|used| used / available),
            sleeper_cpu_ms: lock
                .measure
                .sleeper(lock.values, HOLD)
                .map(|used| used.as_secs_f64() * 1e3),
            contention,
        })
    }
}
