//! Guards of `SendGuards` go to other threads.

#[macro_use]
mod common;

use common::elsewhere;
use common::rw::linger;
use lock_api::{RawRwLock, RwLock};
use spanlock::rw::{ForeignRelease, SendGuards};
use spanlock_testkit::exact::Exact;
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

/// Runs a scenario of that lock with guards that may be sent.
fn run<L: ForeignRelease + Sync>(raw: L, scenario: impl FnOnce(&RwLock<SendGuards<L>, u32>)) {
    common::rw::run(SendGuards::new(raw), scenario);
}

for_each! {
    [
        futex, futex_readers_first, ticket, queue, bravo_adaptive, bravo_eager, bravo_off, bravo_ticket, bravo_queue,
        bravo_eager_readers_first,
    ]
    {
        a_guard_may_be_dropped_elsewhere,
        a_thread_that_sent_a_guard_away_may_wait_for_it,
    }
}

fn a_guard_may_be_dropped_elsewhere<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLock<SharedGuard: Send, ExclusiveGuard: Send> + Sync,
{
    for _ in 0..10 {
        let reading = lock.read();
        elsewhere(move || drop(reading));
        let writing = lock.write();
        elsewhere(move || drop(writing));
    }
    assert!(lock.try_write().is_some());
}

/// A thread waits for what it acquired and another holds now: it does not wait for itself.
fn a_thread_that_sent_a_guard_away_may_wait_for_it<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLock<SharedGuard: Send, ExclusiveGuard: Send> + Sync,
{
    for round in 0..10 {
        thread::scope(|scope| {
            let writing = lock.write();
            scope.spawn(move || {
                linger(round);
                drop(writing);
            });
            drop(lock.write());
            let reading = lock.read();
            scope.spawn(move || {
                linger(round);
                drop(reading);
            });
            drop(lock.write());
        });
    }
}
