//! Named protocol edges. [`Setup::mutant`](crate::Setup::mutant) names one that a run weakens: its ordering is
//! `Relaxed`, its step is left out.

/// Whether this run leaves that edge as it is.
#[must_use]
pub fn is_intact(edge: &str) -> bool {
    crate::world::peek(|world| world.setup.mutant.as_deref() != Some(edge)).unwrap_or(true)
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

/// Notes that a search starts over because of what another thread did. Only a model checker counts that.
#[inline]
pub fn starts_over() {}
