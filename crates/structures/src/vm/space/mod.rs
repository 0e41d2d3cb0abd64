//! The address space.

mod account;
mod change;
mod fault;
mod hold;
mod place;
mod refinement;
mod resize;
pub(crate) mod stat;

use crate::vm::backing::{Backing, PageTable};
use crate::vm::error::VmError;
use crate::vm::index::Index;
use crate::vm::kind::{Area, Flags, Mapping, PAGE, Placement, Protection, Source};
use crate::vm::layout::{Layout, Limits, Pages};
use crate::vm::plan::{Change, Kind, Range};
use crate::vm::reclaim::searching;
use account::Account;
use change::{Attempt, Claim};
use hold::Held;
use place::{Wish, page_of, pages};
use prim::atomic::{AtomicU32, AtomicU64, Ordering};
use prim::sync::Mutex;
pub use refinement::{ChangeRange, FaultRange, Refinement, StructureRange};
use spanlock::range::raw::{Mode, RawRangeLock};
use spanlock::range::slots::RawSlots;
use stat::{LockStat, Operation, Recorder};
use std::fmt;

/// An address space: areas of pages, which many threads map, protect, unmap and fault at the same time.
///
/// ```
/// use spanlock_structures::vm::{Access, AddressSpace, Mapping, PAGE, Placement, Protection, Source};
///
/// let space = AddressSpace::new();
/// let arena = space.mmap(Placement::Anywhere, 64 * PAGE, Mapping::anonymous(Protection::NONE))?;
/// space.mprotect(arena, PAGE, Protection::READ_WRITE)?;
/// space.fault(arena + 8, Access::Write)?;
/// assert!(space.fault(arena + PAGE, Access::Read).is_err());
/// assert_eq!(space.maps().len(), 2);
/// # Ok::<(), spanlock_structures::vm::VmError>(())
/// ```
///
/// # What runs in parallel
/// | operation | locks, with [`Refinement::REFINED`] |
/// |---|---|
/// | `fault` | its page, shared. The first write to a private area: the area and a page on each side |
/// | `mprotect`, `munmap`, `mmap`, `brk` | the pages of its arguments and one on each side; all of an area whose kind changes, or that is split in its middle or removed |
/// | `mremap` | everything, unless the mapping shrinks |
/// | `find`, `madvise` | its pages, shared |
/// | `maps` | everything, shared |
///
/// Insertions and removals of areas also take a mutex for a short time.
///
/// # When not to use it
/// - The areas are few and hardly change: an immutable table that is replaced as a whole is faster to read.
/// - One thread uses it: a `BTreeMap` costs less.
///
/// # Cost
/// A fault takes one shared range, and a search of logarithmic length without a lock. An `mprotect` that moves a
/// boundary takes one exclusive range and one search. `mmap` without a fixed address reads a number for each chunk of
/// up to 32 areas. Inserting or removing an area copies its chunk. An area takes a record of 64 bytes, and 16 to 64
/// bytes in a chunk.
///
/// # Fairness, blocking, panics
/// As the range lock: see [`spanlock::range::RangeLock`]. The mutex is held for a search, and while areas are linked.
/// An operation that other operations overtake again and again locks everything in the end. After `fork`, a child must
/// not use a space that other threads were using.
///
/// # Source
/// P1 §5, mended, and taken further: `docs/address-spaces.md` has the rules, and why each of them is needed.
pub struct AddressSpace<L: RawRangeLock = RawSlots, B = PageTable> {
    lock: L,
    index: Index,
    account: Account,
    heap: Mutex<u64>,
    /// The next family, and the next number of shared memory without a file.
    families: AtomicU32,
    memories: AtomicU64,
    layout: Layout,
    limits: Limits,
    refinement: Refinement,
    stat: Option<Recorder>,
    backing: B,
}

/// The numbers of shared memory without a file begin here, above those that users give to files.
const MEMORIES: u64 = 1 << 63;

/// How a space is made.
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct Builder {
    layout: Layout,
    limits: Limits,
    refinement: Refinement,
    is_recorded: bool,
}

