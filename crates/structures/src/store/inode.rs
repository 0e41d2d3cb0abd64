//! Files: reading and writing under the range lock.

use crate::store::alloc::{Blocks, Lines, Purpose};
use crate::store::core::Core;
use crate::store::error::{Error, Result};
use crate::store::format::bytes::checksum;
use crate::store::format::entry::{Head, MAX_ITEMS, What, payload_of};
use crate::store::format::{Block, Item, PAGE, PAGE_BYTES, offset};
use crate::store::index::{Index, MAX_PAGES, Packed};
use crate::store::log::Log;
use crate::store::logs::{Compacted, Logs};
use crate::store::medium::Medium;
use crate::store::replay::FileState;
use crate::store::tree::{Ino, Stat};
use prim::atomic::{AtomicU64, Ordering};
use smallvec::SmallVec;
use spanlock::range::raw::RawRangeLock;
use spanlock::range::{RangeLock, ReadGuard};
use std::ops::Range;

/// The largest size of a file: 2^48 bytes.
pub const MAX_FILE_SIZE: u64 = MAX_PAGES * PAGE_BYTES;

/// The latest time of an entry that counts by its time, in nanoseconds since 1970: in the year 2116. Twice that has
/// room in the format, so that no later time is lost.
pub(crate) const LAST_TIME: u64 = i64::MAX as u64 / 2;

type Items = SmallVec<[Item; 4]>;

/// A file in memory.
pub(crate) struct Inode<L: RawRangeLock> {
    /// Readers hold the bytes that they read, writers the pages that they write.
    lock: Lines<RangeLock<L>>,
    /// Most writes change nothing here, so that all can read it.
    size: AtomicU64,
    /// The time of the last truncation, or that of the last write before the opening. All writes have later times.
    floor: AtomicU64,
    index: Index,
    /// They know the time of the last write and the number of pages, too.
    logs: Logs,
}

impl<L: RawRangeLock> Inode<L> {
    /// A new, empty file.
    pub(crate) fn new(lock: L, ino: Ino, generation: u64) -> Self {
        let trunk = Log::new(ino, generation, Vec::new(), 1, 0);
        let logs = Logs::new(trunk, Vec::new(), 0, 0);
        Self::loaded(lock, &FileState::default(), logs)
    }

    /// A file as its logs say.
    pub(crate) fn loaded(lock: L, state: &FileState, logs: Logs) -> Self {
        let index = Index::new();
        for (&page, &item) in &state.pages {
            index.replace(page, Packed::unverified(item));
        }
        Self {
            lock: Lines(RangeLock::from_raw(lock)),
            size: AtomicU64::new(state.size),
            floor: AtomicU64::new(since_1970(state.modified)),
            index,
            logs,
        }
    }

    /// Its number.
    pub(crate) fn ino(&self) -> Ino {
        self.logs.ino()
    }

    /// Rewrites its logs, if that is due and this thread is the one to do it.
    pub(crate) fn clean<M: Medium>(&self, core: &Core<M>) -> Result<()> {
        self.logs.clean(core, || self.lock.0.read(..))
    }

    /// Pages that its logs can spare.
    pub(crate) fn spare(&self) -> usize {
        self.logs.spare()
    }

    /// Rewrites its logs in as few pages as possible, if they can spare any.
    pub(crate) fn compact<M: Medium>(&self, core: &Core<M>) -> Result<Compacted> {
        // [compact-alone] Who has reserved slots holds a range until the entry is committed.
        let _held = prim::intact!("compact-alone").then(|| self.lock.0.write(..));
        if self.logs.spare() == 0 {
            return Ok(Compacted::No);
        }
        let mut state = FileState {
            size: self.size.load(Ordering::Acquire),
            modified: as_time(self.logs.modified()),
            ..FileState::default()
        };
        self.index.for_each(0, |page, packed| {
            state.pages.insert(page, packed.item());
        });
        self.logs.compact(core, &state)
    }

    /// Fills in what the file itself knows.
    pub(crate) fn complete(&self, stat: &mut Stat) {
        stat.size = self.size.load(Ordering::Acquire);
        stat.pages = self.logs.data_pages();
        let modified = as_time(self.logs.modified());
        if modified > stat.attributes.changed {
            stat.attributes.modified = modified;
            stat.attributes.changed = modified;
        }
    }

