//! The types of a trace.

use std::ops::Range;

/// Bytes of a page. Positions and lengths of a trace are in pages.
pub const PAGE: u64 = 4096;

/// The page after the last of 57-bit addresses.
pub const PAGES: u64 = 1 << 45;

/// `PROT_READ`, as in `mmap`: also the bit of an access that reads.
pub const READ: u32 = 1;
/// `PROT_WRITE`, and the bit of an access that writes.
pub const WRITE: u32 = 2;
/// `PROT_EXEC`, and the bit of an access that executes.
pub const EXECUTE: u32 = 4;

/// What distinguishes areas beside protection and backing, and so keeps neighbours apart: a set of bits. These are the
/// two-letter flags of `/proc/PID/smaps`; those that are left out follow from others, or do not keep areas apart.
pub mod attribute {
    /// Writes are shared with other mappings of the file (`ms`; without it, `maps` has a `p`).
    pub const SHARED: u32 = 1;
    /// Nothing is reserved for it (`nr`).
    pub const NO_RESERVE: u32 = 1 << 1;
    /// It counts as memory that the process may come to use (`ac`).
    pub const ACCOUNT: u32 = 1 << 2;
    /// It grows towards lower addresses (`gd`).
    pub const GROWS_DOWN: u32 = 1 << 3;
    /// It may get huge pages (`hg`).
    pub const HUGE: u32 = 1 << 4;
    /// It may not (`nh`).
    pub const NO_HUGE: u32 = 1 << 5;
    /// A child does not inherit it (`dc`).
    pub const NOT_INHERITED: u32 = 1 << 6;
    /// A dump leaves it out (`dd`).
    pub const NOT_DUMPED: u32 = 1 << 7;
    /// It is read in order (`sr`).
    pub const SEQUENTIAL: u32 = 1 << 8;
    /// It is read in no order (`rr`).
    pub const RANDOM: u32 = 1 << 9;
    /// Equal pages may be merged (`mg`).
    pub const MERGEABLE: u32 = 1 << 10;
    /// It stays in memory (`lo`).
    pub const LOCKED: u32 = 1 << 11;
    /// A child finds it zeroed (`wf`).
    pub const WIPED: u32 = 1 << 12;
    /// A device's, which cannot grow (`de`, `io`, `pf`).
    pub const DEVICE: u32 = 1 << 13;
    /// Its pages are huge (`ht`).
    pub const HUGE_PAGES: u32 = 1 << 14;

    /// Some page was written (Linux: there is an `anon_vma`). Nothing reports it, and it keeps no areas apart.
    pub const WRITTEN: u32 = 1 << 15;

    /// All that `smaps` has.
    pub const REPORTED: u32 = WRITTEN - 1;
}

/// What the pages of an area are filled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backing {
    /// Zeros.
    Anonymous,
    /// A file, or what the kernel provides (such as its own code for user space).
    File {
        /// The number of the file in this trace, from 0.
        file: u32,
        /// The page of the file at which the area begins.
        page: u64,
    },
}

impl Backing {
    /// The backing of the pages that follow the first so many.
    #[must_use]
    pub const fn after(self, pages: u64) -> Self {
        match self {
            Self::Anonymous => Self::Anonymous,
            Self::File { file, page } => Self::File {
                file,
                page: page.wrapping_add(pages),
            },
        }
    }
}

/// Pages with one protection and one backing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Area {
    /// Its first page.
    pub start: u64,
    /// The page after its last.
    pub end: u64,
    /// [`READ`], [`WRITE`] and [`EXECUTE`], as they apply.
    pub protection: u32,
    /// Bits of [`attribute`].
    pub attributes: u32,
    /// What its pages are filled from.
    pub backing: Backing,
}

impl Area {
    /// Whether the other begins where this ends, and nothing keeps them apart.
    #[must_use]
    pub fn continues_in(&self, next: &Self) -> bool {
        self.end == next.start
            && self.protection == next.protection
            && (self.attributes ^ next.attributes) & !attribute::WRITTEN == 0
            && self.backing.after(self.end - self.start) == next.backing
    }
}

