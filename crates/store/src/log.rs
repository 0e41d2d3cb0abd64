//! The log of an inode: threads reserve slots under a short mutex, and write their entries side by side.
//!
//! ```text
//!   inode slot -> page -> page -> page            a page: header and link, 63 slots
//!                                   |
//!                 [entry][entry....][reserved][entry][free ...
//!                                       |        |
//!                                  not marked    marked: recovery takes it, though one before it is missing
//! ```
//!
//! A log is rewritten when it is much longer than after it was last rewritten: see [`limit`] and `clean.rs`.
//! Reservations are counted in two halves, so that the rewriting can wait for those of the old part while new ones go
//! on.

use crate::alloc::Purpose;
use crate::core::Core;
use crate::error::Result;
use crate::format::entry::{self, Draft, Head, Place};
use crate::format::page::{self, ENTRY_SLOT, ENTRY_SLOTS};
use crate::format::slot::Half;
use crate::format::{LogPage, PAGE_BYTES, offset};
use crate::medium::Medium;
use crate::tree::Ino;
use prim::atomic::{AtomicBool, AtomicU32, Ordering};
use prim::sync::Mutex;

/// The log of an inode.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) ino: Ino,
    /// The generation of the inode.
    pub(crate) inode: u64,
    pub(crate) tail: Mutex<Tail>,
    /// Reservations that are not committed yet, in each half.
    outstanding: [AtomicU32; 2],
    /// Whether a rewriting waits for its beginning.
    due: AtomicBool,
}

/// What the mutex guards.
#[derive(Debug)]
pub(crate) struct Tail {
    /// All pages of the log, in order.
    pub(crate) pages: Vec<LogPage>,
    /// The next free slot of the last page.
    pub(crate) slot: usize,
    /// Writes of the inode's slot so far.
    pub(crate) update: u32,
    /// Pages of the log when it was last rewritten or opened.
    pub(crate) after_rewriting: usize,
    pub(crate) cleaning: Cleaning,
    /// The half in which reservations are counted now.
    half: usize,
}

/// How far a rewriting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleaning {
    Idle,
    /// So many pages, from the first, get no more reservations. They are to be rewritten.
    Sealed(usize),
    /// A thread rewrites.
    Running,
}

/// Pages that a log may have which needs so many, besides a thousandth of the store.
///
/// A rewriting takes as long as the file has pages, and writes pay for it. A page of a rewritten log stands for
/// hundreds of pages of data, so eight for one are little. A file of few pages has a log of one, which may become
/// two.
fn limit(after_rewriting: usize) -> usize {
    2 + 8 * after_rewriting.saturating_sub(1)
}

/// Slots that belong to one entry.
#[derive(Debug)]
struct Reservation {
    page: LogPage,
    slot: usize,
    half: usize,
}

impl Log {
    /// A log with these pages, or without any.
    pub(crate) fn new(ino: Ino, inode: u64, pages: Vec<LogPage>, slot: usize, update: u32) -> Self {
        let after_rewriting = pages.len();
        let tail = Tail {
            pages,
            slot,
            update,
            after_rewriting,
            cleaning: Cleaning::Idle,
            half: 0,
        };
        Self {
            ino,
            inode,
            tail: Mutex::new(tail),
            outstanding: [AtomicU32::new(0), AtomicU32::new(0)],
            due: AtomicBool::new(false),
        }
    }

    /// Appends an entry. When this returns, the entry is as durable as the medium makes it at a fence.
    pub(crate) fn append<M: Medium>(
        &self,
        core: &Core<M>,
        head: &Head,
        payload: &[u8],
    ) -> Result<()> {
        let mut draft = entry::draft(head, payload);
        let reserved = self.reserve(core, entry::slots(payload.len()))?;
        let written = self.commit(core, &reserved, &mut draft);
        // [clean-waits] Release: the entry, for the thread that rewrites this half.
        self.outstanding[reserved.half].fetch_sub(1, Ordering::Release);
        written
    }

    fn commit<M: Medium>(&self, core: &Core<M>, at: &Reservation, draft: &mut Draft) -> Result<()> {
        let place = self.place(core.id, at.page, at.slot);
        entry::mark(draft, &place);
        let begin = page::place(at.page, at.slot);
        core.medium.write(begin, draft)?;
        // [entry-flush] [entry-fence] The caller is told that its operation has happened.
        if prim::intact!("entry-flush") {
            core.medium.flush(begin, draft.len() as u64);
        }
        if prim::intact!("entry-fence") {
            core.medium.fence();
        }
        Ok(())
    }