    /// Bytes of memory that its index takes.
    pub(crate) fn memory(&self) -> usize {
        self.index.bytes()
    }

    /// Frees all its pages. Nobody has it open, and its last name is gone, durably as far as the medium goes.
    pub(crate) fn free<M: Medium>(&self, core: &Core<M>) {
        let mut blocks = Vec::new();
        self.index
            .for_each(0, |_, packed| blocks.push(packed.item().block));
        blocks.extend(self.logs.blocks());
        core.free(&blocks);
    }

    pub(crate) fn read_at<M: Medium>(
        &self,
        core: &Core<M>,
        into: &mut [u8],
        at: u64,
    ) -> Result<usize> {
        let wanted = at.saturating_add(into.len() as u64);
        let _held = self.lock.0.read(at..wanted);
        let end = wanted.min(self.size.load(Ordering::Acquire));
        if at >= end {
            return Ok(0);
        }
        let length = usize::try_from(end - at).expect("no more than the buffer");
        for part in parts(at..end) {
            let into = &mut into[within(part.begin - at, part.length)];
            self.read_part(core, &part, into)?;
        }
        Ok(length)
    }

    fn read_part<M: Medium>(&self, core: &Core<M>, part: &Part, into: &mut [u8]) -> Result<()> {
        let packed = self.index.get(part.page);
        let item = packed.item();
        if item.is_hole() {
            into.fill(0);
            return Ok(());
        }
        if packed.is_verified() {
            core.medium
                .read(offset(item.block) + part.from as u64, into)?;
            return Ok(());
        }
        let bytes = self.verified_page(core, part.page, item)?;
        into.copy_from_slice(&bytes[part.from..part.from + part.length]);
        Ok(())
    }

    /// A page whose checksum this process has not compared yet.
    #[cold]
    fn verified_page<M: Medium>(
        &self,
        core: &Core<M>,
        page: u64,
        item: Item,
    ) -> Result<Box<[u8; PAGE]>> {
        let bytes = core.page(item.block)?;
        if checksum(&[], &*bytes) != item.sum {
            let ino = self.ino();
            return Err(Error::Corrupt(format!(
                "page {page} of inode {ino} does not match its checksum"
            )));
        }
        self.index.set_verified(page);
        Ok(bytes)
    }

