//! Re-use of nodes. Pools are two nodes small here, so that nodes come back within a model.

use crate::world::{World, ex, rw};
use prim::model;
use spanlock_loom::range::list::{Fairness, FastPath};
use spanlock_loom::range::raw::RawRangeMutex;

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
