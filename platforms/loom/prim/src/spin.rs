//! Spinning, as short as possible: threads that spin on hardware park here, unless a model asks for spins.

pub use hardware::spin::{ON_DECISION, ON_HOLDER};

use hardware::spin::{Pause, SpinBy};

/// A bounded spin: of one round on a decision, and otherwise of as many as the model asks for.
pub type Spin = SpinBy<Model>;

/// Pauses that let another thread run.
#[derive(Debug)]
pub struct Model;

impl Pause for Model {
    fn limit(rounds: u32) -> u32 {
        match rounds {
            ON_DECISION => 1,
            _ => crate::SETTING.get().rounds,
        }
    }

    #[track_caller]
    fn pause(_exponent: u32) {
        crate::thread::yield_now();
    }
}
