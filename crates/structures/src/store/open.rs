//! Making, opening and closing a store.

use crate::store::core::{Core, Durability, Space};
use crate::store::error::{Error, Result};
use crate::store::format::entry::{self, Place};
use crate::store::format::page::{self, ENTRY_SLOT};
use crate::store::format::slot::Half;
use crate::store::format::superblock::{COPIES, SLOTS_OF_A_PAGE, SUPERBLOCK, Superblock, TABLE};
use crate::store::format::{
    Block, FORMAT_VERSION, LogPage, PAGE, PAGE_BYTES, blocks_of, offset, tree as tree_format,
};
use crate::store::inode::Inode;
use crate::store::load;
use crate::store::log::Log;
use crate::store::medium::{Mapped, Medium};
use crate::store::recover::{self, Options, Recovered, now};
use crate::store::tree::{Change, Ino, ROOT, Tree};
use prim::sync::Mutex;
use spanlock::range::raw::RawRangeLock;
use spanlock::range::slots::RawSlots;
use spanlock::rw::{Bravo, FutexRwLock, RwLock, Standard};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The shape of a new store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Geometry {
    /// How many files and directories it has room for. By default, one for each four pages.
    pub inodes: Option<u64>,
    /// The store's identity, which its checksums cover. By default it is random.
    pub id: Option<u64>,
}

/// A store: files and directories in a medium.
///
/// All methods may be called by many threads at a time. Operations on directories take turns; those on files are
/// ordered by the files' range locks alone. Dropping it does not close it properly: the next opening recovers it.
pub struct Store<M: Medium = Mapped, L: RawRangeLock = RawSlots> {
    pub(crate) shared: Arc<Shared<M, L>>,
    recovered: Recovered,
}

/// What a store and its open files share.
pub(crate) struct Shared<M: Medium, L: RawRangeLock> {
    pub(crate) core: Core<M>,
    pub(crate) names: RwLock<Names>,
    pub(crate) tree_log: Log,
    pub(crate) files: Mutex<HashMap<Ino, Opened<L>>>,
    /// Held while a thread makes room in a full store.
    pub(crate) making_room: Mutex<()>,
    pub(crate) new_lock: fn() -> L,
}

/// The directories, and the number of the next entry about them.
pub(crate) struct Names {
    pub(crate) tree: Tree,
    pub(crate) number: u32,
}

/// A file, whether it is open or not.
pub(crate) struct Opened<L: RawRangeLock> {
    pub(crate) inode: Arc<Inode<L>>,
    pub(crate) handles: u32,
    /// Whether its last name is gone.
    pub(crate) nameless: bool,
}

/// What a store is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What an operation that has returned survives.
    pub durability: Durability,
    /// Free and used space.
    pub space: Space,
    /// Whether a sync has failed.
    pub poisoned: bool,
    /// What was found when it was opened.
    pub recovered: Recovered,
    /// Bytes of memory of the files' indices.
    pub index_bytes: u64,
    /// How often it was opened for writing.
    pub openings: u32,
}

impl<M: Medium, L: RawRangeLock> Store<M, L> {
    /// Opens a store. After a crash it recovers what had happened, and says what is lost. It says so once: the next
    /// opening no longer finds it.
    ///
    /// # Errors
    /// [`Error::NotAStore`], [`Error::Version`]; [`Error::Corrupt`] when there is damage that no crash explains: then
    /// nothing is changed.
    pub fn open(medium: M, options: Options<L>) -> Result<(Self, Recovered)> {
        let ready = recover::recover(medium, &options)?;
        let files = ready.files.into_iter().map(|(state, logs)| {
            let ino = logs.ino();
            let inode = Arc::new(Inode::loaded((options.lock)(), &state, logs));
            let (handles, nameless) = (0, false);
            (
                ino,
                Opened {
                    inode,
                    handles,
                    nameless,
                },
            )
        });
        let (tree, number) = (ready.tree, ready.number);
        let lock = Bravo::with_policy(FutexRwLock::new(), Standard);
        let shared = Shared {
            names: RwLock::from_raw(lock, Names { tree, number }),
            tree_log: ready.tree_log,
            files: Mutex::new(files.collect()),
            making_room: Mutex::new(()),
            new_lock: options.lock,
            core: ready.core,
        };
        let recovered = ready.recovered;
        let store = Self {
            shared: Arc::new(shared),
            recovered: recovered.clone(),
        };
        Ok((store, recovered))
    }

