//! The locks: to add one, add an entry.

use super::{Exclusion, Lock, Make, OURS, WaitsFor};
use crate::baseline::{Bitmap, HEIGHT, KernelRw, LustreEx, MAX_HEIGHT, Pnova, Song};
use crate::setting::{BLOCK, Holds, Knob, Setting};
use crate::target::{Floor, Null, RangeLockCrate};
use spanlock::range::list::{Builder, Fairness, FastPath, Levels, ListEx, ListRw, SharedExclusive};
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::skip::{SkipEx, SkipRw};
use spanlock::range::{RangeLock, RangeMutex};

/// What list locks take of memory.
const LIST_MEMORY: &str = "64 bytes, and 64 a range held, from a pool of 8 KiB a thread";

/// The knob of locks that are skip lists.
const HEIGHT_KEY: &str = "h";

/// The height of the library's skip lists.
const SKIP_HEIGHT: Knob = Knob {
    key: HEIGHT_KEY,
    about: "lists, the one of all ranges included",
    allowed: 1..=SkipHeight::MAX_HEIGHT as u64,
};

/// What knows the bounds of that.
type SkipHeight = Builder<SharedExclusive, Levels>;

#[expect(clippy::cast_possible_truncation, reason = "no more than is allowed")]
fn skip_height(setting: &Setting) -> u32 {
    let chosen = setting.values.get(HEIGHT_KEY);
    chosen.map_or(SkipHeight::HEIGHT, |height| height as u32)
}

/// The largest segments, in powers of two, of which no two ranges of a workload share one.
fn segment(setting: &Setting) -> u64 {
    1 << setting.resource.grain.trailing_zeros()
}

