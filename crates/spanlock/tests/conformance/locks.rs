//! The locks under test, and what each lacks. To add one: a line here, and how it is made in `common`, or in `baselines`.

use crate::baselines;
use crate::common::{self, SEGMENTS};
use crate::suite::Need::{self, *};
use crate::suite::Suite;

const LAST: u64 = u64::MAX;
/// Where the last segment begins.
const TAIL: u64 = SEGMENTS as u64 - 1;

/// Newcomers give way after a while, not at once.
const FAIR: &[Need] = &[Overtaking, GivingWay, Queueing];
const FAIR_AT_ONCE: &[Need] = &[Overtaking, Queueing];
const UNFAIR: &[Need] = &[Fair, GivingWay, Queueing];

const EXCLUSIVE: &[Need] = &[Readers, Overtaking, GivingWay, Queueing];
const EXCLUSIVE_FAIR_AT_ONCE: &[Need] = &[Readers, Overtaking, Queueing];
const EXCLUSIVE_UNFAIR: &[Need] = &[Readers, Fair, GivingWay, Queueing];

/// A segment does not tell holders by thread, nor two who hold alike side by side; what a request sleeps behind is a
/// segment.
const SEGMENTED: &[Need] = &[EachHolder, Overtaking, GivingWay, Queueing];
const SEGMENTED_FAIR_AT_ONCE: &[Need] = &[EachHolder, Overtaking, Queueing];
const SEGMENTED_UNFAIR: &[Need] = &[EachHolder, Fair, GivingWay, Queueing];

/// First come, first served: the point of comparison.
const TREE: &[Need] = &[
    Listing,
    EachHolder,
    Bypass,
    Bounded,
    Overtaking,
    SelfCheck,
    ThreadNumbers,
];
const TREE_EXCLUSIVE: &[Need] = &[
    Readers,
    Listing,
    EachHolder,
    Bypass,
    Bounded,
    Overtaking,
    SelfCheck,
    ThreadNumbers,
];

/// Who waits looks again and again, and is not seen by others.
const RETRYING: &[Need] = &[
    Readers,
    Listing,
    EachHolder,
    Fair,
    GivingWay,
    Queueing,
    SelfCheck,
    ThreadNumbers,
];

/// Who waits keeps what it has entered, looks again and again, and is not seen by others.
const FULL_HANDS: &[Need] = &[
    Listing,
    EachHolder,
    Bypass,
    Bounded,
    Fair,
    Overtaking,
    GivingWay,
    Queueing,
    SelfCheck,
    ThreadNumbers,
];

pub fn register(suite: &mut Suite) {
    suite.shared("list-rw", common::standard, LAST, FAIR);
    suite.shared("list-rw-slow-path", common::slow_path, LAST, FAIR);
    suite.shared("list-rw-unfair", common::unfair, LAST, UNFAIR);
    suite.shared(
        "list-rw-fair-at-once",
        common::fair_at_once,
        LAST,
        FAIR_AT_ONCE,
    );
    suite.shared(
        "list-rw-writers-first",
        common::writers_first,
        LAST,
        FAIR_AT_ONCE,
    );
    suite.shared(
        "list-rw-writers-first-unfair",
        common::writers_first_unfair,
        LAST,
        UNFAIR,
    );
    suite.shared("list-rw-instrumented", common::instrumented, LAST, FAIR);
    suite.exclusive("list-ex", common::exclusive, LAST, EXCLUSIVE);
    suite.exclusive(
        "list-ex-slow-path",
        common::exclusive_slow_path,
        LAST,
        EXCLUSIVE,
    );
    suite.exclusive(
        "list-ex-unfair",
        common::exclusive_unfair,
        LAST,
        EXCLUSIVE_UNFAIR,
    );
    suite.exclusive(
        "list-ex-fair-at-once",
        common::exclusive_fair_at_once,
        LAST,
        EXCLUSIVE_FAIR_AT_ONCE,
    );
    suite.shared("skip-rw", common::skip_standard, LAST, FAIR);
    suite.shared("skip-rw-slow-path", common::skip, LAST, FAIR);
    suite.shared("skip-rw-unfair", common::skip_unfair, LAST, UNFAIR);
    suite.exclusive("skip-ex-slow-path", common::skip_exclusive, LAST, EXCLUSIVE);
    suite.shared("srl-array", common::srl_array, TAIL, SEGMENTED);
    suite.shared(
        "srl-array-unfair",
        common::srl_array_unfair,
        TAIL,
        SEGMENTED_UNFAIR,
    );
    suite.shared(
        "srl-array-fair-at-once",
        common::srl_array_fair_at_once,
        TAIL,
        SEGMENTED_FAIR_AT_ONCE,
    );
    suite.shared("srl-tree", common::srl_tree, TAIL, SEGMENTED);
    suite.shared("kernel-rw", baselines::kernel_rw, LAST, TREE);
    suite.exclusive("lustre-ex", baselines::lustre_ex, LAST, TREE_EXCLUSIVE);
    suite.exclusive("song", baselines::song, LAST, RETRYING);
    suite.exclusive("song-one-level", baselines::song_one_level, LAST, RETRYING);
    suite.shared("pnova-rw", baselines::pnova, TAIL, FULL_HANDS);
    suite.exclusive("bitmap", baselines::bitmap, TAIL, RETRYING);
}
