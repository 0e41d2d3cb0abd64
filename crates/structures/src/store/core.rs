//! What all parts of a store share: the medium, its geometry, free pages, and when things are durable.
//!
//! # Edge: memory ordering
//!
//! - **group-commit**: Release by the thread that wants to be durable, when it is counted, Acquire by the thread that
//!   syncs, when it reads the count: what the former has written is there when the sync begins.

use crate::store::alloc::{Allocator, Blocks, Purpose};
use crate::store::error::{Error, Result};
use crate::store::format::superblock::{COPIES, Superblock};
use crate::store::format::{Block, PAGE, offset, zeros};
use crate::store::logs;
use crate::store::medium::Medium;
use crate::store::tree::Ino;
use prim::atomic::{AtomicBool, AtomicU64, Ordering};
use prim::sync::Mutex;

/// What a write that has returned survives. `status()` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A loss of power: the medium is persistent memory, and a write that has returned is durable.
    Dax,
    /// The end of the process, whatever ends it. After a loss of power, what was written before the last sync is there;
    /// each later write has happened or not, page by page.
    Process,
    /// A loss of power: each operation returns after a sync, which it shares with those of other threads.
    Sync,
}

/// Free and used space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Pages of the store.
    pub pages: u64,
    /// Pages that can be written now.
    pub free: u64,
    /// Pages that become free at the next sync.
    pub free_at_sync: u64,
    /// Inodes of the store.
    pub inodes: u64,
    /// Inodes that are not in use.
    pub free_inodes: u64,
}

/// Things that become free at a sync.
#[derive(Debug, Default)]
struct Limbo {
    blocks: Vec<Block>,
    inodes: Vec<Ino>,
}

pub(crate) struct Core<M> {
    pub(crate) medium: M,
    pub(crate) durability: Durability,
    /// A random number of the store, which checksums cover.
    pub(crate) id: u64,
    pub(crate) epoch: u32,
    pub(crate) blocks: u64,
    inodes: u64,
    superblock: Mutex<Superblock>,
    allocator: Allocator,
    free_inodes: Mutex<Vec<Ino>>,
    limbo: Mutex<Limbo>,
    /// Counts log pages and inodes: the low half of a generation.
    generations: AtomicU64,
    poisoned: AtomicBool,
    /// Held while a sync runs.
    syncing: Mutex<()>,
    /// Operations that want to be durable, and the last of them that is.
    wanted: AtomicU64,
    durable: AtomicU64,
    now: fn() -> i64,
}

impl<M: Medium> Core<M> {
    pub(crate) fn new(
        medium: M,
        superblock: Superblock,
        durability: Durability,
        allocator: Allocator,
        free_inodes: Vec<Ino>,
        now: fn() -> i64,
    ) -> Self {
        Self {
            medium,
            durability,
            id: superblock.id,
            epoch: superblock.epoch,
            blocks: superblock.blocks,
            inodes: superblock.inodes,
            superblock: Mutex::new(superblock),
            allocator,
            free_inodes: Mutex::new(free_inodes),
            limbo: Mutex::new(Limbo::default()),
            generations: AtomicU64::new(1),
            poisoned: AtomicBool::new(false),
            syncing: Mutex::new(()),
            wanted: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            now,
        }
    }

