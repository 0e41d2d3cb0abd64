//! `brk` and `mremap`.

use super::AddressSpace;
use super::change::Claim;
use super::hold::Held;
use super::place::{Wish, pages};
use super::stat::Operation;
use crate::vm::backing::Backing;
use crate::vm::error::VmError;
use crate::vm::index::Node;
use crate::vm::kind::{Flags, Mapping, PAGE, Protection, Relocation, Source};
use crate::vm::plan::{Change, Kind, Range};
use crate::vm::reclaim::searching;
use spanlock::range::raw::{Mode, RawRangeLock};

impl<L: RawRangeLock, B: Backing> AddressSpace<L, B> {
    /// Moves the end of the heap to this address, and returns where it is then: there, or where it was if that is
    /// impossible, as Linux's system call does. Calls of `brk` wait for each other.
    pub fn brk(&self, to: u64) -> u64 {
        let mut heap = self.heap.lock();
        let now = *heap;
        let (Some(old), Some(new)) = (pages(now), pages(to)) else {
            return now;
        };
        if to < self.layout.heap || to > self.layout.end {
            return now;
        }
        let done = if new < old {
            let range = Range {
                start: new,
                end: old,
            };
            self.change(Operation::Brk, range, Change::Unmap, Claim::Replace)
        } else if new > old {
            self.grow_heap(Range {
                start: old,
                end: new,
            })
        } else {
            Ok(())
        };
        if done.is_ok() {
            *heap = to;
        }
        *heap
    }

    fn grow_heap(&self, range: Range) -> Result<(), VmError> {
        let kind = self.kind(Mapping::anonymous(Protection::READ_WRITE), range.start)?;
        // Linux leaves a page free between the heap and what follows.
        self.change(Operation::Brk, range, Change::Extend(kind), Claim::Apart)
    }

    /// Changes the length of a mapping, and moves it if it must and may. Returns its address.
    ///
    /// It locks everything, unless the mapping shrinks.
    ///
    /// # Errors
    /// - [`Misaligned`](VmError::Misaligned), [`Empty`](VmError::Empty), [`BeyondSpace`](VmError::BeyondSpace) and
    ///   [`Contradiction`](VmError::Contradiction): a bad argument; the ranges overlap, or a private mapping has no
    ///   old length.
    /// - [`Unmapped`](VmError::Unmapped): the old range is not within one area.
    /// - [`NoRoom`](VmError::NoRoom), [`OverLimit`](VmError::OverLimit), [`TooManyAreas`](VmError::TooManyAreas).
    pub fn mremap(&self, start: u64, old: u64, new: u64, to: Relocation) -> Result<u64, VmError> {
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        let old = pages(old).ok_or(VmError::BeyondSpace)?;
        let new = pages(new).ok_or(VmError::BeyondSpace)?;
        if new == 0 {
            return Err(VmError::Empty);
        }
        if let Relocation::To(target) = to {
            self.check_target(
                Range {
                    start,
                    end: start.saturating_add(old),
                },
                target,
                new,
            )?;
        }
        if matches!(to, Relocation::Stay | Relocation::May) && new <= old && old > 0 {
            return self.shrink(start, old, new);
        }
        let held = self.hold(Operation::Mremap, Mode::Exclusive, Range::ALL);
        let (area, kind) = searching(|| {
            let node = self.index.at(start).ok_or(VmError::Unmapped)?;
            Ok((node.range(), node.kind()))
        })?;
        if old > area.end - start {
            return Err(VmError::Unmapped);
        }
        if old == 0 {
            // A second mapping of the same pages, which only shared memory can have.
            return Err(VmError::Contradiction);
        }
        let range = Range {
            start,
            end: start + old,
        };
        if let Relocation::To(target) = to {
            // Linux asks for this much, so that no step of a move fails for want of areas.
            self.check_spare_areas(2)?;
            let target = Range {
                start: target,
                end: target + new,
            };
            self.change_in(Operation::Mremap, &held, target, Change::Unmap)?;
            let kept = Range {
                end: start + old.min(new),
                ..range
            };
            if new < old {
                let rest = Range {
                    start: kept.end,
                    ..range
                };
                self.change_in(Operation::Mremap, &held, rest, Change::Unmap)?;
            }
            return self.relocate(&held, kept, target, kind);
        }
        let more = Range {
            start: range.end,
            end: start.saturating_add(new),
        };
        if range.end == area.end && self.is_room_for(more) {
            self.change_in(Operation::Mremap, &held, more, Change::Lengthen(kind))?;
            return Ok(start);
        }
        if to == Relocation::Stay {
            return Err(VmError::NoRoom);
        }
        let wish = Wish {
            length: new,
            hint: None,
        };
        let target = searching(|| self.find_room(None, wish)).ok_or(VmError::NoRoom)?;
        self.relocate(
            &held,
            range,
            Range {
                start: target,
                end: target + new,
            },
            kind,
        )
    }