impl Builder {
    /// Which addresses there are.
    pub const fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// How much may be mapped.
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How much of the space operations lock.
    pub const fn refinement(mut self, refinement: Refinement) -> Self {
        self.refinement = refinement;
        self
    }

    /// Counts acquisitions, waits and speculations: see [`AddressSpace::lock_stat`].
    pub const fn recorded(mut self) -> Self {
        self.is_recorded = true;
        self
    }

    /// A space with nothing mapped.
    #[must_use]
    pub fn build<L: RawRangeLock, B: Backing>(self, lock: L, backing: B) -> AddressSpace<L, B> {
        AddressSpace {
            lock,
            index: Index::new(),
            account: Account::new(),
            heap: Mutex::new(self.layout.heap),
            families: AtomicU32::new(1),
            memories: AtomicU64::new(MEMORIES),
            layout: self.layout,
            limits: self.limits,
            refinement: self.refinement,
            stat: self.is_recorded.then(Recorder::new),
            backing,
        }
    }
}

impl AddressSpace {
    /// A space with nothing mapped, over the default range lock and a page table in memory.
    #[must_use]
    pub fn new() -> Self {
        Builder::default().build(RawSlots::new(), PageTable::new())
    }

    /// Begins a space with another layout, other limits or another way to lock.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for AddressSpace {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: RawRangeLock, B: Backing> AddressSpace<L, B> {
    /// Maps pages, and returns their address. The length is rounded up to pages.
    ///
    /// # Errors
    /// - [`Empty`](VmError::Empty), [`Misaligned`](VmError::Misaligned), [`Contradiction`](VmError::Contradiction): a
    ///   bad argument.
    /// - [`NotPermitted`](VmError::NotPermitted): more than the mapping ever allows.
    /// - [`NoRoom`](VmError::NoRoom), [`OffsetOverflow`](VmError::OffsetOverflow): it is too long.
    /// - [`Occupied`](VmError::Occupied), [`TooLow`](VmError::TooLow): the fixed address is taken or too low.
    /// - [`TooManyAreas`](VmError::TooManyAreas), [`OverLimit`](VmError::OverLimit): a limit.
    /// - What the backing refuses with.
    pub fn mmap(&self, at: Placement, length: u64, what: Mapping) -> Result<u64, VmError> {
        if let Source::File { offset, .. } = what.source
            && !offset.is_multiple_of(PAGE)
        {
            return Err(VmError::Misaligned);
        }
        if length == 0 {
            return Err(VmError::Empty);
        }
        let length = pages(length)
            .filter(|&length| length <= self.layout.end)
            .ok_or(VmError::NoRoom)?;
        if let Source::File { offset, .. } = what.source
            && offset
                .checked_add(length)
                .is_none_or(|end| i64::try_from(end).is_err())
        {
            return Err(VmError::OffsetOverflow);
        }
        let (start, claim) = match at {
            Placement::Fixed(start) => (start, Claim::Replace),
            Placement::FixedNoReplace(start) => (start, Claim::Free),
            Placement::Anywhere => return self.mmap_somewhere(None, length, what),
            Placement::Hint(hint) => return self.mmap_somewhere(Some(hint), length, what),
        };
        if start > self.layout.end - length {
            return Err(VmError::NoRoom);
        }
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        if start < self.layout.lowest {
            return Err(VmError::TooLow);
        }
        let kind = self.kind(what, start)?;
        let range = Range {
            start,
            end: start + length,
        };
        self.change(Operation::Mmap, range, Change::Map(kind), claim)
            .map(|()| start)
    }

    fn mmap_somewhere(
        &self,
        hint: Option<u64>,
        length: u64,
        what: Mapping,
    ) -> Result<u64, VmError> {
        let hint = hint
            .map(page_of)
            .filter(|&hint| hint != 0)
            .map(|hint| hint.max(self.layout.lowest));
        let anywhere = self.kind(what, 0)?;
        let kind = |start| match anywhere.file {
            0 => anywhere,
            _ => Kind {
                origin: anywhere.origin.wrapping_sub(start),
                ..anywhere
            },
        };
        self.map_somewhere(Operation::Mmap, Wish { length, hint }, kind)
    }

