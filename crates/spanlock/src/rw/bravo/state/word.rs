//! The encoding of the word by which fast readers and writers of one lock agree. The header of `state.rs` draws it.

use super::super::account::Fate;

/// Readers may be inside by the table.
const BIASED: u32 = 1;

/// Readers publish by a read-modify-write and a fence.
const FENCED: u32 = 2;

/// The bias is clear, and whoever may set it sets it at once.
const KEEP: u32 = 4;

/// The lock is never biased.
const NEVER: u32 = 8;

/// One writer that has arrived.
pub(super) const ARRIVAL: u32 = 16;

/// How readers publish while the path is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rw) enum Grade {
    /// By a plain store. Who revokes the bias interrupts all processors.
    Free,
    /// By a read-modify-write and a fence.
    Fenced,
}

/// The value of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub(super) u32);

impl Word {
    /// Closed.
    pub(super) const UNBIASED: Self = Self(0);
    /// Open, for readers that publish by a plain store.
    pub(super) const FREE: Self = Self(BIASED);
    /// Open, for readers that fence.
    pub(super) const FENCED: Self = Self(BIASED | FENCED);
    /// Closed, with a bias that is kept and no writer that will open the path.
    pub(super) const KEPT: Self = Self(KEEP);
    pub(super) const NEVER: Self = Self(NEVER);

    #[inline(always)]
    pub(super) fn is_open(self) -> bool {
        self.0 & !FENCED == BIASED
    }

    #[inline(always)]
    pub(super) fn is_biased(self) -> bool {
        self.0 & BIASED != 0
    }

    /// Of a word with a bias.
    pub(super) fn grade(self) -> Grade {
        if self.0 & FENCED == 0 {
            Grade::Free
        } else {
            Grade::Fenced
        }
    }

    #[inline(always)]
    pub(super) fn is_biased_or_kept(self) -> bool {
        self.0 & (BIASED | KEEP) != 0
    }

    /// Whether writers that have arrived will open the path again.
    pub(super) fn will_reopen(self) -> bool {
        self.is_biased_or_kept() && self.0 >= ARRIVAL
    }

    /// Neither a bias nor an arrival. The bias may be kept.
    pub(super) fn is_clear(self) -> bool {
        self.0 & !(NEVER | KEEP) == 0
    }

    /// Whether one more writer, and as many again that back out, can arrive.
    pub(super) fn has_room(self) -> bool {
        self.0 < u32::MAX / 2
    }

    /// The word after a writer that is inside has left. The last one opens the path, if the bias is kept.
    pub(super) fn left(self) -> Self {
        match Self(self.0 - ARRIVAL) {
            Self::KEPT => Self::FENCED,
            left => left,
        }
    }

    /// The word once the table is empty; `None` if there is no bias.
    pub(super) fn closed(self, fate: Fate) -> Option<Self> {
        let keep = match fate {
            Fate::Kept => KEEP,
            Fate::Ended(_) => 0,
        };
        self.is_biased()
            .then_some(Self(self.0 & !(BIASED | FENCED) | keep))
    }
}
