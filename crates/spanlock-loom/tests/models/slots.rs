//! What only slot locks do: the lock moves while requests are under way, threads get their slots, slots are used again.

use crate::locks::*;
use spanlock_loom::range::slots::RawSlots;
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;
use std::sync::Arc;

/// The range of a slot's next announcement is read beside the state of the one before. Whoever passes it by then comes
/// after the release.
fn a_slot_is_used_again_under_a_look(world: &Arc<World<RawSlots>>) {
    let twice = act(|world: &Arc<World<RawSlots>>| {
        world.write(0..1).done();
        world.write(4..5).done();
    });
    world.meet([twice, write(0..1)]);
}

/// A range is held in the list when the lock moves. A request on the board comes after it.
fn a_holder_stays_in_the_list(world: &Arc<World<RawSlots>>) {
    let mine = world.write(2..3);
    // They meet the holder, and the lock moves.
    let other = world.start([write(0..3)]);
    world.write(5..6).done();
    mine.done();
    other.join();
    world.write(0..8).done();
}

/// A request is inserted into the list while another one, which has met a third, moves the lock and asks again.
fn an_insertion_beside_the_move(world: &Arc<World<RawSlots>>) {
    let mine = world.read(0..1);
    let moves = act(|world: &Arc<World<RawSlots>>| {
        world.read(0..1).done();
        world.write(4..5).done();
    });
    world.meet([moves, write(4..5)]);
    drop(mine);
}

models! {
    a_slot_is_used_again_under_a_look: 2 on slots;
    a_holder_stays_in_the_list: 2 on moving_slots;
    an_insertion_beside_the_move: 2 on moving_slots;
}

// The scenarios of all range locks. A request takes more steps than in a list, so the bounds are tighter.
models! {
    two_writers_overlapping: 3 on slots moving_slots;
    a_reader_and_a_writer: 3 on slots moving_slots;
    three_writers: 1 on slots;
    overlapping_readers_coexist: 2 on slots moving_slots;
    disjoint_holders_coexist: 2 on slots moving_slots;
    neighbours_do_not_wait_for_each_other: 2 on slots;
    sleepers_are_woken_one_after_another: 1 on fair_slots unfair_slots moving_slots;
    a_writer_and_a_reader_sleep_behind_one_holder: 1 on fair_slots unfair_slots;
    one_behind_two: 2 on fair_slots;
    a_downgrade_after_an_inheritance: 1 on fair_slots;
    a_waiting_reader_blocks_nobody: 1 on unfair_slots;
    going_back_to_sleep_passes_the_turn_on: 1 on unfair_slots;
    a_sleeper_has_empty_hands: 2 on unfair_slots;
    a_try_never_waits_and_never_intrudes: 2 on slots;
    giving_up_passes_the_turn_on: 1 on fair_slots;
    a_time_out_beside_an_inheritance: 1 on fair_slots;
    a_time_out_beside_a_downgrade: 1 on fair_slots;
    two_that_give_up: 1 on fair_slots;
    downgrade_lets_waiting_readers_in: 2 on slots;
    a_downgrade_beside_a_reader: 3 on slots;
    downgrade_keeps_writers_out: 2 on slots;
    many_against_each_other: 1 on fair_slots;
    many_shared_beside_a_writer: 2 on slots;
    a_holder_joins_a_worker: 1 on fair_slots;
    a_holder_does_not_give_way_to_a_request_behind_it: 1 on fair_slots;
    newcomers_give_way_and_are_not_forgotten: 1 on fair_slots;
}
