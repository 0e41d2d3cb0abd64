//! The log of an inode: a thread reserves slots by one atomic addition, and threads write their entries side by side.
//!
//! ```text
//!   inode slot -> page -> page -> page            a page: header and link, 63 slots
//!                                   |
//!                 [entry][entry....][reserved][entry][free ...
//!                                       |        |
//!                                  not marked    marked: recovery takes it, though one before it is missing
//!
//!             63   32 31        0                  63   32 31     0
//!            +-------+-----------+                +-------+--------+
//!   cursor   | tag   | next slot |         last   | tag   | block  |     the last page, and where in it to go on
//!            +-------+-----------+                +-------+--------+
//! ```
//!
//! All who write a file add to its cursor. The addition tells a page and a slot. A thread that finds the page full adds
//! a page, under a mutex. The thread that got the slot in the middle of a page has prepared the next one, so the mutex
//! is held for a moment only. The *tag* of a page is the low half of its generation.
//!
//! A log is rewritten when it is much longer than after it was last rewritten: see [`limit`] and `clean.rs`. The page
//! that is added then *seals* those before it: no thread reserves in them any more. A thread that has reserved in them
//! held a range when it did, and its addition came before the exchange of the page. So a thread that takes the lock of
//! the whole file after the exchange waits for all those.
//!
//! # Edge: memory ordering
//!
//! - **log-page**: Release by the exchange that puts a new page into the cursor, Acquire by the addition: the new page
//!   is empty.

use crate::store::alloc::{Lines, Purpose};
use crate::store::core::Core;
use crate::store::error::Result;
use crate::store::format::entry::{self, Draft, Head, Place};
use crate::store::format::page::{self, ENTRY_SLOT, ENTRY_SLOTS};
use crate::store::format::slot::Half;
use crate::store::format::{Block, LogPage, PAGE_BYTES, offset};
use crate::store::medium::Medium;
use crate::store::tree::Ino;
use prim::atomic::{AtomicBool, AtomicU64, Ordering};
use prim::sync::Mutex;

/// The log of an inode.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) ino: Ino,
    /// The generation of the inode.
    pub(crate) inode: u64,
    /// The page that was the last when the log was opened. Its tag is [`OPENED`].
    opened: Option<LogPage>,
    /// The tag and the number of the last page, unless that is `opened`.
    last: AtomicU64,
    /// Whether a rewriting waits for its beginning.
    due: AtomicBool,
    pub(crate) tail: Mutex<Tail>,
    cursor: Lines<AtomicU64>,
}

/// The tag of the page that was the last when the log was opened. Other pages have those of their generations, which
/// begin with one.
const OPENED: u32 = 0;

/// Who reserves this slot of a page prepares the next page.
const MIDDLE: usize = ENTRY_SLOTS / 2;

/// A tag and a number.
fn packed(tag: u32, number: usize) -> u64 {
    u64::from(tag) << 32 | number as u64
}

fn unpacked(word: u64) -> (u32, usize) {
    let low = word & u64::from(u32::MAX);
    ((word >> 32) as u32, low as usize)
}

fn tag(page: LogPage) -> u32 {
    (page.generation & u64::from(u32::MAX)) as u32
}

/// What the mutex guards.
#[derive(Debug)]
pub(crate) struct Tail {
    /// All pages of the log, in order.
    pub(crate) pages: Vec<LogPage>,
    /// A page without entries that is durable, and that nothing links yet.
    prepared: Option<LogPage>,
    /// Writes of the inode's slot so far.
    pub(crate) update: u32,
    /// Pages of the log when it was last rewritten or opened.
    pub(crate) after_rewriting: usize,
    pub(crate) cleaning: Cleaning,
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
}

impl Log {
    /// A log with these pages, or without any. The last page is free from that slot on.
    pub(crate) fn new(ino: Ino, inode: u64, pages: Vec<LogPage>, slot: usize, update: u32) -> Self {
        let opened = pages.last().copied();
        let slot = opened.map_or(ENTRY_SLOTS, |_| slot);
        let tail = Tail {
            after_rewriting: pages.len(),
            pages,
            prepared: None,
            update,
            cleaning: Cleaning::Idle,
        };
        Self {
            ino,
            inode,
            opened,
            last: AtomicU64::new(0),
            due: AtomicBool::new(false),
            tail: Mutex::new(tail),
            cursor: Lines(AtomicU64::new(packed(OPENED, slot))),
        }
    }

    /// Appends an entry. When this returns, the entry is as durable as the medium makes it at a fence.
    ///
    /// In the log of a file, the caller holds a range of the file exclusively.
    pub(crate) fn append<M: Medium>(
        &self,
        core: &Core<M>,
        head: &Head,
        payload: &[u8],
    ) -> Result<()> {
        let mut draft = entry::draft(head, payload);
        let slots = entry::slots(payload.len());
        let reserved = self.reserve(core, slots)?;
        let written = self.commit(core, &reserved, &mut draft);
        if (reserved.slot..reserved.slot + slots).contains(&MIDDLE) {
            self.prepare(core);
        }
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
        loop {
            // [log-page] Acquire: the page. Release: the range lock, for the thread that rewrites.
            let ordering = prim::order!("log-page", Ordering::AcqRel);
            let before = self.cursor.0.fetch_add(slots as u64, ordering);
            let (tag, slot) = unpacked(before);
            if slot + slots <= ENTRY_SLOTS {
                let page = self.page(core, tag);
                return Ok(Reservation { page, slot });
            }
            let extended = self.extend(core, tag, slots);
            if let Some(reserved) = extended.inspect_err(|_| self.take_back(tag, slot))? {
                return Ok(reserved);
            }
        }
    }

