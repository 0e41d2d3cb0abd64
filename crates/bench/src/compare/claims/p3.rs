//! P3, segment range locks in NOVA: what it says of locks, and what of throughput carries over from files to memory.

use super::{Claim, HARDLY, Place, Quorum, Relation, SIMILAR, WIDE};
use crate::arr::Variant;
use crate::compare::Phase;

const LATENCY: &str = "P3 §VI-B1, Fig. 10";
const MEMORY: &str = "P3 §VI-B2, Fig. 11";
const WRITERS: &str = "P3 §VI-B3, Fig. 12 (a)";
const READING: &str = "P3 §VI-B3, Fig. 12 (b)";

const FIRST: Place = Place::Longest(&[Phase::First]);
const AGAIN: Place = Place::Longest(&[Phase::Again]);
const BOTH: Place = Place::Longest(&[Phase::First, Phase::Again]);
const READERS: Place = Place::Arr(Variant::Disjoint, (100, 100));

const COUNTED: Relation =
    Relation::Unmeasured("this report has no figure of memory: see spanlock bench memory");

pub(super) static CLAIMS: &[Claim] = &[
    Claim {
        source: LATENCY,
        says: "SRL(array) has a lower longest acquisition than an interval tree",
        place: BOTH,
        threads: (2, 56),
        relation: Relation::Above(&["kernel-rw"], &["srl-array"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: LATENCY,
        says: "the longest acquisition of an interval tree grows with threads",
        place: BOTH,
        threads: (2, 28),
        relation: Relation::Rises(&["kernel-rw"]),
        quorum: Quorum::All,
    },
    Claim {
        source: LATENCY,
        says: "with 28 threads, first acquisitions of an interval tree take up to 5.2 times those of SRL(array)",
        place: FIRST,
        threads: (28, 28),
        relation: Relation::Above(&["kernel-rw"], &["srl-array"], 5.2),
        quorum: Quorum::All,
    },
    Claim {
        source: LATENCY,
        says: "with 28 threads, later acquisitions of an interval tree take up to 16.2 times those of SRL(array)",
        place: AGAIN,
        threads: (28, 28),
        relation: Relation::Above(&["kernel-rw"], &["srl-array"], 16.2),
        quorum: Quorum::All,
    },
    Claim {
        source: LATENCY,
        says: "with one thread, SRL(tree) has the highest: it makes segments when they are first locked",
        place: FIRST,
        threads: (1, 1),
        relation: Relation::Above(&["srl-tree"], &["srl-array", "kernel-rw"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: LATENCY,
        says: "first acquisitions of SRL(tree) depend little on how many threads there are",
        place: FIRST,
        threads: (2, 28),
        relation: Relation::Steady(&["srl-tree"], 1, WIDE),
        quorum: Quorum::All,
    },
    Claim {
        source: LATENCY,
        says: "later acquisitions of SRL(tree) are like those of SRL(array)",
        place: AGAIN,
        threads: (1, 28),
        relation: Relation::Alike(&["srl-tree"], &["srl-array"], WIDE),
        quorum: Quorum::All,
    },
    Claim {
        source: MEMORY,
        says: "SRL(tree) takes less memory than SRL(array) while a third of the resource is in use or less",
        place: Place::Nowhere,
        threads: (1, 56),
        relation: COUNTED,
        quorum: Quorum::All,
    },
    Claim {
        source: MEMORY,
        says: "memory of an interval tree grows with threads, that of segment locks does not",
        place: Place::Nowhere,
        threads: (1, 56),
        relation: COUNTED,
        quorum: Quorum::All,
    },
    Claim {
        source: WRITERS,
        says: "writers of their own parts do as much by SRL(tree) as by SRL(array), once segments exist",
        place: Place::W1,
        threads: (1, 56),
        relation: Relation::Alike(&["srl-tree"], &["srl-array"], SIMILAR),
        quorum: Quorum::All,
    },
    Claim {
        source: WRITERS,
        says: "writers of their own parts do the same by segment locks and by an interval tree up to 8 threads",
        place: Place::W1,
        threads: (1, 8),
        relation: Relation::Alike(&["srl-array", "srl-tree"], &["kernel-rw"], SIMILAR),
        quorum: Quorum::All,
    },
    Claim {
        source: READING,
        says: "readers of their own parts do not scale with an interval tree",
        place: READERS,
        threads: (2, 56),
        relation: Relation::Flat(&["kernel-rw"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: READING,
        says: "readers of their own parts scale with segment locks",
        place: READERS,
        threads: (2, 56),
        relation: Relation::Rises(&["srl-array", "srl-tree"]),
        quorum: Quorum::All,
    },
];
