//! What each call does to the model.

use super::block::Block;
use super::model::{Model, Outcome};
use super::vm::{Access, Flags, Mapping, PAGE, Placement, Protection, Relocation, VmError};

fn up(length: u64) -> u64 {
    length.div_ceil(PAGE) * PAGE
}

impl Model {
    pub fn mmap(&mut self, at: Placement, length: u64, what: Mapping) -> Outcome<u64> {
        if length == 0 {
            return Err(VmError::Empty);
        }
        let length = up(length);
        if length > self.layout.end {
            return Err(VmError::NoRoom);
        }
        let start = match at {
            Placement::Fixed(start) | Placement::FixedNoReplace(start) => {
                self.can_begin(start, length)?;
                start
            }
            Placement::Anywhere | Placement::Hint(_) => {
                let block = self.block(what, 0, length)?;
                self.memories -= u64::from(block.file >= 1 << 63);
                let hint = match at {
                    Placement::Hint(hint) if hint >= PAGE => {
                        Some((hint / PAGE * PAGE).max(self.layout.lowest))
                    }
                    _ => None,
                };
                match self.search(hint, length) {
                    Some(start) => start,
                    None => {
                        self.memories += u64::from(block.file >= 1 << 63);
                        return Err(VmError::NoRoom);
                    }
                }
            }
        };
        let block = self.block(what, start, start + length)?;
        if matches!(at, Placement::FixedNoReplace(_)) && !self.is_free(start, start + length) {
            return Err(VmError::Occupied);
        }
        self.map(block, true).map(|()| start)
    }

    /// Whether a mapping may be asked to begin here.
    fn can_begin(&self, start: u64, length: u64) -> Outcome<()> {
        match start {
            _ if start > self.layout.end - length => Err(VmError::NoRoom),
            _ if !start.is_multiple_of(PAGE) => Err(VmError::Misaligned),
            _ if start < self.layout.lowest => Err(VmError::TooLow),
            _ => Ok(()),
        }
    }

    pub fn munmap(&mut self, start: u64, length: u64) -> Outcome<()> {
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        if start > self.layout.end || length > self.layout.end - start {
            return Err(VmError::BeyondSpace);
        }
        if length == 0 {
            return Err(VmError::Empty);
        }
        self.unmap(start, start + up(length))
    }

    /// Changes each area of a range in turn, until one refuses or, if the range may have none, there is a hole.
    fn each(
        &mut self,
        start: u64,
        end: u64,
        passes_holes: bool,
        change: impl Fn(&mut Block) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut after = self.clone();
        let mut result = Ok(());
        let mut done = start;
        while done < end {
            let Some(block) = after
                .blocks
                .iter()
                .find(|block| block.end > done && block.start < end)
                .copied()
            else {
                result = Err(VmError::Hole);
                break;
            };
            if block.start > done {
                result = Err(VmError::Hole);
                if !passes_holes {
                    break;
                }
                done = block.start;
            }
            let mut changed = block;
            if let Err(refusal) = change(&mut changed) {
                result = Err(refusal);
                break;
            }
            let until = block.end.min(end);
            if changed != block {
                let before = after.clone();
                after.split(done);
                after.split(until);
                let part = after
                    .blocks
                    .iter_mut()
                    .find(|part| part.start == done)
                    .expect("it was split");
                change(part).expect("it did before");
                if !after.within_limits(&before) {
                    after = before;
                    result = Err(VmError::OverLimit);
                    break;
                }
                after.merge(done, true);
            }
            done = until;
        }
        let (before, count) = (self.blocks.len() as u64, after.blocks.len() as u64);
        if count > before && count > self.limits.areas {
            return Err(VmError::TooManyAreas);
        }
        *self = after;
        result
    }

    pub fn mprotect(&mut self, start: u64, length: u64, protection: Protection) -> Outcome<()> {
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        self.each(start, start + up(length), false, |block| {
            if !block.most.allows(protection) {
                return Err(VmError::NotPermitted);
            }
            let (was, is) = (
                block.protection.allows(Protection::WRITE),
                protection.allows(Protection::WRITE),
            );
            let is_shared =
                block.flags.contains(Flags::SHARED) || block.flags.contains(Flags::NO_RESERVE);
            if block.protection != protection && is && !was && !is_shared {
                block.flags = block.flags | Flags::RESERVED;
            }
            if block.protection != protection && !is && block.file == 0 && block.family == 0 {
                block.flags = block.flags.without(Flags::RESERVED);
            }
            block.protection = protection;
            Ok(())
        })
    }

    pub fn madvise(&mut self, start: u64, length: u64, set: Flags, clear: Flags) -> Outcome<()> {
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        self.each(start, start + up(length), true, |block| {
            block.flags = block.flags.without(clear) | set;
            Ok(())
        })
    }

    pub fn dontneed(&mut self, start: u64, length: u64) -> Outcome<()> {
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        let end = start + up(length);
        self.present.retain(|&page, _| page < start || end <= page);
        let pages = (start..end).step_by(PAGE as usize);
        let holes = pages.filter(|&page| self.at(page).is_none()).count();
        if holes > 0 {
            Err(VmError::Hole)
        } else {
            Ok(())
        }
    }

