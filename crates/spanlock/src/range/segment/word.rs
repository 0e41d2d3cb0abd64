//! One segment's lock word: a writer bit, a sleeper bit and a count of readers. The parent module has a picture.

use crate::range::mode::Mode;
use prim::atomic::{AtomicU32, Ordering};
use prim::track::Track;

/// Held exclusively.
const WRITER: u32 = 1 << 31;
/// A request sleeps behind the segment, or has slept there and no holder has dispatched the sleepers since.
const SLEEPER: u32 = 1 << 30;
/// The remaining bits count readers.
const READERS: u32 = SLEEPER - 1;

/// The content of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State(u32);

impl State {
    const FREE: Self = Self(0);

    fn is_written(self) -> bool {
        self.0 & WRITER != 0
    }

    fn has_sleeper(self) -> bool {
        self.0 & SLEEPER != 0
    }

    fn readers(self) -> u32 {
        self.0 & READERS
    }

    /// Whether one more request may enter. A full count refuses, so it never overflows into the bits above it.
    pub(super) fn admits(self, mode: Mode) -> bool {
        match mode {
            Mode::Shared => !self.is_written() && self.readers() < READERS,
            Mode::Exclusive => !self.is_written() && self.readers() == 0,
        }
    }

    /// How the segment is held, if it is.
    pub(super) fn held(self) -> Option<Mode> {
        if self.is_written() {
            Some(Mode::Exclusive)
        } else {
            (self.readers() > 0).then_some(Mode::Shared)
        }
    }

    fn entered(self, mode: Mode) -> Self {
        match mode {
            Mode::Shared => Self(self.0 + 1),
            Mode::Exclusive => Self(self.0 | WRITER),
        }
    }

    /// Of the state that a holder in the mode `left` has just left: whether a sleeper can enter now.
    pub(super) fn calls_for_wake(self, left: Mode) -> bool {
        // A reader that leaves other readers behind lets in no writer, and a reader only if the count was full.
        let lets_in = left == Mode::Exclusive || matches!(self.readers(), 1 | READERS);
        self.has_sleeper() && lets_in
    }

    /// Of the state that a writer has just shared: whether a sleeper may be a reader.
    pub(super) fn calls_for_readers(self) -> bool {
        self.has_sleeper()
    }
}

/// The lock word of one segment.
#[derive(Debug)]
pub struct Word {
    state: AtomicU32,
    /// Has a size on the model checker only.
    _track: Track,
}