    /// Nanoseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        (self.now)()
    }

    /// A number that no log page and no inode of the store ever had.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: an opening has 2^32 of them.
    pub(crate) fn generation(&self) -> Result<u64> {
        let low = self.generations.fetch_add(1, Ordering::Relaxed);
        match u32::try_from(low) {
            // [epoch-first] The epoch is this opening's alone.
            Ok(low) => Ok(self.generation_of(low)),
            Err(_) => Err(Error::Exhausted),
        }
    }

    /// The generation of this opening with that low half.
    pub(crate) fn generation_of(&self, low: u32) -> u64 {
        u64::from(self.epoch) << 32 | u64::from(low)
    }

    /// Takes free pages. If there are too few, those that a sync frees are worth a sync.
    pub(crate) fn take(&self, count: usize, purpose: Purpose) -> Result<Blocks> {
        self.allocator.take(count, purpose).or_else(|_| {
            self.sync_for(
                || self.allocator.take(count, purpose),
                |limbo| limbo.blocks.is_empty(),
            )
        })
    }

    /// What the store could do without leaves the reserve whole: it is for what empties a full store, and for its next
    /// opening.
    ///
    /// # Errors
    /// [`Error::NoSpace`]: the reserve is in use.
    pub(crate) fn leave_reserve(&self) -> Result<()> {
        let is_whole = || match self.allocator.is_short() {
            true => Err(Error::NoSpace),
            false => Ok(()),
        };
        is_whole().or_else(|_| self.sync_for(is_whole, |limbo| limbo.blocks.is_empty()))
    }

    /// Tries again when no sync is under way, which may just be freeing something, and after a sync.
    #[cold]
    fn sync_for<T>(&self, take: impl Fn() -> Result<T>, useless: fn(&Limbo) -> bool) -> Result<T> {
        let _one_at_a_time = self.syncing.lock();
        take().or_else(|full| {
            if useless(&self.limbo.lock()) {
                return Err(full);
            }
            self.sync_now()?;
            take()
        })
    }

    /// The number of this thread's group, which has a log of its own in each file that it writes.
    pub(crate) fn group(&self) -> usize {
        self.allocator.group() % logs::MOST
    }

    /// Gives pages back that were taken and that nothing durable points to.
    pub(crate) fn give_back(&self, blocks: &[Block]) {
        self.allocator.give_back(blocks);
    }

    /// Frees pages that the commit which has just returned from [`commit`](Self::commit) made superfluous.
    pub(crate) fn free(&self, blocks: &[Block]) {
        // [free-at-sync] Until the commit is durable, recovery may need them.
        if self.medium.durable().keeps_order() || !prim::intact!("free-at-sync") {
            self.allocator.give_back(blocks);
        } else if !blocks.is_empty() {
            self.limbo.lock().blocks.extend_from_slice(blocks);
        }
    }

    /// Takes a free inode number.
    pub(crate) fn take_inode(&self) -> Result<Ino> {
        let take = || self.free_inodes.lock().pop().ok_or(Error::NoSpace);
        take().or_else(|_| self.sync_for(take, |limbo| limbo.inodes.is_empty()))
    }

    /// Gives an inode number back that nothing durable mentions.
    pub(crate) fn give_back_inode(&self, ino: Ino) {
        self.free_inodes.lock().push(ino);
    }

    /// Frees the number of an inode whose last name is gone.
    pub(crate) fn free_inode(&self, ino: Ino) {
        if self.medium.durable().keeps_order() {
            self.free_inodes.lock().push(ino);
        } else {
            self.limbo.lock().inodes.push(ino);
        }
    }

    /// Writes bytes that the next fence makes durable.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.medium.write(at, bytes)?;
        self.medium.flush(at, bytes.len() as u64);
        Ok(())
    }

    /// Reads a page.
    pub(crate) fn page(&self, block: Block) -> Result<Box<[u8; PAGE]>> {
        let mut page = zeros();
        self.medium.read(offset(block), &mut *page)?;
        Ok(page)
    }

    /// # Errors
    /// When a sync has failed.
    pub(crate) fn check(&self) -> Result<()> {
        match self.poisoned.load(Ordering::Acquire) {
            true => Err(Error::Poisoned),
            false => Ok(()),
        }
    }

    /// Whether a sync has failed.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Makes all operations durable that have returned, and frees what they made superfluous.
    pub(crate) fn sync(&self) -> Result<()> {
        let _one_at_a_time = self.syncing.lock();
        self.sync_now()
    }

    fn sync_now(&self) -> Result<()> {
        self.check()?;
        let limbo = std::mem::take(&mut *self.limbo.lock());
        if let Err(error) = self.medium.sync() {
            // The kernel may have dropped what it could not write, so nothing can be repeated.
            self.poisoned.store(true, Ordering::Release);
            return Err(error.into());
        }
        self.allocator.give_back(&limbo.blocks);
        self.free_inodes.lock().extend(limbo.inodes);
        Ok(())
    }

    /// The end of an operation: in the mode `Sync`, makes it durable. Threads that come while a sync runs share the
    /// next one.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.durability != Durability::Sync {
            return Ok(());
        }
        // [group-commit] Release: what this thread has written.
        let ordering = prim::order!("group-commit", Ordering::Release);
        let own = self.wanted.fetch_add(1, ordering) + 1;
        let _one_at_a_time = self.syncing.lock();
        // Relaxed: whoever has `syncing` alone reads and writes it.
        if self.durable.load(Ordering::Relaxed) >= own {
            return Ok(());
        }
        // Acquire: what the threads have written that count; pairs with [group-commit].
        let ordering = prim::order!("group-commit", Ordering::Acquire);
        let all = self.wanted.load(ordering);
        self.sync_now()?;
        self.durable.store(all, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the superblock with another state, durably, into the copy that is not in force.
    pub(crate) fn write_superblock(&self, change: impl FnOnce(&mut Superblock)) -> Result<()> {
        let mut superblock = self.superblock.lock();
        let mut new = *superblock;
        change(&mut new);
        new.update += 1;
        write_superblock(&self.medium, &new)?;
        *superblock = new;
        Ok(())
    }

    /// Free and used space.
    pub(crate) fn space(&self) -> Space {
        let limbo = self.limbo.lock();
        let free_inodes = self.free_inodes.lock().len() + limbo.inodes.len();
        Space {
            pages: self.blocks,
            free: self.allocator.free() as u64,
            free_at_sync: limbo.blocks.len() as u64,
            inodes: self.inodes,
            free_inodes: free_inodes as u64,
        }
    }

    /// Log pages that a log may waste besides as many as it needs: a thousandth of the store.
    pub(crate) fn waste(&self) -> usize {
        usize::try_from(self.blocks / 1024).unwrap_or(usize::MAX)
    }
}

