//! Faults that the published locks have, by paper and by their number in the project's list of traps.

use crate::suite::Scenario;
use crate::support::{Exclusive, Shared, await_sleepers, elsewhere, until};
use spanlock::range::{RangeLock, RangeMutex};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

/// Reclamation that waited for sleepers would block a holder that uses up many pools of nodes.
fn p1_6_a_sleeper_holds_no_nodes_back<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.lock(5..15)));
        await_sleepers(lock.raw(), 1);
        for at in 0..5_000 {
            let _more = (lock.lock(20..30), lock.lock(40..41 + at % 20));
        }
        drop(held);
    });
}

/// The fast path, other threads that read its node, slow releases: each leads back to a lock that works.
fn p1_7_fast_and_slow_releases_mix<L: Exclusive>(lock: &RangeMutex<L>) {
    for round in 0..300 {
        let first = lock.lock(10..20);
        if round % 2 == 0 {
            assert!(lock.try_lock(15..30).is_none());
        }
        let second = (round % 3 == 0).then(|| lock.lock(30..40));
        drop(first);
        drop(second);
        assert!(lock.try_lock(..).is_some());
    }
}

/// A starves on what B holds, and B wants more of what A asks for: fairness must not make B wait for A.
fn p1_8_holders_bypass_waiting_requests<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.lock(0..60)));
        await_sleepers(lock.raw(), 1);
        drop(lock.try_lock(50..60).expect("nobody holds it"));
        drop(lock.lock(50..60));
        drop(lock.lock_many([20..30, 40..50]));
        drop(held);
    });
}

/// Disjoint from all holders, and in the way of a request that waits: granted to a holder.
fn p1_13_a_waiting_request_blocks_no_holder<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock(30..40);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.lock(10..35)));
        await_sleepers(lock.raw(), 1);
        drop(lock.try_lock(15..20).expect("nobody holds it"));
        drop(lock.lock(15..30));
        drop(held);
    });
}

/// Requests refused on either side leave no trace.
fn p1_15_refused_requests_leave_no_trace<L: Exclusive>(lock: &RangeMutex<L>) {
    let _held = [lock.lock(10..20), lock.lock(40..50)];
    elsewhere(|| {
        for _ in 0..1_000 {
            assert!(lock.try_lock(0..15).is_none());
            assert!(lock.try_lock(15..30).is_none());
            assert!(lock.try_lock_for(20..45, Duration::ZERO).is_none());
            assert!(lock.try_lock(20..40).is_some());
        }
    });
}

/// The paper's port forgot holds under a race of releases with walks.
fn p1_16_no_hold_is_lost_beside_releases<L: Exclusive>(lock: &RangeMutex<L>) {
    thread::scope(|scope| {
        for start in [0, 10, 20] {
            scope.spawn(move || {
                for _ in 0..1_000 {
                    let _held = lock.lock(start..start + 10);
                    drop(lock.lock(start + 30..start + 31));
                    assert!(lock.try_lock(start..start + 1).is_none());
                }
            });
        }
    });
}

/// A waiting request blocks no other request, whichever thread makes it.
fn p1_19_newcomers_overtake<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.lock(5..30)));
        await_sleepers(lock.raw(), 1);
        assert!(elsewhere(|| lock.try_lock(20..25).is_some()));
        drop(held);
    });
}

/// The other side of fairness: threads that hold none of it give way, but only for the range asked for.
fn newcomers_give_way<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.lock(0..30)));
        elsewhere(|| {
            until(|| lock.try_lock(20..25).is_none());
            assert!(lock.try_lock(30..40).is_some());
        });
        drop(held);
    });
}

/// P1 §3: A = [1, 3) is held, B = [2, 7) waits for A, and C = [4, 5) waits for B, though nobody holds any of it; and
/// the holder of A would, too.
fn tree_a_request_waits_behind_a_waiting_one<L: Exclusive>(lock: &RangeMutex<L>) {
    let order = Mutex::new(Vec::new());
    let a = lock.lock(1..3);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _b = lock.lock(2..7);
            order.lock().unwrap().push('B');
        });
        until(|| lock.try_lock(4..5).is_none());
        scope.spawn(|| {
            let _c = lock.lock(4..5);
            order.lock().unwrap().push('C');
        });
        assert!(lock.try_lock(4..5).is_none());
        assert!(order.lock().unwrap().is_empty());
        drop(a);
    });
    assert_eq!(order.into_inner().unwrap(), ['B', 'C']);
}

/// What is at the first and at the last position is an ordinary range, and so is a single one.
fn p4_2_the_outermost_points_lock_and_unlock<L: Exclusive>(lock: &RangeMutex<L>) {
    for _ in 0..3 {
        let first = lock.lock(0..=0);
        let last = lock.lock(u64::MAX..=u64::MAX);
        elsewhere(|| {
            assert!(lock.try_lock(0..=0).is_none());
            assert!(lock.try_lock(u64::MAX..=u64::MAX).is_none());
            assert!(lock.try_lock(5..=5).is_some());
        });
        drop((first, last));
    }
}

