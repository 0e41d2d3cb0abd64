//! Opening a store after whatever happened: a new epoch, and the logs in which a crash left something are rewritten.

use crate::store::alloc::{Allocator, Purpose};
use crate::store::clean::Part;
use crate::store::core::{Core, Durability};
use crate::store::error::{Error, Result};
use crate::store::finding::{Cause, Finding};
use crate::store::format::bytes::checksum;
use crate::store::format::entry::{self, Draft};
use crate::store::format::slot;
use crate::store::format::{Block, FORMAT_VERSION, Item, PAGE_BYTES, offset, tree as tree_format};
use crate::store::inode::since_1970;
use crate::store::load::{self, Loaded, LoadedFile, LoadedLog};
use crate::store::log::Log;
use crate::store::logs::{self, Logs};
use crate::store::medium::{Durable, Medium};
use crate::store::replay::FileState;
use crate::store::tree::{Ino, ROOT, Tree};
use spanlock::range::raw::RawRangeLock;
use spanlock::range::slots::RawSlots;
use std::collections::HashSet;
use std::fmt;

/// How a store is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options<L = RawSlots> {
    /// Makes the lock of each file: see [`locks`](crate::store::locks).
    pub lock: fn() -> L,
    /// [`Durability::Process`] or [`Durability::Sync`]. Where the medium is persistent memory it is
    /// [`Durability::Dax`], whatever is asked.
    pub durability: Durability,
    /// Groups of threads: each has a stock of free pages, and a log in each file that it writes. By default, one for
    /// each processor.
    pub stocks: usize,
    /// The clock: nanoseconds since 1970.
    pub now: fn() -> i64,
}

impl Default for Options {
    fn default() -> Self {
        Self::with_lock(crate::store::locks::slots)
    }
}

impl<L: RawRangeLock> Options<L> {
    /// The defaults, with another lock.
    #[must_use]
    pub fn with_lock(lock: fn() -> L) -> Self {
        Self {
            lock,
            durability: Durability::Process,
            stocks: prim::thread::processors(),
            now,
        }
    }
}

/// The time now. Not that of the kernel's last tick: a write is later than the attributes that were set before it.
pub(crate) fn now() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let nanoseconds = time.tv_sec.checked_mul(1_000_000_000);
    nanoseconds.map_or(i64::MAX, |all| all.saturating_add(time.tv_nsec))
}

/// What was found when a store was opened, and mended. [`Display`](fmt::Display) says it in lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Whether the store had been closed properly. Then nothing else is set.
    pub closed: bool,
    /// Everything that did not fit. What a finding speaks of may be lost, and what was there before be seen in its
    /// place. A loss of power may also take the last changes without a trace.
    pub findings: Vec<Finding>,
    /// Logs that were rewritten without what did not fit.
    pub logs: u64,
    /// Pages of files whose last contents are lost, with the power or by damage.
    pub lost_pages: u64,
    /// Changes of directories that were dropped because one before them is lost, with the power or by damage.
    pub lost_changes: u64,
}

