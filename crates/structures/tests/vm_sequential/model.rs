//! A sequential model of an address space: a sorted vector of areas. Each operation splits the areas at the ends of its
//! range, does its work on whole areas, and then merges each area that it changed with its neighbours, as the
//! documentation of Linux's calls describes it.

use super::block::Block;
use super::vm::{Flags, Layout, Limits, Mapping, PAGE, Pages, Protection, Source, VmError};
use std::collections::BTreeMap;

/// The areas and the pages of a space. Its calls are in another file.
#[derive(Debug, Clone)]
pub struct Model {
    pub blocks: Vec<Block>,
    /// The pages that are there, and whether they were written.
    pub present: BTreeMap<u64, bool>,
    pub(super) layout: Layout,
    pub(super) limits: Limits,
    pub(super) heap: u64,
    pub(super) families: u32,
    pub(super) memories: u64,
}

pub type Outcome<T> = Result<T, VmError>;

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

    pub(super) fn is_free(&self, start: u64, end: u64) -> bool {
        self.blocks
            .iter()
            .all(|block| block.end <= start || end <= block.start)
    }

    /// Whether the range is free, and a page and the next area's gap after it.
    pub(super) fn is_apart(&self, start: u64, end: u64) -> bool {
        let next = self.blocks.iter().find(|block| block.end > start);
        next.is_none_or(|next| end + PAGE <= next.guarded_start(&self.layout))
    }

    pub(super) fn split(&mut self, at: u64) {
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
    pub(super) fn merge(&mut self, start: u64, with_next: bool) {
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

    pub(super) fn within_limits(&self, before: &Self) -> bool {
        let (now, then) = (self.pages(), before.pages());
        (now.total <= self.limits.pages || now.total <= then.total)
            && (now.data <= self.limits.data || now.data <= then.data)
    }

    pub(super) fn free(&mut self, start: u64, end: u64) {
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

    pub(super) fn map(&mut self, block: Block, with_next: bool) -> Outcome<()> {
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

    pub(super) fn unmap(&mut self, start: u64, end: u64) -> Outcome<()> {
        if self.splits(start, end) && self.blocks.len() as u64 >= self.limits.areas {
            return Err(VmError::TooManyAreas);
        }
        self.free(start, end);
        Ok(())
    }

    pub(super) fn block(&mut self, what: Mapping, start: u64, end: u64) -> Outcome<Block> {
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

    pub(super) fn search(&self, hint: Option<u64>, length: u64) -> Option<u64> {
        let layout = self.layout;
        let blocked = |start: u64| {
            let next = self.blocks.iter().find(|block| block.end > start);
            let is_taken = next.is_some_and(|next| start + length > next.guarded_start(&layout));
            start < layout.lowest || start + length > layout.end || is_taken
        };
        if let Some(hint) = hint
            && !blocked(hint)
        {
            return Some(hint);
        }
        let pages = |from: u64, to: u64| {
            (0..to.saturating_sub(from) / PAGE).map(move |page| from + page * PAGE)
        };
        let down = pages(layout.lowest, layout.mmap_top)
            .rev()
            .filter(|start| start + length <= layout.mmap_top);
        down.chain(pages(layout.mmap_bottom, layout.end))
            .find(|&start| !blocked(start))
    }
}
