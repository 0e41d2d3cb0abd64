//! Ranges that tasks wait for: beside threads, dropped and never polled, and case by case.

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod more;
mod pool;
#[cfg(feature = "rw")]
mod rw;
mod storm;
mod wakers;

use spanlock_testkit::exact::Exact;

#[global_allocator]
static HEAP: Exact = Exact;

macro_rules! on_each_lock {
    ($($lock:ident)+) => {$(
        mod $lock {
            use super::common;
            use spanlock::range::RangeLock;
            use std::sync::Arc;

            #[test]
            fn tasks_and_threads_exclude_each_other() {
                super::storm::tasks_and_threads(Arc::new(RangeLock::from_raw(common::$lock())));
            }

            #[test]
            fn futures_are_polled_and_dropped_at_random() {
                super::storm::polled_and_dropped(Arc::new(RangeLock::from_raw(common::$lock())));
            }
        }
    )+};
}

on_each_lock! { standard unfair fair_at_once skip slots slots_at_once slots_buckets slots_fair_at_once }
