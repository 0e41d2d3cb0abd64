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
