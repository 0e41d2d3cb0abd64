//! The encoding of the word `state`; the header of `mod.rs` draws it.

use super::GiveWay;

/// Held by a writer.
pub(super) const WRITER: u32 = 1 << 31;
/// A writer sleeps or is about to.
pub(super) const WRITER_WAITS: u32 = 1 << 30;
/// A reader sleeps or is about to.
pub(super) const READER_WAITS: u32 = 1 << 29;
/// Held by a reader that may become the writer.
pub(super) const UPGRADABLE: u32 = 1 << 28;
/// The bits that count readers.
pub(super) const READERS: u32 = UPGRADABLE - 1;
/// The most readers inside: one bit of the count, so that one load of the word is enough for a reader. The rest of the
/// count is for an upgradable reader that becomes a plain one, and for readers that back out.
pub(super) const MOST_READERS: u32 = READERS / 2 + 1;

/// The value of the word `state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rw) struct State(pub(super) u32);

impl State {
    pub(super) const FREE: Self = Self(0);
    pub(super) const UPGRADABLE: Self = Self(UPGRADABLE);

    pub(super) fn readers(self) -> u32 {
        self.0 & READERS
    }

    pub(super) fn is_written(self) -> bool {
        self.0 & WRITER != 0
    }

    /// Whether there is one reader and no writer. (Beside a writer that reader is backing out, and the writer wakes the
    /// sleepers.)
    pub(super) fn is_last_reader(self) -> bool {
        self.0 & (WRITER | READERS) == 1
    }

    /// The state without the marks of threads that wait.
    pub(super) fn holders(self) -> Self {
        Self(self.0 & (WRITER | UPGRADABLE | READERS))
    }

    pub(super) fn is_upgradable(self) -> bool {
        self.0 & UPGRADABLE != 0
    }

    pub(super) fn has_waiters(self) -> bool {
        self.0 & (WRITER_WAITS | READER_WAITS) != 0
    }

    pub(super) fn has_waiting_reader(self) -> bool {
        self.0 & READER_WAITS != 0
    }

    pub(super) fn has_waiting_writer(self) -> bool {
        self.0 & WRITER_WAITS != 0
    }

    /// Whether a reader may enter. A full count refuses, so that it never reaches the bits above it.
    pub(super) fn admits(self, reader: Reader, give_way: GiveWay) -> bool {
        let writers = match give_way {
            GiveWay::ToWaitingWriters => WRITER | WRITER_WAITS,
            GiveWay::ToHoldersOnly => WRITER,
        };
        let in_the_way = match reader {
            Reader::Plain => writers,
            Reader::Upgradable => writers | UPGRADABLE,
        };
        self.0 & in_the_way == 0 && self.readers() < MOST_READERS
    }
}

/// How a reader holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Plain,
    /// It may become the writer; there is one at a time.
    Upgradable,
}

impl Reader {
    /// What its hold adds to the state.
    pub(super) const fn held(self) -> u32 {
        match self {
            Self::Plain => 1,
            Self::Upgradable => UPGRADABLE,
        }
    }
}
