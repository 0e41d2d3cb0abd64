//! The word that says what a slot's thread does with it.
//!
//! ```text
//!   state:   +-- number of the announcement --+ COUNTED | PART | CONTENDED | OWNS | KEPT | SLEEPER | SHARED | HELD +
//!
//!                  announce                         leave
//!        free ------------------> held ---------------------------> free
//!          ^                     |    ^
//!          |                keep |    | take again
//!          |    revoke           v    |
//!          +--------------------- kept
//!            (by any thread)
//! ```
//!
//! All changes but the owner's announcement are compare-exchanges, or read-modify-writes that keep the number.

use crate::range::raw::Mode;
use crate::range::span::Span;
use crate::wait::LONGEST_SPIN;

/// What a slot's thread does with it, and in which of its announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) u64);

impl State {
    pub(super) const HELD: u64 = 1;
    pub(super) const SHARED: u64 = 2;
    pub(super) const SLEEPER: u64 = 4;
    /// Nothing is held, but the owner may take the grant again.
    pub(super) const KEPT: u64 = 8;
    /// The grant is exclusive. What is held may be shared.
    pub(super) const OWNS: u64 = 16;
    /// Another thread holds some of the grant, so it must not be kept.
    pub(super) const CONTENDED: u64 = 32;
    /// Less is held than the whole range of the grant.
    pub(super) const PART: u64 = 64;
    /// The slot counts among those that requests in buckets have to look at. The flag outlives an announcement.
    pub(super) const COUNTED: u64 = 128;
    /// Announcements are counted above the flags.
    pub(super) const ONE: u64 = 1 << 8;
    const OF_ANNOUNCEMENT: u64 = Self::COUNTED - 1;

    /// The next announcement after this state.
    #[inline]
    pub(super) fn next(self, mode: Mode, extent: Extent, audience: Audience) -> Self {
        let mode = match mode {
            Mode::Shared => Self::SHARED,
            Mode::Exclusive => Self::OWNS,
        };
        let free = self.uncounted().0 + Self::ONE;
        Self(free | Self::HELD | mode | extent.flag() | audience.flag())
    }

    /// Held again, where this state is kept.
    #[inline]
    pub(super) fn taken_again(self, mode: Mode, extent: Extent) -> Self {
        let mode = match mode {
            Mode::Shared => Self::SHARED,
            Mode::Exclusive => 0,
        };
        let kept = self.0 & (!Self::OF_ANNOUNCEMENT | Self::OWNS);
        Self((kept + Self::ONE) | Self::HELD | mode | extent.flag())
    }

    /// Kept, where this state is held.
    #[inline]
    pub(super) fn kept(self) -> Self {
        Self(self.0 & (!Self::OF_ANNOUNCEMENT | Self::OWNS) | Self::KEPT)
    }

    /// Free, after this announcement.
    #[inline]
    pub(super) fn freed(self) -> Self {
        Self(self.0 & !Self::OF_ANNOUNCEMENT)
    }

    /// Free and no longer counted, after this announcement.
    #[inline]
    pub(super) fn uncounted(self) -> Self {
        Self(self.0 & !(Self::OF_ANNOUNCEMENT | Self::COUNTED))
    }

    #[inline]
    pub(super) fn is_counted(self) -> bool {
        self.has(Self::COUNTED)
    }

    /// The number of the announcement.
    #[inline]
    pub(super) fn number(self) -> u64 {
        self.0 / Self::ONE
    }

    #[inline]
    const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    const fn exclusive_if(is_alone: bool) -> Mode {
        if is_alone {
            Mode::Exclusive
        } else {
            Mode::Shared
        }
    }

    /// Whether a grant is kept.
    #[inline]
    pub(super) fn is_kept(self) -> bool {
        self.has(Self::KEPT)
    }

    /// Whether only the owner changes this state.
    #[inline]
    pub(super) fn is_private(self) -> bool {
        self.0 & (Self::HELD | Self::KEPT | Self::COUNTED) == 0
    }

    /// The mode of the grant.
    #[inline]
    pub(super) fn grant_mode(self) -> Mode {
        Self::exclusive_if(self.has(Self::OWNS))
    }

    /// Whether a range is held or a grant kept, in a mode that conflicts with that one.
    #[inline]
    pub(super) fn concerns(self, mode: Mode) -> bool {
        self.has(Self::HELD | Self::KEPT) && self.grant_mode().conflicts(mode)
    }

    /// Whether a request is announced: it holds its range or may be about to.
    #[inline]
    pub(super) fn is_held(self) -> bool {
        self.has(Self::HELD)
    }

    #[inline]
    pub(super) fn has_sleeper(self) -> bool {
        self.has(Self::SLEEPER)
    }

    #[inline]
    pub(super) fn mode(self) -> Mode {
        Self::exclusive_if(!self.has(Self::SHARED))
    }

