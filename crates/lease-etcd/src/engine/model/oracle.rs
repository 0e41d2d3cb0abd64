//! Whether holders exclude each other, and their fences are in order.

use spanlock_lease::{Fence, Mode, RequestId, Span};
use std::cell::RefCell;
use tokio::time::Instant;

/// Who has held what.
#[derive(Default)]
pub(super) struct Oracle(RefCell<Vec<Holder>>);

struct Holder {
    id: RequestId,
    span: Span,
    mode: Mode,
    fence: Fence,
    /// Until when it counts on it.
    until: Instant,
}

impl Oracle {
    /// It holds from now on, and nobody else may who conflicts.
    pub(super) fn enter(
        &self,
        id: RequestId,
        span: Span,
        mode: Mode,
        fence: Fence,
        until: Instant,
    ) -> usize {
        let now = Instant::now();
        let mut all = self.0.borrow_mut();
        let conflicts = |other: &&Holder| {
            other.id != id && other.span.overlaps(span) && other.mode.conflicts(mode)
        };
        for other in all.iter().filter(conflicts) {
            assert!(
                other.until <= now,
                "two hold the same: {} and {fence}",
                other.fence
            );
            assert!(
                other.fence < fence,
                "fences are out of order: {} and then {fence}",
                other.fence
            );
        }
        all.push(Holder {
            id,
            span,
            mode,
            fence,
            until,
        });
        all.len() - 1
    }

    pub(super) fn until(&self, holder: usize, until: Instant) {
        self.0.borrow_mut()[holder].until = until;
    }

    pub(super) fn leave(&self, holder: usize) {
        self.until(holder, Instant::now());
    }
}