    /// Unmaps a range, which may have holes. The length is rounded up to pages.
    ///
    /// # Errors
    /// - [`Misaligned`](VmError::Misaligned), [`BeyondSpace`](VmError::BeyondSpace), [`Empty`](VmError::Empty): a bad
    ///   argument.
    /// - [`TooManyAreas`](VmError::TooManyAreas): the middle of an area is unmapped, and that is one area too many.
    pub fn munmap(&self, start: u64, length: u64) -> Result<(), VmError> {
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        if start > self.layout.end || length > self.layout.end - start {
            return Err(VmError::BeyondSpace);
        }
        let range = Range {
            start,
            end: start + pages(length).ok_or(VmError::BeyondSpace)?,
        };
        if range.len() == 0 {
            return Err(VmError::Empty);
        }
        self.change(Operation::Munmap, range, Change::Unmap, Claim::Replace)
    }

    /// Gives the pages of a range another protection. The length is rounded up to pages; zero changes nothing.
    ///
    /// # Errors
    /// As in Linux, the pages before the one that is refused keep their new protection.
    ///
    /// - [`Misaligned`](VmError::Misaligned): a bad address.
    /// - [`Hole`](VmError::Hole): the range has a hole, or ends beyond all addresses.
    /// - [`NotPermitted`](VmError::NotPermitted): an area never allows it.
    /// - [`TooManyAreas`](VmError::TooManyAreas), [`OverLimit`](VmError::OverLimit): a limit.
    /// - What the backing refuses with.
    pub fn mprotect(&self, start: u64, length: u64, protection: Protection) -> Result<(), VmError> {
        let Some(range) = self.mapped_range(start, length, VmError::Hole)? else {
            return Ok(());
        };
        self.change(
            Operation::Mprotect,
            range,
            Change::Protect(protection),
            Claim::Replace,
        )
    }

    /// Drops the pages of a range. They are zero, or as the file has them, when they are accessed again. The length is
    /// rounded up to pages; zero changes nothing.
    ///
    /// # Errors
    /// - [`Misaligned`](VmError::Misaligned), [`BeyondSpace`](VmError::BeyondSpace): a bad argument.
    /// - [`Hole`](VmError::Hole): some of the range is not mapped. The rest is dropped.
    /// - [`Contradiction`](VmError::Contradiction): some of it is locked in memory. What is before is dropped.
    pub fn madvise_dontneed(&self, start: u64, length: u64) -> Result<(), VmError> {
        let Some(range) = self.mapped_range(start, length, VmError::BeyondSpace)? else {
            return Ok(());
        };
        // With a page on each side, as the look needs.
        let wanted = self.shared_range(range.widened());
        let held = self.hold(Operation::Madvise, Mode::Shared, wanted);
        let around = searching(|| self.index.around(range).areas);
        let mut done = range.start;
        let mut result = Ok(());
        for piece in around {
            let part = piece.range.within(range);
            if part.len() == 0 {
                continue;
            }
            if part.start > done {
                result = Err(VmError::Hole);
            }
            if piece.kind.flags.contains(Flags::LOCKED) {
                return Err(VmError::Contradiction);
            }
            self.backing.discard(part.start..part.end);
            done = part.end;
        }
        drop(held);
        if done < range.end {
            Err(VmError::Hole)
        } else {
            result
        }
    }

    /// Gives the areas of a range some flags and takes others from them, as `madvise` does with advice about huge
    /// pages, dumps and children. The length is rounded up to pages; zero changes nothing.
    ///
    /// # Errors
    /// - [`Misaligned`](VmError::Misaligned), [`BeyondSpace`](VmError::BeyondSpace): a bad argument.
    /// - [`Contradiction`](VmError::Contradiction): a flag that an area has from its beginning.
    /// - [`Hole`](VmError::Hole): some of the range is not mapped. The rest is changed.
    /// - [`TooManyAreas`](VmError::TooManyAreas): a limit.
    pub fn madvise(
        &self,
        start: u64,
        length: u64,
        set: Flags,
        clear: Flags,
    ) -> Result<(), VmError> {
        if !Flags::ADVICE.contains(set | clear) {
            return Err(VmError::Contradiction);
        }
        let Some(range) = self.mapped_range(start, length, VmError::BeyondSpace)? else {
            return Ok(());
        };
        self.change(
            Operation::Madvise,
            range,
            Change::Advise(set, clear),
            Claim::Replace,
        )
    }

