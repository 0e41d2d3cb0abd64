//! Locks in memory that is aligned as they ask for, and no better: each a few steps of one thread. (All tests of this
//! package run on that allocator. Here the reason is in the name.)

#[macro_use]
mod common;

use common::Shared;
use spanlock::range::RangeLock;
use spanlock_testkit::exact::Exact;

#[global_allocator]
static HEAP: Exact = Exact;

/// Marks are in addresses: of nodes, of slots, and of what a lock has moved to.
fn marks_have_room<L: Shared>(lock: &RangeLock<L>) {
    drop(lock.write(0..1));
    drop((lock.write(0..1), lock.read(2..4), lock.read(3..5)));
    drop(lock.write(10..20).downgrade());
    assert_eq!(lock.raw().snapshot().map_or(0, |all| all.holders.len()), 0);
}

in_every_shared_configuration!(crate::common::shared: marks_have_room);
