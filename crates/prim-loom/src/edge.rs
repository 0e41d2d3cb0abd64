//! Named protocol edges. `SPANLOCK_MUTANT=name` weakens one: its ordering is `Relaxed`, its step is left out.

use std::sync::LazyLock;

static MUTANT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SPANLOCK_MUTANT").ok());

/// Whether this process runs without weakening that edge.
#[must_use]
pub fn is_intact(edge: &str) -> bool {
    MUTANT.as_deref() != Some(edge)
}

/// Whether an edge is weakened.
#[must_use]
pub fn is_mutant() -> bool {
    MUTANT.is_some()
}

/// The memory ordering of a named edge; in that edge's mutant the weaker one named third, or `Relaxed`.
#[macro_export]
macro_rules! order {
    ($edge:literal, $ordering:expr) => {
        $crate::order!($edge, $ordering, $crate::atomic::Ordering::Relaxed)
    };
    ($edge:literal, $ordering:expr, $weaker:expr) => {
        if $crate::edge::is_intact($edge) {
            $ordering
        } else {
            $weaker
        }
    };
}

/// Whether the step that a named edge stands for is to be taken: always, except in that edge's mutant.
#[macro_export]
macro_rules! intact {
    ($edge:literal) => {
        $crate::edge::is_intact($edge)
    };
}

/// How often searches may start over in one execution, all threads together. Models are small: one of a few threads
/// that come and leave a few times has far fewer reasons.
const RESTARTS: usize = 40;

/// Notes that a search starts over because of what another thread did.
///
/// # Panics
/// When there is no end to that: the search sees old values again and again, which the memory model allows for ever.
pub fn starts_over() {
    let restarts = crate::with_execution(|execution| {
        execution.restarts += 1;
        execution.restarts
    });
    assert!(restarts <= RESTARTS, "a search starts over without end");
}