impl Recovered {
    /// The worst cause of a finding: `None` if everything fits.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.findings.iter().map(|finding| finding.cause).max()
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.closed {
            return f.write_str("closed properly");
        }
        f.write_str("not closed properly, and recovered")?;
        let mut findings = self.findings.iter();
        findings.try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

/// A store that is ready, but for the files' indices.
pub(crate) struct Ready<M> {
    pub(crate) core: Core<M>,
    pub(crate) tree: Tree,
    pub(crate) tree_log: Log,
    pub(crate) number: u32,
    pub(crate) files: Vec<(FileState, Logs)>,
    pub(crate) recovered: Recovered,
}

/// Loads a store and makes it ready to be written.
pub(crate) fn recover<M: Medium, L: RawRangeLock>(
    medium: M,
    options: &Options<L>,
) -> Result<Ready<M>> {
    let loaded = load::load(&medium)?;
    let mut findings = loaded.findings.iter();
    if let Some(damage) = findings.find(|finding| finding.cause == Cause::Damage) {
        return Err(Error::Corrupt(damage.what.clone()));
    }
    let recovered = Recovered {
        closed: loaded.superblock.is_clean(),
        lost_changes: loaded.dropped_changes,
        findings: loaded.findings.clone(),
        ..Recovered::default()
    };
    let core = begin(medium, &loaded, options)?;
    let mut ready = Ready {
        core,
        tree: loaded.tree,
        tree_log: log(ROOT, 0, &loaded.tree_log),
        number: loaded.number,
        files: Vec::new(),
        recovered,
    };
    let mut files: Vec<_> = loaded.files.into_iter().collect();
    files.sort_by_key(|(ino, _)| *ino);
    // [drop-for-good] What was dropped now might be found again later, when its pages are in use elsewhere.
    let drops = !ready.recovered.closed && prim::intact!("drop-for-good");
    let uncertain = !ready.recovered.closed && !loaded.superblock.ordered;
    let mut rewritten = HashSet::new();
    for (ino, mut file) in files {
        let mut to_rewrite = file.is_to_rewrite();
        let mut superfluous = Vec::new();
        if uncertain {
            superfluous = file.state.drop_behind_the_end();
            to_rewrite |= !superfluous.is_empty();
        }
        let (modified, pages) = (
            since_1970(file.state.modified),
            file.state.pages.len() as u64,
        );
        let logs = |branches| {
            let trunk = log(ino, file.generation, &file.log);
            Logs::new(trunk, branches, modified, pages)
        };
        let alone = logs(Vec::new());
        let must = drops && to_rewrite || file.branches.len() >= logs::MOST;
        let may = ready.recovered.closed && file.has_more_branches_than_data();
        // A store that is too full for it goes on with the logs as they are.
        let renewed = match may || must {
            true => alone.renew(&ready.core, &file.log.pages, &file.state),
            false => Err(Error::NoSpace),
        };
        let logs = if !must && matches!(renewed, Err(Error::NoSpace)) {
            let branches = file.branches.iter();
            let branches = branches.map(|branch| log(ino, file.generation, branch));
            logs(branches.collect())
        } else {
            renewed?;
            let branches = file.branches.iter().flat_map(|log| &log.pages);
            superfluous.extend(branches.map(|page| page.block));
            ready.core.free(&superfluous);
            rewritten.extend(must.then_some(ino));
            alone
        };
        ready.recovered.lost_pages += file.state.lost.len() as u64;
        ready.files.push((file.state, logs));
    }
    if drops && loaded.tree_log.to_rewrite {
        let drafts = tree_drafts(&ready.tree, &mut ready.number, &ready.core);
        ready
            .tree_log
            .rewrite(&ready.core, &loaded.tree_log.pages, Part::All, &drafts)?;
        rewritten.insert(ROOT);
    }
    // [drop-for-good] Only now data are written. They may equal data that were dropped, and get the same page of the
    // store. If an entry still led there, that page would belong to two files. [clean-sync] is between.
    if drops && uncertain {
        for (state, logs) in &mut ready.files {
            if let Some(superfluous) = ready.core.zero_behind_the_end(state)? {
                logs.compact(&ready.core, state)?;
                ready.core.free(&[superfluous]);
                rewritten.insert(logs.ino());
            }
        }
    }
    ready.recovered.logs = rewritten.len() as u64;
    if !ready.recovered.closed {
        ready.core.mend_slots(loaded.superblock.inodes)?;
        ready.core.sync()?;
        let before = ready.core.epoch - 1;
        ready.core.write_superblock(|superblock| {
            superblock.good = before;
            superblock.ordered = ready.core.medium.durable().keeps_order();
        })?;
    }
    Ok(ready)
}

/// Takes an epoch, durably.
fn begin<M: Medium, L: RawRangeLock>(
    medium: M,
    loaded: &Loaded,
    options: &Options<L>,
) -> Result<Core<M>> {
    let durability = match (medium.durable(), options.durability) {
        (Durable::AtFence, _) => Durability::Dax,
        (_, Durability::Dax) => {
            return Err(Error::Unsupported("the medium is not persistent memory"));
        }
        (_, asked) => asked,
    };
    let mut superblock = loaded.superblock;
    superblock.ordered =
        medium.durable().keeps_order() && (superblock.is_clean() || superblock.ordered);
    // [epoch-first] Generations begin with the epoch: those of this opening must not be those of an earlier one.
    if prim::intact!("epoch-first") {
        superblock.epoch += 1;
    }
    // A store of the first version becomes one of this version, in both copies.
    let copies = if superblock.version == FORMAT_VERSION {
        1
    } else {
        2
    };
    superblock.version = FORMAT_VERSION;
    for _ in 0..copies {
        superblock.update += 1;
        crate::store::core::write_superblock(&medium, &superblock)?;
    }
    let allocator = Allocator::new(&loaded.used, loaded.superblock.inodes, options.stocks);
    let free_inodes = load::free_inodes(&superblock, &loaded.tree);
    Ok(Core::new(
        medium,
        superblock,
        durability,
        allocator,
        free_inodes,
        options.now,
    ))
}

fn log(ino: Ino, generation: u64, loaded: &LoadedLog) -> Log {
    Log::new(
        ino,
        generation,
        loaded.pages.clone(),
        loaded.slot,
        loaded.update,
    )
}

/// Entries that make these directories, and the number of the next.
pub(crate) fn tree_drafts<M: Medium>(tree: &Tree, number: &mut u32, core: &Core<M>) -> Vec<Draft> {
    let nodes = tree.changes().into_iter().map(|change| {
        let (mut head, payload) = tree_format::encode(&change, core.now());
        (head.epoch, head.number) = (core.epoch, *number);
        *number = number.wrapping_add(1);
        entry::draft(&head, &payload)
    });
    nodes.collect()
}

impl LoadedFile {
    /// Whether its further logs take more pages than its data: many threads have written a small file. Nothing else
    /// takes such pages back, since a rewriting leaves one of each log.
    fn has_more_branches_than_data(&self) -> bool {
        let branches: usize = self.branches.iter().map(|log| log.pages.len()).sum();
        branches > self.state.pages.len()
    }
}

impl<M: Medium> Core<M> {
    /// Empties the halves of slots that are neither valid nor zero. None is in force. The logs that a rewriting has
    /// mended have a valid half, and inodes without a log need none.
    fn mend_slots(&self, inodes: Ino) -> Result<()> {
        for ino in ROOT..inodes {
            let slot = load::read_slot(&self.medium, self.id, ino)?;
            for half in slot.damaged_halves(ino) {
                self.write(half, &[0; slot::HALF])?;
            }
        }
        self.medium.fence();
        Ok(())
    }

