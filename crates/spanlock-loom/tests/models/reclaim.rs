//! Re-use of nodes. Pools are two nodes small here, so that nodes come back within a model.

use crate::world::{World, ex, rw};
use prim::model;
use spanlock_loom::range::list::{Fairness, FastPath};
use spanlock_loom::range::raw::RawRangeMutex;
use spanlock_loom::range::skip::{SkipEx, SkipRw};

/// Nodes are unlinked, sealed and used again under another thread's walk.
fn nodes_return_under_a_walk<L: RawRangeMutex + Send + Sync + 'static>(lock: fn() -> L) {
    model(Some(3), move || {
        let world = World::new(lock());
        let walker = world.spawn(|world| world.write(3..4).done());
        for at in 0..4 {
            world.write(at..at + 1).done();
        }
        walker.join().unwrap();
    });
}

#[test]
fn nodes_return_only_after_a_grace_period() {
    nodes_return_under_a_walk(|| rw().fast_path(FastPath::Off).build());
}

/// The exclusive lock has no other fence between unlinking a node and sealing it.
#[test]
fn nodes_return_only_after_a_grace_period_in_the_exclusive_lock() {
    nodes_return_under_a_walk(|| ex().fast_path(FastPath::Off).build());
}

/// The same between readers, whose validation walks on from their own node.
#[test]
fn nodes_return_only_after_a_readers_validation() {
    model(Some(2), || {
        let world = World::new(
            rw().fast_path(FastPath::Off)
                .fairness(Fairness::Unfair)
                .build(),
        );
        let reader = world.spawn(|world| world.read(0..4).done());
        for at in [3, 2, 1] {
            world.write(at..at + 1).done();
        }
        world.read(0..4).done();
        reader.join().unwrap();
    });
}

/// Hand over hand downwards, so that nobody passes what is released: the pool runs out, and the list is swept while
/// another thread inserts, releases and unlinks behind the one that sweeps.
fn sweeps_beside_a_request<L: RawRangeMutex + Send + Sync + 'static>(lock: fn() -> L) {
    model(Some(1), move || {
        let world = World::new(lock());
        let other = world.spawn(|world| {
            world.write(4..6).done();
            world.write(3..5).done();
        });
        let mut held = world.write(3..4);
        for at in [2, 1, 0] {
            held.touch();
            let next = world.write(at..at + 1);
            drop(held);
            held = next;
        }
        held.done();
        other.join().unwrap();
    });
}

#[test]
fn sweeps_beside_a_request_in_lists() {
    sweeps_beside_a_request(|| rw().build());
    sweeps_beside_a_request(|| ex().build());
}

#[test]
fn sweeps_beside_a_request_in_levels() {
    sweeps_beside_a_request(|| SkipEx::builder().height(2).build());
    sweeps_beside_a_request(|| SkipRw::builder().height(2).build());
}

/// A sleeping request holds no nodes back, and none is lost when a lock is dropped with nodes in its list.
#[test]
fn a_sleeper_does_not_walk_and_a_dropped_lock_leaks_nothing() {
    model(Some(2), || {
        let world = World::new(rw().fairness(Fairness::Unfair).build());
        let mine = world.write(0..1);
        let sleeper = world.spawn(|world| world.write(0..1).done());
        for at in 1..5 {
            world.write(at..at + 1).done();
        }
        drop(mine);
        sleeper.join().unwrap();
    });
}