    pub(crate) fn place(&self, store: u64, page: LogPage, slot: usize) -> Place {
        let ino = self.ino;
        Place {
            store,
            ino,
            page,
            slot,
        }
    }

    /// Reserves slots of one page.
    fn reserve<M: Medium>(&self, core: &Core<M>, slots: usize) -> Result<Reservation> {
        let mut tail = self.tail.lock();
        if tail.pages.is_empty() || tail.slot + slots > ENTRY_SLOTS {
            self.extend(core, &mut tail)?;
        }
        let reserved = Reservation {
            page: *tail.pages.last().expect("it has just been extended"),
            slot: tail.slot,
            half: tail.half,
        };
        tail.slot += slots;
        self.outstanding[tail.half].fetch_add(1, Ordering::Relaxed);
        Ok(reserved)
    }

    #[cold]
    fn extend<M: Medium>(&self, core: &Core<M>, tail: &mut Tail) -> Result<()> {
        let page = self.new_page(core)?;
        core.medium.fence();
        match tail.pages.last() {
            Some(&last) => {
                let (place, link) = page::link(last, page, core.id);
                core.medium.write(place, &link)?;
                // [link-first] An entry in the new page may be committed as soon as this returns.
                if prim::intact!("link-first") {
                    core.medium.flush(place, link.len() as u64);
                    core.medium.fence();
                }
            }
            None => self.write_head(core, tail, page)?,
        }
        tail.pages.push(page);
        tail.slot = 1;
        let limit = limit(tail.after_rewriting) + core.waste();
        if tail.cleaning == Cleaning::Idle && tail.pages.len() > limit + 1 {
            tail.cleaning = Cleaning::Sealed(tail.pages.len() - 1);
            tail.half = 1 - tail.half;
            self.due.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// A fresh page, flushed, which nothing links yet. Its slots are zero, so that what is found there later is this
    /// log's.
    pub(crate) fn new_page<M: Medium>(&self, core: &Core<M>) -> Result<LogPage> {
        let block = core.take(1, Purpose::Upkeep)?[0];
        let generation = core.generation();
        let page = LogPage { block, generation };
        let empty = page::empty(page, core.id, self.ino);
        // [as-published] P3 leaves what was in the page.
        let written = if prim::intact!("as-published") {
            &empty[..]
        } else {
            &empty[..ENTRY_SLOT]
        };
        core.medium.write(offset(block), written)?;
        core.medium.flush(offset(block), PAGE_BYTES);
        Ok(page)
    }

    /// Lets the inode's slot point to another first page.
    pub(crate) fn write_head<M: Medium>(
        &self,
        core: &Core<M>,
        tail: &mut Tail,
        head: LogPage,
    ) -> Result<()> {
        let half = Half {
            inode: self.inode,
            head,
            update: tail.update + 1,
        };
        let bytes = half.bytes(core.id, self.ino);
        // [head-halves] The half that is in force stays whole.
        let place = if prim::intact!("head-halves") {
            half.place(self.ino)
        } else {
            Half { update: 0, ..half }.place(self.ino)
        };
        core.medium.write(place, &bytes)?;
        // [head-first] What the head leads to may be committed, or what it led to freed, as soon as this returns.
        if prim::intact!("head-first") {
            core.medium.flush(place, bytes.len() as u64);
            core.medium.fence();
        }
        tail.update += 1;
        Ok(())
    }

    /// The part of the log that this thread is to rewrite, and the page behind it.
    pub(crate) fn take_job(&self) -> Option<(Vec<LogPage>, LogPage)> {
        if !self.due.load(Ordering::Acquire) {
            return None;
        }
        let mut tail = self.tail.lock();
        let Cleaning::Sealed(pages) = tail.cleaning else {
            return None;
        };
        // [clean-waits] Acquire: what was reserved in these pages is committed, and can be read. pairs with
        // [clean-waits]
        let open = self.outstanding[1 - tail.half].load(Ordering::Acquire);
        if open > 0 && prim::intact!("clean-waits") {
            return None;
        }
        tail.cleaning = Cleaning::Running;
        self.due.store(false, Ordering::Relaxed);
        Some((tail.pages[..pages].to_vec(), tail.pages[pages]))
    }

    /// Whether it is long enough to be rewritten.
    pub(crate) fn is_due(&self) -> bool {
        self.due.load(Ordering::Acquire)
    }
}
