//! The range locks, each once: to add one, add a row. Peers that are on hardware only are in `bench`.
//!
//! A [`Table`] takes the rows: for each a lock in words, and how it is made, with its type. The words are data, in
//! `records/src/trial/locks.toml`.
//! The order is that of tables of results.

use crate::baseline::{Bitmap, HEIGHT, KernelRw, LustreEx, MAX_HEIGHT, Pnova, Song};
use crate::by_owners::ByOwners;
use prim::clock::Duration;
use spanlock::range::list::{
    Builder, Fairness, FastPath, ListEx, ListRw, Preference, SharedExclusive, SkipIndex,
};
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::skip::{SkipEx, SkipRw};
use spanlock::range::slots::RawSlots;
use spanlock_records::trial::lock::{Described, described};
use spanlock_records::trial::setting::{BLOCK, Param, Setting};

/// Takes the rows.
pub trait Table {
    /// A lock with readers.
    fn shared<L: Shared>(&mut self, described: Described, make: Maker<L>);

    /// A lock without.
    fn exclusive<L: Exclusive>(&mut self, described: Described, make: Maker<L>);
}

/// How a lock is made.
pub type Maker<L> = fn(&Setting) -> L;

/// A lock that threads can share.
pub trait Exclusive: RawRangeMutex + Send + Sync + 'static {}
impl<L: RawRangeMutex + Send + Sync + 'static> Exclusive for L {}

/// The same, with readers.
pub trait Shared: RawRangeLock + Exclusive {}
impl<L: RawRangeLock + Exclusive> Shared for L {}

/// The parameter of locks that are skip lists.
const HEIGHT_KEY: &str = "h";

/// The height of the library's skip lists.
const SKIP_HEIGHT: Param = Param {
    key: HEIGHT_KEY,
    about: "lists, the one of all ranges included",
    allowed: 1..=SkipHeight::MAX_HEIGHT as u64,
};

/// The height of Song's.
const SONG_HEIGHT: Param = Param {
    key: HEIGHT_KEY,
    about: "levels of the skip list",
    allowed: 1..=MAX_HEIGHT as u64,
};

/// The size of a bitmap's blocks.
const BLOCKS: Param = Param {
    key: BLOCK,
    about: "positions that conflict as one; by default, as exact as the workload's ranges",
    allowed: 1..=u64::MAX,
};

/// Its bounds are the builder's.
type SkipHeight = Builder<SharedExclusive, SkipIndex>;

#[expect(clippy::cast_possible_truncation, reason = "no more than is allowed")]
fn skip_height(setting: &Setting) -> u32 {
    let chosen = setting.values.get(HEIGHT_KEY);
    chosen.map_or(SkipHeight::HEIGHT, |height| height as u32)
}

/// The largest segments, in powers of two, of which no two ranges of a workload share one.
fn segment(setting: &Setting) -> u64 {
    1 << setting.resource.grain.trailing_zeros()
}

/// The depth of a tree of fan-out 16 that has a leaf for each of those segments.
fn depth(setting: &Setting) -> u32 {
    let segments = setting.units().div_ceil(segment(setting));
    let depth = (1..16).find(|&depth| 16_u64.pow(depth) >= segments);
    depth.unwrap_or(16)
}

/// Gives way to a waiting request at once.
const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

/// Segments of a configuration: few, for most of the fuzzer's work is on few places.
const FEW: usize = 16;

/// All of them.
pub fn all(table: &mut impl Table) {
    library(table);
    baselines(table);
    configurations(table);
}

/// Rows: of each lock its kind, its name, the parameters that users may choose, and how it is made.
macro_rules! rows {
    ($table:ident: $($kind:ident $name:literal $(taking $param:ident)? |$setting:pat_param| $make:expr;)+) => {
        $($table.$kind(described($name).taking(&[$($param)?]), |$setting| $make);)+
    };
}

