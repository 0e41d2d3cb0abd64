//! Named protocol edges. The environment variable `SPANLOCK_MUTANT` names the edge to weaken: its ordering becomes
//! `Relaxed`, or its step is left out.

use std::sync::LazyLock;

static MUTANT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SPANLOCK_MUTANT").ok());

/// Whether this process leaves an edge unchanged.
#[must_use]
pub fn is_intact(edge: &str) -> bool {
    MUTANT.as_deref() != Some(edge)
}

/// Whether an edge is weakened.
#[must_use]
pub fn is_mutant() -> bool {
    MUTANT.is_some()
}

/// How often the searches of all threads may start over in one execution. In a correct protocol a small model needs far
/// fewer restarts.
const RESTARTS: usize = 40;

/// Records that a search starts over because another thread interfered.
///
/// # Panics
/// When the searches start over too often. The memory model would allow a search to load old values for ever.
pub fn starts_over() {
    let restarts = crate::with_execution(|execution| {
        execution.restarts += 1;
        execution.restarts
    });
    assert!(restarts <= RESTARTS, "a search starts over without end");
}
