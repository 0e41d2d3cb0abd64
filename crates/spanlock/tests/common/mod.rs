//! What the integration tests share: the configurations under test, a watchdog, and ways to see that others wait.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test crate uses its part"
)]

#[cfg(feature = "rw")]
#[macro_use]
pub mod rw;

use spanlock::range::inspect::Snapshot;
use spanlock::range::list::{Fairness, FastPath, ListEx, ListRw, Preference};
use spanlock::range::raw::{Ask, RawRangeLock, RawRangeMutex, Wait};
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::skip::{SkipEx, SkipRw};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Instrumented, RangeLock, Span};
#[cfg(target_os = "linux")]
pub use spanlock_testkit::fork::status_of_child;
pub use spanlock_testkit::setting;
use spanlock_testkit::watchdog;
pub use spanlock_testkit::watchdog::{HANG, abort};
use std::cell::Cell;
use std::thread;
use std::time::Duration;

/// A lock that threads can share and pass on.
pub trait Exclusive: RawRangeMutex + Send + Sync + 'static {}
impl<L: RawRangeMutex + Send + Sync + 'static> Exclusive for L {}

/// A lock with readers that threads can share.
pub trait Shared: RawRangeLock + Exclusive {}
impl<L: RawRangeLock + Exclusive> Shared for L {}

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
    instrumented: Instrumented<ListRw> = Instrumented::new(ListRw::new());

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

/// The same in every configuration that is exact at all positions and lists each holder.
macro_rules! in_every_exact_shared_configuration {
    ($run:path: $($scenario:ident),+ $(,)?) => {
        in_every_shared_configuration! {
            @standard slow_path unfair fair_at_once writers_first writers_first_unfair instrumented
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

/// Runs `scenario`. Should it hang, prints who holds and who waits, and aborts.
pub fn watched<R>(raw: &impl Exclusive, scenario: impl FnOnce() -> R) -> R {
    let report = |(): &()| snapshot(raw).to_string();
    watchdog::watched(HANG, || (), report, scenario)
}

/// Runs a scenario of a lock that cannot list its holders. Should it hang, aborts.
pub fn watched_silently<R>(scenario: impl FnOnce() -> R) -> R {
    let report = |(): &()| "a lock that cannot list its holders".to_owned();
    watchdog::watched(HANG, || (), report, scenario)
}

/// The leak probe: everything is lockable at once, and the listing agrees.
pub fn assert_nothing_held(raw: &impl RawRangeMutex) {
    let probe = raw.lock_exclusive(Ask::new(Span::ALL, Wait::Never));
    let token = probe.unwrap_or_else(|| panic!("something is held:\n{}", snapshot(raw)));
    // SAFETY: the lock's own token.
    unsafe { raw.unlock(token) };
    assert_eq!(snapshot(raw), Snapshot::default());
}

/// The holders and the waiting requests; empty if the lock cannot list them.
pub fn snapshot(raw: &impl RawRangeMutex) -> Snapshot {
    raw.snapshot().unwrap_or_default()
}

/// Returns when so many requests sleep in the lock. Of a lock that cannot tell, it returns when they had time to begin:
/// so nothing that a test asserts afterwards may depend on it, unless the test needs a listing.
pub fn await_sleepers(raw: &impl RawRangeMutex, count: usize) {
    match raw.snapshot() {
        Some(_) => until(|| snapshot(raw).waiters.len() == count),
        None => thread::sleep(Duration::from_millis(5)),
    }
}

/// Returns when the condition holds; a watchdog sees to it that it does.
pub fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_micros(100));
    }
}

/// What `f` says on another thread, one that holds nothing.
pub fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let mut f = Some(f);
    let mut said = None;
    in_another_thread(&mut || said = f.take().map(|f| f()));
    said.expect("the thread has ended")
}

/// Compiled once, where [`elsewhere`] is compiled for each closure.
fn in_another_thread(f: &mut (dyn FnMut() + Send)) {
    thread::scope(|scope| scope.spawn(f).join().expect("no panic elsewhere"));
}

thread_local! {
    static EXPECTS_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in [`panic_message`].
pub fn expects_panic() -> bool {
    EXPECTS_PANIC.get()
}

/// The message of the panic that `f` ends with.
pub fn panic_message(f: impl FnOnce()) -> String {
    EXPECTS_PANIC.set(true);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    EXPECTS_PANIC.set(false);
    let payload = unwound.expect_err("a panic was expected");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other
            .downcast_ref::<&str>()
            .map_or_else(String::new, |text| (*text).to_owned()),
    }
}
