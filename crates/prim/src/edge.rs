//! Named protocol edges, which a model checker can weaken one at a time.
//!
//! A lock writes `prim::order!("publish", Release)` or `if prim::intact!("w-validate") { … }` where its protocol
//! depends on that ordering or that step. Here both are the plain thing and cost nothing. On the model checker a
//! *mutant* run names one edge: its ordering becomes `Relaxed` and its step is left out, and the models must fail.

/// The memory ordering of a named edge; in that edge's mutant the weaker one named third, or `Relaxed`.
#[macro_export]
macro_rules! order {
    ($edge:literal, $ordering:expr $(, $weaker:expr)?) => {
        $ordering
    };
}

/// Whether the step that a named edge stands for is to be taken: always, except in that edge's mutant.
#[macro_export]
macro_rules! intact {
    ($edge:literal) => {
        true
    };
}

/// Notes that a search starts over because of what another thread did. A model checker counts: a search that can go on
/// starting over has no bound.
#[inline]
pub fn starts_over() {}
