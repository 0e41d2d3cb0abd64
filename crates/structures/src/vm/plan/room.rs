//! The limits that a plan keeps.

use super::{Change, Found, Plan, Range};
use crate::vm::layout::{Limits, Pages};

/// What a plan must not exceed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) limits: Limits,
    /// The pages of the whole space.
    pub(crate) pages: Pages,
}

impl Room {
    /// Whether `after` may take the place of `before`.
    pub(super) fn admits(&self, before: Pages, after: Pages) -> bool {
        let fits = |limit: u64, used: u64, before: u64, after: u64| {
            after <= before || used.saturating_add(after - before) <= limit
        };
        fits(
            self.limits.pages,
            self.pages.total,
            before.total,
            after.total,
        ) && fits(self.limits.data, self.pages.data, before.data, after.data)
    }
}

impl Plan {
    /// Whether there would be too many areas, where the space has so many. Linux lets one area more than the limit come
    /// into being by `mmap`, and none by a split.
    pub(crate) fn exceeds(
        &self,
        found: &[Found],
        range: Range,
        change: Change,
        areas: u64,
        most: u64,
    ) -> bool {
        let is_split = || {
            let splits =
                |area: &Found| area.range.start < range.start && range.end < area.range.end;
            areas >= most && found.iter().any(splits)
        };
        match change {
            Change::Map(_) | Change::Extend(_) | Change::Lengthen(_) => areas > most || is_split(),
            Change::Unmap => is_split(),
            Change::Protect(_) | Change::Advise(..) => {
                self.growth > 0 && areas.saturating_add_signed(self.growth) > most
            }
        }
    }
}