impl Word {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(State::FREE.0),
            _track: Track::new(),
        }
    }

    /// Identifies the word among the words of a lock.
    pub(super) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The state now. Relaxed: only a read-modify-write decides anything.
    pub(super) fn state(&self) -> State {
        State(self.state.load(Ordering::Relaxed))
    }

    /// Enters, unless another request is in the way.
    #[inline]
    pub(super) fn enter(&self, mode: Mode) -> bool {
        let (mut seen, success) = match mode {
            // [admit-reader] Acquire: pairs with [leave-writer] and [share].
            Mode::Shared => (
                self.state(),
                prim::order!("admit-reader", Ordering::Acquire),
            ),
            // [admit-writer] Acquire: pairs with [leave-reader] and [leave-writer]. Without a load beforehand: a right
            // guess costs one transfer of the cache line instead of two.
            Mode::Exclusive => (State::FREE, prim::order!("admit-writer", Ordering::Acquire)),
        };
        while seen.admits(mode) {
            let entered = self.state.compare_exchange(
                seen.0,
                seen.entered(mode).0,
                success,
                Ordering::Relaxed,
            );
            match entered {
                Ok(_) => return true,
                // The state found decides. (The paper's reader takes a failed addition for an admission.)
                Err(found) => seen = State(found),
            }
        }
        false
    }

    /// Leaves; returns the state before.
    #[inline]
    pub(super) fn leave(&self, mode: Mode) -> State {
        let before = State(match mode {
            // [leave-reader] Release: pairs with [admit-writer].
            Mode::Shared => self
                .state
                .fetch_sub(1, prim::order!("leave-reader", Ordering::Release)),
            // [leave-writer] Release: pairs with [admit-reader] and [admit-writer]. A subtraction, because clearing a
            // bit and returning the old value takes a loop of compare-exchanges on x86.
            Mode::Exclusive => self
                .state
                .fetch_sub(WRITER, prim::order!("leave-writer", Ordering::Release)),
        });
        debug_assert_eq!(before.held(), Some(mode), "a segment was released twice");
        before
    }

    /// Turns the writer into a reader; returns the state before.
    pub(super) fn share(&self) -> State {
        // [share] Release: pairs with [admit-reader]. One step: the writer bit goes and a reader comes.
        let before = self
            .state
            .fetch_sub(WRITER - 1, prim::order!("share", Ordering::Release));
        State(before)
    }

    /// Marks that a request is about to sleep behind the segment; returns the state before. Relaxed: both sides change
    /// this one word, and the queue's mutex orders the entry.
    pub(super) fn mark_sleeper(&self) -> State {
        State(self.state.fetch_or(SLEEPER, Ordering::Relaxed))
    }

    /// Removes the mark: the sleepers are being dispatched. Called under the queue's mutex.
    pub(super) fn unmark_sleeper(&self) {
        self.state.fetch_and(!SLEEPER, Ordering::Relaxed);
    }

    /// Sets the number of readers to a number below the limit, for tests: real readers would be too many.
    #[cfg(test)]
    pub(super) fn preset_readers(&self, below_limit: u32) {
        self.state.store(READERS - below_limit, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Mode, READERS, SLEEPER, State, WRITER, Word};

    const BOTH: [Mode; 2] = [Mode::Shared, Mode::Exclusive];

    #[test]
    fn a_word_is_four_bytes_and_its_parts_do_not_overlap() {
        assert_eq!(size_of::<Word>(), 4);
        assert_eq!(WRITER ^ SLEEPER ^ READERS, u32::MAX);
        assert_eq!(WRITER & SLEEPER | SLEEPER & READERS | READERS & WRITER, 0);
    }

    #[test]
    fn readers_admit_readers_and_writers_nobody() {
        for sleeper in [0, SLEEPER] {
            let state = |bits| State(bits | sleeper);
            assert!(BOTH.iter().all(|mode| state(0).admits(*mode)));
            assert!(state(1).admits(Mode::Shared) && !state(1).admits(Mode::Exclusive));
            assert!(!BOTH.iter().any(|mode| state(WRITER).admits(*mode)));
            assert!(!BOTH.iter().any(|mode| state(READERS).admits(*mode)));
            assert_eq!(state(0).held(), None);
            assert_eq!(state(READERS).held(), Some(Mode::Shared));
            assert_eq!(state(WRITER).held(), Some(Mode::Exclusive));
        }
    }

    #[test]
    fn a_full_count_refuses_and_never_wraps() {
        let word = Word::new();
        word.preset_readers(1);
        assert!(word.enter(Mode::Shared));
        for _ in 0..3 {
            assert!(!word.enter(Mode::Shared));
            assert!(!word.enter(Mode::Exclusive));
        }
        assert_eq!(word.state(), State(READERS));
        assert!(!word.mark_sleeper().has_sleeper());
        assert!(word.leave(Mode::Shared).calls_for_wake(Mode::Shared));
        assert!(word.enter(Mode::Shared));
    }

    #[test]
    fn a_writer_that_becomes_a_reader_keeps_the_sleepers() {
        let word = Word::new();
        assert!(word.enter(Mode::Exclusive));
        word.mark_sleeper();
        assert!(word.share().calls_for_readers());
        assert_eq!(word.state(), State(SLEEPER | 1));
        assert!(word.enter(Mode::Shared));
        assert!(!word.leave(Mode::Shared).calls_for_wake(Mode::Shared));
        assert!(word.leave(Mode::Shared).calls_for_wake(Mode::Shared));
    }
}