    /// Whether a request in that mode which was in the way of this announcement still is.
    #[inline]
    pub(super) fn still_blocks(self, then: Self, mode: Mode) -> bool {
        self.is_held() && self.number() == then.number() && self.mode().conflicts(mode)
    }
}

/// How much of a grant is held.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Part,
}

impl Extent {
    pub(super) fn of(held: Span, granted: Span) -> Self {
        if held == granted {
            Self::Whole
        } else {
            Self::Part
        }
    }

    pub(super) fn flag(self) -> u64 {
        match self {
            Self::Whole => 0,
            Self::Part => State::PART,
        }
    }
}

/// Who looks at an announcement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// Requests in the same bucket, and those that look at all slots.
    Bucket,
    /// All: the slot is counted.
    All,
}

impl Audience {
    fn flag(self) -> u64 {
        match self {
            Self::Bucket => 0,
            Self::All => State::COUNTED,
        }
    }
}

/// For how long, in nanoseconds, the writers of one node may follow one another while those of other nodes wait: as
/// long as the longest spin, so that a writer which spins meanwhile is there when the turn ends. That is many times
/// what it takes to move what the writers write to another node.
const TURN: u64 = LONGEST_SPIN;

/// Which of several rivals stays: the one with the smaller number.
///
/// - Of a request that is not decided: when it was blocked first.
/// - Of one that is decided: [`DECIDED`](Self::DECIDED). If the node of its thread is known, the last digits are the
///   node's number plus one, and those between tell when the turn of that node began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seniority(pub(super) u64);

impl Seniority {
    /// The request holds its range. It is not a rival any more.
    pub(super) const DECIDED: Self = Self(1 << 63);
    const NODE: u64 = (1 << 8) - 1;
    /// It tries for the first time.
    pub(super) const NEWCOMER: Self = Self(Self::DECIDED.0 - 1);

    /// It was blocked at that time for the first time.
    pub(super) fn blocked_at(nanoseconds: u64) -> Self {
        Self(nanoseconds.min(Self::NEWCOMER.0 - 1))
    }

    /// It holds its range. Its thread runs on that node of the machine, whose turn began at that time.
    pub(super) fn decided_on(node: usize, turn: u64) -> Self {
        let node = (node as u64 + 1).min(Self::NODE);
        Self(Self::DECIDED.0 | Self::blocked_at(turn).0 & !Self::NODE | node)
    }

    #[inline]
    pub(super) fn is_decided(self) -> bool {
        self >= Self::DECIDED
    }

    /// When the turn of its node began, if it holds its range and its node is known.
    pub(super) fn turn(self) -> Option<u64> {
        let is_known = self.is_decided() && self.0 & Self::NODE != 0;
        is_known.then_some(self.0 & !Self::DECIDED.0 & !Self::NODE)
    }

    /// Whether its node, which is known, is that one.
    pub(super) fn is_on(self, node: usize) -> bool {
        self.0 & Self::NODE == Self::decided_on(node, 0).0 & Self::NODE
    }

    /// Whether it was blocked, and does not hold its range yet.
    pub(super) fn has_waited(self) -> bool {
        self < Self::NEWCOMER
    }
}

/// Whether a turn that began at that time is under way.
pub(super) fn is_under_way(turn: u64, now: u64) -> bool {
    now.saturating_sub(turn) < TURN
}

#[cfg(test)]
mod tests {
    use super::{Seniority, TURN, is_under_way};

    #[test]
    fn a_holder_tells_its_node_and_when_the_turn_began() {
        let began = 1_234_567_890;
        for node in [0, 1, 253] {
            let holder = Seniority::decided_on(node, began);
            assert!(holder.is_decided() && !holder.has_waited());
            assert!(holder.is_on(node) && !holder.is_on(node + 1));
            let turn = holder.turn().expect("its node is known");
            assert!(turn <= began && began - turn <= Seniority::NODE);
            // The next writer of the node hands on the same time.
            assert_eq!(Seniority::decided_on(node, turn), holder);
        }
        assert_eq!(Seniority::DECIDED.turn(), None);
    }

    #[test]
    fn a_turn_ends() {
        assert!(is_under_way(TURN, TURN));
        assert!(is_under_way(TURN, 2 * TURN - 1));
        assert!(!is_under_way(TURN, 2 * TURN));
        assert!(is_under_way(TURN, 0), "its clock was ahead");
    }

    #[test]
    fn a_rival_that_has_waited_is_senior_to_a_newcomer() {
        for blocked in [0, 1_234_567_890, u64::MAX] {
            let rival = Seniority::blocked_at(blocked);
            assert!(!rival.is_decided() && rival.has_waited());
            assert_eq!(rival.turn(), None);
            assert!(rival < Seniority::NEWCOMER);
        }
        assert!(!Seniority::NEWCOMER.is_decided() && !Seniority::NEWCOMER.has_waited());
    }
}
