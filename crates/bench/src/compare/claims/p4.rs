//! P4, the thesis on a concurrent skip list as a range lock.

use super::{Claim, Place, Quorum, Relation, SIMILAR};

const HEIGHT: &str = "P4 §4.3.2, Fig. 4.1";
const W1: &str = "P4 §4.3.3, Fig. 4.2";
const W2: &str = "P4 §4.3.3, Fig. 4.3";

pub(super) static CLAIMS: &[Claim] = &[
    Claim {
        source: W1,
        says: "in W1, the skip list's lock is above the list's and Song's",
        place: Place::W1,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex"], &["list-ex", "song"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: W1,
        says: "in W1, the skip list's lock reaches four times the list's",
        place: Place::W1,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex"], &["list-ex"], 4.0),
        quorum: Quorum::Some,
    },
    Claim {
        source: W1,
        says: "in W1, the skip list's lock reaches twelve times Song's",
        place: Place::W1,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex"], &["song"], 12.0),
        quorum: Quorum::Some,
    },
    Claim {
        source: W1,
        says: "in W1, Song's lock is below the list's: all meet at its spin lock",
        place: Place::W1,
        threads: (2, 32),
        relation: Relation::Above(&["list-ex"], &["song"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: W2,
        says: "in W2, the skip list's lock does at least twice as much as the list's and Song's",
        place: Place::W2,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex"], &["list-ex", "song"], 2.0),
        quorum: Quorum::All,
    },
    Claim {
        source: W2,
        says: "in W2, Song's lock is above the list's up to 16 threads",
        place: Place::W2,
        threads: (1, 16),
        relation: Relation::Above(&["song"], &["list-ex"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: W2,
        says: "in W2, the list's lock is above Song's beyond 16 threads",
        place: Place::W2,
        threads: (17, 32),
        relation: Relation::Above(&["list-ex"], &["song"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: HEIGHT,
        says: "in W1, the skip list's height does not matter",
        place: Place::W1,
        threads: (1, 32),
        relation: Relation::Alike(&["skip-ex:h=2", "skip-ex:h=3"], &["skip-ex:h=5"], SIMILAR),
        quorum: Quorum::All,
    },
    Claim {
        source: HEIGHT,
        says: "in W2, ten levels (here five) are better than few",
        place: Place::W2,
        threads: (1, 32),
        relation: Relation::Above(&["skip-ex:h=5"], &["skip-ex:h=1", "skip-ex:h=2"], 1.0),
        quorum: Quorum::All,
    },
    Claim {
        source: HEIGHT,
        says: "in W2, more than ten levels (here five) are no better than ten",
        place: Place::W2,
        threads: (1, 32),
        relation: Relation::Alike(&["skip-ex:h=6", "skip-ex:h=8"], &["skip-ex:h=5"], SIMILAR),
        quorum: Quorum::All,
    },
];
