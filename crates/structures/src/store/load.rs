//! Reading a store as it is, without changing it: for opening and for checking.
//!
//! What does not fit is a [`Finding`]. It is damage, unless the store was not closed and a crash explains it.

use crate::store::alloc::Bitmap;
use crate::store::error::{Error, Result};
use crate::store::finding::{Cause, Finding};
use crate::store::format::bytes::checksum;
use crate::store::format::entry::{self, Found, Head, Place, What};
use crate::store::format::page::{self, ENTRY_SLOTS, Link};
use crate::store::format::slot::{self, SLOT};
use crate::store::format::superblock::{COPIES, SUPERBLOCK, Superblock, TABLE};
use crate::store::format::{Block, Item, LogPage, PAGE, PAGE_BYTES, offset};
use crate::store::index::MAX_PAGES;
use crate::store::logs;
use crate::store::medium::Medium;
use crate::store::replay::{FileState, Merge, Which};
use crate::store::tree::{Ino, Kind, ROOT, Tree};
use crate::store::tree_state::TreeState;
use std::collections::HashMap;

/// A log as it was found.
#[derive(Debug, Clone)]
pub(crate) struct LoadedLog {
    pub(crate) pages: Vec<LogPage>,
    /// The first slot of the last page behind all entries.
    pub(crate) slot: usize,
    /// Writes of the inode's slot so far: of the log that it leads to.
    pub(crate) update: u32,
    /// Whether a crash left something in it that is to be dropped for good.
    pub(crate) to_rewrite: bool,
}

/// A file as it was found.
#[derive(Debug)]
pub(crate) struct LoadedFile {
    pub(crate) generation: u64,
    pub(crate) state: FileState,
    pub(crate) log: LoadedLog,
    /// Its further logs.
    pub(crate) branches: Vec<LoadedLog>,
}

impl LoadedFile {
    /// Whether a crash left something in its logs that is to be dropped for good; or they are more than the file can
    /// go on with.
    pub(crate) fn is_to_rewrite(&self) -> bool {
        let mut logs = std::iter::once(&self.log).chain(&self.branches);
        logs.any(|log| log.to_rewrite) || self.branches.len() >= logs::MOST
    }
}

/// A store as it was found.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) superblock: Superblock,
    pub(crate) tree: Tree,
    pub(crate) tree_log: LoadedLog,
    /// The number of the next entry about directories.
    pub(crate) number: u32,
    /// Changes of directories that were dropped.
    pub(crate) dropped_changes: u64,
    pub(crate) files: HashMap<Ino, LoadedFile>,
    pub(crate) used: Bitmap,
    pub(crate) findings: Vec<Finding>,
}

/// Calls `f` with each committed entry of a log page, and says what else is there. `place` has slot 0.
pub(crate) fn for_each_entry(
    bytes: &[u8; PAGE],
    place: &Place,
    mut f: impl FnMut(&Head, &[u8]) -> Result<()>,
) -> Result<Slots> {
    let mut slots = Slots::default();
    let (mut slot, mut empty) = (1, 0);
    while slot < ENTRY_SLOTS {
        match entry::find(bytes, &Place { slot, ..*place }) {
            Found::Entry(head, payload, taken) => {
                f(&head, payload)?;
                slots.inside += std::mem::take(&mut slots.at_end);
                slots
                    .skipped
                    .extend((empty > 0).then_some((head.epoch, empty)));
                empty = 0;
                slots.last = slot;
                slot += taken;
                slots.behind = slot;
            }
            Found::Nothing => {
                empty += 1;
                slot += 1;
            }
            Found::Remains => {
                slots.at_end += 1;
                slot += 1;
                slots.behind = slot;
            }
        }
    }
    Ok(slots)
}

/// What the slots of a log page contain.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// The last entry's.
    last: usize,
    /// The first behind everything.
    behind: usize,
    /// How many contain what is no entry: before the last entry, and behind it.
    inside: usize,
    at_end: usize,
    /// How many are empty before an entry, and the epoch of that entry.
    skipped: Vec<(u32, usize)>,
}

impl Slots {
    /// How many contain what is no entry.
    pub(crate) fn remains(&self) -> usize {
        self.inside + self.at_end
    }
}

