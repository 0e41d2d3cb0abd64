//! What the pages of an area have in common, and which areas become one.

use crate::vm::kind::{Area, Flags, PAGE, Protection, Source};
use crate::vm::layout::Pages;

/// What all pages of an area have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) protection: Protection,
    pub(crate) most: Protection,
    pub(crate) flags: Flags,
    /// See [`Area::family`].
    pub(crate) family: u32,
    /// Zero: anonymous.
    pub(crate) file: u64,
    /// What to add to an address to get the offset in the file, modulo 2^64. It does not depend on where the area
    /// begins, so a boundary is one word. Private zeros have an origin, too: zero, until `mremap` moves them.
    pub(crate) origin: u64,
}

impl Kind {
    pub(crate) fn area(self, start: u64, end: u64) -> Area {
        let Self {
            protection,
            most,
            flags,
            family,
            file,
            origin,
        } = self;
        let source = match file {
            0 => Source::Anonymous,
            _ => Source::File {
                file,
                offset: origin.wrapping_add(start),
            },
        };
        Area {
            start,
            end,
            protection,
            most,
            flags,
            source,
            family,
        }
    }

    /// Whether a page that is written becomes private to the space.
    pub(crate) fn is_private(self) -> bool {
        !self.flags.contains(Flags::SHARED)
    }

    /// Whether others keep a gap below it. An area that is in the index keeps this for good.
    pub(crate) fn is_guarded(self) -> bool {
        self.flags.contains(Flags::GROWS_DOWN)
    }

    /// Whether neighbours of these kinds become one area.
    #[inline]
    pub(super) fn merges_with(self, other: Self) -> bool {
        let families = self.family == other.family || self.family == 0 || other.family == 0;
        families && Self { family: 0, ..self } == Self { family: 0, ..other }
    }

    /// With another protection, and memory reserved as Linux does: for what is writable and private, until it is
    /// neither writable nor written.
    pub(super) fn protected(self, protection: Protection) -> Self {
        let mut flags = self.flags;
        if protection == self.protection {
            return self;
        }
        if !protection.allows(Protection::WRITE) {
            if self.file == 0 && self.family == 0 {
                flags = flags.without(Flags::RESERVED);
            }
        } else if !self.protection.allows(Protection::WRITE)
            && !flags.intersects(Flags::SHARED | Flags::NO_RESERVE)
        {
            flags = flags | Flags::RESERVED;
        }
        Self {
            protection,
            flags,
            ..self
        }
    }

    /// Whether a fresh area of this kind takes the family of a neighbour, although their protections differ.
    pub(crate) fn is_akin_to(self, other: Self) -> bool {
        let bare = |kind| Self {
            protection: Protection::NONE,
            family: 0,
            ..kind
        };
        other.family != 0 && bare(self) == bare(other)
    }

    /// As what pages of this kind count.
    pub(crate) fn count(self, bytes: u64) -> Pages {
        let pages = bytes / PAGE;
        let mut count = Pages {
            total: pages,
            ..Pages::default()
        };
        if self.flags.contains(Flags::STACK) {
            count.stack = pages;
        } else if self.protection.allows(Protection::WRITE) {
            count.data = if self.is_private() { pages } else { 0 };
        } else if self.protection.allows(Protection::EXECUTE) {
            count.code = pages;
        }
        count
    }
}
