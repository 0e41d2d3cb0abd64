//! The locks under test, and what each lacks. To add one: a line here, and how it is made in `common`, or in
//! `baselines`.

use crate::baselines;
use crate::by_owners;
use crate::common::{self, SEGMENTS};
use spanlock_conformance::Need::{self, *};
use spanlock_conformance::{Declared, Suite};

const LAST: u64 = u64::MAX;
/// Where the last segment begins.
const TAIL: u64 = SEGMENTS as u64 - 1;

/// What a lock lacks, in groups.
type Lacks = &'static [&'static [Need]];

const FAIR: Lacks = &[AFTER_A_WHILE];
const FAIR_AT_ONCE: Lacks = &[AT_ONCE];
const UNFAIR: Lacks = &[NEVER];

const EXCLUSIVE: Lacks = &[&[Readers], AFTER_A_WHILE];
const EXCLUSIVE_FAIR_AT_ONCE: Lacks = &[&[Readers], AT_ONCE];
const EXCLUSIVE_UNFAIR: Lacks = &[&[Readers], NEVER];

/// Owners ask, a different one on each thread.
const BY_OWNERS: Lacks = &[&[ThreadNumbers], AFTER_A_WHILE];
const BY_OWNERS_FAIR_AT_ONCE: Lacks = &[&[ThreadNumbers], AT_ONCE];
const BY_OWNERS_EXCLUSIVE: Lacks = &[&[Readers, ThreadNumbers], AFTER_A_WHILE];

/// A segment does not distinguish holders by thread, nor two readers that hold it side by side. A request sleeps behind
/// a segment, not behind a holder.
const SEGMENTED: Lacks = &[&[EachHolder, Owners], AFTER_A_WHILE];
const SEGMENTED_FAIR_AT_ONCE: Lacks = &[&[EachHolder, Owners], AT_ONCE];
const SEGMENTED_UNFAIR: Lacks = &[&[EachHolder, Owners], NEVER];

/// Requests are granted in the order of their arrival: the point of comparison.
const TREE: Lacks = &[&[Bypass, Bounded, Overtaking], UNLISTED];
const TREE_EXCLUSIVE: Lacks = &[&[Readers, Bypass, Bounded, Overtaking], UNLISTED];

/// A waiting request tries again and again, and other threads do not see it.
const RETRYING: Lacks = &[&[Readers, Fair, GivingWay, Queueing], UNLISTED];

/// A waiting request keeps the segments that it has entered. It tries the next one again and again, and other threads
/// do not see it.
const FULL_HANDS: Lacks = &[&[Bypass, Bounded, Overtaking], NEVER, UNLISTED];

/// Newcomers give way to a waiting request after a while.
const AFTER_A_WHILE: &[Need] = &[Overtaking, GivingWay, Queueing];
/// Newcomers give way to a waiting request at once.
const AT_ONCE: &[Need] = &[Overtaking, Queueing];
/// Newcomers never give way.
const NEVER: &[Need] = &[Fair, GivingWay, Queueing];
/// The lock records neither holders nor waiting requests, and knows no owners.
const UNLISTED: &[Need] = &[Listing, EachHolder, SelfCheck, ThreadNumbers, Owners];

/// Registers locks: each row is a face, a name, a constructor, the last position, and what the lock lacks.
macro_rules! locks {
    ($suite:ident: $($face:ident $name:literal $make:path, $last:expr, $lacks:expr;)*) => {
        $($suite.$face(Declared::new($name, &$lacks.concat()).one_from($last), $make);)*
    };
}

