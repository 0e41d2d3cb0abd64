//! What the integration tests share: the configurations under test, and what the scenarios of conformance share.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test crate uses its part"
)]

#[cfg(feature = "rw")]
#[macro_use]
pub mod rw;

use spanlock::range::keys::{KeyRangeLock, Natural, RawKeys};
use spanlock::range::list::{Fairness, FastPath, ListEx, ListRw, Preference};
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::skip::{SkipEx, SkipRw};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Limited, RangeLock};
pub use spanlock_conformance::support::*;
#[cfg(target_os = "linux")]
pub use spanlock_testkit::fork::status_of_child;
pub use spanlock_testkit::setting;
pub use spanlock_testkit::watchdog::abort;
use std::time::Duration;

/// Configurations: a function for each, which makes the lock.
macro_rules! configurations {
    ($($(#[$documented:meta])* $name:ident: $Lock:ty = $made:expr;)+) => {$(
        $(#[$documented])*
        pub fn $name() -> $Lock {
            $made
        }
    )+};
}

const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

/// Enough segments that each of the small positions that scenarios use has its own.
pub const SEGMENTS: usize = 1 << 10;

configurations! {
    standard: ListRw = ListRw::new();
    slow_path: ListRw = ListRw::builder().fast_path(FastPath::Off).build();
    unfair: ListRw = ListRw::builder().fairness(Fairness::Unfair).build();
    fair_at_once: ListRw = ListRw::builder().fairness(AT_ONCE).build();
    writers_first: ListRw = ListRw::builder().preference(Preference::Writers).build();
    writers_first_unfair: ListRw = {
        let builder = ListRw::builder().preference(Preference::Writers);
        builder.fairness(Fairness::Unfair).build()
    };

    exclusive: ListEx = ListEx::new();
    exclusive_slow_path: ListEx = ListEx::builder().fast_path(FastPath::Off).build();
    exclusive_unfair: ListEx = ListEx::builder().fairness(Fairness::Unfair).build();
    exclusive_fair_at_once: ListEx = ListEx::builder().fairness(AT_ONCE).build();

    skip_standard: SkipRw = SkipRw::new();
    /// Every range that the lot gives a tower enters the index, though tests hold few ranges.
    skip: SkipRw = SkipRw::builder().fast_path(FastPath::Off).index_after(0).build();
    skip_unfair: SkipRw = {
        let builder = SkipRw::builder().fast_path(FastPath::Off).index_after(0);
        builder.fairness(Fairness::Unfair).build()
    };
    skip_exclusive: SkipEx = SkipEx::builder().fast_path(FastPath::Off).index_after(0).build();

    /// Over keys that are numbers.
    keys: KeyRangeLock<u64> = KeyRangeLock::new();
    keys_slow_path: KeyRangeLock<u64> = {
        let builder = KeyRangeLock::builder().fast_path(FastPath::Off);
        builder.levels(4, 0).build()
    };
    keys_unfair: KeyRangeLock<u64> = {
        KeyRangeLock::builder().levels(4, 0).fairness(Fairness::Unfair).build()
    };
    keys_fair_at_once: KeyRangeLock<u64> = KeyRangeLock::builder().fairness(AT_ONCE).build();
    keys_limited: KeyRangeLock<u64, Natural, Limited<RawKeys<u64, Natural>>> = {
        KeyRangeLock::new().limited(1 << 20)
    };

    slots: RawSlots = RawSlots::new();
    slots_at_once: RawSlots = RawSlots::builder().slots_at_once().build();
    /// With buckets of two positions.
    slots_buckets: RawSlots = RawSlots::builder().buckets_at_once(1).build();
    /// What a thread holds besides one range is in the annex.
    slots_annex: RawSlots = RawSlots::builder().annex_at_once().build();
    slots_unfair: RawSlots = RawSlots::builder().slots_at_once().fairness(Fairness::Unfair).build();
    slots_fair_at_once: RawSlots = RawSlots::builder().slots_at_once().fairness(AT_ONCE).build();

    srl_array: SrlArray = SrlArray::builder().segments(SEGMENTS).build();
    srl_array_unfair: SrlArray = {
        let builder = SrlArray::builder().segments(SEGMENTS);
        builder.fairness(Fairness::Unfair).build()
    };
    srl_array_fair_at_once: SrlArray = {
        SrlArray::builder().segments(SEGMENTS).fairness(AT_ONCE).build()
    };
    srl_tree: SrlTree = SrlTree::builder().fan_out(32).depth(2).build();
    /// Three segments of eight positions: the last begins among the small positions.
    srl_array_of_eights: SrlArray = SrlArray::builder().segment(8).segments(3).build();
    /// Four segments of eight positions.
    srl_tree_of_eights: SrlTree = SrlTree::builder().segment(8).fan_out(2).depth(2).build();
}

/// Makes each scenario a test in every configuration of the library's reader-writer locks. A scenario is run by `$run`.
macro_rules! in_every_shared_configuration {
    ($run:path: $($scenario:ident),+ $(,)?) => {
        in_every_shared_configuration! {
            @srl_array srl_array_unfair srl_array_fair_at_once srl_tree; $run: $($scenario)+
        }
        in_every_exact_shared_configuration!($run: $($scenario),+);
    };
    (@; $run:path: $($scenario:ident)+) => {};
    (@$name:ident $($more:ident)*; $run:path: $($scenario:ident)+) => {
        mod $name {
            $(
                #[test]
                fn $scenario() {
                    $run(crate::common::$name, super::$scenario);
                }
            )+
        }
        in_every_shared_configuration!(@$($more)*; $run: $($scenario)+);
    };
}

/// Makes each scenario a test in every configuration that is exact at all positions and lists each holder.
macro_rules! in_every_exact_shared_configuration {
    ($run:path: $($scenario:ident),+ $(,)?) => {
        in_every_shared_configuration! {
            @standard slow_path unfair fair_at_once writers_first writers_first_unfair
            skip skip_standard skip_unfair slots slots_at_once slots_buckets slots_annex
            slots_unfair; $run: $($scenario)+
        }
    };
}

/// Runs a scenario that leaves nothing held.
pub fn shared<L: Shared>(make: fn() -> L, scenario: impl FnOnce(&RangeLock<L>)) {
    let lock = RangeLock::from_raw(make());
    watched(lock.raw(), || scenario(&lock));
    assert_nothing_held(lock.raw());
}