/// The library's.
fn library(table: &mut impl Table) {
    rows! {
        table:
        shared "list-rw" |_| ListRw::new();
        shared "list-rw-nofast" |_| ListRw::builder().fast_path(FastPath::Off).build();
        shared "list-rw-unfair" |_| ListRw::builder().fairness(Fairness::Unfair).build();
        exclusive "list-ex" |_| ListEx::new();
        exclusive "list-ex-nofast" |_| ListEx::builder().fast_path(FastPath::Off).build();
        shared "skip-rw" taking SKIP_HEIGHT |setting| SkipRw::builder().height(skip_height(setting)).build();
        exclusive "skip-ex" taking SKIP_HEIGHT |setting| SkipEx::builder().height(skip_height(setting)).build();
        shared "slots" |_| RawSlots::new();
        shared "slots-owners" |_| ByOwners(RawSlots::builder().slots_at_once().build());
        shared "srl-array" |setting| SrlArray::builder().segment(segment(setting)).length(setting.units()).build();
        shared "srl-tree" |setting| {
            let tree = SrlTree::builder().segment(segment(setting)).fan_out(16);
            tree.depth(depth(setting)).build()
        };
    }
}

/// Those that the library's are compared with.
fn baselines(table: &mut impl Table) {
    rows! {
        table:
        shared "pnova-rw" |setting| Pnova::new(setting.units(), segment(setting));
        shared "kernel-rw" |_| KernelRw::new();
        exclusive "lustre-ex" |_| LustreEx::new();
        exclusive "song" taking SONG_HEIGHT |setting| {
            let height = setting.values.get(HEIGHT_KEY);
            Song::new(height.map_or(HEIGHT, |height| height as usize))
        };
        exclusive "bitmap" taking BLOCKS |setting| Bitmap::new(setting.units(), setting.block());
    }
}

/// Further configurations of the library's, in which other paths are taken. Their names say what they are.
fn configurations(table: &mut impl Table) {
    rows! {
        table:
        shared "list-rw-at-once" |_| ListRw::builder().fairness(AT_ONCE).build();
        shared "list-rw-writers" |_| ListRw::builder().preference(Preference::Writers).build();
        shared "list-rw-writers-at-once" |_| {
            let list = ListRw::builder().preference(Preference::Writers);
            list.fairness(AT_ONCE).build()
        };
        shared "list-rw-nofast-at-once" |_| ListRw::builder().fast_path(FastPath::Off).fairness(AT_ONCE).build();
        exclusive "list-ex-unfair" |_| ListEx::builder().fairness(Fairness::Unfair).build();
        exclusive "list-ex-at-once" |_| ListEx::builder().fairness(AT_ONCE).build();
        shared "skip-rw-at-once" |_| SkipRw::builder().fairness(AT_ONCE).build();
        shared "skip-rw-nofast" |_| SkipRw::builder().fast_path(FastPath::Off).build();
        shared "skip-rw-unfair" |_| SkipRw::builder().fairness(Fairness::Unfair).build();
        shared "skip-rw-writers" |_| SkipRw::builder().preference(Preference::Writers).build();
        shared "skip-rw-flat" |_| SkipRw::builder().height(1).build();
        exclusive "skip-ex-at-once" |_| SkipEx::builder().fairness(AT_ONCE).build();
        shared "slots-born" |_| RawSlots::builder().slots_at_once().build();
        shared "slots-at-once" |_| RawSlots::builder().slots_at_once().fairness(AT_ONCE).build();
        shared "slots-buckets" |_| RawSlots::builder().buckets_at_once(1).build();
        shared "slots-annex" |_| RawSlots::builder().annex_at_once().build();
        shared "slots-unfair" |_| RawSlots::builder().fairness(Fairness::Unfair).build();
        shared "srl-array-at-once" |setting| {
            let array = SrlArray::builder().segment(segment(setting));
            array.length(setting.units()).fairness(AT_ONCE).build()
        };
        shared "srl-array-unfair" |_| SrlArray::builder().segments(FEW).fairness(Fairness::Unfair).build();
        shared "srl-array-wide" |_| SrlArray::builder().segment(4).segments(FEW).build();
        shared "srl-tree-wide" |_| SrlTree::builder().segment(4).fan_out(2).depth(4).build();
        shared "srl-tree-at-once" |_| SrlTree::builder().fan_out(4).depth(2).fairness(AT_ONCE).build();
    }
}
