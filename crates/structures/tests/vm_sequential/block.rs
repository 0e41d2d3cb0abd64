//! An area of the model.

use super::vm::{Area, Flags, Layout, Protection, Source};

/// An area of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    pub start: u64,
    pub end: u64,
    pub protection: Protection,
    pub most: Protection,
    pub flags: Flags,
    pub file: u64,
    /// The offset of the address zero, modulo 2^64.
    pub origin: u64,
    pub family: u32,
}

impl Block {
    pub(super) fn fits(&self, next: &Self) -> bool {
        let alike = (
            self.protection,
            self.most,
            self.flags,
            self.file,
            self.origin,
        ) == (
            next.protection,
            next.most,
            next.flags,
            next.file,
            next.origin,
        );
        let families = self.family == 0 || next.family == 0 || self.family == next.family;
        self.end == next.start && alike && families
    }

    pub(super) fn is_data(&self) -> bool {
        self.protection.allows(Protection::WRITE)
            && !self.flags.contains(Flags::SHARED)
            && !self.flags.contains(Flags::STACK)
    }

    pub(super) fn guarded_start(&self, layout: &Layout) -> u64 {
        let gap = if self.flags.contains(Flags::GROWS_DOWN) {
            layout.guard
        } else {
            0
        };
        self.start.saturating_sub(gap)
    }

    /// The block as the space reports it.
    pub fn area(&self) -> Area {
        let source = match self.file {
            0 => Source::Anonymous,
            file => Source::File {
                file,
                offset: self.origin.wrapping_add(self.start),
            },
        };
        Area {
            start: self.start,
            end: self.end,
            protection: self.protection,
            most: self.most,
            flags: self.flags,
            source,
            family: self.family,
        }
    }
}
