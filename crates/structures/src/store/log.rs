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
//! All who append add to its cursor. The addition tells a page and a slot. A thread that finds the page full adds a
//! page, under a mutex. The thread that got the slot in the middle of a page has prepared the next one, so the mutex is
//! held for a moment only. The *tag* of a page is the low half of its generation.
//!
//! A log hangs on a [stem](Stem): its first page is where the inode's slot leads to, or an entry of another log.
//!
//! A log is rewritten when it is much longer than after it was last rewritten: see `clean.rs`.
//!
//! # Edges: memory ordering
//!
//! - **log-page**: Release by the exchange that puts a new page into the cursor, Acquire by the addition: the new page
//!   is empty.
//! - **page-count**: Release by the count of removed pages, Acquire by who reads it: the counts of the additions
//!   before, which the truncation has seen by the range lock. So no page is subtracted that is not added.

use crate::store::alloc::{Lines, Purpose};
use crate::store::clean::limit;
use crate::store::core::Core;
use crate::store::error::Result;
use crate::store::format::entry::{self, Draft, Head, Place, What};
use crate::store::format::page::{self, ENTRY_SLOT, ENTRY_SLOTS};
use crate::store::format::slot::Half;
use crate::store::format::{Block, LogPage, PAGE_BYTES, offset};
use crate::store::medium::Medium;
use crate::store::tree::Ino;
use prim::atomic::{AtomicU64, AtomicUsize, Ordering};
use prim::sync::Mutex;

/// The log of an inode.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) ino: Ino,
    /// The generation of the inode.
    pub(crate) inode: u64,
    /// The page that was the last when the log was opened. Its tag is [`OPENED`].
    opened: Option<LogPage>,
    /// What its pages are taken for.
    purpose: Purpose,
    /// The tag and the number of the last page, unless that is `opened`.
    last: AtomicU64,
    /// Pages of the log.
    length: AtomicUsize,
    pub(crate) tail: Mutex<Tail>,
    common: Lines<Common>,
}

/// What all write who append, in one line.
#[derive(Debug)]
struct Common {
    cursor: AtomicU64,
    /// The time of the last write here, in nanoseconds since 1970.
    modified: AtomicU64,
    /// Pages of data that writes here have added, and that truncations here have removed.
    added: AtomicU64,
    removed: AtomicU64,
}

/// What leads to the first page of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stem<'a> {
    /// The inode's slot.
    Slot,
    /// An entry of this log.
    Log(&'a Log),
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
}

/// Slots that belong to one entry.
#[derive(Debug)]
struct Reservation {
    page: LogPage,
    slot: usize,
}

impl Log {
    /// A log that the inode's slot leads to, with these pages, or without any. The last page is free from that slot on.
    pub(crate) fn new(ino: Ino, inode: u64, pages: Vec<LogPage>, slot: usize, update: u32) -> Self {
        let opened = pages.last().copied();
        let slot = opened.map_or(ENTRY_SLOTS, |_| slot);
        let tail = Tail {
            after_rewriting: pages.len(),
            pages,
            prepared: None,
            update,
        };
        Self {
            ino,
            inode,
            opened,
            purpose: Purpose::Upkeep,
            last: AtomicU64::new(0),
            length: AtomicUsize::new(tail.after_rewriting),
            tail: Mutex::new(tail),
            common: Lines(Common {
                cursor: AtomicU64::new(packed(OPENED, slot)),
                modified: AtomicU64::new(0),
                added: AtomicU64::new(0),
                removed: AtomicU64::new(0),
            }),
        }
    }

    /// The same as a branch. It leaves the reserve alone: what finds no room in it has room in the trunk.
    pub(crate) fn into_branch(self) -> Self {
        let purpose = Purpose::Data;
        Self { purpose, ..self }
    }

    /// Pages that it has.
    pub(crate) fn length(&self) -> usize {
        // Relaxed: who acts on it takes the mutex.
        self.length.load(Ordering::Relaxed)
    }

    /// Whether it is long enough to be rewritten alone.
    pub(crate) fn is_long<M: Medium>(&self, core: &Core<M>) -> bool {
        self.length() > limit(self.tail.lock().after_rewriting) + core.waste() + 1
    }

