//! The modes in which a range is held.

/// How a range is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Together with other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// Whether holders of overlapping ranges in these modes exclude each other.
    #[inline]
    #[must_use]
    pub fn conflicts(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }

    /// The mode, as people say it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        }
    }
}
