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

use crate::range::mode::Mode;
use crate::range::span::Span;

/// What a slot's thread does with it, and in which of its announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) u64);

impl State {
    pub(super) const HELD: u64 = 1;
    pub(super) const SHARED: u64 = 2;
    pub(super) const SLEEPER: u64 = 4;
    /// Free for others, but the owner may take the grant again.
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