    pub fn fault(&mut self, address: u64, access: Access) -> Outcome<()> {
        let Some(index) = self
            .blocks
            .iter()
            .position(|block| block.start <= address && address < block.end)
        else {
            return Err(VmError::Unmapped);
        };
        let block = self.blocks[index];
        let allowed = match access {
            Access::Read => block.protection != Protection::NONE,
            Access::Write => block.protection.allows(Protection::WRITE),
            Access::Execute => block.protection.allows(Protection::EXECUTE),
        };
        if !allowed {
            return Err(VmError::Denied);
        }
        if access == Access::Write && block.family == 0 && !block.flags.contains(Flags::SHARED) {
            let akin = |other: &&Block| {
                let alike = (other.most, other.flags, other.file, other.origin)
                    == (block.most, block.flags, block.file, block.origin);
                other.family != 0 && alike && (other.start == block.end || other.end == block.start)
            };
            let next = self.blocks.get(index + 1).filter(akin);
            let before = index
                .checked_sub(1)
                .map(|before| &self.blocks[before])
                .filter(akin);
            let family = match next.or(before) {
                Some(neighbour) => neighbour.family,
                None => {
                    self.families += 1;
                    self.families - 1
                }
            };
            self.blocks[index].family = family;
        }
        let written = self.present.entry(address / PAGE * PAGE).or_default();
        *written |= access == Access::Write;
        Ok(())
    }

    pub fn brk(&mut self, to: u64) -> u64 {
        let (old, new) = (up(self.heap), up(to));
        if to < self.layout.heap || to > self.layout.end {
            return self.heap;
        }
        let done = if new < old {
            self.unmap(new, old)
        } else if new > old && !self.is_apart(old, new) {
            Err(VmError::NoRoom)
        } else if new > old {
            let heap = Mapping::anonymous(Protection::READ_WRITE);
            self.block(heap, old, new)
                .and_then(|block| self.map(block, false))
        } else {
            Ok(())
        };
        if done.is_ok() {
            self.heap = to;
        }
        self.heap
    }

    pub fn mremap(&mut self, start: u64, old: u64, new: u64, to: Relocation) -> Outcome<u64> {
        let (old, new) = (up(old), up(new));
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        if new == 0 {
            return Err(VmError::Empty);
        }
        if let Relocation::To(target) = to {
            if !target.is_multiple_of(PAGE) {
                return Err(VmError::Misaligned);
            }
            if target + new > self.layout.end {
                return Err(VmError::BeyondSpace);
            }
            if start < target + new && target < start + old {
                return Err(VmError::Contradiction);
            }
            if target < self.layout.lowest {
                return Err(VmError::TooLow);
            }
        }
        let block = *self.at(start).ok_or(VmError::Unmapped)?;
        if start + old > block.end {
            return Err(VmError::Unmapped);
        }
        if old == 0 {
            return Err(VmError::Contradiction);
        }
        if let Relocation::To(target) = to {
            if self.blocks.len() as u64 + 2 >= self.limits.areas.saturating_sub(3) {
                return Err(VmError::TooManyAreas);
            }
            let mut after = self.clone();
            after.unmap(target, target + new)?;
            // What was unmapped stays so, even if the rest fails.
            *self = after;
            if new < old {
                self.unmap(start + new, start + old)?;
            }
            return self.relocate(start, old.min(new), target, new);
        }
        if new <= old {
            if new < old {
                self.unmap(start + new, start + old)?;
            }
            return Ok(start);
        }
        if start + old == block.end
            && self.is_free(start + old, start + new)
            && start + new <= self.layout.end
        {
            let more = Block {
                start: start + old,
                end: start + new,
                ..block
            };
            self.map(more, true)?;
            return Ok(start);
        }
        if to == Relocation::Stay {
            return Err(VmError::NoRoom);
        }
        let target = self.search(None, new).ok_or(VmError::NoRoom)?;
        self.relocate(start, old, target, new)
    }

    fn relocate(&mut self, start: u64, length: u64, target: u64, new: u64) -> Outcome<u64> {
        if self.blocks.len() as u64 >= self.limits.areas.saturating_sub(3) {
            return Err(VmError::TooManyAreas);
        }
        let block = *self.at(start).expect("it was checked");
        let origin = match (block.file, block.family) {
            (0, 0) => 0,
            _ => block.origin.wrapping_add(start).wrapping_sub(target),
        };
        self.map(
            Block {
                start: target,
                end: target + new,
                origin,
                ..block
            },
            true,
        )?;
        let pages: Vec<_> = self
            .present
            .range(start..start + length)
            .map(|(&page, &written)| (page, written))
            .collect();
        self.free(start, start + length);
        self.present.extend(
            pages
                .into_iter()
                .map(|(page, written)| (page - start + target, written)),
        );
        Ok(target)
    }
}
