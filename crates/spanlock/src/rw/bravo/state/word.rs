//! The encoding of the word by which fast readers and writers of one lock agree. The header of `state.rs` draws it.

/// Readers may be inside by the table.
pub(super) const BIASED: u32 = 1;

/// The bias is set, and its readers publish by a read-modify-write and a fence.
pub(super) const FENCES: u32 = 2;

/// The bias is clear, and whoever may set it sets it at once.
const KEEP: u32 = 4;

/// One writer that has arrived.
pub(super) const ARRIVAL: u32 = 8;

/// The value of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rw::bravo) struct Word(pub(super) u32);

impl Word {
    /// Closed.
    pub(in crate::rw::bravo) const UNBIASED: Self = Self(0);
    /// Open, for readers that publish by a plain store.
    pub(in crate::rw::bravo) const FREE: Self = Self(BIASED);
    /// Open, for readers that fence.
    pub(in crate::rw::bravo) const FENCED: Self = Self(BIASED | FENCES);
    /// Closed, with a bias that is kept and no writer that will open the path.
    pub(in crate::rw::bravo) const KEPT: Self = Self(KEEP);

    #[inline(always)]
    pub(in crate::rw::bravo) fn is_open(self) -> bool {
        self.0 & !FENCES == BIASED
    }

    #[inline(always)]
    pub(in crate::rw::bravo) fn is_biased(self) -> bool {
        self.0 & BIASED != 0
    }

    pub(in crate::rw::bravo) fn is_fenced(self) -> bool {
        self.0 & FENCES != 0
    }

    /// Whether the last writer to leave will open the path again, or could: the bias is set, or kept.
    #[inline(always)]
    pub(in crate::rw::bravo) fn is_biased_or_kept(self) -> bool {
        self.0 & (BIASED | KEEP) != 0
    }

    /// Whether writers that have arrived will open the path again.
    pub(super) fn will_reopen(self) -> bool {
        self.is_biased_or_kept() && self.0 >= ARRIVAL
    }

    /// The word after a writer that is inside has left. The last one opens the path, if the bias is kept.
    pub(super) fn left(self) -> Self {
        match Self(self.0 - ARRIVAL) {
            Self::KEPT => Self::FENCED,
            // [bias-kept-last] If others have arrived, the path stays closed.
            left if left.0 & KEEP != 0 && !prim::intact!("bias-kept-last") => Self::FENCED,
            left => left,
        }
    }

    /// The word once the table is empty, with the bias kept or not; `None` if there is no bias.
    pub(super) fn closed(self, fate: Self) -> Option<Self> {
        let closed = Self(self.0 & !(BIASED | FENCES) | fate.0);
        self.is_biased().then_some(closed)
    }
}