    pub(crate) fn write_at<M: Medium>(&self, core: &Core<M>, data: &[u8], at: u64) -> Result<()> {
        let end = end_of(at, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        // [round-pages] The rest of the first and the last page is copied.
        let locked = if prim::intact!("round-pages") {
            at / PAGE_BYTES * PAGE_BYTES..end.next_multiple_of(PAGE_BYTES)
        } else {
            at..end
        };
        let _held = self.lock.0.write(locked);
        self.write_locked(core, data, at)
    }

    pub(crate) fn append<M: Medium>(&self, core: &Core<M>, data: &[u8]) -> Result<u64> {
        loop {
            let size = self.size.load(Ordering::Acquire);
            let from = size / PAGE_BYTES * PAGE_BYTES;
            let _held = self.lock.0.write(from..);
            let at = self.size.load(Ordering::Acquire);
            // A truncation may have come between.
            if at >= from {
                end_of(at, data.len())?;
                self.write_locked(core, data, at)?;
                return Ok(at);
            }
        }
    }

    /// Writes where the caller holds the pages exclusively. As many pages at a time as an entry has room for.
    fn write_locked<M: Medium>(&self, core: &Core<M>, data: &[u8], at: u64) -> Result<()> {
        let end = at + data.len() as u64;
        let mut begin = at;
        while begin < end {
            let page_behind = begin / PAGE_BYTES + MAX_ITEMS as u64;
            let behind = end.min(page_behind * PAGE_BYTES);
            let chunk = within(
                begin - at,
                usize::try_from(behind - begin).expect("part of a slice"),
            );
            self.write_chunk(core, &data[chunk], begin)?;
            begin = behind;
        }
        Ok(())
    }

    /// One entry's worth: it happens as a whole or not at all.
    fn write_chunk<M: Medium>(&self, core: &Core<M>, data: &[u8], at: u64) -> Result<()> {
        let end = at + data.len() as u64;
        let first = at / PAGE_BYTES;
        let count = usize::try_from(end.div_ceil(PAGE_BYTES) - first).expect("few pages");
        let pages = first..first + count as u64;
        let blocks = core.take(count, Purpose::Data)?;
        // [free-after] Until the entry is durable, recovery needs the old pages.
        if !prim::intact!("free-after") {
            let old = (first..)
                .take(count)
                .map(|page| self.index.get(page).item().block);
            let old: Blocks = old.filter(|&block| block != 0).collect();
            core.give_back(&old);
        }
        let written = self.fill(core, data, at, &blocks).and_then(|items| {
            // [data-fence] An entry that is there has its pages.
            if prim::intact!("data-fence") {
                core.medium.fence();
            }
            let time = self.later(core, self.index.latest(pages.clone()))?;
            let head = head(core, What::Write, time, end, first);
            let log = self.logs.append(core, &head, &payload_of(&items))?;
            Ok((items, time, log))
        });
        let (items, time, log) = written.inspect_err(|_| core.give_back(&blocks))?;
        let old = self.publish(first, &items);
        self.index.note(pages, time);
        log.note(time, (items.len() - old.len()) as u64);
        // [free-after] The entry is durable now, as far as the medium goes.
        if prim::intact!("free-after") {
            core.free(&old);
        }
        // All who use the file share this line: most writes change nothing there.
        if self.size.load(Ordering::Acquire) < end {
            self.size.fetch_max(end, Ordering::AcqRel);
        }
        Ok(())
    }

    /// A time for an entry that comes after those with that time, and after the last truncation.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: it would be later than [`LAST_TIME`].
    fn later<M: Medium>(&self, core: &Core<M>, than: u64) -> Result<u64> {
        let now = since_1970(core.now());
        // Relaxed: who changes it holds everything.
        let before = than.max(self.floor.load(Ordering::Relaxed));
        // [later] Clocks are set back, and two readings may be the same.
        let time = match prim::intact!("later") {
            true => now.max(before + 1),
            false => now,
        };
        match time <= LAST_TIME {
            true => Ok(time),
            false => Err(Error::Exhausted),
        }
    }

    /// Writes data and what stands around it into fresh pages, and flushes them.
    fn fill<M: Medium>(
        &self,
        core: &Core<M>,
        data: &[u8],
        at: u64,
        blocks: &[Block],
    ) -> Result<Items> {
        let parts = parts(at..at + data.len() as u64);
        let items = parts.zip(blocks).map(|(part, &block)| {
            let new = &data[within(part.begin - at, part.length)];
            let sum = if part.length == PAGE {
                fill_page(core, block, new)?
            } else {
                let mut bytes = self.old_page(core, part.page)?;
                bytes[part.from..part.from + part.length].copy_from_slice(new);
                fill_page(core, block, &bytes)?
            };
            Ok(Item { block, sum })
        });
        items.collect()
    }

    /// A page as it is now.
    fn old_page<M: Medium>(&self, core: &Core<M>, page: u64) -> Result<[u8; PAGE]> {
        let mut bytes = [0; PAGE];
        let (from, length) = (0, PAGE);
        let begin = page * PAGE_BYTES;
        self.read_part(
            core,
            &Part {
                page,
                begin,
                from,
                length,
            },
            &mut bytes,
        )?;
        Ok(bytes)
    }

    /// Puts pages into the index; returns those that they replace.
    fn publish(&self, first: u64, items: &[Item]) -> Blocks {
        let replaced = (first..).zip(items).map(|(page, &item)| {
            let packed = self.index.replace(page, Packed::verified(item));
            packed.item().block
        });
        replaced.filter(|&block| block != 0).collect()
    }

    /// Keeps all writes from happening. Those before have left their times.
    pub(crate) fn write_nothing(&self) -> ReadGuard<'_, L> {
        self.lock.0.read(..)
    }

