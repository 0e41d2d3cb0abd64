//! Named protocol edges, which a model checker can weaken one at a time.
//!
//! An *edge* is a memory ordering or a step on which the correctness of a protocol depends. A lock writes it as
//! `prim::order!("publish", Release)` or `if prim::intact!("w-validate") { … }`. Here the first is the plain ordering,
//! the second is `true`, and neither costs anything.
//!
//! On the model checker and the simulator, a *mutant* is a run with one edge weakened: the ordering is `Relaxed`, or
//! the step is left out. The models must then fail.

/// The memory ordering of a named edge, or another expression. In that edge's mutant it is the third argument instead,
/// or `Relaxed`.
#[macro_export]
macro_rules! order {
    ($edge:literal, $ordering:expr $(, $weaker:expr)?) => {
        $ordering
    };
}

/// Whether to take the step of a named edge: always, except in that edge's mutant.
#[macro_export]
macro_rules! intact {
    ($edge:literal) => {
        true
    };
}

/// Records that a search starts over because another thread interfered. A model checker counts these events, to show
/// that their number is bounded.
#[inline]
pub fn starts_over() {}