pub fn register(suite: &mut Suite) {
    locks! { suite:
        owned     "list-rw"                      common::standard, LAST, FAIR;
        owned     "list-rw-slow-path"            common::slow_path, LAST, FAIR;
        owned     "list-rw-unfair"               common::unfair, LAST, UNFAIR;
        owned     "list-rw-fair-at-once"         common::fair_at_once, LAST, FAIR_AT_ONCE;
        owned     "list-rw-writers-first"        common::writers_first, LAST, FAIR_AT_ONCE;
        owned     "list-rw-writers-first-unfair" common::writers_first_unfair, LAST, UNFAIR;
        exclusive "list-ex"                      common::exclusive, LAST, EXCLUSIVE;
        exclusive "list-ex-slow-path"            common::exclusive_slow_path, LAST, EXCLUSIVE;
        exclusive "list-ex-unfair"               common::exclusive_unfair, LAST, EXCLUSIVE_UNFAIR;
        exclusive "list-ex-fair-at-once"         common::exclusive_fair_at_once, LAST, EXCLUSIVE_FAIR_AT_ONCE;
        owned     "skip-rw"                      common::skip_standard, LAST, FAIR;
        owned     "skip-rw-slow-path"            common::skip, LAST, FAIR;
        owned     "skip-rw-unfair"               common::skip_unfair, LAST, UNFAIR;
        exclusive "skip-ex-slow-path"            common::skip_exclusive, LAST, EXCLUSIVE;
        owned     "keys"                         common::keys, LAST, FAIR;
        owned     "keys-slow-path"               common::keys_slow_path, LAST, FAIR;
        owned     "keys-unfair"                  common::keys_unfair, LAST, UNFAIR;
        owned     "keys-fair-at-once"            common::keys_fair_at_once, LAST, FAIR_AT_ONCE;
        owned     "keys-limited"                 common::keys_limited, LAST, FAIR;
        owned     "slots"                        common::slots, LAST, FAIR;
        owned     "slots-at-once"                common::slots_at_once, LAST, FAIR;
        owned     "slots-buckets"                common::slots_buckets, LAST, FAIR;
        owned     "slots-annex"                  common::slots_annex, LAST, FAIR;
        owned     "slots-unfair"                 common::slots_unfair, LAST, UNFAIR;
        owned     "slots-fair-at-once"           common::slots_fair_at_once, LAST, FAIR_AT_ONCE;
        shared    "list-rw-by-owners"            by_owners::standard, LAST, BY_OWNERS;
        shared    "list-rw-writers-first-by-owners" by_owners::writers_first, LAST, BY_OWNERS_FAIR_AT_ONCE;
        exclusive "list-ex-by-owners"            by_owners::exclusive, LAST, BY_OWNERS_EXCLUSIVE;
        shared    "skip-rw-by-owners"            by_owners::skip, LAST, BY_OWNERS;
        exclusive "skip-ex-by-owners"            by_owners::skip_exclusive, LAST, BY_OWNERS_EXCLUSIVE;
        shared    "slots-by-owners"              by_owners::slots, LAST, BY_OWNERS;
        shared    "slots-at-once-by-owners"      by_owners::slots_at_once, LAST, BY_OWNERS;
        shared    "slots-buckets-by-owners"      by_owners::slots_buckets, LAST, BY_OWNERS;
        shared    "srl-array"                    common::srl_array, TAIL, SEGMENTED;
        shared    "srl-array-unfair"             common::srl_array_unfair, TAIL, SEGMENTED_UNFAIR;
        shared    "srl-array-fair-at-once"       common::srl_array_fair_at_once, TAIL, SEGMENTED_FAIR_AT_ONCE;
        shared    "srl-tree"                     common::srl_tree, TAIL, SEGMENTED;
        shared    "kernel-rw"                    baselines::kernel_rw, LAST, TREE;
        exclusive "lustre-ex"                    baselines::lustre_ex, LAST, TREE_EXCLUSIVE;
        exclusive "song"                         baselines::song, LAST, RETRYING;
        exclusive "song-one-level"               baselines::song_one_level, LAST, RETRYING;
        shared    "pnova-rw"                     baselines::pnova, TAIL, FULL_HANDS;
        exclusive "bitmap"                       baselines::bitmap, TAIL, RETRYING;
    }
}