    /// The page remains the last, and this slot was the first that a failed reservation asked for.
    ///
    /// A smaller entry may fit. And however many threads try again, their additions never reach the tag. Only the first
    /// addition that finds no room finds the cursor inside of the page. Until it is taken back none succeeds.
    #[cold]
    fn take_back(&self, tag: u32, slot: usize) {
        let _tail = self.tail.lock();
        let (last, now) = unpacked(self.cursor.0.load(Ordering::Relaxed));
        let back = slot.min(ENTRY_SLOTS);
        if last == tag && now > back {
            // It passes on what the additions before have released.
            self.cursor.0.swap(packed(tag, back), Ordering::AcqRel);
        }
    }

    /// The page of a tag that the cursor had.
    fn page<M: Medium>(&self, core: &Core<M>, wanted: u32) -> LogPage {
        if let (OPENED, Some(page)) = (wanted, self.opened) {
            return page;
        }
        let generation = core.generation_of(wanted);
        let (last, block) = unpacked(self.last.load(Ordering::Relaxed));
        if last == wanted {
            let block = block as Block;
            return LogPage { block, generation };
        }
        // More pages have been added since. This one is not rewritten before the caller has released its range.
        let tail = self.tail.lock();
        let mut pages = tail.pages.iter().rev();
        let page = pages.find(|page| page.generation == generation);
        *page.expect("it has reservations")
    }

    /// Adds a page, if the last is still that one, which is full. The first slots of the new page are the caller's.
    #[cold]
    fn extend<M: Medium>(
        &self,
        core: &Core<M>,
        full: u32,
        slots: usize,
    ) -> Result<Option<Reservation>> {
        let mut tail = self.tail.lock();
        if unpacked(self.cursor.0.load(Ordering::Relaxed)).0 != full {
            return Ok(None);
        }
        let page = match tail.prepared.take() {
            Some(page) => page,
            None => self.durable_page(core)?,
        };
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
            None => self.write_head(core, &mut tail, page)?,
        }
        tail.pages.push(page);
        self.go_on_in(page, 1 + slots);
        let limit = limit(tail.after_rewriting) + core.waste();
        if tail.cleaning == Cleaning::Idle && tail.pages.len() > limit + 1 {
            tail.cleaning = Cleaning::Sealed(tail.pages.len() - 1);
            self.due.store(true, Ordering::Relaxed);
        }
        Ok(Some(Reservation { page, slot: 1 }))
    }

    /// The next reservation is at that slot of the page, which is the last now. The caller holds the mutex.
    pub(crate) fn go_on_in(&self, page: LogPage, slot: usize) {
        let last = packed(tag(page), page.block as usize);
        self.last.store(last, Ordering::Relaxed);
        // Release: the page; pairs with [log-page]. Acquire: the range locks of those who have reserved before.
        let ordering = prim::order!("log-page", Ordering::AcqRel);
        self.cursor.0.swap(packed(tag(page), slot), ordering);
    }

    /// Prepares the next page. A store that is too full for it does so when the page is needed, or fails then.
    fn prepare<M: Medium>(&self, core: &Core<M>) {
        let mut tail = self.tail.lock();
        if tail.prepared.is_none() {
            tail.prepared = self.durable_page(core).ok();
        }
    }

    fn durable_page<M: Medium>(&self, core: &Core<M>) -> Result<LogPage> {
        let page = self.new_page(core)?;
        core.medium.fence();
        Ok(page)
    }

    /// All pages that it has.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let tail = self.tail.lock();
        let pages = tail.pages.iter().chain(&tail.prepared);
        pages.map(|page| page.block).collect()
    }

    /// A fresh page, flushed, which nothing links yet. Its slots are zero, so that what is found there later is this
    /// log's.
    pub(crate) fn new_page<M: Medium>(&self, core: &Core<M>) -> Result<LogPage> {
        let generation = core.generation()?;
        let block = core.take(1, Purpose::Upkeep)?[0];
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
        if !self.is_due() {
            return None;
        }
        let mut tail = self.tail.lock();
        let Cleaning::Sealed(pages) = tail.cleaning else {
            return None;
        };
        tail.cleaning = Cleaning::Running;
        self.due.store(false, Ordering::Relaxed);
        Some((tail.pages[..pages].to_vec(), tail.pages[pages]))
    }

    /// Whether it is long enough to be rewritten.
    pub(crate) fn is_due(&self) -> bool {
        // Relaxed: who acts on it takes the mutex.
        self.due.load(Ordering::Relaxed)
    }
}
