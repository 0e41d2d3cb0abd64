//! Spinning, as short as possible: threads that spin on hardware park here, unless a model asks for spins.

pub use hardware::spin::{ON_DECISION, ON_HOLDER};

use crate::atomic::{AtomicU64, Ordering};
use crate::with_execution;
use hardware::spin::{Pause, SpinBy};

/// The number of spins and yields that loom explores in one execution. After that it follows one fair schedule to the
/// end. Models with spins explore a few more.
pub(crate) const EXPLORED: usize = 6;

/// Spins until `word` differs from `seen`, and returns its new value.
#[track_caller]
pub fn until_changed(word: &AtomicU64, seen: u64) -> u64 {
    let mut now = word.load(Ordering::Acquire);
    while now == seen {
        crate::thread::yield_now();
        now = word.load(Ordering::Acquire);
    }
    now
}

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

/// Counts one spin. Beyond the number that is explored, loom does not branch.
pub(crate) fn count() {
    let spins = with_execution(|execution| {
        execution.spins += 1;
        execution.spins
    });
    if spins == crate::SETTING.get().explored {
        loom::skip_branch();
    }
}
