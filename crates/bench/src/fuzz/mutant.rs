//! The named edges that a run can weaken.

/// A named edge of the library's protocols, to be weakened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutant(&'static str);

/// All names that stand in the source of the locks: collected by `build.rs`.
const EDGES: &[&str] = include!(concat!(env!("OUT_DIR"), "/edges.rs"));

impl Mutant {
    /// All of them, in the order of their names.
    pub fn all() -> impl Iterator<Item = Self> {
        EDGES.iter().copied().map(Self)
    }

    /// The mutant of that edge.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn find(edge: &str) -> Result<Self, String> {
        Self::all()
            .find(|mutant| mutant.0 == edge)
            .ok_or_else(|| format!("expected one of {}", EDGES.join(", ")))
    }

    /// The edge.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0
    }
}
