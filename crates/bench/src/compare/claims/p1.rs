//! P1, Scalable Range Locks: §7.1, all it says of results in user space but for noise.

use super::{ALMOST, Claim, HARDLY, Place, Quorum, Relation, WIDE};
use crate::arr::Variant;

const AB: &str = "P1 §7.1, Fig. 3 (a, b)";
const CD: &str = "P1 §7.1, Fig. 3 (c, d)";
const EF: &str = "P1 §7.1, Fig. 3 (e, f)";
const SKIP: &str = "P1 §7.1, Fig. 4";

const FULL: Place = Place::Arr(Variant::Full, (60, 100));
const DISJOINT: Place = Place::Arr(Variant::Disjoint, (60, 100));
const RANDOM: Place = Place::Arr(Variant::Random, (60, 100));

const PUBLISHED: &[&str] = &["lustre-ex", "kernel-rw", "pnova-rw", "list-ex", "list-rw"];

/// "Similar", of mixtures of reads and writes that differ: up to this factor.
const LIKE: f64 = 1.5;

const NO_SKIP_LIST: Relation =
    Relation::Unmeasured("no skip list that locks ranges is built here yet");

pub(super) static CLAIMS: &[Claim] = &[
    Claim {
        source: AB,
        says: "on the full range, lustre-ex does not scale at all",
        place: FULL,
        threads: (2, 40),
        relation: Relation::Flat(&["lustre-ex"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: AB,
        says: "on the full range, list-ex scales to a few threads, as there is work outside the lock",
        place: FULL,
        threads: (2, 4),
        relation: Relation::Rises(&["list-ex"]),
        quorum: Quorum::All,
    },
    Claim {
        source: AB,
        says: "on the full range, list-ex is mostly above kernel-rw, though that lets readers share",
        place: FULL,
        threads: (2, 40),
        relation: Relation::Above(&["list-ex"], &["kernel-rw"], 1.0),
        quorum: Quorum::Most,
    },
    Claim {
        source: AB,
        says: "on the full range, segment locks do not scale: each acquisition takes all segments",
        place: FULL,
        threads: (2, 40),
        relation: Relation::Flat(&["pnova-rw"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: AB,
        says: "on the full range, list-rw scales with most numbers of threads",
        place: FULL,
        threads: (2, 40),
        relation: Relation::Rises(&["list-rw"]),
        quorum: Quorum::Most,
    },
    Claim {
        source: AB,
        says: "on the full range, 80 % reads are like 60 %, and left out",
        place: Place::Arr(Variant::Full, (80, 80)),
        threads: (2, 40),
        relation: Relation::LikeReads(PUBLISHED, 60, LIKE),
        quorum: Quorum::All,
    },
    Claim {
        source: CD,
        says: "on disjoint ranges, all scale almost linearly up to 4 to 8 threads",
        place: DISJOINT,
        threads: (2, 4),
        relation: Relation::Linear(
            &["lustre-ex", "kernel-rw", "list-ex", "list-rw", "pnova-rw"],
            ALMOST,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: CD,
        says: "on disjoint ranges, lustre-ex and kernel-rw degrade beyond 8 threads",
        place: DISJOINT,
        threads: (9, 40),
        relation: Relation::Falls(&["lustre-ex", "kernel-rw"], 8),
        quorum: Quorum::All,
    },
    Claim {
        source: CD,
        says: "on disjoint ranges, list-ex and list-rw scale with all numbers of threads",
        place: DISJOINT,
        threads: (2, 40),
        relation: Relation::Rises(&["list-ex", "list-rw"]),
        quorum: Quorum::All,
    },
    Claim {
        source: CD,
        says: "on disjoint ranges, list-ex and list-rw scale less than linearly",
        place: DISJOINT,
        threads: (2, 40),
        relation: Relation::Sublinear(&["list-ex", "list-rw"]),
        quorum: Quorum::Most,
    },
    Claim {
        source: CD,
        says: "on disjoint ranges, segment locks top the charts",
        place: DISJOINT,
        threads: (2, 40),
        relation: Relation::Above(
            &["pnova-rw"],
            &["lustre-ex", "kernel-rw", "list-ex", "list-rw"],
            1.0,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: CD,
        says: "on disjoint ranges, 80 % reads are like 60 %, and left out",
        place: Place::Arr(Variant::Disjoint, (80, 80)),
        threads: (2, 40),
        relation: Relation::LikeReads(PUBLISHED, 60, LIKE),
        quorum: Quorum::All,
    },
    Claim {
        source: EF,
        says: "on random ranges, lustre-ex does not scale",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::Flat(&["lustre-ex"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: EF,
        says: "on random ranges, kernel-rw scales to a few threads",
        place: RANDOM,
        threads: (2, 4),
        relation: Relation::Rises(&["kernel-rw"]),
        quorum: Quorum::All,
    },
    Claim {
        source: EF,
        says: "on random ranges, list-ex is above kernel-rw, though exclusive",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::Above(&["list-ex"], &["kernel-rw"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: EF,
        says: "on random ranges with writes, list-ex is far above kernel-rw",
        place: Place::Arr(Variant::Random, (60, 99)),
        threads: (2, 40),
        relation: Relation::Above(&["list-ex"], &["kernel-rw"], WIDE),
        quorum: Quorum::Some,
    },
    Claim {
        source: EF,
        says: "on random ranges, segment locks do poorly: below list-rw",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::Above(&["list-rw"], &["pnova-rw"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: EF,
        says: "on random ranges, list-rw is above all others",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::Above(
            &["list-rw"],
            &["lustre-ex", "kernel-rw", "list-ex", "pnova-rw"],
            1.0,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: EF,
        says: "on random ranges, list-rw scales better than any other",
        place: RANDOM,
        threads: (2, 40),
        relation: Relation::ScalesBeyond(
            &["list-rw"],
            &["lustre-ex", "kernel-rw", "list-ex", "pnova-rw"],
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: EF,
        says: "on random ranges, 80 % reads are like 60 %, and left out",
        place: Place::Arr(Variant::Random, (80, 80)),
        threads: (2, 40),
        relation: Relation::LikeReads(PUBLISHED, 60, LIKE),
        quorum: Quorum::All,
    },
    Claim {
        source: SKIP,
        says: "a skip list that locks ranges does as much as one with a lock in each node",
        place: Place::Nowhere,
        threads: (1, 40),
        relation: NO_SKIP_LIST,
        quorum: Quorum::All,
    },
    Claim {
        source: SKIP,
        says: "its form over lustre-ex keeps up at few threads",
        place: Place::Nowhere,
        threads: (1, 40),
        relation: NO_SKIP_LIST,
        quorum: Quorum::All,
    },
    Claim {
        source: SKIP,
        says: "and falls to less than half at many",
        place: Place::Nowhere,
        threads: (1, 40),
        relation: NO_SKIP_LIST,
        quorum: Quorum::All,
    },
];
