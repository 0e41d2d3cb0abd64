//! Bounded spinning, and unbounded spinning for workloads.

pub use hardware::spin::{ON_DECISION, ON_HOLDER};

use crate::atomic::{AtomicU64, Ordering};
use crate::world;
use hardware::spin::{Pause, SpinBy};

/// A bounded spin with exponential back-off: `2^k` pauses in round `k`.
pub type Spin = SpinBy<Machine>;

/// The machine's pauses. They are private work.
#[derive(Debug)]
pub struct Machine;

impl Pause for Machine {
    fn pause(exponent: u32) {
        let pause = world::peek(|world| world.setup.machine.cycles.pause);
        world::work(pause.unwrap_or(0) << exponent);
    }
}

/// Spins until `word` differs from `seen`, and returns its new value. The only cost is that of the loads after each
/// change.
#[track_caller]
pub fn until_changed(word: &AtomicU64, seen: u64) -> u64 {
    loop {
        let now = word.load(Ordering::Acquire);
        if now != seen {
            return now;
        }
        world::watch(std::ptr::from_ref(word).addr());
    }
}
