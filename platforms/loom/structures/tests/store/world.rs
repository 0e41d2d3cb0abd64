//! What the models share: a medium that tells loom what is read and written, and a store of one file in it.

use prim::atomic::{AtomicU64, Ordering};
use prim::cell::UnsafeCell;
use prim::thread::{self, JoinHandle};
use spanlock_structures_loom::store::{
    Durability, Durable, File, Geometry, Medium, Memory, Options, PAGE, Store, make,
};
use spanlock_testkit_loom::holders::Holders;
use std::io;
use std::sync::Arc;

/// Bytes of a unit: a slot of a log page.
const UNIT: usize = 64;

/// Pages of the medium: as few as a store can have, and some to write.
const PAGES: usize = 32;

/// A medium with a loom cell for each unit. Loom reports a race when a thread writes what another reads or writes, or
/// reads what it does not know to be written.
pub struct Watched {
    memory: Memory,
    units: Vec<UnsafeCell<()>>,
    durable: Durable,
    /// Writes of a unit so far, and how many of them the last sync has seen.
    writes: AtomicU64,
    synced: AtomicU64,
}

// SAFETY: the cells contain nothing. Loom checks the accesses, which is what they are for.
unsafe impl Sync for Watched {}

impl Watched {
    fn new(durable: Durable) -> Arc<Self> {
        let units = (0..PAGES * PAGE / UNIT).map(|_| UnsafeCell::new(()));
        Arc::new(Self {
            memory: Memory::new((PAGES * PAGE) as u64),
            units: units.collect(),
            durable,
            writes: AtomicU64::new(0),
            synced: AtomicU64::new(0),
        })
    }

    fn units(&self, at: u64, bytes: usize) -> &[UnsafeCell<()>] {
        let at = usize::try_from(at).expect("within the medium");
        &self.units[at / UNIT..(at + bytes).div_ceil(UNIT)]
    }
}

impl Medium for Watched {
    fn size(&self) -> u64 {
        self.memory.size()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let units = self.units(at, into.len());
        units.iter().for_each(|unit| unit.with(|_| ()));
        self.memory.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let units = self.units(at, from.len());
        units.iter().for_each(|unit| unit.with_mut(|_| ()));
        // Only the models of syncs look at it.
        if from.len() == UNIT && self.durable == Durable::AtSync {
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
        self.memory.write(at, from)
    }

    fn flush(&self, _: u64, _: u64) {}

    fn fence(&self) {}

    fn sync(&self) -> io::Result<()> {
        if self.durable == Durable::AtSync {
            let writes = self.writes.load(Ordering::Relaxed);
            self.synced.store(writes, Ordering::Relaxed);
        }
        Ok(())
    }

    fn durable(&self) -> Durable {
        self.durable
    }
}

/// A store with one file, open.
pub struct World {
    medium: Arc<Watched>,
    store: Store<Arc<Watched>, Holders>,
    pub file: File<Arc<Watched>, Holders>,
}

/// Loom's clock: no two readings are the same.
fn now() -> i64 {
    prim::clock::nanoseconds().cast_signed()
}

fn opened(medium: &Arc<Watched>, durability: Durability) -> Store<Arc<Watched>, Holders> {
    let options = Options {
        durability,
        stocks: 2,
        now,
        ..Options::with_lock(Holders::new)
    };
    let (store, _) = Store::open(Arc::clone(medium), options).expect("it is sound");
    store
}

impl World {
    /// A file whose pages have been written so often, one after the other: page 0 is all ones, page 1 all twos.
    pub fn written(times: &[u64]) -> Arc<Self> {
        let world = Self::on(Durable::Never, Durability::Process);
        for &page in times {
            world.write(page, first(page));
        }
        world
    }

    /// An empty file.
    pub fn on(durable: Durable, durability: Durability) -> Arc<Self> {
        let medium = Watched::new(durable);
        let geometry = Geometry {
            inodes: Some(64),
            id: Some(7),
        };
        make(&medium, &geometry).expect("it fits");
        let store = opened(&medium, durability);
        let file = store.create("/f", 0o600).expect("room");
        Arc::new(Self {
            medium,
            store,
            file,
        })
    }

    /// Fills a page.
    pub fn write(&self, page: u64, byte: u8) {
        let at = page * PAGE as u64;
        self.file.write_at(&vec![byte; PAGE], at).expect("room");
    }

    /// The byte that a page is full of.
    pub fn read(&self, page: u64) -> u8 {
        let mut bytes = vec![0; PAGE];
        let read = self.file.read_at(&mut bytes, page * PAGE as u64);
        assert_eq!(read.expect("sound"), PAGE);
        let whole = bytes.iter().all(|byte| *byte == bytes[0]);
        assert!(whole, "a part of a write");
        bytes[0]
    }

    /// When it was last written, says the store.
    pub fn modified(&self) -> i64 {
        self.file.stat().expect("known").attributes.modified
    }

    /// Sets the file's permissions.
    pub fn set_mode(&self, mode: u32) {
        let ino = self.file.stat().expect("known").ino;
        let set = self.store.set_attributes(ino, |set| set.mode = mode);
        set.expect("room");
    }

    /// Runs `f` in a thread of its own.
    pub fn spawn<R: 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> R + 'static,
    ) -> JoinHandle<R> {
        let world = Arc::clone(self);
        thread::spawn(move || f(&world))
    }

    /// Numbers of entries written so far, and of those that the last sync has seen.
    pub fn entries(&self) -> (u64, u64) {
        let written = self.medium.writes.load(Ordering::Relaxed);
        (written, self.medium.synced.load(Ordering::Relaxed))
    }

    /// The pages are full of these bytes, now and after the process has been killed.
    pub fn is(&self, pages: &[u8]) {
        let stat = self.file.stat().expect("known");
        let mut content = vec![0; pages.len() * PAGE];
        let read = self.file.read_at(&mut content, 0);
        assert_eq!(read.expect("sound") as u64, stat.size);
        for (page, byte) in content.chunks(PAGE).zip(pages) {
            assert!(page.iter().all(|found| found == byte), "not {pages:?}");
        }
        let mut left = vec![0; PAGES * PAGE];
        self.medium.memory.read(0, &mut left).expect("in memory");
        let modified = stat.attributes.modified;
        // A coroutine's stack is small.
        let recovering = std::thread::spawn(move || recover(&left, &content, modified));
        recovering.join().expect("the same is recovered");
    }

    /// Free pages of the store.
    pub fn free_pages(&self) -> u64 {
        self.store.status().space.free
    }
}

/// What a page is full of at first.
pub fn first(page: u64) -> u8 {
    u8::try_from(page).expect("few pages") + 1
}

/// What a kill leaves has this content and this time, says the store on the hardware.
fn recover(left: &[u8], content: &[u8], modified: i64) {
    use spanlock_structures::store::{Medium, Memory, Options, Store};
    let medium = Memory::new(left.len() as u64);
    medium.write(0, left).expect("in memory");
    let (store, _) = Store::open(medium, Options::default()).expect("it is sound");
    let file = store.open_file("/f").expect("it is there");
    let stat = file.stat().expect("known");
    assert_eq!(
        (stat.size, stat.attributes.modified),
        (content.len() as u64, modified)
    );
    let mut found = vec![0; content.len()];
    file.read_at(&mut found, 0).expect("sound");
    assert_eq!(found, content);
}
