//! The range locks, each once: to add one, add a row. Peers that are on hardware only are in `bench`.
//!
//! A [`Table`] takes the rows: for each a lock in words, and how it is made, with its type.
//! The order is that of tables of results.

use baseline::{Bitmap, HEIGHT, KernelRw, LustreEx, MAX_HEIGHT, Pnova, Song};
use prim::clock::Duration;
use spanlock::range::list::{
    Builder, Fairness, FastPath, ListEx, ListRw, Preference, SharedExclusive, SkipIndex,
};
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::skip::{SkipEx, SkipRw};
use spanlock::range::slots::RawSlots;
use spanlock_trial::lock::{Described, Overtaking, WaitsFor};
use spanlock_trial::setting::{BLOCK, Holds, Param, Setting};

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

/// Families of the library's locks.
const LIST: &str = "list";
const SKIP_LIST: &str = "skip list";
const SEGMENT: &str = "segment";
const SLOTS: &str = "slots";

/// The memory of list locks.
const LIST_MEMORY: &str = "64 bytes, and 64 a range held, from a pool of 8 KiB a thread";

/// The parameter of locks that are skip lists.
const HEIGHT_KEY: &str = "h";

/// The height of the library's skip lists.
const SKIP_HEIGHT: Param = Param {
    key: HEIGHT_KEY,
    about: "lists, the one of all ranges included",
    allowed: 1..=SkipHeight::MAX_HEIGHT as u64,
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

/// The library's.
fn library(table: &mut impl Table) {
    table.shared(
        Described {
            name: "list-rw",
            family: LIST,
            about: "readers and writers in a list: fair, fast path",
            when: "readers and writers of ranges",
            avoid: "every request is for everything; hundreds of ranges are held at a time",
            memory: LIST_MEMORY,
            source: "P1 §4.2-4.5, mended",
            ..Described::OURS
        },
        |_| ListRw::new(),
    );
    table.shared(
        Described {
            name: "list-rw-nofast",
            family: LIST,
            about: "list-rw without the fast path of an empty list",
            when: "to see what the fast path is worth",
            avoid: "otherwise",
            memory: LIST_MEMORY,
            source: "P1 §4.2-4.4, mended",
            rmw: "3",
            ..Described::OURS
        },
        |_| ListRw::builder().fast_path(FastPath::Off).build(),
    );
    table.shared(
        Described {
            name: "list-rw-unfair",
            family: LIST,
            about: "list-rw where a request may be overtaken without end",
            when: "throughput counts and no single wait does",
            avoid: "a request must not starve",
            memory: LIST_MEMORY,
            source: "P1 §4.2, §4.4-4.5, mended",
            overtaking: Overtaking::Endless,
            ..Described::OURS
        },
        |_| ListRw::builder().fairness(Fairness::Unfair).build(),
    );
    table.exclusive(
        Described {
            name: "list-ex",
            family: LIST,
            about: "exclusive ranges in a list: fair, fast path",
            when: "only writers",
            avoid: "there are readers",
            memory: LIST_MEMORY,
            source: "P1 §4.1, §4.3-4.5, mended",
            ..Described::OURS
        },
        |_| ListEx::new(),
    );
    table.exclusive(
        Described {
            name: "list-ex-nofast",
            family: LIST,
            about: "list-ex without the fast path of an empty list",
            when: "to see what the fast path is worth",
            avoid: "otherwise",
            memory: LIST_MEMORY,
            source: "P1 §4.1, §4.3-4.4, mended",
            rmw: "3",
            ..Described::OURS
        },
        |_| ListEx::builder().fast_path(FastPath::Off).build(),
    );
    table.shared(
        Described {
            name: "skip-rw",
            family: SKIP_LIST,
            about: "list-rw with an index above the list: a skip list",
            when: "readers and writers, and dozens of ranges are held",
            avoid: "few ranges are held at a time, or writers meet shared ranges of very different lengths",
            memory: "192 bytes, and 64 a range held, or 192 with a tower, from pools of 14 KiB a thread",
            source: "P4 §3, mended",
            params: &[SKIP_HEIGHT],
            ..Described::OURS
        },
        |setting| {
            SkipRw::builder().height(skip_height(setting)).build()
        },
    );
    table.exclusive(
        Described {
            name: "skip-ex",
            family: SKIP_LIST,
            about: "list-ex with an index above the list: a skip list",
            when: "only writers, and dozens of ranges are held",
            avoid: "there are readers, or few ranges are held at a time",
            memory: "192 bytes, and 64 a range held, or 192 with a tower, from pools of 14 KiB a thread",
            source: "P4 §3, mended",
            params: &[SKIP_HEIGHT],
            ..Described::OURS
        },
        |setting| {
            SkipEx::builder().height(skip_height(setting)).build()
        },
    );
    table.shared(
        Described {
            name: "slots",
            family: SLOTS,
            about: "list-rw at first; where threads meet, each announces its range in a slot of its own",
            when: "readers and writers of ranges, many threads",
            avoid: "hundreds of ranges are held at a time",
            memory: "64 bytes; once threads have met 256, and 128 a thread and range held; buckets 2 KB a processor",
            source: "this project",
            ..Described::OURS
        },
        |_| RawSlots::new(),
    );
    table.shared(
        Described {
            name: "srl-array",
            family: SEGMENT,
            about: "a reader-writer word for each segment: fair, never waits with full hands",
            when: "ranges are narrow against a resource of known length; many are held at a time",
            avoid: "ranges are wide, or neighbours must not conflict",
            memory: "4 bytes a segment",
            source: "P3 §IV, mended",
            rmw: "2 a segment",
            ..Described::OURS
        },
        |setting| {
            let array = SrlArray::builder().segment(segment(setting));
            array.length(setting.units()).build()
        },
    );
    table.shared(
        Described {
            name: "srl-tree",
            family: SEGMENT,
            about: "srl-array with its words in a radix tree of fan-out 16, made on demand",
            when: "as srl-array, for a large resource used in few places",
            avoid: "as srl-array, or everything is ever locked",
            memory: "4 bytes a segment in use, and the nodes above",
            source: "P3 §IV, mended",
            rmw: "2 a segment",
            ..Described::OURS
        },
        |setting| {
            let tree = SrlTree::builder().segment(segment(setting)).fan_out(16);
            tree.depth(depth(setting)).build()
        },
    );
}

/// Those that the library's are compared with.
fn baselines(table: &mut impl Table) {
    table.shared(
        Described {
            name: "pnova-rw",
            family: SEGMENT,
            about: "srl-array as published: waits with full hands, readers win for ever",
            when: "to compare",
            avoid: "otherwise",
            memory: "4 bytes a segment",
            source: "P3 §IV",
            waits_for: WaitsFor::EarlierRequests,
            rmw: "2 a segment",
            overtaking: Overtaking::Endless,
            ..Described::RANGES
        },
        |setting| Pnova::new(setting.units(), segment(setting)),
    );
    table.shared(
        Described {
            name: "kernel-rw",
            family: "interval tree",
            about: "readers and writers in an interval tree under a spin lock, first come first served",
            when: "to compare; hundreds are held, by few threads",
            avoid: "many threads: all meet at the spin lock; a thread holds several, as waiting requests block others",
            memory: "a node a request, in an arena",
            source: "P1 §3; Linux, Bueso",
            waits_for: WaitsFor::EarlierRequests,
            ..Described::RANGES
        },
        |_| KernelRw::new(),
    );
    table.exclusive(
        Described {
            name: "lustre-ex",
            family: "interval tree",
            about: "kernel-rw for exclusive ranges only",
            when: "to compare",
            avoid: "as kernel-rw, or there are readers",
            memory: "a node a request, in an arena",
            source: "P1 §3; Lustre",
            waits_for: WaitsFor::EarlierRequests,
            ..Described::RANGES
        },
        |_| LustreEx::new(),
    );
    table.exclusive(
        Described {
            name: "song",
            family: "skip list, one spin lock",
            about: "exclusive ranges in a skip list under a spin lock",
            when: "hundreds are held, by few threads",
            avoid: "many threads: all meet at the spin lock; a request must not starve",
            memory: "a node a range held, in an arena",
            source: "Song et al., VEE 2013; P4 §2.1.2",
            params: &[Param {
                key: HEIGHT_KEY,
                about: "levels of the skip list",
                allowed: 1..=MAX_HEIGHT as u64,
            }],
            overtaking: Overtaking::Endless,
            ..Described::RANGES
        },
        |setting| {
            let height = setting.values.get(HEIGHT_KEY);
            Song::new(height.map_or(HEIGHT, |height| height as usize))
        },
    );
    table.exclusive(
        Described {
            name: "bitmap",
            family: "bitmap",
            about: "a bit per block, by compare-exchange",
            when: "ranges are few blocks of a small resource",
            avoid: "ranges are wide: an operation per 64 blocks; a request must not starve",
            memory: "a bit a block",
            source: "P4 §4.4.1",
            holds: Holds::OnePerBlock,
            params: &[Param {
                key: BLOCK,
                about: "positions that conflict as one; by default, as exact as the workload's ranges",
                allowed: 1..=u64::MAX,
            }],
            overtaking: Overtaking::Endless,
            ..Described::RANGES
        },
        |setting| {
            Bitmap::new(setting.units(), setting.block())
        },
    );
}

/// Further configurations of the library's, in which other paths are taken. Their names say what they are.
fn configurations(table: &mut impl Table) {
    let fair = |family, name| Described {
        family,
        ..Described::configuration(name)
    };
    let unfair = |family, name| Described {
        overtaking: Overtaking::Endless,
        ..fair(family, name)
    };
    table.shared(fair(LIST, "list-rw-at-once"), |_| {
        ListRw::builder().fairness(AT_ONCE).build()
    });
    table.shared(fair(LIST, "list-rw-writers"), |_| {
        ListRw::builder().preference(Preference::Writers).build()
    });
    table.shared(fair(LIST, "list-rw-writers-at-once"), |_| {
        let list = ListRw::builder().preference(Preference::Writers);
        list.fairness(AT_ONCE).build()
    });
    table.shared(fair(LIST, "list-rw-nofast-at-once"), |_| {
        let list = ListRw::builder().fast_path(FastPath::Off);
        list.fairness(AT_ONCE).build()
    });
    table.exclusive(unfair(LIST, "list-ex-unfair"), |_| {
        ListEx::builder().fairness(Fairness::Unfair).build()
    });
    table.exclusive(fair(LIST, "list-ex-at-once"), |_| {
        ListEx::builder().fairness(AT_ONCE).build()
    });
    table.shared(fair(SKIP_LIST, "skip-rw-at-once"), |_| {
        SkipRw::builder().fairness(AT_ONCE).build()
    });
    table.shared(fair(SKIP_LIST, "skip-rw-nofast"), |_| {
        SkipRw::builder().fast_path(FastPath::Off).build()
    });
    table.shared(unfair(SKIP_LIST, "skip-rw-unfair"), |_| {
        SkipRw::builder().fairness(Fairness::Unfair).build()
    });
    table.shared(fair(SKIP_LIST, "skip-rw-writers"), |_| {
        SkipRw::builder().preference(Preference::Writers).build()
    });
    table.shared(fair(SKIP_LIST, "skip-rw-flat"), |_| {
        SkipRw::builder().height(1).build()
    });
    table.exclusive(fair(SKIP_LIST, "skip-ex-at-once"), |_| {
        SkipEx::builder().fairness(AT_ONCE).build()
    });
    table.shared(fair(SLOTS, "slots-born"), |_| {
        RawSlots::builder().slots_at_once().build()
    });
    table.shared(fair(SLOTS, "slots-at-once"), |_| {
        let slots = RawSlots::builder().slots_at_once();
        slots.fairness(AT_ONCE).build()
    });
    table.shared(fair(SLOTS, "slots-buckets"), |_| {
        RawSlots::builder().buckets_at_once(1).build()
    });
    table.shared(unfair(SLOTS, "slots-unfair"), |_| {
        RawSlots::builder().fairness(Fairness::Unfair).build()
    });
    table.shared(fair(SEGMENT, "srl-array-at-once"), |setting| {
        let array = SrlArray::builder().segment(segment(setting));
        array.length(setting.units()).fairness(AT_ONCE).build()
    });
    table.shared(unfair(SEGMENT, "srl-array-unfair"), |_| {
        let array = SrlArray::builder().segments(FEW);
        array.fairness(Fairness::Unfair).build()
    });
    table.shared(fair(SEGMENT, "srl-array-wide"), |_| {
        SrlArray::builder().segment(4).segments(FEW).build()
    });
    table.shared(fair(SEGMENT, "srl-tree-wide"), |_| {
        SrlTree::builder().segment(4).fan_out(2).depth(4).build()
    });
    table.shared(fair(SEGMENT, "srl-tree-at-once"), |_| {
        let tree = SrlTree::builder().fan_out(4).depth(2);
        tree.fairness(AT_ONCE).build()
    });
}
