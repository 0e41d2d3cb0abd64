//! Whether users may begin to work under a lease.

use prim::atomic::{AtomicBool, Ordering};
use prim::sync::Arc;

/// Whether users may begin to work under a lease. The keeper writes it, and clocks are read by the keeper alone.
#[derive(Debug)]
pub struct Gate(AtomicBool);

/// What a gate is set to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IsOpen {
    /// Work may begin.
    Yes,
    /// It may not.
    No,
}

impl Gate {
    /// An open one.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    /// Opens or closes it.
    pub fn set(&self, open: IsOpen) {
        // Relaxed: a process that was stopped after the load would be late in any case.
        self.0.store(open == IsOpen::Yes, Ordering::Relaxed);
    }

    /// Closes it for good, and tells those who wait for that. What they are told by orders their looks after this.
    pub fn close(&self, tell: impl FnOnce()) {
        // [closed-first] The mutant tells first.
        if prim::intact!("closed-first") {
            self.set(IsOpen::No);
            tell();
        } else {
            tell();
            self.set(IsOpen::No);
        }
    }

    /// Whether work may begin.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