    /// The area that contains the address.
    pub fn find(&self, address: u64) -> Option<Area> {
        if address >= self.layout.end {
            return None;
        }
        let start = page_of(address);
        let page = Range {
            start,
            end: start + PAGE,
        };
        let mut wanted = self.shared_range(page);
        loop {
            let held = self.hold(Operation::Look, Mode::Shared, wanted);
            let (area, kind) =
                searching(|| self.index.at(start).map(|node| (node.range(), node.kind())))?;
            // Its boundaries are certain if its first and last page are held.
            if held.range.covers(area) {
                return Some(kind.area(area.start, area.end));
            }
            wanted = held.range.hull(area);
        }
    }

    /// All areas, in order, as `/proc/PID/maps` lists them.
    pub fn maps(&self) -> Vec<Area> {
        let _held = self.hold(Operation::Look, Mode::Shared, Range::ALL);
        searching(|| {
            self.index
                .iter()
                .map(|node| node.kind().area(node.start(), node.end()))
                .collect()
        })
    }

    /// The pages mapped, by kind. While other threads change the space, the counts may be of different moments.
    pub fn pages(&self) -> Pages {
        self.account.pages()
    }

    /// The number of areas.
    pub fn areas(&self) -> u64 {
        self.index.areas()
    }

    /// What backs the areas.
    pub const fn backing(&self) -> &B {
        &self.backing
    }

    /// The range lock.
    pub const fn lock(&self) -> &L {
        &self.lock
    }

    /// The addresses that there are.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Acquisitions, waits and speculations so far; `None` unless the space was [built](Builder::recorded) to count
    /// them.
    pub fn lock_stat(&self) -> Option<LockStat> {
        self.stat.as_ref().map(Recorder::report)
    }

    /// The range of some arguments, `None` if it has no pages.
    fn mapped_range(
        &self,
        start: u64,
        length: u64,
        beyond: VmError,
    ) -> Result<Option<Range>, VmError> {
        if !start.is_multiple_of(PAGE) {
            return Err(VmError::Misaligned);
        }
        let length = pages(length).ok_or(beyond)?;
        let end = start.checked_add(length).ok_or(beyond)?;
        if length == 0 {
            return Ok(None);
        }
        // Nothing is mapped beyond the last address, so a range that reaches there has a hole.
        if start >= self.layout.end {
            return Err(VmError::Hole);
        }
        Ok(Some(Range {
            start,
            end: end.min(self.layout.end + PAGE),
        }))
    }

    /// What an operation locks that looks at a range and changes no area.
    fn shared_range(&self, range: Range) -> Range {
        match self.refinement.fault {
            FaultRange::Whole => Range::ALL,
            FaultRange::Page => range,
        }
    }

    /// A number for shared memory without a file.
    fn anonymous_file(&self) -> u64 {
        // Relaxed: numbers that differ are all that counts.
        self.memories.fetch_add(1, Ordering::Relaxed)
    }

    /// Changes a range while everything is held.
    fn change_in(
        &self,
        operation: Operation,
        held: &Held<'_, L>,
        range: Range,
        change: Change,
    ) -> Result<(), VmError> {
        let (mut change, mut refusal) = (change, Ok(()));
        loop {
            match searching(|| self.attempt(operation, held, range, change, Claim::Replace)) {
                Attempt::Done(result) => return refusal.and(result),
                Attempt::Undo(error) => (change, refusal) = (Change::Unmap, Err(error)),
                Attempt::Again | Attempt::Gone | Attempt::Needs(..) => {}
            }
        }
    }
}

impl<L: RawRangeLock, B: Backing> fmt::Debug for AddressSpace<L, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let maps = self.maps().into_iter().map(|area| area.to_string());
        f.debug_list().entries(maps).finish()
    }
}