    pub(crate) fn truncate<M: Medium>(&self, core: &Core<M>, size: u64) -> Result<()> {
        if size > MAX_FILE_SIZE {
            return Err(Error::TooLarge);
        }
        // All writes before have committed, and all others come after: the truncation is a barrier.
        let _held = self.lock.0.write(..);
        if size > self.size.load(Ordering::Acquire) {
            core.leave_reserve()?;
        }
        let time = self.later(core, self.logs.modified())?;
        let last = size / PAGE_BYTES;
        let kept = usize::try_from(size % PAGE_BYTES).expect("less than a page");
        let cut = size < self.size.load(Ordering::Acquire)
            && kept > 0
            && !self.index.get(last).item().is_hole();
        let mut items = Items::new();
        // [truncate-zeroes] The last page is replaced by one that ends with zeros, in the same entry.
        if cut && prim::intact!("truncate-zeroes") {
            let mut bytes = self.old_page(core, last)?;
            bytes[kept..].fill(0);
            let block = core.take(1, Purpose::Upkeep)?[0];
            let filled = fill_page(core, block, &bytes).inspect_err(|_| core.give_back(&[block]));
            items.push(Item {
                block,
                sum: filled?,
            });
            core.medium.fence();
        }
        let head = head(core, What::Truncate, time, size, last);
        let appended = self.logs.append(core, &head, &payload_of(&items));
        let log = appended.inspect_err(|_| {
            items.iter().for_each(|item| core.give_back(&[item.block]));
        })?;
        let mut old = Vec::new();
        let mut removed = Vec::new();
        self.index
            .for_each(size.div_ceil(PAGE_BYTES), |page, packed| {
                removed.push(page);
                old.push(packed.item().block);
            });
        for &page in &removed {
            self.index.replace(page, Packed::verified(Item::HOLE));
        }
        old.extend(self.publish(last, &items));
        core.free(&old);
        self.size.store(size, Ordering::Release);
        self.floor.store(time, Ordering::Relaxed);
        log.note_truncation(time, removed.len() as u64);
        Ok(())
    }
}

/// A time of writing. A clock that is before 1970 counts as at its beginning.
pub(crate) fn since_1970(time: i64) -> u64 {
    time.try_into().unwrap_or(0)
}

fn as_time(since_1970: u64) -> i64 {
    i64::try_from(since_1970).unwrap_or(i64::MAX)
}

/// An entry that counts by its time.
fn head<M>(core: &Core<M>, what: What, time: u64, a: u64, b: u64) -> Head {
    Head {
        what,
        epoch: core.epoch,
        number: Head::BY_TIME,
        time: as_time(time),
        a,
        b,
    }
}

/// Writes a page and flushes it; returns its checksum.
fn fill_page<M: Medium>(core: &Core<M>, block: Block, bytes: &[u8]) -> Result<u32> {
    core.medium.write(offset(block), bytes)?;
    // [data-flush] All of its lines.
    let flushed = if prim::intact!("data-flush") {
        PAGE_BYTES
    } else {
        PAGE_BYTES - 64
    };
    core.medium.flush(offset(block), flushed);
    Ok(checksum(&[], bytes))
}

/// The end of a write.
fn end_of(at: u64, length: usize) -> Result<u64> {
    let end = at.checked_add(length as u64);
    end.filter(|&end| end <= MAX_FILE_SIZE)
        .ok_or(Error::TooLarge)
}

/// The part of a range that is in one page.
struct Part {
    page: u64,
    /// Where it begins, in the file.
    begin: u64,
    /// Where it begins, in the page.
    from: usize,
    length: usize,
}

/// The parts of a range, page by page.
fn parts(range: Range<u64>) -> impl Iterator<Item = Part> {
    let first = range.start / PAGE_BYTES;
    let pages = first..range.end.div_ceil(PAGE_BYTES);
    pages.map(move |page| {
        let begin = range.start.max(page * PAGE_BYTES);
        let end = range.end.min((page + 1) * PAGE_BYTES);
        Part {
            page,
            begin,
            from: usize::try_from(begin % PAGE_BYTES).expect("within a page"),
            length: usize::try_from(end - begin).expect("no more than a page"),
        }
    })
}

/// The places of a part in a slice.
fn within(begin: u64, length: usize) -> Range<usize> {
    let begin = usize::try_from(begin).expect("part of a slice");
    begin..begin + length
}
