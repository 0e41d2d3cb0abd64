//! What only skip lists do: nodes enter the index above the list and leave it, and a walk begins at a node found there.
//!
//! Every node has a tower here, as high as the lock allows, unless a model says how heights differ: a height of two is
//! one level above the list.

use crate::locks::*;
use spanlock_loom::range::skip::{SkipEx, SkipRw};
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;
use std::sync::Arc;

/// Two requests that overlap find no holder in their way and begin at different nodes, one of which leaves. They meet
/// in one gap of the list.
fn separated_insertions_meet_in_one_gap(world: &Arc<World<SkipEx>>) {
    let first = world.write(0..1);
    let second = world.write(1..2);
    let left = world.start([write(2..4)]);
    drop(second);
    world.write(3..5).done();
    drop(first);
    left.join();
}

/// A node enters a level behind one that is leaving it.
fn entering_behind_one_that_leaves(world: &Arc<World<SkipEx>>) {
    let first = world.write(0..1);
    let second = world.start([write(1..2)]);
    drop(first);
    world.write(2..3).done();
    second.join();
}

/// Nodes leave a level side by side while another thread searches it.
fn searching_past_neighbours_that_leave(world: &Arc<World<SkipEx>>) {
    let holds = [world.write(0..1), world.write(1..2)];
    let search = world.start([write(3..4)]);
    drop(holds);
    world.write(2..3).done();
    search.join();
}

/// P1's Figure 1, and a start hint before all nodes comes when the reader is there. It must lead the writer's second
/// check to the reader.
fn figure_one_with_a_late_start_hint(world: &Arc<World<SkipRw>>) {
    let between = world.read(3..4);
    let reader = act(|world: &Arc<World<SkipRw>>| {
        let reader = world.read(2..6);
        let hint = world.read(0..1);
        reader.touch();
        drop(hint);
    });
    world.meet([reader, write(4..5)]);
    drop(between);
}

/// A holder by the fast path, which is no start hint, reaches over a reader that is one.
fn a_reader_reaches_over_a_start_hint(world: &Arc<World<SkipRw>>) {
    reaches_over_a_start_hint(world, world.read(0..4));
}

/// The holder is a writer that shares its range now.
fn a_downgraded_writer_reaches_over_a_start_hint(world: &Arc<World<SkipRw>>) {
    reaches_over_a_start_hint(world, world.write(0..4).downgrade());
}

fn reaches_over_a_start_hint(world: &Arc<World<SkipRw>>, wide: Hold<'_, SkipRw>) {
    world.run([act(|world: &Arc<World<SkipRw>>| {
        let inside = world.read(1..2);
        is_refused(3..4)(world);
        drop(inside);
    })]);
    wide.done();
}

/// The start hint that a writer's second check begins at leaves meanwhile, and a reader comes in its place.
fn a_start_hint_leaves(world: &Arc<World<SkipRw>>) {
    let hint = world.read(0..1);
    let between = world.read(2..3);
    let reader = world.start([read(1..4)]);
    drop(hint);
    world.write(3..4).done();
    drop(between);
    reader.join();
}

/// One thread removes a node from the level, another from the list and uses it again, while a third still finds it in
/// the level. The tries are refused, and so change nothing else.
fn the_last_link_is_removed_by_another_thread(world: &Arc<World<SkipEx>>) {
    let last = world.write(5..6);
    world.write(1..2).done();
    let other = act(|world: &Arc<World<SkipEx>>| {
        let _held = (world.write(3..4), world.write(4..5));
        is_refused(5..6)(world);
    });
    let others = world.start([is_refused(5..6), is_refused(5..6), other]);
    others.join();
    drop(last);
}

/// No node is lost when a lock is dropped with nodes in its list and levels, some gone and one leaked.
fn a_dropped_lock_leaks_nothing(world: &Arc<World<SkipRw>>) {
    let leak = act(|world: &Arc<World<SkipRw>>| std::mem::forget(world.write(0..1)));
    let other = world.start([leak]);
    world.write(2..3).done();
    world.read(1..2).done();
    other.join();
}

/// A node leaves all levels while another thread searches them. A search that finds the mark of a lower tower link
/// starts over. It must not come by the same node again, however late it learns of the upper mark.
fn a_search_that_starts_over_does_not_come_to_the_same_node(world: &Arc<World<SkipEx>>) {
    world.behind_a_writer(0..1, [write(2..3)]);
}

/// P1's Figure 1 with a node between the two that may be in no level, and a start hint.
fn figure_one_with_a_start_hint(world: &Arc<World<SkipRw>>) {
    let between = world.read(2..3);
    let reader = act(|world: &Arc<World<SkipRw>>| {
        let hint = world.read(0..1);
        world.read(1..6).done();
        drop(hint);
    });
    world.meet([reader, write(4..5)]);
    drop(between);
}

models! {
    separated_insertions_meet_in_one_gap: 2 on slow_exclusive_skip_list;
    entering_behind_one_that_leaves: 3 on slow_exclusive_skip_list;
    searching_past_neighbours_that_leave: 3 on slow_exclusive_skip_list;
    figure_one_with_a_late_start_hint: 2 on slow_skip_list;
    a_reader_reaches_over_a_start_hint: 2 on warm_skip_list;
    a_downgraded_writer_reaches_over_a_start_hint: 2 on warm_skip_list;
    a_start_hint_leaves: 3 on slow_skip_list;
    the_last_link_is_removed_by_another_thread: (prim::one_more_in_mutants(1)) on slow_exclusive_skip_list;
    a_dropped_lock_leaks_nothing: 2 on slow_skip_list higher_skip_list;
    a_search_that_starts_over_does_not_come_to_the_same_node: 2 on higher_exclusive_skip_list;
}

/// Models in which heights differ. The numbers are levels above the list: for the first thread's nodes in turn, and
/// from the second number on for the second thread's.
macro_rules! at_heights {
    ($($name:ident: $levels:tt;)+) => {
        $(mod $name {
            use super::*;

            models! {
                [.wins(&$levels)]
                searching_past_neighbours_that_leave: 2 on higher_exclusive_skip_list;
                entering_behind_one_that_leaves: 2 on higher_exclusive_skip_list;
                figure_one_with_a_start_hint: 2 on higher_skip_list;
            }
        })+
    };
}

at_heights! {
    two_one: [2, 1];
    none_two: [0, 2];
    two_none_one: [2, 0, 1];
}

mod of_different_heights {
    use super::*;

    models! {
        [.wins(&[2, 0, 1])]
        nodes_return_under_a_walk: 1 on higher_skip_list;
    }
}