    /// Notes a write at that time, which has added so many pages of data.
    pub(crate) fn note(&self, time: u64, added: u64) {
        self.note_time(time);
        if added != 0 {
            self.common.0.added.fetch_add(added, Ordering::Relaxed);
        }
    }

    /// Notes a truncation at that time, which has removed so many pages of data.
    pub(crate) fn note_truncation(&self, time: u64, removed: u64) {
        self.note_time(time);
        // [page-count] Release: the additions.
        let ordering = prim::order!("page-count", Ordering::Release);
        self.common.0.removed.fetch_add(removed, ordering);
    }

    fn note_time(&self, time: u64) {
        // The latest, as recovery has it.
        self.common.0.modified.fetch_max(time, Ordering::Relaxed);
    }

    /// The time of the last write here.
    pub(crate) fn modified(&self) -> u64 {
        self.common.0.modified.load(Ordering::Relaxed)
    }

    /// Pages of data that were added here.
    pub(crate) fn added(&self) -> u64 {
        self.common.0.added.load(Ordering::Relaxed)
    }

    /// Pages of data that were removed here.
    pub(crate) fn removed(&self) -> u64 {
        // Acquire: the additions; pairs with [page-count].
        let ordering = prim::order!("page-count", Ordering::Acquire);
        self.common.0.removed.load(ordering)
    }