/// A released range is free at once, also while its neighbours are held and nobody has walked past it.
fn p4_4_released_ranges_are_free_at_once<L: Exclusive>(lock: &RangeMutex<L>) {
    for round in 0..300 {
        let mut held: Vec<_> = (0..8)
            .map(|at| Some(lock.lock(4 * at..4 * at + 4)))
            .collect();
        let which = round % held.len();
        held[which] = None;
        let start = 4 * which as u64;
        assert!(lock.try_lock(start..start + 4).is_some());
        if round % 30 == 0 {
            assert!(elsewhere(|| lock.try_lock(start + 1..start + 3).is_some()));
        }
    }
}

/// Half-open ranges: a reader does not wait for the writer that begins where it ends.
fn p1_4_a_reader_ignores_its_neighbour<L: Shared>(lock: &RangeLock<L>) {
    let _writer = lock.write(20..30);
    assert!(lock.try_read(10..20).is_some());
    assert!(lock.try_read(30..40).is_some());
}

/// Reclamation that waited for sleepers would block a holder that uses up many pools of nodes.
fn p1_6_a_sleeping_writer_holds_no_nodes_back<L: Shared>(lock: &RangeLock<L>) {
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

/// The fast path, other threads that read its node, slow releases: each leads back to a lock that works.
fn p1_7_fast_and_slow_releases_of_readers_mix<L: Shared>(lock: &RangeLock<L>) {
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
fn p1_8_readers_bypass_waiting_requests<L: Shared>(lock: &RangeLock<L>) {
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

/// A thread that holds a range of another lock gives way for a turn.
fn p1_8_holders_of_another_lock_get_through<L: Shared>(lock: &RangeLock<L>) {
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
fn p1_13_waiting_reader_blocks_nobody<L: Shared>(lock: &RangeLock<L>) {
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
fn p1_13_waiting_writer_blocks_nobody<L: Shared>(lock: &RangeLock<L>) {
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
fn p1_15_refused_requests_leave_the_list<L: Shared>(lock: &RangeLock<L>) {
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
    assert!(lock.try_read(10..40).is_some());
}

/// Four disjoint ranges: two held by writers, each reading up to where the other begins.
fn p1_18_readers_up_to_anothers_start<L: Shared>(lock: &RangeLock<L>) {
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

/// The other side of fairness, for readers.
fn readers_give_way<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.read(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(0..30)));
        elsewhere(|| {
            until(|| lock.try_read(5..8).is_none());
            until(|| lock.try_write(20..25).is_none());
            assert!(lock.try_write(30..40).is_some());
        });
        drop(held);
    });
}

/// As of exclusive ranges, but what is no conflict is not waited for.
fn tree_readers_wait_behind_a_waiting_writer<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.read(1..3);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(2..7)));
        until(|| lock.try_read(4..5).is_none());
        assert!(lock.try_read(1..2).is_some(), "nobody is in the way there");
        drop(held);
    });
}

/// The scenarios of this file, exclusive ranges.
pub fn scenarios<L: Exclusive>() -> Vec<Scenario<RangeMutex<L>>> {
    scenarios![
        p1_6_a_sleeper_holds_no_nodes_back,
        p1_7_fast_and_slow_releases_mix,
        p1_8_holders_bypass_waiting_requests needs Bypass,
        p1_13_a_waiting_request_blocks_no_holder needs Bypass,
        p1_15_refused_requests_leave_no_trace,
        p1_16_no_hold_is_lost_beside_releases,
        p1_19_newcomers_overtake needs Overtaking,
        newcomers_give_way needs GivingWay,
        tree_a_request_waits_behind_a_waiting_one needs Queueing,
        p4_2_the_outermost_points_lock_and_unlock,
        p4_4_released_ranges_are_free_at_once,
    ]
}

/// The scenarios of this file that have readers.
pub fn shared_scenarios<L: Shared>() -> Vec<Scenario<RangeLock<L>>> {
    scenarios![
        p1_4_a_reader_ignores_its_neighbour,
        p1_6_a_sleeping_writer_holds_no_nodes_back,
        p1_7_fast_and_slow_releases_of_readers_mix,
        p1_8_readers_bypass_waiting_requests needs Bypass,
        p1_8_holders_of_another_lock_get_through needs Bounded,
        p1_13_waiting_reader_blocks_nobody needs Bypass,
        p1_13_waiting_writer_blocks_nobody needs Bypass,
        p1_15_refused_requests_leave_the_list,
        p1_18_readers_up_to_anothers_start,
        readers_give_way needs GivingWay,
        tree_readers_wait_behind_a_waiting_writer needs Queueing,
    ]
}
