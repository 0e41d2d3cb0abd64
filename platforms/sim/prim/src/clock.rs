//! Virtual time: the running thread's clock.

pub use core::time::Duration;

use hardware::simulated;

/// A point in the virtual time of a run. Outside a run every instant is the beginning.
pub type Instant = simulated::Instant<Virtual>;

/// The clock of the running thread. Reading it takes some cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Virtual;

impl simulated::Clock for Virtual {
    fn since_start() -> Duration {
        const READ: u64 = 25;
        crate::world::work(READ);
        let now = crate::world::peek(|world| world.duration(world.current().time));
        now.unwrap_or_default()
    }
}

/// Nanoseconds since the run began.
#[must_use]
pub fn nanoseconds() -> u64 {
    Instant::nanoseconds()
}
