//! Named protocol edges. [`Setup::mutant`](crate::Setup::mutant) names the edge that a run weakens: its ordering
//! becomes `Relaxed`, or its step is left out.

pub use hardware::edge::starts_over;

/// Whether this run leaves an edge unchanged.
#[must_use]
pub fn is_intact(edge: &str) -> bool {
    crate::world::peek(|world| world.setup.mutant.as_deref() != Some(edge)).unwrap_or(true)
}