/// Reads both copies of the superblock.
///
/// # Errors
/// When none is valid, or the medium is smaller than the store.
pub(crate) fn superblock(medium: &impl Medium, findings: &mut Vec<Finding>) -> Result<Superblock> {
    let mut copies = COPIES.map(|place| {
        let mut bytes = [0; SUPERBLOCK];
        medium
            .read(place, &mut bytes)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => Error::NotAStore("it is too small"),
                _ => error.into(),
            })?;
        Superblock::parse(&bytes)
    });
    copies.sort_by_key(|copy| copy.as_ref().map_or(0, |copy| copy.update));
    let found = match copies {
        [Ok(_), Ok(newer)] => newer,
        [Err(damage), Ok(whole)] | [Ok(whole), Err(damage)] => {
            findings.push(Finding {
                what: format!("one copy of the superblock: {damage}"),
                cause: Cause::DamagedCopy,
            });
            // The other copy may have been a newer one. So an opening more may have been, about which nothing is known.
            Superblock {
                epoch: whole.epoch + 1,
                ordered: false,
                ..whole
            }
        }
        [Err(Error::NotAStore(_)), Err(error)] | [Err(error), Err(_)] => return Err(error),
    };
    match found.blocks * PAGE_BYTES <= medium.size() {
        true => Ok(found),
        false => Err(Error::Corrupt(format!(
            "it should have {} bytes and has {}",
            found.blocks * PAGE_BYTES,
            medium.size()
        ))),
    }
}

/// Reads everything but data.
///
/// # Errors
/// When the medium contains no store, or cannot be read. Damage is a finding.
pub(crate) fn load(medium: &impl Medium) -> Result<Loaded> {
    let mut findings = Vec::new();
    let superblock = superblock(medium, &mut findings)?;
    let blocks = usize::try_from(superblock.blocks).map_err(|_| Error::TooLarge)?;
    let mut used = Bitmap::new(blocks);
    for block in 0..superblock.data_start() {
        used.set(Block::try_from(block).expect("fewer than 2^31"));
    }
    let mut loader = Loader {
        medium,
        superblock,
        used,
        findings,
    };
    let mut tree = TreeState::default();
    let root = loader.slot(ROOT)?;
    let tree_log = loader.log(ROOT, root, 0, |loader, head, payload| {
        tree.apply(loader, head, payload);
        Ok(())
    })?;
    if let Some((epoch, number)) = tree.gap {
        let what = format!(
            "directories: the entry before number {number} is missing, and {} changes are dropped",
            tree.dropped
        );
        loader.finding(epoch, loader.gap(), what);
    }
    if tree_log.pages.is_empty() || !tree.begun {
        loader.damage("the directories' log has no beginning".to_owned());
    }
    let mut files = HashMap::new();
    let nodes = tree.tree.nodes.iter();
    let mut inodes: Vec<_> = nodes.filter(|(_, node)| node.kind == Kind::File).collect();
    inodes.sort_by_key(|(ino, _)| **ino);
    for (&ino, node) in inodes {
        if ino >= superblock.inodes {
            loader.damage(format!("inode {ino} is beyond the inode table"));
            continue;
        }
        let file = loader.file(ino, node.generation)?;
        files.insert(ino, file);
    }
    Ok(Loaded {
        superblock,
        tree_log: LoadedLog {
            to_rewrite: tree_log.to_rewrite || tree.dropped > 0,
            ..tree_log
        },
        tree: tree.tree,
        number: tree.next,
        dropped_changes: tree.dropped,
        files,
        used: loader.used,
        findings: loader.findings,
    })
}

/// What a reading has found so far.
pub(crate) struct Loader<'a, M> {
    medium: &'a M,
    superblock: Superblock,
    used: Bitmap,
    findings: Vec<Finding>,
}

impl<'a, M: Medium> Loader<'a, M> {
    pub(crate) fn damage(&mut self, what: String) {
        let cause = Cause::Damage;
        self.findings.push(Finding { what, cause });
    }

    /// Something of that opening does not fit. If the opening ended with a crash, that is the cause.
    fn finding(&mut self, epoch: u32, cause: Cause, what: String) {
        match epoch > self.superblock.good {
            true => self.findings.push(Finding { what, cause }),
            false => self.damage(what),
        }
    }

    /// Why something is missing that was there, as the store knew, before it wrote what is there.
    fn gap(&self) -> Cause {
        match self.superblock.ordered {
            true => Cause::Damage,
            false => Cause::CrashOrDamage,
        }
    }