    /// A crash may lose a truncation and keep what came after it. Then there may be bytes behind the end of the file,
    /// in its last page, which must not appear when it grows. Returns the page that becomes superfluous with this.
    fn zero_behind_the_end(&self, state: &mut FileState) -> Result<Option<Block>> {
        let used = usize::try_from(state.size % PAGE_BYTES).expect("less than a page");
        let page = state.size / PAGE_BYTES;
        let Some(item) = state.pages.get_mut(&page).filter(|_| used > 0) else {
            return Ok(None);
        };
        let mut bytes = self.page(item.block)?;
        // A damaged page keeps its checksum, so that a read finds the damage.
        let sound = checksum(&[], &*bytes) == item.sum;
        if !sound || bytes[used..].iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        bytes[used..].fill(0);
        let block = self.take(1, Purpose::Upkeep)?[0];
        self.write(offset(block), &*bytes)?;
        let sum = checksum(&[], &*bytes);
        Ok(Some(std::mem::replace(item, Item { block, sum }).block))
    }
}

impl FileState {
    /// A crash may also leave whole pages behind the end. Removes them, and returns them: they are superfluous.
    fn drop_behind_the_end(&mut self) -> Vec<Block> {
        let beyond = self.pages.split_off(&self.size.div_ceil(PAGE_BYTES));
        beyond.values().map(|item| item.block).collect()
    }
}
