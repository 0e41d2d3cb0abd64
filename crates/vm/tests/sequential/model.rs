//! A sequential model of an address space: a sorted vector of areas. Each operation splits the areas at the ends of its
//! range, does its work on whole areas, and then merges each area that it changed with its neighbours, as the
//! documentation of Linux's calls describes it.

use spanlock_vm::{
    Access, Flags, Layout, Limits, Mapping, PAGE, Pages, Placement, Protection, Relocation, Source,
    VmError,
};
use std::collections::BTreeMap;

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
    fn fits(&self, next: &Self) -> bool {
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

    fn is_data(&self) -> bool {
        self.protection.allows(Protection::WRITE)
            && !self.flags.contains(Flags::SHARED)
            && !self.flags.contains(Flags::STACK)
    }

    fn guarded_start(&self, layout: &Layout) -> u64 {
        let gap = if self.flags.contains(Flags::GROWS_DOWN) {
            layout.guard
        } else {
            0
        };
        self.start.saturating_sub(gap)
    }
}

#[derive(Debug, Clone)]
pub struct Model {
    pub blocks: Vec<Block>,
    /// The pages that are there, and whether they were written.
    pub present: BTreeMap<u64, bool>,
    layout: Layout,
    limits: Limits,
    heap: u64,
    families: u32,
    memories: u64,
}

type Outcome<T> = Result<T, VmError>;

fn up(length: u64) -> u64 {
    length.div_ceil(PAGE) * PAGE
}

impl Model {
    pub fn new(layout: Layout, limits: Limits) -> Self {
        let heap = layout.heap;
        Self {
            blocks: Vec::new(),
            present: BTreeMap::new(),
            layout,
            limits,
            heap,
            families: 1,
            memories: 1 << 63,
        }
    }

    /// All that later results depend on, besides which pages are there.
    pub fn state(&self) -> (Vec<Block>, u64) {
        (self.blocks.clone(), self.heap)
    }

    pub fn pages(&self) -> Pages {
        let mut pages = Pages::default();
        for block in &self.blocks {
            let count = (block.end - block.start) / PAGE;
            pages.total += count;
            if block.flags.contains(Flags::STACK) {
                pages.stack += count;
            } else if block.is_data() {
                pages.data += count;
            } else if block.protection.allows(Protection::EXECUTE)
                && !block.protection.allows(Protection::WRITE)
            {
                pages.code += count;
            }
        }
        pages
    }

    pub fn at(&self, address: u64) -> Option<&Block> {
        self.blocks
            .iter()
            .find(|block| block.start <= address && address < block.end)
    }

    fn is_free(&self, start: u64, end: u64) -> bool {
        self.blocks
            .iter()
            .all(|block| block.end <= start || end <= block.start)
    }

    /// Whether the range is free, and a page and the next area's gap after it.
    fn is_apart(&self, start: u64, end: u64) -> bool {
        let next = self.blocks.iter().find(|block| block.end > start);
        next.is_none_or(|next| end + PAGE <= next.guarded_start(&self.layout))
    }

    fn split(&mut self, at: u64) {
        if let Some(index) = self
            .blocks
            .iter()
            .position(|block| block.start < at && at < block.end)
        {
            let mut rest = self.blocks[index];
            self.blocks[index].end = at;
            rest.start = at;
            self.blocks.insert(index + 1, rest);
        }
    }

    /// Merges the block that starts here with the one before, and then with the one after unless told otherwise.
    fn merge(&mut self, start: u64, with_next: bool) {
        let mut index = self
            .blocks
            .iter()
            .position(|block| block.start == start)
            .expect("it is there");
        if index > 0 && self.blocks[index - 1].fits(&self.blocks[index]) {
            index -= 1;
            self.absorb_next(index);
        }
        if with_next
            && index + 1 < self.blocks.len()
            && self.blocks[index].fits(&self.blocks[index + 1])
        {
            self.absorb_next(index);
        }
    }

    fn absorb_next(&mut self, index: usize) {
        let next = self.blocks.remove(index + 1);
        self.blocks[index].end = next.end;
        self.blocks[index].family = self.blocks[index].family.max(next.family);
    }

    fn within_limits(&self, before: &Self) -> bool {
        let (now, then) = (self.pages(), before.pages());
        (now.total <= self.limits.pages || now.total <= then.total)
            && (now.data <= self.limits.data || now.data <= then.data)
    }