    fn slot(&mut self, ino: Ino) -> Result<slot::Slot> {
        let slot = read_slot(self.medium, self.superblock.id, ino)?;
        if slot.is_damaged() {
            let what = format!("inode {ino}: half of its slot");
            self.finding(self.superblock.epoch, Cause::CrashOrDamage, what);
        }
        Ok(slot)
    }

    /// Reads the log of an inode, if it has one.
    fn log(
        &mut self,
        ino: Ino,
        slot: slot::Slot,
        generation: u64,
        visit: impl FnMut(&mut Self, &Head, &[u8]) -> Result<()>,
    ) -> Result<LoadedLog> {
        let half = slot.half(generation);
        let log = self.log_from(ino, half.map(|half| half.head), visit)?;
        Ok(LoadedLog {
            update: half.map_or(0, |half| half.update),
            // The rewriting mends the slot.
            to_rewrite: log.to_rewrite || slot.is_damaged(),
            ..log
        })
    }

    /// Reads the log that begins in a page.
    fn log_from(
        &mut self,
        ino: Ino,
        mut next: Option<LogPage>,
        mut visit: impl FnMut(&mut Self, &Head, &[u8]) -> Result<()>,
    ) -> Result<LoadedLog> {
        let mut log = LoadedLog {
            pages: Vec::new(),
            slot: 1,
            update: 0,
            to_rewrite: false,
        };
        let store = self.superblock.id;
        while let Some(page) = next.take() {
            let epoch = u32::try_from(page.generation >> 32).expect("32 bits");
            let Some(bytes) = self.log_page(page, ino)? else {
                let what = format!("inode {ino}: page {} of its log is none", page.block);
                // [link-first] [head-first] [branch-first] It was durable before anything led to it.
                self.finding(epoch, self.gap(), what);
                log.to_rewrite = true;
                break;
            };
            log.pages.push(page);
            let place = Place {
                store,
                ino,
                page,
                slot: 0,
            };
            let slots = for_each_entry(&bytes, &place, |head, payload| visit(self, head, payload))?;
            let link = page::link_of(&bytes, page, store);
            // [as-published] P3 takes what has a mark, and nothing else matters.
            if slots.remains() > 0 && prim::intact!("as-published") {
                self.remains(ino, page.block, &slots, link);
                log.to_rewrite = true;
            }
            self.skipped(ino, page.block, &slots);
            // [tail-after] What is there stays.
            log.slot = if prim::intact!("tail-after") {
                slots.behind.max(1)
            } else {
                slots.last.max(1)
            };
            match link {
                Link::None => {}
                Link::To(page) => next = Some(page),
                Link::Damaged => {
                    let what = format!("inode {ino}: the link of log page {}", page.block);
                    self.finding(self.superblock.epoch, Cause::CrashOrDamage, what);
                    log.to_rewrite = true;
                }
            }
        }
        Ok(log)
    }

    /// Slots of a log page that are not empty and have no entry.
    fn remains(&mut self, ino: Ino, block: Block, slots: &Slots, link: Link) {
        let goes_on = slots.inside > 0 || link != Link::None;
        let cause = match goes_on {
            true => Cause::CrashOrDamage,
            false => Cause::Crash,
        };
        let what = format!(
            "inode {ino}: {} slots of log page {block} have no entry",
            slots.remains()
        );
        self.finding(self.superblock.epoch, cause, what);
    }

    /// Slots of a log page that were reserved since the last good opening, and are empty: those of writes that had not
    /// returned, or that were lost with the power.
    fn skipped(&mut self, ino: Ino, block: Block, slots: &Slots) {
        let recent = |(epoch, _): &&(u32, usize)| *epoch > self.superblock.good;
        let skipped = slots.skipped.iter().filter(recent);
        let count: usize = skipped.map(|(_, count)| count).sum();
        if count > 0 {
            self.findings.push(Finding {
                what: format!(
                    "inode {ino}: {count} slots of log page {block} are empty before an entry"
                ),
                cause: Cause::Crash,
            });
        }
    }

    /// A page of a log; `None` if it is none.
    fn log_page(&mut self, page: LogPage, ino: Ino) -> Result<Option<[u8; PAGE]>> {
        if !self.is_possible(page.block) {
            return Ok(None);
        }
        let mut bytes = [0; PAGE];
        self.medium.read(offset(page.block), &mut bytes)?;
        let is_one = page::is_header(&bytes, page, self.superblock.id, ino);
        // A page that is in use already closes a circle.
        Ok((is_one && self.used.set(page.block)).then_some(bytes))
    }

