//! Files in a store, with each of the locks that P3 compares, and others.

use super::{File, Load, PAGE_BYTES, Trial};
use crate::baseline::{KernelRw, Pnova};
use crate::crew::Meter;
use crate::raw::AnyRaw;
use prim::cost;
use spanlock::range::raw::RawRangeLock;
use spanlock::range::segment::SrlTree;
use spanlock_records::trial::run::Outcome;
use std::io;
use structures::store::{Durable, Geometry, Medium, Memory, Options, Store, locks, make};

/// How the lock of a file is made.
pub type Maker = fn() -> AnyRaw;

/// The locks of files, by name: to add one, add a line. The order is that of tables. If range locks are measured by the
/// same name, it is the same.
pub static ROWS: [(&str, Maker); 8] = [
    (INODE, || AnyRaw::new(locks::inode())),
    ("kernel-rw", || AnyRaw::new(KernelRw::new())),
    ("pnova-rw", || AnyRaw::new(pnova())),
    ("srl-array", || AnyRaw::new(locks::srl_array())),
    ("srl-tree", || AnyRaw::new(locks::srl_tree())),
    (WIDE, || AnyRaw::new(srl_tree_wide())),
    ("list-rw", || AnyRaw::new(locks::list_rw())),
    ("slots", || AnyRaw::new(locks::slots())),
];

/// The name of NOVA's lock, which is no range lock.
pub const INODE: &str = "inode";

/// The name of a segment lock whose segments are the widest of P3's Figure 15.
pub const WIDE: &str = "srl-tree-256k";

/// A word for 64 pages, in a tree for 64 GiB.
fn srl_tree_wide() -> SrlTree {
    let tree = SrlTree::builder().segment(64 * PAGE_BYTES as u64);
    tree.fan_out(64).depth(3).build()
}

/// P3's lock as published, of the size of [`locks::srl_array`].
fn pnova() -> Pnova {
    Pnova::new(1 << 30, PAGE_BYTES as u64)
}

/// Bytes of a medium on which a store has room for a trial: what is written, twice as much that is not free before the
/// next sync, logs, and 32 MB besides.
#[must_use]
pub fn room(load: Load, threads: usize) -> u64 {
    let pages = 3 * threads * load.pages + 8192;
    (pages * PAGE_BYTES) as u64
}

/// Runs a trial on files of a fresh store in a medium, with that lock.
///
/// # Errors
/// The store's.
pub fn run(
    medium: impl Medium,
    lock: Maker,
    trial: &Trial,
    meter: &mut dyn Meter,
) -> Result<Outcome, String> {
    let count = trial.load.files(trial.threads);
    // The identity is not random, so that simulated runs are alike.
    let geometry = Geometry {
        inodes: Some(count as u64 + 2),
        id: Some(1),
    };
    let opened = make(&medium, &geometry)
        .and_then(|()| Store::open(medium, Options::with_lock(lock)))
        .and_then(|(store, _)| {
            let create = |number| store.create(format!("/{number}"), 0o600);
            let files = (0..count).map(create).collect::<Result<Vec<_>, _>>()?;
            Ok((store, files))
        });
    let (_store, files) = opened.map_err(|error| error.to_string())?;
    super::run(&files, trial, meter)
}

impl<M: Medium, L: RawRangeLock + Send + Sync> File for structures::store::File<M, L> {
    fn read_at(&self, into: &mut [u8], at: u64) -> Result<(), String> {
        match self.read_at(into, at) {
            Ok(length) if length == into.len() => Ok(()),
            Ok(_) => Err("the file ends before".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write_at(&self, data: &[u8], at: u64) -> Result<(), String> {
        self.write_at(data, at)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// Persistent memory of a simulated machine: memory that takes time, and is durable at a fence.
///
/// Its bandwidth is not simulated, so threads are held up by locks, the index and the log alone.
#[derive(Debug)]
pub struct Priced(Memory);

/// Cycles for 64 bytes read. An assumption: 10 GB a second.
const READ: u64 = 16;

/// Cycles for 64 bytes written and flushed, and for their checksum. An assumption: 4 GB a second.
const WRITE: u64 = 40;

/// Cycles of a fence that waits for flushed lines. An assumption.
const FENCE: u64 = 250;

impl Priced {
    /// So many zero bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self(Memory::new(bytes))
    }
}

impl Medium for Priced {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        cost::work(READ * into.len().div_ceil(64) as u64);
        self.0.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        cost::work(WRITE * from.len().div_ceil(64) as u64);
        self.0.write(at, from)
    }

    fn flush(&self, _at: u64, _bytes: u64) {}

    fn fence(&self) {
        cost::work(FENCE);
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn durable(&self) -> Durable {
        Durable::AtFence
    }
}
