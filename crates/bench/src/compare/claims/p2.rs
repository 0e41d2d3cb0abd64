//! P2, BRAVO: §5, what it says of results in user space.

use super::{CLOSE, Claim, HARDLY, MANY, Place, Quorum, Relation, SIMILAR, WIDE};

const FIG1: &str = "P2 §5.1, Fig. 1";
const FIG2: &str = "P2 §5.2, Fig. 2";
const FIG3: &str = "P2 §5.3, Fig. 3";
const FIG4AC: &str = "P2 §5.4, Fig. 4 (a-c)";
const FIG4DF: &str = "P2 §5.4, Fig. 4 (d-f)";
const FIG5: &str = "P2 §5.5, Fig. 5";
const FIG6: &str = "P2 §5.6, Fig. 6";

const WRITES: Place = Place::Rwbench((0.1, 1.0));
const READS: Place = Place::Rwbench((0.0, 0.001));

/// "Similar", of locks that have nothing in common: up to this factor.
const ALIKE: f64 = 1.25;

pub(super) static CLAIMS: &[Claim] = &[
    Claim {
        source: FIG1,
        says: "sharing one table costs readers of many locks at most 6 % of what a table for each lock would yield",
        place: Place::Interference,
        threads: (64, 64),
        relation: Relation::Unmeasured("no lock here has a table of its own"),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG2,
        says: "every lock does much less with two threads than with one: notices cost",
        place: Place::Alternator,
        threads: (2, 2),
        relation: Relation::Falls(
            &["pf-q", "bravo-pf-q", "futex", "bravo-futex", "per-cpu"],
            1,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG2,
        says: "BRAVO-BA is far above BA",
        place: Place::Alternator,
        threads: (2, 72),
        relation: Relation::Above(&["bravo-pf-q"], &["pf-q"], WIDE),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG2,
        says: "BRAVO-BA is close to Per-CPU",
        place: Place::Alternator,
        threads: (2, 72),
        relation: Relation::Above(&["bravo-pf-q"], &["per-cpu"], CLOSE),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG2,
        says: "BA degrades with threads",
        place: Place::Alternator,
        threads: (3, 72),
        relation: Relation::Falls(&["pf-q"], 2),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG2,
        says: "BRAVO-BA stays what it is with two threads",
        place: Place::Alternator,
        threads: (3, 72),
        relation: Relation::Steady(&["bravo-pf-q"], 2, HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG2,
        says: "BRAVO-pthread is far above pthread",
        place: Place::Alternator,
        threads: (2, 72),
        relation: Relation::Above(&["bravo-futex"], &["futex"], WIDE),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG2,
        says: "pthread degrades with threads",
        place: Place::Alternator,
        threads: (3, 72),
        relation: Relation::Falls(&["futex"], 2),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG3,
        says: "BRAVO-BA is far above BA",
        place: Place::TestRwlock,
        threads: (2, 72),
        relation: Relation::Above(&["bravo-pf-q"], &["pf-q"], WIDE),
        quorum: Quorum::Most,
    },
    Claim {
        source: FIG3,
        says: "with many threads, BRAVO-BA is above Cohort-RW",
        place: Place::TestRwlock,
        threads: (MANY, 72),
        relation: Relation::Above(&["bravo-pf-q"], &["c-rw-wp"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG3,
        says: "Per-CPU does best",
        place: Place::TestRwlock,
        threads: (2, 72),
        relation: Relation::Above(
            &["per-cpu"],
            &["pf-q", "bravo-pf-q", "c-rw-wp", "futex", "bravo-futex"],
            1.0,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG3,
        says: "BRAVO-pthread is above pthread",
        place: Place::TestRwlock,
        threads: (2, 72),
        relation: Relation::Above(&["bravo-futex"], &["futex"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG3,
        says: "BRAVO-pthread comes close to Per-CPU",
        place: Place::TestRwlock,
        threads: (2, 72),
        relation: Relation::Above(&["bravo-futex"], &["per-cpu"], CLOSE),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG4AC,
        says: "where one in ten operations or more writes, BRAVO-BA does as BA: neither good nor harm",
        place: WRITES,
        threads: (1, 72),
        relation: Relation::Alike(&["bravo-pf-q"], &["pf-q"], SIMILAR),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG4AC,
        says: "likewise BRAVO-pthread as pthread",
        place: WRITES,
        threads: (1, 72),
        relation: Relation::Alike(&["bravo-futex"], &["futex"], SIMILAR),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG4AC,
        says: "where nine of ten write, no lock scales",
        place: Place::Rwbench((0.9, 0.9)),
        threads: (2, 72),
        relation: Relation::Flat(
            &[
                "pf-q",
                "bravo-pf-q",
                "futex",
                "bravo-futex",
                "c-rw-wp",
                "per-cpu",
            ],
            HARDLY,
        ),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG4AC,
        says: "where nine of ten write, Per-CPU is far below: writers take all of its locks",
        place: Place::Rwbench((0.9, 0.9)),
        threads: (1, 72),
        relation: Relation::Above(&["pf-q", "c-rw-wp"], &["per-cpu"], WIDE),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG4AC,
        says: "where nine of ten write, Cohort-RW is somewhat above BA",
        place: Place::Rwbench((0.9, 0.9)),
        threads: (2, 72),
        relation: Relation::Above(&["c-rw-wp"], &["pf-q"], 1.0),
        quorum: Quorum::Most,
    },
    Claim {
        source: FIG4AC,
        says: "where one in ten writes, Cohort-RW scales somewhat",
        place: Place::Rwbench((0.1, 0.1)),
        threads: (2, 72),
        relation: Relation::Rises(&["c-rw-wp"]),
        quorum: Quorum::Most,
    },
    Claim {
        source: FIG4DF,
        says: "where one in a hundred writes, BRAVO-BA is above BA with many threads",
        place: Place::Rwbench((0.01, 0.01)),
        threads: (MANY, 72),
        relation: Relation::Above(&["bravo-pf-q"], &["pf-q"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG4DF,
        says: "where one in a thousand writes or fewer, BRAVO-BA and BRAVO-pthread do as Per-CPU",
        place: READS,
        threads: (2, 72),
        relation: Relation::Alike(&["bravo-pf-q", "bravo-futex"], &["per-cpu"], ALIKE),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG4DF,
        says: "where one in a thousand writes or fewer, Cohort-RW scales modestly",
        place: READS,
        threads: (2, 72),
        relation: Relation::Rises(&["c-rw-wp"]),
        quorum: Quorum::Most,
    },
    Claim {
        source: FIG4DF,
        says: "where one in a thousand writes or fewer, BA and pthread stay flat",
        place: READS,
        threads: (2, 72),
        relation: Relation::Flat(&["pf-q", "futex"], HARDLY),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG5,
        says: "in readwhilewriting, BRAVO is like Per-CPU, and above Cohort-RW and the locks it is made of",
        place: Place::Nowhere,
        threads: (1, 72),
        relation: Relation::Unmeasured("it is no part of this report: see scripts/rocksdb"),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG6,
        says: "BRAVO does more than the locks it is made of",
        place: Place::HashTable,
        threads: (2, 72),
        relation: Relation::Above(&["bravo-pf-q"], &["pf-q"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG6,
        says: "likewise over pthread",
        place: Place::HashTable,
        threads: (2, 72),
        relation: Relation::Above(&["bravo-futex"], &["futex"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: FIG6,
        says: "with many readers, BRAVO does far more",
        place: Place::HashTable,
        threads: (MANY, 72),
        relation: Relation::Above(&["bravo-pf-q"], &["pf-q"], WIDE),
        quorum: Quorum::All,
    },
];