    /// Makes everything durable that has happened.
    ///
    /// # Errors
    /// When that fails. Then some of it may be lost, and the store takes no more writes.
    pub fn sync(&self) -> Result<()> {
        self.shared.core.sync()
    }

    /// Closes the store, so that the next opening need not recover it.
    ///
    /// # Errors
    /// [`Error::Busy`] while files are open, and as [`sync`](Self::sync). In both cases the store is not closed
    /// properly, and the next opening recovers it.
    pub fn close(self) -> Result<()> {
        if self
            .shared
            .files
            .lock()
            .values()
            .any(|file| file.handles > 0)
        {
            return Err(Error::Busy);
        }
        self.shared.core.sync()?;
        self.shared
            .core
            .write_superblock(|superblock| superblock.good = superblock.epoch)
    }

    /// What the store is like.
    #[must_use]
    pub fn status(&self) -> Status {
        let core = &self.shared.core;
        let files = self.shared.files.lock();
        Status {
            durability: core.durability,
            space: core.space(),
            poisoned: core.is_poisoned(),
            recovered: self.recovered.clone(),
            index_bytes: files.values().map(|file| file.inode.memory() as u64).sum(),
            openings: core.epoch,
        }
    }
}

impl<M: Medium, L: RawRangeLock> fmt::Debug for Store<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("epoch", &self.shared.core.epoch)
            .finish_non_exhaustive()
    }
}

/// A number that no other store has.
fn random_id() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(now())
}

/// Makes an empty store in a medium. What was there is lost.
///
/// # Errors
/// [`Error::Invalid`] when the medium is too small or too large for the geometry; [`Error::Io`].
pub fn make(medium: &impl Medium, geometry: &Geometry) -> Result<()> {
    let blocks = blocks_of(medium.size())?;
    let inodes = geometry.inodes.unwrap_or(blocks / 4).max(2);
    let table = inodes.div_ceil(SLOTS_OF_A_PAGE);
    // The root's log, the reserve, and a page that can be written.
    if TABLE + table + 16 > blocks {
        return Err(Error::Invalid(
            "the medium is too small: expected 18 pages, and one more for each 64 files and directories",
        ));
    }
    let superblock = Superblock {
        version: FORMAT_VERSION,
        id: geometry.id.unwrap_or_else(random_id),
        blocks,
        inodes: table * SLOTS_OF_A_PAGE,
        update: 0,
        epoch: 0,
        good: 0,
        ordered: false,
        made: now() / 1_000_000_000,
    };
    // While this is under way there is no store.
    for place in COPIES {
        medium.write(place, &[0; SUPERBLOCK])?;
    }
    medium.sync()?;
    let (begin, end) = load::table(&superblock);
    for page in (begin..end).step_by(PAGE) {
        medium.write(page, &[0; PAGE])?;
        medium.flush(page, PAGE_BYTES);
    }
    make_root(medium, &superblock)?;
    medium.fence();
    medium.sync()?;
    for update in [1, 0] {
        crate::store::core::write_superblock(
            medium,
            &Superblock {
                update,
                ..superblock
            },
        )?;
    }
    Ok(())
}

/// Writes the log of directories, whose first entry is about the root.
fn make_root(medium: &impl Medium, superblock: &Superblock) -> Result<()> {
    let block = Block::try_from(superblock.data_start()).expect("fewer than 2^31");
    let head = LogPage {
        block,
        generation: 1,
    };
    let (store, ino, slot) = (superblock.id, ROOT, 1);
    let mut bytes = page::empty(head, store, ino);
    let time = superblock.made.saturating_mul(1_000_000_000);
    let mut set = Tree::new().nodes[&ROOT].attributes;
    (set.accessed, set.modified, set.changed) = (time, time, time);
    let (entry, payload) = tree_format::encode(&Change::Attributes { ino, set }, time);
    let mut draft = entry::draft(&entry, &payload);
    entry::mark(
        &mut draft,
        &Place {
            store,
            ino,
            page: head,
            slot,
        },
    );
    bytes[slot * ENTRY_SLOT..][..draft.len()].copy_from_slice(&draft);
    medium.write(offset(block), &bytes)?;
    medium.flush(offset(block), PAGE_BYTES);
    let (inode, update) = (0, 1);
    let half = Half {
        inode,
        head,
        update,
    };
    medium.write(half.place(ROOT), &half.bytes(store, ROOT))?;
    medium.flush(half.place(ROOT), 64);
    Ok(())
}