    fn check_target(&self, range: Range, target: u64, new: u64) -> Result<(), VmError> {
        if !target.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        if new > self.layout.end || target > self.layout.end - new {
            return Err(VmError::BeyondSpace);
        }
        // As Linux compares them: also where the old range has no length, and lies inside.
        if range.end > target && target + new > range.start {
            return Err(VmError::Contradiction);
        }
        if target < self.layout.lowest {
            return Err(VmError::TooLow);
        }
        Ok(())
    }

    /// Whether a few areas more are within the limit, and so many besides.
    fn check_spare_areas(&self, besides: u64) -> Result<(), VmError> {
        let spare = self.limits.areas.saturating_sub(3);
        if self.index.areas() + besides >= spare {
            Err(VmError::TooManyAreas)
        } else {
            Ok(())
        }
    }

    /// Makes a mapping shorter, or finds that it is as it should be.
    fn shrink(&self, start: u64, old: u64, new: u64) -> Result<u64, VmError> {
        let end = start.checked_add(old).filter(|&end| end <= self.layout.end);
        let whole = Range {
            start,
            end: end.ok_or(VmError::Unmapped)?,
        };
        if new == old {
            let _held = self.hold(Operation::Mremap, Mode::Shared, self.shared_range(whole));
            let area = searching(|| self.index.at(start).map(Node::range));
            let is_mapped = area.is_some_and(|area| area.covers(whole));
            return is_mapped.then_some(start).ok_or(VmError::Unmapped);
        }
        let range = Range {
            start: start + new,
            ..whole
        };
        let wanted = self.first_range(Operation::Mremap, whole);
        let tail = Claim::Tail(start);
        self.change_holding(Operation::Mremap, wanted, range, Change::Unmap, tail)
            .map(|()| start)
    }

    /// Whether an area may grow into this range. Everything is held.
    fn is_room_for(&self, more: Range) -> bool {
        more.end <= self.layout.end && !searching(|| self.index.around(more).overlaps(more))
    }

    /// Moves the pages of `range`, which is in one area of this kind, to the free range `target`.
    fn relocate(
        &self,
        held: &Held<'_, L>,
        range: Range,
        target: Range,
        kind: Kind,
    ) -> Result<u64, VmError> {
        self.check_spare_areas(0)?;
        // Pages of a family keep their places in it, and what has a file keeps those in the file. Fresh zeros forget.
        let is_fresh = kind.file == 0 && kind.family == 0;
        let origin = if is_fresh {
            0
        } else {
            kind.origin
                .wrapping_add(range.start)
                .wrapping_sub(target.start)
        };
        let kind = Kind { origin, ..kind };
        self.change_in(Operation::Mremap, held, target, Change::Map(kind))?;
        if let Err(refusal) = self
            .backing
            .relocate(range.start..range.end, &kind.area(target.start, target.end))
        {
            self.change_in(Operation::Mremap, held, target, Change::Unmap)?;
            return Err(refusal);
        }
        self.change_in(Operation::Mremap, held, range, Change::Unmap)?;
        Ok(target.start)
    }

    /// The kind of a new area at this address.
    pub(super) fn kind(&self, what: Mapping, start: u64) -> Result<Kind, VmError> {
        let (file, origin) = match what.source {
            Source::File { file: 0, .. } => return Err(VmError::Contradiction),
            Source::File { file, offset } => (file, offset.wrapping_sub(start)),
            // Each shared mapping without a file has memory of its own, which no other number names.
            Source::Anonymous if what.flags.contains(Flags::SHARED) => {
                (self.anonymous_file(), 0_u64.wrapping_sub(start))
            }
            Source::Anonymous => (0, 0),
        };
        let Mapping {
            protection,
            most,
            flags,
            ..
        } = what;
        if !most.allows(protection) {
            return Err(VmError::NotPermitted);
        }
        let is_reserved = protection.allows(Protection::WRITE)
            && !flags.intersects(Flags::SHARED | Flags::NO_RESERVE);
        let reserved = if is_reserved {
            Flags::RESERVED
        } else {
            Flags::PRIVATE
        };
        let flags = flags.without(Flags::RESERVED) | reserved;
        Ok(Kind {
            protection,
            most,
            flags,
            family: 0,
            file,
            origin,
        })
    }
}
