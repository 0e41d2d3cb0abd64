//! Whether holders exclude each other, and their fences are in order.

use spanlock_lease::{Fence, Request, Span};
use std::cell::RefCell;
use tokio::time::Instant;

/// Who has held what.
#[derive(Default)]
pub(super) struct Oracle(RefCell<Vec<Holder>>);

struct Holder {
    request: Request,
    granted: Granted,
}

/// What is held, and until when its holder counts on it.
#[derive(Clone, Copy)]
pub(super) struct Granted {
    pub(super) span: Span,
    pub(super) fence: Fence,
    pub(super) until: Instant,
}

impl Oracle {
    /// It holds from now on, and nobody else may who conflicts.
    pub(super) fn enter(&self, &request: &Request, granted: Granted) -> usize {
        let mut all = self.0.borrow_mut();
        for other in all.iter().filter(|other| {
            other.request.id != request.id
                && other.granted.span.overlaps(granted.span)
                && other.request.mode.conflicts(request.mode)
        }) {
            let fences = (other.granted.fence, granted.fence);
            assert!(
                other.granted.until <= Instant::now(),
                "two hold the same: {fences:?}"
            );
            assert!(fences.0 < fences.1, "fences are out of order: {fences:?}");
        }
        all.push(Holder { request, granted });
        all.len() - 1
    }

    pub(super) fn until(&self, holder: usize, until: Instant) {
        self.0.borrow_mut()[holder].granted.until = until;
    }

    pub(super) fn leave(&self, holder: usize) {
        self.until(holder, Instant::now());
    }
}
