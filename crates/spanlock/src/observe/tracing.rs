//! Events of the crate `tracing`.

use super::{LongHold, Observer, Outcome, Waiting};
use crate::range::shown::Shown;
use prim::clock::Duration;

/// Makes an event of each call, with the target `spanlock`: waits at the level of traces, and long holds as warnings.
/// The subscriber decides what becomes of them.
///
/// ```
/// spanlock::observe::set(&spanlock::observe::Tracing).expect("the only one");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Tracing;

impl Observer for Tracing {
    fn wait_begins(&self, wait: &Waiting) {
        let Waiting {
            owner,
            lock,
            span,
            keys,
            mode,
            place,
            ..
        } = wait;
        let (span, mode) = (Shown(*span, *keys), mode.word());
        tracing::trace!(target: "spanlock", %owner, lock, %span, mode, %place, "a wait begins");
    }

    fn wait_ends(&self, wait: &Waiting, lasted: Duration, outcome: Outcome) {
        let Waiting {
            owner,
            lock,
            span,
            keys,
            mode,
            place,
            ..
        } = wait;
        let (span, mode) = (Shown(*span, *keys), mode.word());
        tracing::trace!(
            target: "spanlock", %owner, lock, %span, mode, %place, ?lasted, ?outcome, "a wait ends"
        );
    }

    fn held_for_long(&self, hold: &LongHold) {
        let LongHold {
            owner,
            lock,
            held,
            at_least,
        } = hold;
        let (span, mode) = (held.shown(), held.mode.word());
        let place = held.place.map(tracing::field::display);
        tracing::warn!(target: "spanlock", %owner, lock, %span, mode, place, ?at_least, "a range is held for long");
    }
}
