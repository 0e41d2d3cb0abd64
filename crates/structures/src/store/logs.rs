//! The logs of a file. Threads that append to one log meet at its cursor, so the threads of a process are in *groups*,
//! and each group has a log of its own in each file that it writes.
//!
//! ```text
//!   inode slot -> trunk   [entry][entry][branch][entry][branch] ...        the log of group 0
//!                                          |              |
//!                                          v              '--> [entry][entry] ...           of group 2
//!                                         [entry][entry][entry] ...                         of group 1
//!
//!   recovery: what the trunk says of the time before the last rewriting, then all entries of all logs by their times
//! ```
//!
//! A file of few writes has a trunk alone: the others begin when the trunk has a second page, each with the first write
//! of its group. Where the store has no room for another page of a branch, the group's entries go to the trunk.
//!
//! **Order.** Entries of different logs need an order where they are about the same pages. They have times, and a clock
//! alone would not do: it may be set back, or be too coarse. So the time of a write is later than that of each write
//! that it replaces, and that of a truncation later than all before; all that comes after it is later still. The index
//! keeps the latest time for each of its leaves, and the file that of its last truncation. See `Inode::later`.
//!
//! **Rewriting.** All logs of a file are rewritten together, as one new trunk: what the file was at one moment, in
//! which no write was under way, and then branches to what came after. Entries of the new trunk count before all
//! others, whatever their times: their number is zero.
//!
//! **Compaction.** Where a write finds no room, the logs that can spare pages are rewritten as a trunk alone, while no
//! write is under way (**compact-alone**): the file then has no page of a log that it can do without. See `room.rs`.

use crate::store::clean::{Part, drafts, limit};
use crate::store::core::Core;
use crate::store::error::{Error, Result};
use crate::store::format::entry::{self, Head};
use crate::store::format::page::ENTRY_SLOTS;
use crate::store::format::{Block, LogPage};
use crate::store::load::for_each_entry;
use crate::store::log::{Log, Sealed, Stem, branch};
use crate::store::medium::Medium;
use crate::store::once::Once;
use crate::store::replay::{FileState, Merge, Which};
use crate::store::tree::Ino;
use prim::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The most logs of a file. With more groups than memory nodes, a group's threads are few; a log that is not used much
/// is a page of the store.
pub(crate) const MOST: usize = prim::sized(32, 2);

/// Pages of the trunk from which on other groups have logs of their own.
const SPREADS: usize = 2;

/// The logs of a file.
#[derive(Debug)]
pub(crate) struct Logs {
    trunk: Log,
    branches: Once<Branches>,
    /// Pages of all logs when they were last rewritten or opened.
    after_rewriting: AtomicUsize,
    /// How far a rewriting is: one of the three states below.
    rewriting: AtomicU8,
}

/// Those of groups from 1 on.
type Branches = [Once<Log>; MOST - 1];

fn no_branches() -> Branches {
    std::array::from_fn(|_| Once::new())
}

/// What a compaction has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compacted {
    /// The logs have fewer pages.
    Shorter,
    /// They have as many, or another thread rewrites them.
    No,
}

const IDLE: u8 = 0;
/// They are long enough.
const DUE: u8 = 1;
/// A thread rewrites.
const RUNNING: u8 = 2;

impl Logs {
    /// The logs of a file whose trunk is that, and other logs, with the time of the last write and the number of pages
    /// of data.
    pub(crate) fn new(trunk: Log, others: Vec<Log>, modified: u64, data_pages: u64) -> Self {
        trunk.note(modified, data_pages);
        let length = others.iter().map(Log::length).sum::<usize>() + trunk.length();
        let branches = Once::new();
        if !others.is_empty() {
            let slots: &Branches = branches.get_or_make(no_branches);
            for (slot, log) in slots.iter().zip(others) {
                slot.get_or_make(|| log.into_branch());
            }
        }
        Self {
            trunk,
            branches,
            after_rewriting: AtomicUsize::new(length),
            rewriting: AtomicU8::new(IDLE),
        }
    }

    /// The inode that they belong to.
    pub(crate) fn ino(&self) -> Ino {
        self.trunk.ino
    }

