//! Where an area goes that may go anywhere: top down, to the first free range that is long enough.

use super::AddressSpace;
use super::change::Claim;
use super::stat::{Operation, Speculation};
use crate::vm::backing::Backing;
use crate::vm::error::VmError;
use crate::vm::index::{Node, Side, Writer};
use crate::vm::kind::PAGE;
use crate::vm::layout::Layout;
use crate::vm::plan::{Change, Kind, Range};
use crate::vm::reclaim::searching;
use spanlock::range::raw::{Mode, RawRangeLock};

/// A free range that is sought.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) length: u64,
    /// It is to begin here, if that is free.
    pub(super) hint: Option<u64>,
}

/// After so many searches that another operation spoilt, an operation locks everything.
const SEARCHES: u32 = 3;

impl<L: RawRangeLock, B: Backing> AddressSpace<L, B> {
    /// Maps a free range, and returns its address. `kind` is asked for the kind at that address.
    pub(super) fn map_somewhere(
        &self,
        operation: Operation,
        wish: Wish,
        kind: impl Fn(u64) -> Kind,
    ) -> Result<u64, VmError> {
        for _ in 0..SEARCHES {
            let Some(start) = searching(|| self.find_room(None, wish)) else {
                break;
            };
            let range = Range {
                start,
                end: start + wish.length,
            };
            let wanted = self.first_range(operation, range);
            let change = Change::Map(kind(start));
            match self.change_holding(operation, wanted, range, change, Claim::Found(wish)) {
                Err(VmError::NoRoom) => self.count(operation, Speculation::Retried),
                result => return result.map(|()| start),
            }
        }
        // Nobody else changes anything while everything is held, so this search is not spoilt.
        self.count(operation, Speculation::WholeForRetries);
        let held = self.hold(operation, Mode::Exclusive, Range::ALL);
        let start = searching(|| self.find_room(None, wish)).ok_or(VmError::NoRoom)?;
        let range = Range {
            start,
            end: start + wish.length,
        };
        self.change_in(operation, &held, range, Change::Map(kind(start)))?;
        Ok(start)
    }

    /// The free range that a wish finds. It is certain for the holder of the index's mutex, if it then proves to be
    /// free under the range lock; for others it is a guess. (While a boundary between two areas moves, there may seem
    /// to be a gap.) The caller searches.
    pub(super) fn find_room(&self, writer: Option<&Writer>, wish: Wish) -> Option<u64> {
        let Layout {
            lowest,
            end,
            mmap_top,
            mmap_bottom,
            ..
        } = self.layout;
        let top = match wish.hint {
            // Linux uses the addresses above 47 bits only for those who ask.
            Some(hint) if hint > Layout::BITS_47.end => end,
            _ => mmap_top,
        };
        let length = wish.length;
        if let Some(hint) = wish.hint
            && lowest <= hint
            && length <= end - lowest
            && hint <= end - length
            && self.is_free(Range {
                start: hint,
                end: hint + length,
            })
        {
            return Some(hint);
        }
        let room_in = |within: Range, before: u64, next: Option<&Node>| {
            let end = next.map_or(end, |next| self.guarded_start(next));
            let room = Range {
                start: before,
                end: end.max(before),
            }
            .within(within);
            (room.len() >= length).then_some(room)
        };
        let below = Range {
            start: lowest,
            end: top,
        };
        let above = Range {
            start: mmap_bottom,
            end,
        };
        let highest = |before, next: Option<&Node>| {
            room_in(below, before, next).map(|room| room.end - length)
        };
        let lowest =
            |before, next: Option<&Node>| room_in(above, before, next).map(|room| room.start);
        self.index
            .find_room(writer, Side::Top, length, highest)
            .or_else(|| self.index.find_room(writer, Side::Bottom, length, lowest))
    }

    /// Whether a page is free between this range and what follows, and its gap besides, if that grows down. Certain for
    /// the holder of the index's mutex. The caller searches.
    pub(super) fn is_apart(&self, range: Range) -> bool {
        let next = self.index.following(range.end);
        next.is_none_or(|next| range.end + PAGE <= self.guarded_start(next))
    }

    /// Where an area begins for those who look for a free range.
    fn guarded_start(&self, node: &Node) -> u64 {
        let gap = if node.is_guarded() {
            self.layout.guard
        } else {
            0
        };
        node.start().saturating_sub(gap)
    }

    fn is_free(&self, range: Range) -> bool {
        let before = self.index.preceding(range.end);
        let after = self.index.following(range.end);
        before.is_none_or(|before| before.end() <= range.start)
            && after.is_none_or(|after| range.end <= self.guarded_start(after))
    }
}

/// The address rounded down to a page.
pub(super) const fn page_of(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// The length rounded up to pages.
pub(super) fn pages(length: u64) -> Option<u64> {
    length.checked_next_multiple_of(PAGE)
}