/// Pages that were mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Map {
    /// The first page.
    pub start: u64,
    /// Their number.
    pub pages: u64,
    /// [`READ`], [`WRITE`] and [`EXECUTE`], as they apply.
    pub protection: u32,
    /// The flags of the call, as Linux numbers them.
    pub flags: u32,
    /// What the pages are filled from.
    pub backing: Backing,
}

/// Pages that were moved, or became more or fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remap {
    /// The first page before.
    pub from: u64,
    /// Pages before.
    pub pages: u64,
    /// The first page after.
    pub start: u64,
    /// Pages after.
    pub grown: u64,
}

/// A call, or a fault. Only calls that succeeded are in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `mmap`, with the place that it yielded.
    Map(Map),
    /// `munmap`.
    Unmap {
        /// The first page.
        start: u64,
        /// Their number.
        pages: u64,
    },
    /// `mprotect`.
    Protect {
        /// The first page.
        start: u64,
        /// Their number.
        pages: u64,
        /// [`READ`], [`WRITE`] and [`EXECUTE`], as they apply.
        protection: u32,
    },
    /// `brk` that moved the end of the heap.
    Break {
        /// The page after the heap.
        end: u64,
    },
    /// `madvise`.
    Advise {
        /// The first page.
        start: u64,
        /// Their number.
        pages: u64,
        /// The advice, as Linux numbers it.
        advice: u32,
    },
    /// `mremap`, with the place that it yielded.
    Remap(Remap),
    /// A page fault that was resolved.
    Fault {
        /// The page.
        page: u64,
        /// [`READ`], [`WRITE`] or [`EXECUTE`]. What a fault was for is not recorded: it is a write where the area may
        /// be written, and else the most that the area allows.
        access: u32,
    },
}

impl Call {
    /// The page where the call begins.
    #[must_use]
    pub const fn place(&self) -> u64 {
        match *self {
            Self::Map(Map { start, .. })
            | Self::Unmap { start, .. }
            | Self::Protect { start, .. }
            | Self::Advise { start, .. } => start,
            Self::Break { end } => end,
            Self::Remap(Remap { from, .. }) => from,
            Self::Fault { page, .. } => page,
        }
    }

    /// The pages that it is about: two ranges, of which the second is empty except for `mremap` and `brk`. All `brk`s
    /// have one page in common, which no area has. `heap` is the end of the heap before the call.
    #[must_use]
    pub fn ranges(&self, heap: u64) -> [Range<u64>; 2] {
        match *self {
            Self::Map(Map { start, pages, .. })
            | Self::Unmap { start, pages }
            | Self::Protect { start, pages, .. }
            | Self::Advise { start, pages, .. } => [start..start + pages, 0..0],
            Self::Break { end } => [heap.min(end)..heap.max(end), PAGES..PAGES + 1],
            Self::Remap(to) => [to.from..to.from + to.pages, to.start..to.start + to.grown],
            Self::Fault { page, .. } => [page..page + 1, 0..0],
        }
    }

    /// Whether this is a page fault.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        matches!(self, Self::Fault { .. })
    }
}

/// A call or a fault of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The thread, from 0.
    pub thread: usize,
    /// Microseconds from the end of this thread's event before, or from the start of the recording: what the thread
    /// computed and waited.
    pub think: u64,
    /// What it did.
    pub call: Call,
}

/// What one program asked of its address space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Where it comes from: a command without paths.
    pub about: String,
    /// The page where the heap of `brk` begins.
    pub heap: u64,
    /// The areas at the beginning, by address.
    pub before: Vec<Area>,
    /// What threads did, in an order that leads from `before` to `after`.
    pub events: Vec<Event>,
    /// The areas at the end as the kernel reported them, by address.
    pub after: Vec<Area>,
}

impl Trace {
    /// The number of threads: the numbers in events are below it.
    #[must_use]
    pub fn threads(&self) -> usize {
        let threads = self.events.iter().map(|event| event.thread + 1);
        threads.max().unwrap_or(0)
    }

    /// Events that are faults.
    #[must_use]
    pub fn faults(&self) -> usize {
        let faults = self.events.iter().filter(|event| event.call.is_fault());
        faults.count()
    }
}