    /// Appends an entry to the log of the thread's group. When this returns, the entry is as durable as the medium
    /// makes it at a fence.
    ///
    /// The caller holds a range of the file exclusively.
    pub(crate) fn append<M: Medium>(
        &self,
        core: &Core<M>,
        head: &Head,
        payload: &[u8],
    ) -> Result<&Log> {
        let (log, stem) = self.own(core);
        match (self.append_to(log, core, stem, head, payload), stem) {
            // Entries count by their times, so any log will do. The trunk's pages may be of the reserve.
            (Err(Error::NoSpace), Stem::Log(trunk)) => {
                self.append_to(trunk, core, Stem::Slot, head, payload)
            }
            (appended, _) => appended,
        }
    }

    fn append_to<'a, M: Medium>(
        &'a self,
        log: &'a Log,
        core: &Core<M>,
        stem: Stem<'_>,
        head: &Head,
        payload: &[u8],
    ) -> Result<&'a Log> {
        let before = log.length();
        log.append(core, stem, head, payload)?;
        if log.length() != before {
            self.consider_rewriting(core);
        }
        Ok(log)
    }

    /// The log of the thread's group, and what it hangs on.
    fn own<M: Medium>(&self, core: &Core<M>) -> (&Log, Stem<'_>) {
        match core.group() {
            0 => (&self.trunk, Stem::Slot),
            _ if self.trunk.length() < SPREADS => (&self.trunk, Stem::Slot),
            group => {
                let slot = &self.branches.get_or_make(no_branches)[group - 1];
                let Log { ino, inode, .. } = self.trunk;
                let log = slot.get_or_make(|| Log::new(ino, inode, Vec::new(), 1, 0).into_branch());
                (log, Stem::Log(&self.trunk))
            }
        }
    }

    /// All that there are, the trunk first.
    fn all(&self) -> impl Iterator<Item = &Log> {
        let branches = self.branches.get().into_iter().flatten();
        let branches = branches.filter_map(Once::get);
        std::iter::once(&self.trunk).chain(branches)
    }

    /// The time of the last write, of all groups.
    pub(crate) fn modified(&self) -> u64 {
        self.all().map(Log::modified).max().unwrap_or(0)
    }

    /// Pages of data, as all groups have counted them. Pages that are added meanwhile may be counted although others
    /// have been removed before.
    pub(crate) fn data_pages(&self) -> u64 {
        // [page-count] First all that were removed.
        let removed: u64 = self.all().map(Log::removed).sum();
        let added: u64 = self.all().map(Log::added).sum();
        added - removed
    }

    /// All pages that they have.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        self.all().flat_map(Log::blocks).collect()
    }

    /// A log has got a page: they may be long enough to be rewritten.
    #[cold]
    fn consider_rewriting<M: Medium>(&self, core: &Core<M>) {
        let logs = self.all().filter(|log| log.length() > 0).count();
        let length: usize = self.all().map(Log::length).sum();
        let after = self.after_rewriting.load(Ordering::Relaxed);
        // What a rewriting leaves of a branch is one page, which is not worth a rewriting.
        if length > limit(after.saturating_sub(logs - 1)) + logs - 1 + core.waste() + 1 {
            let relaxed = Ordering::Relaxed;
            let _ = self.rewriting.compare_exchange(IDLE, DUE, relaxed, relaxed);
        }
    }

    /// Rewrites them, if that is due and this thread is the one to do it. `hold` keeps all writes of the file from
    /// happening.
    pub(crate) fn clean<M: Medium, H>(
        &self,
        core: &Core<M>,
        hold: impl FnOnce() -> H,
    ) -> Result<()> {
        // Relaxed: the mutexes of the logs order the rest.
        let relaxed = Ordering::Relaxed;
        if self.rewriting.load(relaxed) != DUE
            || self
                .rewriting
                .compare_exchange(DUE, RUNNING, relaxed, relaxed)
                .is_err()
        {
            return Ok(());
        }
        // [clean-waits] Who has reserved in what is sealed holds a range until the entry is committed. And what is not
        // sealed comes after all that is.
        let held = prim::intact!("clean-waits").then(hold);
        let sealed = self.seal(core);
        drop(held);
        let rewritten = sealed.and_then(|sealed| self.rewrite(core, &sealed));
        if rewritten.is_err() {
            // A full store keeps its long logs.
            let length = self.all().map(Log::length).sum();
            self.after_rewriting.store(length, relaxed);
        }
        self.rewriting.store(IDLE, relaxed);
        match rewritten {
            Err(Error::NoSpace) => Ok(()),
            other => other,
        }
    }

    /// Seals all of them. The trunk is the last: its page may be of the reserve, and would be wasted if a branch got
    /// none.
    fn seal<M: Medium>(&self, core: &Core<M>) -> Result<Vec<Sealed<'_>>> {
        let logs: Vec<_> = self.all().collect();
        let sealed = logs.iter().rev().map(|log| log.seal(core));
        let mut sealed: Vec<_> = sealed
            .filter_map(Result::transpose)
            .collect::<Result<_>>()?;
        sealed.reverse();
        Ok(sealed)
    }

    /// Puts a new trunk in the place of what is sealed, with branches to what comes behind. All entries in it are
    /// committed.
    fn rewrite<M: Medium>(&self, core: &Core<M>, sealed: &[Sealed<'_>]) -> Result<()> {
        let Some((trunk, branches)) = sealed.split_first() else {
            return Ok(());
        };
        let state = replay(core, sealed)?;
        let mut entries = drafts(&state, core.epoch);
        entries.extend(
            branches
                .iter()
                .map(|log| entry::draft(&branch(core, log.next), &[])),
        );
        let part = Part::Before(trunk.next);
        self.trunk.rewrite(core, &trunk.old, part, &entries)?;
        for Sealed { log, old, .. } in branches {
            log.replace(&mut log.tail.lock(), old.len(), &[]);
            let blocks: Vec<_> = old.iter().map(|page| page.block).collect();
            core.free(&blocks);
        }
        let length = self.all().map(Log::length).sum();
        self.after_rewriting.store(length, Ordering::Relaxed);
        Ok(())
    }

    /// Pages that they can spare, at least. Rewritten entries fill more than half of each page, but for the last, and
    /// there are no more slots of them than pages of data, and one.
    pub(crate) fn spare(&self) -> usize {
        let need = 2 + self.data_pages() / (ENTRY_SLOTS as u64 / 2);
        let need = usize::try_from(need).unwrap_or(usize::MAX);
        self.blocks().len().saturating_sub(need)
    }

    /// Rewrites them as a trunk of what the file is, and frees all other pages. The caller holds the whole file
    /// exclusively. While another thread rewrites them, this does nothing.
    pub(crate) fn compact<M: Medium>(
        &self,
        core: &Core<M>,
        state: &FileState,
    ) -> Result<Compacted> {
        // Relaxed: as in `clean`.
        if self.rewriting.swap(RUNNING, Ordering::Relaxed) == RUNNING {
            return Ok(Compacted::No);
        }
        let before = self.blocks().len();
        let trunk = self.trunk.tail.lock().pages.clone();
        let renewed = self.renew(core, &trunk, state);
        if renewed.is_ok() {
            let branches = self.all().skip(1).flat_map(Log::end);
            core.free(&branches.collect::<Vec<_>>());
        }
        self.after_rewriting
            .store(self.trunk.length(), Ordering::Relaxed);
        self.rewriting.store(IDLE, Ordering::Relaxed);
        renewed.map(|()| match self.blocks().len() < before {
            true => Compacted::Shorter,
            false => Compacted::No,
        })
    }

    /// Rewrites them as a trunk of what the file is, while nobody writes. These are the trunk's pages.
    pub(crate) fn renew<M: Medium>(
        &self,
        core: &Core<M>,
        trunk: &[LogPage],
        state: &FileState,
    ) -> Result<()> {
        let entries = drafts(state, core.epoch);
        self.trunk.rewrite(core, trunk, Part::All, &entries)
    }
}

/// What these parts of the logs of a file say.
fn replay<M: Medium>(core: &Core<M>, sealed: &[Sealed<'_>]) -> Result<FileState> {
    let mut merge = Merge::default();
    let branches = std::iter::repeat(Which::Branch);
    let which = std::iter::once(Which::Trunk).chain(branches);
    for (Sealed { log, old, .. }, which) in sealed.iter().zip(which) {
        for &page in old {
            let bytes = core.page(page.block)?;
            let place = log.place(core.id, page, 0);
            let slots = for_each_entry(&bytes, &place, |head, payload| {
                merge.take(which, head, payload, &mut |_, _| Ok(true))
            })?;
            // Recovery has left no such slots, and all entries here are committed.
            if slots.remains() > 0 {
                return Err(Error::Corrupt(format!(
                    "inode {}: {} slots of log page {} have no entry; the log stays as it is",
                    log.ino,
                    slots.remains(),
                    page.block
                )));
            }
        }
    }
    merge.finish(&mut |_, _| Ok(true))
}