    /// Appends an entry. When this returns, the entry is as durable as the medium makes it at a fence.
    ///
    /// In a log of a file, the caller holds a range of the file exclusively.
    pub(crate) fn append<M: Medium>(
        &self,
        core: &Core<M>,
        stem: Stem<'_>,
        head: &Head,
        payload: &[u8],
    ) -> Result<()> {
        let mut draft = entry::draft(head, payload);
        let slots = entry::slots(payload.len());
        let reserved = self.reserve(core, stem, slots)?;
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
        // [branch-first] A log that begins here: an entry in it may be committed as soon as this returns.
        let lasts = draft[4] != What::Branch.code() || prim::intact!("branch-first");
        // [entry-flush] [entry-fence] The caller is told that its operation has happened.
        if prim::intact!("entry-flush") && lasts {
            core.medium.flush(begin, draft.len() as u64);
        }
        if prim::intact!("entry-fence") && lasts {
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
    fn reserve<M: Medium>(
        &self,
        core: &Core<M>,
        stem: Stem<'_>,
        slots: usize,
    ) -> Result<Reservation> {
        loop {
            // [log-page] Acquire: the page. Release: the range lock, for the thread that rewrites.
            let ordering = prim::order!("log-page", Ordering::AcqRel);
            let before = self.common.0.cursor.fetch_add(slots as u64, ordering);
            let (tag, slot) = unpacked(before);
            if slot + slots <= ENTRY_SLOTS {
                let page = self.page(core, tag);
                return Ok(Reservation { page, slot });
            }
            let extended = self.extend(core, stem, tag, slots);
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
        let (last, now) = unpacked(self.common.0.cursor.load(Ordering::Relaxed));
        let back = slot.min(ENTRY_SLOTS);
        if last == tag && now > back {
            // It passes on what the additions before have released.
            self.common
                .0
                .cursor
                .swap(packed(tag, back), Ordering::AcqRel);
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
        stem: Stem<'_>,
        full: u32,
        slots: usize,
    ) -> Result<Option<Reservation>> {
        let mut tail = self.tail.lock();
        if unpacked(self.common.0.cursor.load(Ordering::Relaxed)).0 != full {
            return Ok(None);
        }
        let page = self.add_page(core, stem, &mut tail, 1 + slots)?;
        Ok(Some(Reservation { page, slot: 1 }))
    }

    /// Adds a page, in which the next reservation is at that slot.
    fn add_page<M: Medium>(
        &self,
        core: &Core<M>,
        stem: Stem<'_>,
        tail: &mut Tail,
        slot: usize,
    ) -> Result<LogPage> {
        let page = match tail.prepared.take() {
            Some(page) => page,
            None => self.durable_page(core)?,
        };
        let led = match (tail.pages.last(), stem) {
            (Some(&last), _) => self.link(core, last, page),
            (None, Stem::Slot) => self.write_head(core, tail, page),
            (None, Stem::Log(trunk)) => trunk.append(core, Stem::Slot, &branch(core, page), &[]),
        };
        if let Err(error) = led {
            tail.prepared = Some(page);
            return Err(error);
        }
        tail.pages.push(page);
        self.length.store(tail.pages.len(), Ordering::Relaxed);
        self.go_on_in(page, slot);
        Ok(page)
    }

    fn link<M: Medium>(&self, core: &Core<M>, last: LogPage, page: LogPage) -> Result<()> {
        let (place, link) = page::link(last, page, core.id);
        core.medium.write(place, &link)?;
        // [link-first] An entry in the new page may be committed as soon as this returns.
        if prim::intact!("link-first") {
            core.medium.flush(place, link.len() as u64);
            core.medium.fence();
        }
        Ok(())
    }

    /// Seals all that has been reserved so far: the log goes on in a new page. Returns the pages that are sealed, and
    /// the new one; `None` if the log has not begun. No thread appends meanwhile.
    pub(crate) fn seal<M: Medium>(&self, core: &Core<M>) -> Result<Option<Sealed<'_>>> {
        let mut tail = self.tail.lock();
        if tail.pages.is_empty() {
            return Ok(None);
        }
        let old = tail.pages.clone();
        // It has a page, so that its stem does not matter.
        let next = self.add_page(core, Stem::Slot, &mut tail, 1)?;
        let log = self;
        Ok(Some(Sealed { log, old, next }))
    }

    /// Puts other pages in the place of the first pages, which are so many.
    pub(crate) fn replace(&self, tail: &mut Tail, old: usize, new: &[LogPage]) {
        tail.pages.splice(..old, new.iter().copied());
        tail.after_rewriting = tail.pages.len();
        self.length.store(tail.pages.len(), Ordering::Relaxed);
    }

    /// The next reservation is at that slot of the page, which is the last now. The caller holds the mutex.
    pub(crate) fn go_on_in(&self, page: LogPage, slot: usize) {
        let last = packed(tag(page), page.block as usize);
        self.last.store(last, Ordering::Relaxed);
        // Release: the page; pairs with [log-page]. Acquire: the range locks of those who have reserved before.
        let ordering = prim::order!("log-page", Ordering::AcqRel);
        self.common.0.cursor.swap(packed(tag(page), slot), ordering);
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

    /// Ends the log: nothing leads to it any more. It begins anew with the next entry. Returns its pages. No thread
    /// appends meanwhile.
    pub(crate) fn end(&self) -> Vec<Block> {
        let blocks = self.blocks();
        let mut tail = self.tail.lock();
        let pages = tail.pages.len();
        self.replace(&mut tail, pages, &[]);
        tail.prepared = None;
        // The page of this tag counts as full. The range lock orders it before all later reservations.
        let full = packed(OPENED, ENTRY_SLOTS);
        self.common.0.cursor.store(full, Ordering::Relaxed);
        blocks
    }

    /// A fresh page, flushed, which nothing links yet. Its slots are zero, so that what is found there later is this
    /// log's.
    pub(crate) fn new_page<M: Medium>(&self, core: &Core<M>) -> Result<LogPage> {
        let generation = core.generation()?;
        let block = core.take(1, self.purpose)?[0];
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
}

/// The beginning of a log, in which no thread reserves any more.
#[derive(Debug)]
pub(crate) struct Sealed<'a> {
    pub(crate) log: &'a Log,
    pub(crate) old: Vec<LogPage>,
    /// Where the log goes on.
    pub(crate) next: LogPage,
}

/// An entry that leads to the first page of another log.
pub(crate) fn branch<M: Medium>(core: &Core<M>, page: LogPage) -> Head {
    Head {
        what: What::Branch,
        epoch: core.epoch,
        number: 0,
        time: core.now(),
        a: page.block.into(),
        b: page.generation,
    }
}
