//! The slot lock's advice: which of several ways is best, all of which are correct.
//!
//! ```text
//!   an acquisition asks:    which plan?             ----> advice: a [`Plan`], plain data
//!                runs it:   announce, look          ----> the protocol, which does not know of advice
//!                tells:     what it met             ----> advice: learns for the next one
//! ```
//!
//! Acquisitions call it, and a release asks it whether to keep the grant. It touches no word of the protocol. Its own
//! numbers are hints: they decide nothing about who holds what, so all accesses are Relaxed. Those of a thread are
//! atomic because a thread that exits may release what it holds after another thread has got its record.
//!
//! | file | content |
//! |---|---|
//! | `grants.rs` | of a thread: when it keeps its grant, and when it asks for more than it needs |
//! | `votes.rs` | of all threads: whether narrow requests are listed in buckets, and when a lock gets them |
//!
//! Here are all numbers of this lock alone that were chosen by measurement. `docs/slot-locks.md` says what each is
//! worth.

mod grants;
mod votes;

pub(super) use grants::{Grants, Previous};
pub(super) use votes::{LockAdvice, Met, Window, is_sample};

use crate::range::mode::Mode;
use crate::range::span::Span;
use crate::wait::BRIEF;

/// A kept grant was worth keeping if its thread took it again this many times.
const WORTHWHILE_HITS: u32 = 8;

/// The repetitions after which a range is kept that could be listed instead. A kept grant makes all listed requests
/// look at all slots.
const LISTED_REPEATS: u32 = 8;

/// The different ranges that a reader asks for in a row before it asks for everything.
const DIFFERENT_RANGES: u32 = 8;

/// How many votes for a decision there must be more than against it.
const VOTES: u32 = 8;

/// In a lock without buckets, a thread looks at one of this many requests: a look takes as many instructions as all
/// else that a thread does before its announcement.
const SAMPLE_EVERY: u32 = 8;

/// The most requests that a thread makes before it tries again what was of no use.
const MOST_REPEATS: u32 = 1024;

/// The requests after which a thread votes.
const WINDOW: u32 = 64;

/// Two ranges are far apart if this many of their length fit between their starts. Then ranges that are held at a time
/// are rarely in one bucket.
const FAR: u64 = 16;

/// How many looks at slots cost about as much as one more request in the same line, which goes to and fro between both.
const PRICE: u32 = 12;

/// Nanoseconds of the shortest rest: a few times as long as it takes to find that requests still crowd. So a rest that
/// begins later than that after the last one has to do with other requests. It is short again.
const REST: u64 = 1 << 20;

/// Cache lines of buckets for each processor: the requests of threads that run rarely meet in one.
pub(super) const LINES_A_PROCESSOR: usize = prim::sized(32, 0);

/// A lock moves, by lot, at one of `2^MEETINGS_DIGITS` meetings of its threads: to make a board costs about as much as
/// that many meetings.
pub(super) const MEETINGS_DIGITS: u32 = 4;

/// For how long, in nanoseconds, the writers of one memory node may follow one another while those of other nodes wait:
/// many times what it takes to move what the writers write to another node.
const TURN: u64 = BRIEF;

/// Whose advice a lock follows.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The advice of its own threads, which learn.
    Learnt,
    /// Always the same plan, for tests; with [`Plan::Once`] it is a lock without advice.
    Always(Plan),
}

/// Where a request looks, and with which grant it is announced.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// It looks at all slots, with a grant of its range, which is not kept.
    Once,
    /// It is listed in buckets, and looks there. Its grant is not kept.
    Listed,
    /// It looks at all slots, and keeps a grant of its range.
    Keep,
    /// It looks at all slots, and keeps a grant of everything, if it may. (A writer, for tests: as once.)
    Everything,
}

impl Plan {
    /// The grant of a request for that range.
    #[inline]
    pub(super) fn grant(self, span: Span) -> Span {
        match self {
            Self::Once | Self::Listed | Self::Keep => span,
            Self::Everything => Span::ALL,
        }
    }

    /// The plan, for a request in that mode which can be listed or not.
    pub(super) fn limited_to(self, mode: Mode, can_be_listed: bool) -> Self {
        match self {
            Self::Listed if !can_be_listed => Self::Once,
            Self::Everything if mode == Mode::Exclusive => Self::Once,
            _ => self,
        }
    }
}

/// What one thread has learned of its requests in one lock, by the numbers in its home slot.
#[derive(Debug, Default)]
pub(super) struct ThreadAdvice {
    pub(super) grants: Grants,
    pub(super) window: Window,
}

/// A request that has been blocked.
pub(super) struct Blocked {
    pub(super) mode: Mode,
    /// It has no deadline.
    pub(super) is_unlimited: bool,
    /// Long spins of its thread have paid lately, and it has time left to wait in place.
    pub(super) may_spin: bool,
}

impl Blocked {
    /// Whether it waits in place: each newcomer in the way of a writer withdraws then, so it is not overtaken. Not one
    /// that has a deadline: it must not wait for holder after holder without a look at the time. Nor where long spins
    /// do not pay: if its thread did not run, it would keep others out for nothing.
    pub(super) fn waits_in_place(&self) -> bool {
        self.mode == Mode::Exclusive && self.is_unlimited && self.may_spin
    }
}

/// Whether a node's turn that began at that time is under way.
pub(super) fn is_turn_under_way(began: u64, now: u64) -> bool {
    now.saturating_sub(began) < TURN
}

#[cfg(test)]
mod tests {
    use super::{TURN, is_turn_under_way};

    #[test]
    fn a_turn_ends() {
        assert!(is_turn_under_way(TURN, TURN));
        assert!(is_turn_under_way(TURN, 2 * TURN - 1));
        assert!(!is_turn_under_way(TURN, 2 * TURN));
        assert!(is_turn_under_way(TURN, 0), "its clock was ahead");
    }
}