    fn free(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        self.blocks
            .retain(|block| block.end <= start || end <= block.start);
        self.present.retain(|&page, _| page < start || end <= page);
    }

    /// Whether a range is strictly inside one area, so that freeing it makes one more.
    fn splits(&self, start: u64, end: u64) -> bool {
        self.blocks
            .iter()
            .any(|block| block.start < start && end < block.end)
    }

    fn map(&mut self, block: Block, with_next: bool) -> Outcome<()> {
        let count = self.blocks.len() as u64;
        let mut after = self.clone();
        after.free(block.start, block.end);
        let index = after
            .blocks
            .partition_point(|other| other.start < block.start);
        after.blocks.insert(index, block);
        if !after.within_limits(self) {
            return Err(VmError::OverLimit);
        }
        if count > self.limits.areas
            || (self.splits(block.start, block.end) && count >= self.limits.areas)
        {
            return Err(VmError::TooManyAreas);
        }
        after.merge(block.start, with_next);
        *self = after;
        Ok(())
    }

    fn unmap(&mut self, start: u64, end: u64) -> Outcome<()> {
        if self.splits(start, end) && self.blocks.len() as u64 >= self.limits.areas {
            return Err(VmError::TooManyAreas);
        }
        self.free(start, end);
        Ok(())
    }

    fn block(&mut self, what: Mapping, start: u64, end: u64) -> Outcome<Block> {
        let Mapping {
            protection,
            most,
            flags,
            source,
        } = what;
        let (file, origin) = match source {
            Source::File { file: 0, .. } => return Err(VmError::Contradiction),
            Source::File { file, offset } => (file, offset.wrapping_sub(start)),
            Source::Anonymous if flags.contains(Flags::SHARED) => {
                self.memories += 1;
                (self.memories - 1, 0_u64.wrapping_sub(start))
            }
            Source::Anonymous => (0, 0),
        };
        if !most.allows(protection) {
            return Err(VmError::NotPermitted);
        }
        let is_shared = flags.contains(Flags::SHARED) || flags.contains(Flags::NO_RESERVE);
        let flags = if protection.allows(Protection::WRITE) && !is_shared {
            flags | Flags::RESERVED
        } else {
            flags
        };
        Ok(Block {
            start,
            end,
            protection,
            most,
            flags,
            file,
            origin,
            family: 0,
        })
    }

    fn search(&self, hint: Option<u64>, length: u64) -> Option<u64> {
        let Layout {
            lowest,
            end,
            mmap_top,
            mmap_bottom,
            ..
        } = self.layout;
        let blocked = |start: u64| {
            let next = self.blocks.iter().find(|block| block.end > start);
            let is_taken =
                next.is_some_and(|next| start + length > next.guarded_start(&self.layout));
            start < lowest || start + length > end || is_taken
        };
        if let Some(hint) = hint
            && !blocked(hint)
        {
            return Some(hint);
        }
        let pages = |from: u64, to: u64| {
            (0..to.saturating_sub(from) / PAGE).map(move |page| from + page * PAGE)
        };
        let down = pages(lowest, mmap_top)
            .rev()
            .filter(|start| start + length <= mmap_top);
        down.chain(pages(mmap_bottom, end))
            .find(|&start| !blocked(start))
    }

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
                if start > self.layout.end - length {
                    return Err(VmError::NoRoom);
                }
                if start % PAGE != 0 {
                    return Err(VmError::Misaligned);
                }
                if start < self.layout.lowest {
                    return Err(VmError::TooLow);
                }
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

    pub fn munmap(&mut self, start: u64, length: u64) -> Outcome<()> {
        if start % PAGE != 0 {
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
        if start % PAGE != 0 {
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
        if start % PAGE != 0 {
            return Err(VmError::Misaligned);
        }
        self.each(start, start + up(length), true, |block| {
            block.flags = block.flags.without(clear) | set;
            Ok(())
        })
    }

    pub fn dontneed(&mut self, start: u64, length: u64) -> Outcome<()> {
        if start % PAGE != 0 {
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
        if start % PAGE != 0 {
            return Err(VmError::Misaligned);
        }
        if new == 0 {
            return Err(VmError::Empty);
        }
        if let Relocation::To(target) = to {
            if target % PAGE != 0 {
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
