//! The locks over keys, each once: to add one, add a row.

use super::lock_table::LockTable;
use super::split::Split;
use super::{KeyLock, Load, Scanned};
use crate::set::table::Described;
use lock_api::RwLock;
use spanlock::range::keys::{KeyRangeLock, between, point};
use spanlock::range::raw::Mode;
use spanlock::rw::FutexRwLock;

/// A lock that can be run.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its description.
    pub described: Described,
    /// Makes one, for a load.
    pub make: fn(Load) -> Box<dyn KeyLock>,
}

/// Rows: of each lock its name, what it is, and how it is made for a load.
macro_rules! rows {
    ($($name:literal $about:literal $load:pat => $lock:expr;)+) => {
        &[$(Row {
            described: Described { name: $name, about: $about },
            make: |$load| Box::new($lock),
        },)+]
    };
}

/// The locks of both builds, in the order of tables.
pub static ROWS: &[Row] = rows! {
    "keys" "KeyRangeLock: a list of the ranges held, with an index"
        _ => KeyRangeLock::<[u8]>::new();
    "keys-split" "a KeySpace of 16 tables: the keys are cut into parts, and a request is in each part that it touches"
        load => Split::new(load);
    "lock-table" "the ranges held in a BTreeMap, under a mutex"
        _ => LockTable::new();
    "stripes" "1024 reader-writer locks, chosen by a hash of the key: for single keys only, and not exact"
        _ => Stripes::new();
    "null" "no lock"
        _ => Null;
};

impl KeyLock for KeyRangeLock<[u8]> {
    fn point(&self, key: &[u8], mode: Mode, inside: &mut dyn FnMut()) {
        match mode {
            Mode::Shared => {
                let _held = self.read(point(key));
                inside();
            }
            Mode::Exclusive => {
                let _held = self.write(point(key));
                inside();
            }
        }
    }

    fn scan(&self, from: &[u8], to: &[u8], mode: Mode, inside: &mut dyn FnMut()) -> Scanned {
        match mode {
            Mode::Shared => {
                let _held = self.read(between(from, to));
                inside();
            }
            Mode::Exclusive => {
                let _held = self.write(between(from, to));
                inside();
            }
        }
        Scanned::Yes
    }
}

/// Locks that are chosen by a hash of the key. Each has a cache line.
struct Stripes(Vec<Stripe>);

#[repr(align(64))]
struct Stripe(RwLock<FutexRwLock, ()>);

impl Stripes {
    const COUNT: usize = 1024;

    fn new() -> Self {
        Self((0..Self::COUNT).map(|_| Stripe(RwLock::new(()))).collect())
    }

    /// By FNV-1a.
    fn of(&self, key: &[u8]) -> &RwLock<FutexRwLock, ()> {
        let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        &self.0[(hash >> 40) as usize % Self::COUNT].0
    }
}

impl KeyLock for Stripes {
    fn point(&self, key: &[u8], mode: Mode, inside: &mut dyn FnMut()) {
        match mode {
            Mode::Shared => {
                let _held = self.of(key).read();
                inside();
            }
            Mode::Exclusive => {
                let _held = self.of(key).write();
                inside();
            }
        }
    }

    fn scan(&self, _: &[u8], _: &[u8], _: Mode, _: &mut dyn FnMut()) -> Scanned {
        Scanned::PointsOnly
    }
}

struct Null;

impl KeyLock for Null {
    fn point(&self, _: &[u8], _: Mode, inside: &mut dyn FnMut()) {
        inside();
    }

    fn scan(&self, _: &[u8], _: &[u8], _: Mode, inside: &mut dyn FnMut()) -> Scanned {
        inside();
        Scanned::Yes
    }
}
