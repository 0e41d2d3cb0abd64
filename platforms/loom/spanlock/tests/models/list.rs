//! What only lists do: nodes of the fast path, nodes that are unlinked together, pools of nodes that are swept.
//!
//! Pools are two nodes small here, so that nodes come back within a model.

use crate::locks::*;
use spanlock_loom::range::list::{ListEx, ListRw};
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;
use std::sync::Arc;

/// Requests by the fast path and by the regular path overlap.
fn fast_path_against_regular_path(world: &Arc<World<ListRw>>) {
    let twice = act(|world: &Arc<World<ListRw>>| {
        world.write(0..2).done();
        world.write(1..3).done();
    });
    let other = world.start([twice]);
    world.write(1..2).done();
    world.read(0..3).done();
    other.join();
}

/// The fast path's node is used again at once, while another thread is about to demote it.
fn fast_nodes_come_and_go_under_a_walk(world: &Arc<World<ListRw>>) {
    world.meet([read(0..3), write_each(0..3)]);
}

/// A walk that changes nothing, while the fast path's node comes, goes and is prepared again.
fn a_snapshot_reads_no_fast_node(world: &Arc<World<ListRw>>) {
    let snapshot = act(|world: &Arc<World<ListRw>>| drop(world.snapshot()));
    world.meet([snapshot, write_each(0..3)]);
}

/// A walk that leads beyond a node unlinks it. A request that comes after that never meets the node, and still comes
/// after its holder.
fn unlinked_by_one_that_goes_beyond(world: &Arc<World<ListEx>>) {
    let first = world.write(0..1);
    let second = world.write(2..3);
    world.release_beside([first], [write(4..5), write(0..1)]);
    drop(second);
}

/// Neighbours are released at the same time: the one unlinked first was what the other hung on.
fn neighbours_are_unlinked_together(world: &Arc<World<ListRw>>) {
    let holds = [world.write(0..1), world.write(1..2)];
    world.release_beside(holds, [write(2..3), read(0..3)]);
    world.write(0..3).done();
}

/// A reader's validation walks on from its own node while nodes return.
fn nodes_return_under_a_validation(world: &Arc<World<ListRw>>) {
    let reader = world.start([read(0..4)]);
    for at in [3, 2, 1] {
        world.write(at..at + 1).done();
    }
    world.read(0..4).done();
    reader.join();
}

/// A thread goes down hand over hand, so that no walk passes what it releases. The pool runs out, and the list is swept
/// while another thread inserts, releases and unlinks behind the one that sweeps.
fn sweeps_beside_a_request<L: Exclusive>(world: &Arc<World<L>>) {
    let twice = act(|world: &Arc<World<L>>| {
        world.write(4..6).done();
        world.write(3..5).done();
    });
    let other = world.start([twice]);
    let mut held = world.write(3..4);
    for at in [2, 1, 0] {
        held.touch();
        let next = world.write(at..at + 1);
        drop(held);
        held = next;
    }
    held.done();
    other.join();
}

models! {
    fast_path_against_regular_path: 3 on list;
    fast_nodes_come_and_go_under_a_walk: 3 on list;
    a_snapshot_reads_no_fast_node: 3 on list;
    unlinked_by_one_that_goes_beyond: 2 on slow_exclusive_list;
    neighbours_are_unlinked_together: 3 on slow_list;
    nodes_return_under_a_validation: 2 on slow_unfair_list;
    sweeps_beside_a_request: 1 on list exclusive_list skip_list exclusive_skip_list;
}
