//! Counts and histograms of the crate `metrics`.

use super::{LongHold, Observer, Outcome, Waiting};
use metrics::{counter, gauge, histogram};
use prim::clock::Duration;

/// Counts and measures waits, by mode:
///
/// | name | kind | labels | what |
/// |---|---|---|---|
/// | `spanlock_waiting` | gauge | `mode` | requests that wait now |
/// | `spanlock_wait_seconds` | histogram | `mode`, `outcome` | how long waits lasted |
/// | `spanlock_held_for_long_total` | counter | `mode` | ranges held for longer than a period while others waited |
///
/// ```
/// spanlock::observe::set(&spanlock::observe::Metrics).expect("the only one");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Metrics;

impl Observer for Metrics {
    fn wait_begins(&self, wait: &Waiting) {
        gauge!("spanlock_waiting", "mode" => wait.mode.word()).increment(1.0);
    }

    fn wait_ends(&self, wait: &Waiting, lasted: Duration, outcome: Outcome) {
        let mode = wait.mode.word();
        let outcome = match outcome {
            Outcome::Granted => "granted",
            Outcome::Refused => "refused",
            Outcome::Dropped => "dropped",
        };
        gauge!("spanlock_waiting", "mode" => mode).decrement(1.0);
        histogram!("spanlock_wait_seconds", "mode" => mode, "outcome" => outcome).record(lasted);
    }

    fn held_for_long(&self, hold: &LongHold) {
        counter!("spanlock_held_for_long_total", "mode" => hold.held.mode.word()).increment(1);
    }
}