    fn is_possible(&self, block: Block) -> bool {
        (self.superblock.data_start()..self.superblock.blocks).contains(&u64::from(block))
    }

    fn file(&mut self, ino: Ino, generation: u64) -> Result<LoadedFile> {
        let slot = self.slot(ino)?;
        let mut merge = Merge::default();
        let log = self.log(ino, slot, generation, |loader, head, payload| {
            loader.take(ino, &mut merge, Which::Trunk, head, payload)
        })?;
        let mut branches = Vec::new();
        while let Some(&page) = merge.branches.get(branches.len()) {
            branches.push(self.log_from(ino, Some(page), |loader, head, payload| {
                loader.take(ino, &mut merge, Which::Branch, head, payload)
            })?);
        }
        let mut is_there = self.is_there();
        let state = match merge.finish(&mut is_there) {
            Err(Error::Corrupt(what)) => {
                self.damage(format!("inode {ino}: {what}"));
                FileState::default()
            }
            state => state?,
        };
        for (page, item) in &state.pages {
            if !self.used.set(item.block) {
                self.damage(format!(
                    "inode {ino}: its page {page} is page {} of the store, which is in use elsewhere",
                    item.block
                ));
            }
        }
        if !state.lost.is_empty() {
            self.findings.push(Finding {
                what: format!(
                    "inode {ino}: {} pages do not match the checksums of their last contents",
                    state.lost.len()
                ),
                cause: Cause::CrashOrDamage,
            });
        }
        let log = LoadedLog {
            to_rewrite: log.to_rewrite || state.dropped > 0,
            ..log
        };
        Ok(LoadedFile {
            generation,
            state,
            log,
            branches,
        })
    }

    /// Whether a page has the content that an entry of that opening says, as far as that can be in doubt.
    fn is_there(&self) -> impl FnMut(u32, Item) -> Result<bool> + use<'a, M> {
        let (medium, good) = (self.medium, self.superblock.good);
        let uncertain = !self.superblock.is_clean() && !self.superblock.ordered;
        move |epoch, item| {
            let to_verify = uncertain && epoch > good;
            // [data-checksum] The entry may be durable, and the page not.
            Ok(!to_verify || !prim::intact!("data-checksum") || matches(medium, item)?)
        }
    }

    /// Takes an entry of a file's logs into account, if it makes sense.
    fn take(
        &mut self,
        ino: Ino,
        merge: &mut Merge,
        which: Which,
        head: &Head,
        payload: &[u8],
    ) -> Result<()> {
        let pages = entry::items(payload).count() as u64;
        let is_about_pages = matches!(head.what, What::Write | What::Truncate);
        if entry::items(payload).any(|item| !item.is_hole() && !self.is_possible(item.block))
            || is_about_pages && head.b.saturating_add(pages) > MAX_PAGES
            || is_about_pages && head.a > MAX_PAGES * PAGE_BYTES
        {
            self.damage(format!("inode {ino}: an entry of its log makes no sense"));
            return Ok(());
        }
        let mut is_there = self.is_there();
        match merge.take(which, head, payload, &mut is_there) {
            Err(Error::Corrupt(what)) => {
                self.damage(format!("inode {ino}: {what}"));
                Ok(())
            }
            taken => taken,
        }
    }
}

/// Whether a page has the content that its checksum is of.
pub(crate) fn matches(medium: &impl Medium, item: Item) -> Result<bool> {
    let mut bytes = [0; PAGE];
    medium.read(offset(item.block), &mut bytes)?;
    Ok(checksum(&[], &bytes) == item.sum)
}

/// Inode numbers that no node has, the smallest last.
pub(crate) fn free_inodes(superblock: &Superblock, tree: &Tree) -> Vec<Ino> {
    let all = (ROOT + 1..superblock.inodes).rev();
    all.filter(|ino| !tree.nodes.contains_key(ino)).collect()
}

/// The slot of an inode.
pub(crate) fn read_slot(medium: &impl Medium, store: u64, ino: Ino) -> Result<slot::Slot> {
    let mut bytes = [0; SLOT];
    medium.read(slot::place(ino), &mut bytes)?;
    Ok(slot::parse(&bytes, store, ino))
}

/// Where the inode table begins and ends.
pub(crate) fn table(superblock: &Superblock) -> (u64, u64) {
    (TABLE * PAGE_BYTES, superblock.data_start() * PAGE_BYTES)
}
