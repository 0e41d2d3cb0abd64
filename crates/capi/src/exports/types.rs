//! The types that several sections of the header share: ranges of positions, modes, tokens.

use crate::answer::{Answer, Refused};
use crate::tables::Ticket;
use libc::EINVAL;
use spanlock::range::Span;
use spanlock::range::raw::Mode;
use std::ops::{Bound, RangeBounds};

/// The positions from `start` to `last`, both included, so that a range can reach to the last position of all. Made by
/// `spanlock_range_of`, whose end is not included, `spanlock_range_from` and `spanlock_range_all`.
///
/// A range whose `start` is one more than its `last` is empty: it is granted at once and conflicts with nothing. One
/// that starts later than that is reversed, and refused with EINVAL.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// The first position.
    pub start: u64,
    /// The last position, which belongs to the range.
    pub last: u64,
}

impl Range {
    pub(crate) const fn of(span: Span) -> Self {
        Self {
            start: span.start(),
            last: span.last(),
        }
    }

    /// The range, as the locks keep it; `None` if it is empty.
    #[inline]
    pub(crate) fn span(self) -> Answer<Option<Span>> {
        match Span::inclusive(self.start, self.last) {
            Some(span) => Ok(Some(span)),
            None if self.last + 1 == self.start => Ok(None),
            None => Err(Refused::by(EINVAL)),
        }
    }
}

impl RangeBounds<u64> for Range {
    fn start_bound(&self) -> Bound<&u64> {
        Bound::Included(&self.start)
    }

    fn end_bound(&self) -> Bound<&u64> {
        Bound::Included(&self.last)
    }
}

/// Together with other holders that share.
pub const SPANLOCK_SHARED: u32 = 1;

/// Alone.
pub const SPANLOCK_EXCLUSIVE: u32 = 2;

/// The mode of that number.
pub(crate) fn mode(number: u32) -> Answer<Mode> {
    match number {
        SPANLOCK_SHARED => Ok(Mode::Shared),
        SPANLOCK_EXCLUSIVE => Ok(Mode::Exclusive),
        _ => Err(Refused::by(EINVAL)),
    }
}

/// The number of a mode.
pub(crate) fn mode_number(mode: Mode) -> u32 {
    match mode {
        Mode::Shared => SPANLOCK_SHARED,
        Mode::Exclusive => SPANLOCK_EXCLUSIVE,
    }
}

/// A range and how it is held or wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) span: Span,
    pub(crate) mode: Mode,
}

impl Asked {
    pub(crate) fn conflicts(self, other: Self) -> bool {
        self.mode.conflicts(other.mode) && self.span.overlaps(other.span)
    }

    pub(crate) fn range(self) -> Range {
        Range::of(self.span)
    }
}

/// What a range is released by. It may be copied and moved: whichever copy is released first counts, and the others are
/// refused from then on. All zero, it stands for nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The library's own.
    pub opaque: [u64; 2],
}

/// In the place of the thread's number, of a token by which an owner holds.
pub(crate) const OWNER: u32 = 0xffff_fffe;

/// In the place of the thread's number and the place, of a token that a submitted request got.
const REQUEST: u64 = u64::MAX;

impl Token {
    pub(crate) const NONE: Self = Self { opaque: [0; 2] };

    /// What a thread of that number, or an [`OWNER`], has in a table.
    pub(crate) fn new(holder: u32, ticket: Ticket) -> Self {
        let first = u64::from(holder) << 32 | u64::from(ticket.place);
        let opaque = [first, ticket.number];
        Self { opaque }
    }

    pub(crate) fn of_request(id: u64) -> Self {
        let opaque = [REQUEST, id];
        Self { opaque }
    }

    /// The thread's number or [`OWNER`], and the ticket.
    pub(crate) fn parts(self) -> (u32, Ticket) {
        let [first, number] = self.opaque;
        #[expect(clippy::cast_possible_truncation, reason = "both halves")]
        let (holder, place) = ((first >> 32) as u32, first as u32);
        (holder, Ticket { place, number })
    }

    /// The submitted request whose range it stands for, if it does.
    #[cold]
    pub(crate) fn request(self) -> Option<u64> {
        let [first, id] = self.opaque;
        (first == REQUEST).then_some(id)
    }
}