/// All of them, in the order of tables.
pub static LOCKS: &[Lock] = &[
    Lock {
        name: OURS,
        family: "list",
        about: "readers and writers in a list: fair, fast path; the default RangeLock",
        when: "readers and writers of ranges",
        avoid: "every request is for everything; hundreds of ranges are held at a time",
        memory: LIST_MEMORY,
        source: "P1 §4.2-4.5, mended",
        measure: &Make(|_| RangeLock::new()),
        ..Lock::RANGES
    },
    Lock {
        name: "list-rw-nofast",
        family: "list",
        about: "list-rw without the fast path of an empty list",
        when: "to see what the fast path is worth",
        avoid: "otherwise",
        memory: LIST_MEMORY,
        source: "P1 §4.2-4.4, mended",
        rmw: "3",
        measure: &Make(|_| RangeLock::from_raw(ListRw::builder().fast_path(FastPath::Off).build())),
        ..Lock::RANGES
    },
    Lock {
        name: "list-rw-unfair",
        family: "list",
        about: "list-rw where a request may be overtaken without end",
        when: "throughput counts and no single wait does",
        avoid: "a request must not starve",
        memory: LIST_MEMORY,
        source: "P1 §4.2, §4.4-4.5, mended",
        measure: &Make(|_| {
            RangeLock::from_raw(ListRw::builder().fairness(Fairness::Unfair).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "list-ex",
        family: "list",
        about: "exclusive ranges in a list: fair, fast path; the default RangeMutex",
        when: "only writers",
        avoid: "there are readers",
        memory: LIST_MEMORY,
        source: "P1 §4.1, §4.3-4.5, mended",
        measure: &Make(|_| RangeMutex::new()),
        ..Lock::RANGES
    },
    Lock {
        name: "list-ex-nofast",
        family: "list",
        about: "list-ex without the fast path of an empty list",
        when: "to see what the fast path is worth",
        avoid: "otherwise",
        memory: LIST_MEMORY,
        source: "P1 §4.1, §4.3-4.4, mended",
        rmw: "3",
        measure: &Make(|_| {
            RangeMutex::from_raw(ListEx::builder().fast_path(FastPath::Off).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "skip-rw",
        family: "skip list",
        about: "list-rw with an index above the list: a skip list",
        when: "readers and writers, and dozens of ranges are held",
        avoid: "few ranges are held at a time, or writers meet shared ranges of very different lengths",
        memory: "192 bytes, and 64 a range held, or 192 with a tower, from pools of 14 KiB a thread",
        source: "P4 §3, mended",
        knobs: &[SKIP_HEIGHT],
        measure: &Make(|setting| {
            RangeLock::from_raw(SkipRw::builder().height(skip_height(setting)).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "skip-ex",
        family: "skip list",
        about: "list-ex with an index above the list: a skip list",
        when: "only writers, and dozens of ranges are held",
        avoid: "there are readers, or few ranges are held at a time",
        memory: "192 bytes, and 64 a range held, or 192 with a tower, from pools of 14 KiB a thread",
        source: "P4 §3, mended",
        knobs: &[SKIP_HEIGHT],
        measure: &Make(|setting| {
            RangeMutex::from_raw(SkipEx::builder().height(skip_height(setting)).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "srl-array",
        family: "segment",
        about: "a reader-writer word for each segment: fair, never waits with full hands",
        when: "ranges are narrow against a resource of known length; many are held at a time",
        avoid: "ranges are wide, or neighbours must not conflict",
        memory: "4 bytes a segment",
        source: "P3 §IV, mended",
        rmw: "2 a segment",
        measure: &Make(|setting| {
            let array = SrlArray::builder().segment(segment(setting));
            RangeLock::from_raw(array.length(setting.units()).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "srl-tree",
        family: "segment",
        about: "srl-array with its words in a radix tree of fan-out 16, made on demand",
        when: "as srl-array, for a large resource used in few places",
        avoid: "as srl-array, or everything is ever locked",
        memory: "4 bytes a segment in use, and the nodes above",
        source: "P3 §IV, mended",
        rmw: "2 a segment",
        measure: &Make(|setting| {
            let segments = setting.units().div_ceil(segment(setting));
            let depth = (1..16).find(|&depth| 16_u64.pow(depth) >= segments);
            let tree = SrlTree::builder().segment(segment(setting)).fan_out(16);
            RangeLock::from_raw(tree.depth(depth.unwrap_or(16)).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "pnova-rw",
        family: "segment",
        about: "srl-array as published: waits with full hands, readers win for ever",
        when: "to compare",
        avoid: "otherwise",
        memory: "4 bytes a segment",
        source: "P3 §IV",
        waits_for: WaitsFor::EarlierRequests,
        rmw: "2 a segment",
        measure: &Make(|setting| {
            RangeLock::from_raw(Pnova::new(setting.units(), segment(setting)))
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "kernel-rw",
        family: "interval tree",
        about: "readers and writers in an interval tree under a spin lock, first come first served",
        when: "to compare; hundreds are held, by few threads",
        avoid: "many threads: all meet at the spin lock; a thread holds several, as waiting requests block others",
        memory: "a node a request, in an arena",
        source: "P1 §3; Linux, Bueso",
        waits_for: WaitsFor::EarlierRequests,
        measure: &Make(|_| RangeLock::from_raw(KernelRw::new())),
        ..Lock::RANGES
    },
    Lock {
        name: "lustre-ex",
        family: "interval tree",
        about: "kernel-rw for exclusive ranges only",
        when: "to compare",
        avoid: "as kernel-rw, or there are readers",
        memory: "a node a request, in an arena",
        source: "P1 §3; Lustre",
        waits_for: WaitsFor::EarlierRequests,
        measure: &Make(|_| RangeMutex::from_raw(LustreEx::new())),
        ..Lock::RANGES
    },
    Lock {
        name: "song",
        family: "skip list, one spin lock",
        about: "exclusive ranges in a skip list under a spin lock",
        when: "hundreds are held, by few threads",
        avoid: "many threads: all meet at the spin lock; a request must not starve",
        memory: "a node a range held, in an arena",
        source: "Song et al., VEE 2013; P4 §2.1.2",
        knobs: &[Knob {
            key: HEIGHT_KEY,
            about: "levels of the skip list",
            allowed: 1..=MAX_HEIGHT as u64,
        }],
        measure: &Make(|setting| {
            let height = setting.values.get(HEIGHT_KEY);
            RangeMutex::from_raw(Song::new(height.map_or(HEIGHT, |height| height as usize)))
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "bitmap",
        family: "bitmap",
        about: "a bit per block, by compare-exchange",
        when: "ranges are few blocks of a small resource",
        avoid: "ranges are wide: an operation per 64 blocks; a request must not starve",
        memory: "a bit a block",
        source: "P4 §4.4.1",
        holds: Holds::OnePerBlock,
        knobs: &[Knob {
            key: BLOCK,
            about: "positions that conflict as one; unless told, as exact as the workload's ranges",
            allowed: 1..=u64::MAX,
        }],
        measure: &Make(|setting| {
            RangeMutex::from_raw(Bitmap::new(setting.units(), setting.block()))
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "std-rwlock",
        family: "whole resource",
        about: "std::sync::RwLock over the whole resource",
        when: "ranges mostly overlap; sections are short",
        avoid: "ranges are mostly disjoint",
        memory: "8 bytes, with what it protects",
        source: "Rust's standard library",
        measure: &Make(|_| std::sync::RwLock::new(())),
        ..Lock::WHOLE
    },
    Lock {
        name: "parking-lot",
        family: "whole resource",
        about: "parking_lot::RwLock over the whole resource",
        when: "as std-rwlock, and waits have time limits",
        avoid: "ranges are mostly disjoint",
        memory: "8 bytes, and a table for the process",
        source: "crate parking_lot",
        measure: &Make(|_| parking_lot::RwLock::new(())),
        ..Lock::WHOLE
    },
    Lock {
        name: "range-lock",
        family: "range-lock",
        about: "a mutex over a B-tree, exclusive; tries, spins, then yields",
        when: "to compare",
        avoid: "requests wait: it can only try",
        memory: "a node of the B-tree for a few ranges held",
        source: "crate range-lock",
        rmw: "4",
        measure: &Make(|setting| RangeLockCrate::new(setting.units())),
        ..Lock::RANGES
    },
    Lock {
        name: "null",
        family: "none",
        about: "no lock: the ceiling. Loses updates when threads overlap, and is not held to the check",
        when: "to compare",
        avoid: "anything depends on it",
        memory: "nothing",
        source: "-",
        exclusion: Exclusion::None,
        rmw: "0",
        measure: &Make(|_| Null),
        ..Lock::RANGES
    },
];

/// What no lock can do better than, for [`uncontended`](crate::uncontended) only.
pub static FLOORS: &[Lock] = &[
    Lock {
        name: "floor",
        family: "floor",
        about: "one compare-exchange and one store on a private line",
        when: "to compare",
        avoid: "otherwise",
        memory: "128 bytes",
        source: "-",
        rmw: "1",
        measure: &Make(|_| Floor::<0>::default()),
        ..Lock::WHOLE
    },
    Lock {
        name: "floor-2rmw",
        family: "floor",
        about: "two compare-exchanges on a private line",
        when: "to compare",
        avoid: "otherwise",
        memory: "128 bytes",
        source: "-",
        measure: &Make(|_| Floor::<1>::default()),
        ..Lock::WHOLE
    },
];
