//! What is reported of memory is what was counted.

use spanlock_bench::many_locks::{self, Many};
use spanlock_bench::memory;
use spanlock_bench::peers::{Null, RangeLockCrate, any};
use spanlock_records::record::{Bytes, ManyLocks, Memory};
use std::sync::atomic::{AtomicI64, Ordering};

/// An allocator's count that grows at each reading.
fn growing() -> impl Fn() -> Bytes + Sync {
    let readings = AtomicI64::new(0);
    move || readings.fetch_add(10, Ordering::Relaxed)
}

#[test]
fn what_is_reported_is_what_was_counted() {
    let allocated = growing();
    let outcome = memory::run(|| any(Null), 3, &allocated);
    let expected = Memory {
        hold: 3,
        idle_bytes: Some(10),
        held_bytes: Some(10),
        guard_bytes: Some(0),
        kept_bytes: Some(20),
        touched_bytes: Some(10),
        ..Memory::default()
    };
    assert_eq!(outcome, expected);
    assert!(
        memory::run(
            || any(RangeLockCrate::new(memory::RESOURCE.units)),
            3,
            &allocated
        )
        .guard_bytes
            > Some(0)
    );
}

#[test]
fn threads_are_counted_apart_from_locks() {
    let allocated = growing();
    let expected = ManyLocks {
        locks: 5,
        threads: 3,
        idle_bytes: 10,
        thread_bytes: 3 * 10,
        touched_bytes: 3 * 10,
        // Three readings by each thread, and one after the other.
        kept_bytes: 100,
        left_bytes: 120,
        ..ManyLocks::default()
    };
    assert_eq!(
        many_locks::run(
            || any(Null),
            Many {
                locks: 5,
                threads: 3
            },
            &allocated
        ),
        expected
    );
    let other = many_locks::run(
        || any(RangeLockCrate::new(many_locks::RESOURCE.units)),
        Many {
            locks: 2,
            threads: 2,
        },
        &allocated,
    );
    assert_eq!((other.locks, other.threads), (2, 2));
}
