//! The sets, each once: to add one, add a row. Peers that are on hardware only are in `bench`.

use super::Set;
use crate::baseline::{KernelRw, LustreEx};
use spanlock::range::list::{ListEx, ListRw};
use spanlock::range::skip::SkipEx;
use spanlock::range::slots::RawSlots;
use structures::ordered::exclusion::Exclusion;
use structures::ordered::{ByNode, ByRange, RangeSkipSet};

impl<X: Exclusion + Send + Sync> Set for RangeSkipSet<u64, X> {
    fn contains(&self, key: u64) -> bool {
        RangeSkipSet::contains(self, &key)
    }

    fn insert(&self, key: u64) -> bool {
        RangeSkipSet::insert(self, key)
    }

    fn remove(&self, key: u64) -> bool {
        RangeSkipSet::remove(self, &key)
    }

    fn scan(&self, from: u64, most: usize) -> Option<usize> {
        Some(self.pin().range(from..).take(most).count())
    }

    fn len(&self) -> Option<usize> {
        Some(self.pin().iter().count())
    }
}

/// The description of a set, or of what takes its place.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    /// Its name for users.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
}

/// A set that can be run.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its description.
    pub described: Described,
    /// Makes one.
    pub make: fn() -> Box<dyn Set>,
}

/// A skip list whose updates exclude each other so.
fn list<X: Exclusion>(exclusion: X) -> RangeSkipSet<u64, X> {
    RangeSkipSet::with_exclusion(exclusion)
}

/// Rows: of each set its name, what it is, and how it is made.
#[macro_export]
macro_rules! rows {
    ($($name:literal $about:literal $set:expr;)+) => {
        &[$($crate::set::table::Row {
            described: $crate::set::table::Described { name: $name, about: $about },
            make: || ::std::boxed::Box::new($set),
        },)+]
    };
}

/// The sets of both builds, in the order of tables.
pub static ROWS: &[Row] = rows! {
    "range-slots" "skip list under one range lock: slots, the default of RangeSkipSet"
        list(ByRange::new(RawSlots::new()));
    "range-list-rw" "skip list under one range lock: list-rw"
        list(ByRange::new(ListRw::new()));
    "range-list-ex" "skip list under one range lock: list-ex"
        list(ByRange::new(ListEx::new()));
    "range-skip-ex" "skip list under one range lock: skip-ex"
        list(ByRange::new(SkipEx::builder().build()));
    "range-kernel-rw" "skip list under one range lock: kernel-rw"
        list(ByRange::new(KernelRw::new()));
    "range-lustre-ex" "skip list under one range lock: lustre-ex"
        list(ByRange::new(LustreEx::new()));
    "orig" "skip list with a lock in each node, after Herlihy et al."
        list(ByNode::new());
};
