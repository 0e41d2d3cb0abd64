//! Bounded spinning.

pub use hardware::spin::{ON_DECISION, ON_HOLDER};

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
