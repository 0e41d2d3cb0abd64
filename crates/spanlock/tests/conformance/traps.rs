//! Faults that the published locks have, by their number in the project's list of traps.

use crate::common::{
    Shared, await_sleepers, elsewhere, fair_at_once, shared as run, writers_first,
};
use spanlock::range::RangeLock;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// Half-open ranges: a reader does not wait for the writer that begins where it ends.
fn trap_4_a_reader_ignores_its_neighbour<L: Shared>(lock: &RangeLock<L>) {
    let _writer = lock.write(20..30);
    assert!(lock.try_read(10..20).is_some());
    assert!(lock.try_read(30..40).is_some());
}

/// Reclamation that waited for sleepers would block a holder, who goes on through many pools' worth of nodes.
fn trap_6_a_sleeper_holds_no_nodes_back<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.write(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(5..15)));
        await_sleepers(lock.raw(), 1);
        for at in 0..5_000 {
            let _more = (lock.write(20..30), lock.read(40..41 + at));
        }
        drop(held);
    });
}

/// The fast path, others looking at its node, slow releases: each leads back to a lock that works.
fn trap_7_fast_and_slow_releases_mix<L: Shared>(lock: &RangeLock<L>) {
    for round in 0..300 {
        let first = lock.write(10..20);
        if round % 2 == 0 {
            assert!(lock.try_read(15..30).is_none());
        }
        let second = (round % 3 == 0).then(|| lock.read(30..40));
        drop(first);
        drop(second);
        assert!(lock.try_write(..).is_some());
    }
}

/// A starves on what B holds, and B wants more of what A asks for: fairness must not make B wait for A.
fn trap_8_holders_bypass_those_who_wait<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.read(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(0..100)));
        await_sleepers(lock.raw(), 1);
        drop(lock.try_write(50..60).expect("nobody holds it"));
        drop(lock.write(50..60));
        drop(lock.read(5..60));
        drop(lock.write_many([20..30, 40..50]));
        drop(held);
    });
}

/// The same, with a thread whose hold is in another lock.
fn trap_8_holders_of_another_lock_bypass_too<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.read(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(0..100)));
        await_sleepers(lock.raw(), 1);
        elsewhere(|| {
            let other = RangeLock::new();
            let _held = other.write(3..4);
            drop(lock.read(5..60));
        });
        drop(held);
    });
}

/// Disjoint from all holders, and in the way of a request that waits: granted to a holder.
fn trap_13_waiting_reader_blocks_nobody<L: Shared>(lock: &RangeLock<L>) {
    let _another_reader = lock.read(0..12);
    let writer = lock.write(30..40);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.read(10..35)));
        await_sleepers(lock.raw(), 1);
        drop(lock.try_write(15..20).expect("nobody holds it"));
        drop(lock.write(15..20));
        drop(writer);
    });
}

/// The same for a writer that waits.
fn trap_13_waiting_writer_blocks_nobody<L: Shared>(lock: &RangeLock<L>) {
    let reader = lock.read(30..40);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(10..35)));
        await_sleepers(lock.raw(), 1);
        drop(lock.try_write(15..20).expect("nobody holds it"));
        drop(lock.read(10..30));
        drop(reader);
    });
}

/// Requests refused after they were in the list leave no trace, for readers and writers.
fn trap_15_refused_requests_leave_the_list<L: Shared>(lock: &RangeLock<L>) {
    let _reader = lock.read(10..20);
    let _writer = lock.write(40..50);
    elsewhere(|| {
        for _ in 0..1_000 {
            assert!(lock.try_write(0..15).is_none());
            assert!(lock.try_write(15..30).is_none());
            assert!(lock.try_read(10..45).is_none());
            assert!(lock.try_read_for(10..45, Duration::ZERO).is_none());
        }
    });
    assert_eq!(lock.snapshot().holders.len(), 2);
    assert!(lock.try_read(10..40).is_some());
}

/// Four disjoint ranges: two held by writers, each reading up to where the other begins.
fn trap_18_readers_up_to_anothers_start<L: Shared>(lock: &RangeLock<L>) {
    let both_hold = Barrier::new(2);
    thread::scope(|scope| {
        for (held, wanted) in [(20..30, 0..10), (10..15, 15..20)] {
            let both_hold = &both_hold;
            scope.spawn(move || {
                let _held = lock.write(held);
                both_hold.wait();
                let wanted = lock.try_read(wanted);
                both_hold.wait();
                assert!(wanted.is_some());
            });
        }
    });
}

/// A request that waits without a claim stands in nobody's way, not even a stranger's.
#[test]
fn trap_19_no_fifo_in_an_unfair_lock() {
    run(crate::common::unfair, |lock| {
        let held = lock.write(0..10);
        thread::scope(|scope| {
            scope.spawn(|| drop(lock.write(5..30)));
            await_sleepers(lock.raw(), 1);
            assert!(elsewhere(|| lock.try_write(20..25).is_some()));
            drop(held);
        });
    });
}

/// The other side of fairness: strangers do give way to a claim, for what it asks for and no more.
fn strangers_give_way_to_a_claim<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.read(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(0..30)));
        await_sleepers(lock.raw(), 1);
        elsewhere(|| {
            assert!(lock.try_read(5..8).is_none());
            assert!(lock.try_write(20..25).is_none());
            assert!(lock.try_write(30..40).is_some());
        });
        drop(held);
    });
}

#[test]
fn strangers_give_way_to_a_claim_when_fair_at_once() {
    run(fair_at_once, strangers_give_way_to_a_claim);
}

#[test]
fn strangers_give_way_to_a_claim_with_writers_first() {
    run(writers_first, strangers_give_way_to_a_claim);
}

#[test]
fn strangers_give_way_to_a_claim_to_segments() {
    run(
        crate::common::srl_array_fair_at_once,
        strangers_give_way_to_a_claim,
    );
}

in_every_shared_configuration!(crate::common::shared:
    trap_4_a_reader_ignores_its_neighbour,
    trap_6_a_sleeper_holds_no_nodes_back,
    trap_7_fast_and_slow_releases_mix,
    trap_8_holders_bypass_those_who_wait,
    trap_8_holders_of_another_lock_bypass_too,
    trap_13_waiting_reader_blocks_nobody,
    trap_13_waiting_writer_blocks_nobody,
    trap_15_refused_requests_leave_the_list,
    trap_18_readers_up_to_anothers_start,
);