/// Writes a superblock into its copy, durably.
pub(crate) fn write_superblock(medium: &impl Medium, superblock: &Superblock) -> Result<()> {
    let place = COPIES[(superblock.update % 2) as usize];
    let bytes = superblock.bytes();
    medium.write(place, &bytes)?;
    medium.flush(place, bytes.len() as u64);
    medium.fence();
    medium.sync()?;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::store::{Error, Geometry, Memory, Options, Store, make};
    use prim::atomic::Ordering;
    use std::sync::Arc;

    /// A store that has no more numbers refuses what needs one, changes nothing, and is as good as new once reopened.
    #[test]
    fn numbers_do_not_wrap() {
        let medium = Arc::new(Memory::new(1 << 20));
        make(&medium, &Geometry::default()).expect("it fits");
        let open = || Store::<_>::open(Arc::clone(&medium), Options::default());
        let (store, _) = open().expect("it is sound");
        let file = store.create("/file", 0o600).expect("room");
        let before = store.status().space;
        let numbers = &store.shared.core.generations;
        numbers.store(1 << 32, Ordering::Relaxed);
        assert!(matches!(file.write_at(b"x", 0), Err(Error::Exhausted)));
        assert!(matches!(
            store.create("/other", 0o600),
            Err(Error::Exhausted)
        ));
        assert_eq!(store.status().space, before);
        drop((file, store));
        let (store, _) = open().expect("it is sound");
        assert_eq!(store.stat("/file").expect("it is there").size, 0);
        store.create("/other", 0o600).expect("room");
    }
}
