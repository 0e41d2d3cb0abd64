//! Shapes of microbenchmarks that are commonly told: of contended words by Morrison and Afek (PPoPP 2013, Figure 1), of
//! locks by David, Guerraoui and Trigonakis (SOSP 2013). They are told here from memory, and are for the simulator to show.

use super::{Claim, HARDLY, MANY, Place, Quorum, Relation, WIDE};

const WORDS: &str = "Micro, contended words";
const LOCKS: &str = "Micro, simple locks";

pub(super) static CLAIMS: &[Claim] = &[
    Claim {
        source: WORDS,
        says: "on a word that two threads or more add to, all do less than half of what one does",
        place: Place::Micro,
        threads: (2, 144),
        relation: Relation::Flat(&["add"], 0.5),
        quorum: Quorum::All,
    },
    Claim {
        source: WORDS,
        says: "additions by more than a few threads do about the same, however many",
        place: Place::Micro,
        threads: (5, 144),
        relation: Relation::Steady(&["add"], 4, WIDE),
        quorum: Quorum::All,
    },
    Claim {
        source: WORDS,
        says: "a loop of compare-exchanges does a quarter of that or less",
        place: Place::Micro,
        threads: (4, 144),
        relation: Relation::Above(&["add"], &["compare-exchange"], 4.0),
        quorum: Quorum::Most,
    },
    Claim {
        source: LOCKS,
        says: "a lock that is tested and set does less with each thread beyond a few",
        place: Place::Micro,
        threads: (5, 144),
        relation: Relation::Falls(&["ttas"], 4),
        quorum: Quorum::All,
    },
    Claim {
        source: LOCKS,
        says: "a queue lock does about the same, however many wait",
        place: Place::Micro,
        threads: (5, 144),
        relation: Relation::Steady(&["mcs"], 4, WIDE),
        quorum: Quorum::All,
    },
    Claim {
        source: LOCKS,
        says: "with few threads, the queue lock is below the other",
        place: Place::Micro,
        threads: (2, 4),
        relation: Relation::Above(&["ttas"], &["mcs"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: LOCKS,
        says: "with many threads, the queue lock is above",
        place: Place::Micro,
        threads: (MANY, 144),
        relation: Relation::Above(&["mcs"], &["ttas"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: LOCKS,
        says: "readers that count in one word do not scale",
        place: Place::Micro,
        threads: (2, 144),
        relation: Relation::Flat(&["rw-counter"], HARDLY),
        quorum: Quorum::All,
    },
];
