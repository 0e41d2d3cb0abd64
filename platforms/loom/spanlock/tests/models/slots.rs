//! What only slot locks do: the lock moves while requests are under way, threads get their slots, slots are used again.

use crate::locks::*;
use spanlock_loom::range::raw::{Mode, Wait};
use spanlock_loom::range::slots::RawSlots;
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;
use std::ops::Range;
use std::sync::Arc;

/// Does so twice: the thread gets a slot first, and then keeps its grant.
fn twice<L: Shared>(world: &Arc<World<L>>, mode: Mode, range: Range<u64>) {
    for _ in 0..2 {
        match mode {
            Mode::Shared => world.read(range.clone()).done(),
            Mode::Exclusive => world.write(range.clone()).done(),
        }
    }
}

/// Writes there, or gives up soon. (One that may not wait would look before it is announced.)
fn writes_soon(world: &Arc<World<RawSlots>>, range: Range<u64>) {
    if let Some(mine) = world.write_within(range, soon()) {
        mine.done();
    }
}

/// The range of a slot's next announcement is read beside the state of the one before. Whoever passes it by then comes
/// after the release.
fn a_slot_is_used_again_under_a_look(world: &Arc<World<RawSlots>>) {
    let mine = world.write(0..1);
    let other = world.start([write(0..1)]);
    mine.done();
    world.write(4..5).done();
    other.join();
}

/// A kept grant is taken again and revoked at the same time.
fn a_grant_is_revoked_while_it_is_taken(world: &Arc<World<RawSlots>>) {
    twice(world, Mode::Exclusive, 0..2);
    world.meet([write(1..3), write(0..2)]);
}

/// A reader's grant is revoked by a writer.
fn a_shared_grant_is_revoked_while_it_is_taken(world: &Arc<World<RawSlots>>) {
    twice(world, Mode::Shared, 0..2);
    world.meet([write(1..3), read(0..2)]);
}

/// A reader keeps its grant, and then writes what another reader reads.
fn a_reader_s_grant_does_not_do_for_a_writer(world: &Arc<World<RawSlots>>) {
    twice(world, Mode::Shared, 0..1);
    world.meet([read(0..1), write(0..1)]);
}

/// A writer takes its grant again to read, beside another reader, who reads on. Then it does not get to write.
fn a_writer_s_grant_is_shared_for_once(world: &Arc<World<RawSlots>>) {
    twice(world, Mode::Exclusive, 0..1);
    let mine = world.read(0..1);
    world.run([act(|world: &Arc<World<RawSlots>>| {
        std::mem::forget(world.read(0..1));
    })]);
    mine.done();
    let writes = world.write_within(0..1, Wait::Never).is_some();
    assert!(!writes, "a reader is overtaken");
}

/// A reader asks for a grant of everything beside a writer, and reads what that one writes.
fn a_grant_of_everything_beside_a_writer(world: &Arc<World<RawSlots>>) {
    twice(world, Mode::Shared, 0..1);
    let other = world.start([write(5..6)]);
    world.read(2..3).done();
    world.read(5..6).done();
    other.join();
}

/// A part of a grant of everything is taken again, while a writer of that part comes.
fn a_part_of_a_grant_is_taken_beside_a_writer(world: &Arc<World<RawSlots>>) {
    twice(world, Mode::Shared, 0..1);
    world.meet([write(4..6), read(5..6)]);
}

/// A writer asleep behind a grant that was taken again is woken by the release, which does not keep the grant.
fn a_sleeper_behind_a_grant(world: &Arc<World<RawSlots>>) {
    twice(world, Mode::Exclusive, 0..1);
    world.behind_a_writer(0..1, [write(0..1)]);
    world.is_free();
}

/// Two sleep behind a holder, the second one also behind the first, which wakes it.
fn the_first_of_two_sleepers_wakes_the_second(world: &Arc<World<RawSlots>>) {
    let mine = world.write(0..2);
    let first = world.start([write(0..1)]);
    world.until_asleep(1);
    let second = world.start([write(0..2)]);
    world.until_asleep(2);
    drop(mine);
    first.join();
    second.join();
}

/// A range is held in the list when the lock moves. A request on the board comes after it.
fn a_holder_stays_in_the_list(world: &Arc<World<RawSlots>>) {
    let mine = world.write(2..3);
    // It meets the holder, so the lock moves.
    world.run([is_refused(0..3)]);
    world.release_beside([mine], [write(1..4)]);
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

/// A thread has exited and releases late, while another one has its record, and so its home slot.
fn an_heir_beside_a_late_release(world: &Arc<World<RawSlots>>) {
    let late = world.write(0..1);
    prim::thread::exit_early();
    let heir = world.start([act(|world: &Arc<World<RawSlots>>| {
        world.write(4..5).done();
        world.write(5..6).done();
    })]);
    late.done();
    world.write(5..6).done();
    heir.join();
}

/// A thread holds two ranges. The slot of the second one becomes nobody's, and anybody's.
fn an_heir_beside_two_late_releases(world: &Arc<World<RawSlots>>) {
    let (first, second) = (world.write(0..1), world.write(2..3));
    prim::thread::exit_early();
    let heir = world.start([write(4..5)]);
    second.done();
    first.done();
    world.write(4..5).done();
    heir.join();
}

/// A thread that holds a range asks for narrow ones beside it, each in the same slot.
fn one_narrow_range_after_another_beside_a_hold(world: &Arc<World<RawSlots>>) {
    let mine = world.write(0..1);
    world.write(4..5).done();
    let other = world.start([write(2..3)]);
    world.write(2..3).done();
    mine.done();
    other.join();
}

/// Ranges in two buckets and in one of them. Neither request is counted.
fn a_range_in_two_buckets(world: &Arc<World<RawSlots>>) {
    world.meet([write(0..3), write(2..3)]);
}

/// A request that looks at all slots meets one that looks in its bucket.
fn a_wide_request_meets_a_narrow_one(world: &Arc<World<RawSlots>>) {
    world.meet([write(0..5), write(0..1)]);
}

/// Two readers fill a line. A third one is counted, so a writer meets it.
fn a_line_is_full(world: &Arc<World<RawSlots>>) {
    let full = [world.read(0..1), world.read(0..1)];
    world.run([act(|world: &Arc<World<RawSlots>>| {
        std::mem::forget(world.read(0..1));
    })]);
    full.into_iter().for_each(Hold::done);
    let writes = world.write_within(0..1, Wait::Never).is_some();
    assert!(!writes, "a reader is overtaken");
}

/// Whoever finds that no slot is counted comes after what was held in one.
fn a_slot_is_not_counted_any_more(world: &Arc<World<RawSlots>>) {
    let mine = world.write(0..5);
    let other = world.start([write(0..1)]);
    mine.done();
    drop(world.write(6..7));
    other.join();
}

/// Another thread ends that the slot is counted.
fn an_idle_slot_is_uncounted_by_another_thread(world: &Arc<World<RawSlots>>) {
    let tidies = act(|world: &Arc<World<RawSlots>>| {
        world.lock().tidy();
        writes_soon(world, 0..1);
    });
    let mine = world.write(0..5);
    let other = world.start([tidies]);
    mine.done();
    other.join();
}

/// A slot in which a range is held stays counted.
fn a_busy_slot_stays_counted(world: &Arc<World<RawSlots>>) {
    let mine = world.write(0..5);
    world.run([act(|world: &Arc<World<RawSlots>>| {
        world.lock().tidy();
        assert!(world.write_within(0..1, Wait::Never).is_none());
    })]);
    mine.done();
    world.write(0..1).done();
}

/// A narrow request beside two that are counted: it looks at both.
fn a_narrow_request_beside_two_wide_ones(world: &Arc<World<RawSlots>>) {
    let wide = [world.read(0..5), world.read(0..5)];
    let other = world.start([act(|world: &Arc<World<RawSlots>>| writes_soon(world, 0..1))]);
    for one in wide.into_iter().rev() {
        one.done();
    }
    other.join();
}

/// A slot is uncounted while its owner announces a request in it, which is then held for ever.
fn an_announcement_beside_a_tidy_thread(world: &Arc<World<RawSlots>>) {
    world.write(0..5).done();
    let other = world.start([act(|world: &Arc<World<RawSlots>>| {
        world.lock().tidy();
        writes_soon(world, 0..1);
    })]);
    let mine = world.write(0..5);
    mine.touch();
    std::mem::forget(mine);
    other.join();
}

/// A thread makes buckets, while another one announces a request.
fn buckets_are_made_beside_a_request(world: &Arc<World<RawSlots>>) {
    drop(world.write(100..101));
    let other = world.start([write(0..1)]);
    world.lock().make_buckets(0);
    drop(world.write(300..301));
    other.join();
}

/// A reader asks for more beside what it holds, while a writer waits for both, in place: one of them withdraws.
fn a_reader_wants_more_before_a_writer(world: &Arc<World<RawSlots>>) {
    let mine = world.read(0..1);
    let writer = world.start([act(|world: &Arc<World<RawSlots>>| {
        // It has a slot, so it is announced again before it would sleep.
        world.write(4..5).done();
        world.write(0..2).done();
    })]);
    world.read(1..2).done();
    mine.done();
    writer.join();
}

/// A reader sleeps behind a writer that waits in place, in a bucket of both. The writer withdraws, and wakes it.
fn a_reader_sleeps_behind_a_writer_in_place(world: &Arc<World<RawSlots>>) {
    let mine = world.read(0..1);
    let writer = world.start([act(|world: &Arc<World<RawSlots>>| {
        // It has a slot, so it is announced again before it would sleep.
        world.write(4..5).done();
        world.write(0..2).done();
    })]);
    world.run([read(1..2)]);
    mine.done();
    writer.join();
}

/// A thread that holds a range asks for another one, in the annex, beside one that asks in its slot.
fn a_request_in_the_annex_beside_one_in_a_slot(world: &Arc<World<RawSlots>>) {
    let mine = world.write(0..1);
    let other = world.start([write(4..5)]);
    world.write(4..5).done();
    mine.done();
    other.join();
}

/// Both ask in the annex, and one of them reads.
fn a_reader_and_a_writer_in_the_annex(world: &Arc<World<RawSlots>>) {
    let mine = world.write(0..1);
    let other = world.start([act(|world: &Arc<World<RawSlots>>| {
        let other = world.write(2..3);
        world.read(4..6).done();
        other.done();
    })]);
    world.write(5..6).done();
    mine.done();
    other.join();
}

/// A request in the annex revokes a grant that is taken again at the same time.
fn a_grant_is_revoked_from_the_annex(world: &Arc<World<RawSlots>>) {
    let mine = world.write(4..5);
    let other = world.start([act(|world: &Arc<World<RawSlots>>| {
        twice(world, Mode::Exclusive, 0..2);
        world.write(0..2).done();
    })]);
    world.write(1..3).done();
    mine.done();
    other.join();
}

/// A reader asks for everything while a range in the annex is held. It does not get to read that.
fn a_grant_of_everything_beside_the_annex(world: &Arc<World<RawSlots>>) {
    let in_slot = world.write(4..5);
    let in_annex = world.write(5..6);
    in_slot.done();
    world.run([act(|world: &Arc<World<RawSlots>>| {
        twice(world, Mode::Shared, 0..1);
        assert!(world.read_within(5..6, Wait::Never).is_none());
    })]);
    in_annex.done();
}

/// A writer in a slot sleeps behind one in the annex, and one in the annex behind one in a slot.
fn sleepers_behind_the_annex(world: &Arc<World<RawSlots>>) {
    let in_slot = world.write(0..1);
    let in_annex = world.write(4..5);
    let first = world.start([write(4..5)]);
    world.until_asleep(1);
    in_annex.done();
    let second = world.start([act(|world: &Arc<World<RawSlots>>| {
        let other = world.write(2..3);
        world.write(0..1).done();
        other.done();
    })]);
    in_slot.done();
    first.join();
    second.join();
}

/// A range in the annex is downgraded while a reader asks for it, and later it lets a writer in.
fn a_downgrade_in_the_annex(world: &Arc<World<RawSlots>>) {
    let in_slot = world.write(0..1);
    let in_annex = world.write(4..6);
    let other = world.start([read(4..5)]);
    let shared = in_annex.downgrade();
    other.join();
    world.run([act(|world: &Arc<World<RawSlots>>| {
        assert!(world.write_within(5..6, Wait::Never).is_none());
    })]);
    drop(shared);
    in_slot.done();
}

/// A range in the annex is downgraded, and a reader comes inside of it, between the steps of a writer in a slot. The
/// reader must not be the start hint that leads the writer past the whole range.
fn a_writer_searches_the_annex_beside_a_downgrade(world: &Arc<World<RawSlots>>) {
    let in_slot = world.write(0..1);
    let wide = world.write(2..6);
    let other = world.start([write(5..6)]);
    let wide = wide.downgrade();
    let inside = world.read(3..4);
    wide.touch();
    drop(inside);
    wide.done();
    in_slot.done();
    other.join();
}

models! {
    a_request_in_the_annex_beside_one_in_a_slot: 2 on annex_slots;
    a_reader_and_a_writer_in_the_annex: 1 on annex_slots;
    a_grant_is_revoked_from_the_annex: 1 on keeping_annex_slots;
    a_grant_of_everything_beside_the_annex: 2 on everything_annex_slots;
    sleepers_behind_the_annex: 1 on annex_slots unfair_annex_slots;
    a_downgrade_in_the_annex: 2 on annex_slots;
}

/// The second node of the first thread in the annex is in a level above the list, and the first one is in none.
mod of_different_heights {
    use super::*;

    models! {
        [.wins(&[0, 0, 1])]
        a_writer_searches_the_annex_beside_a_downgrade: 2 on annex_slots;
    }
}

/// Writers wait in place while there are spins.
mod spinning {
    use super::*;

    models! {
        [.spinning()]
        a_reader_wants_more_before_a_writer: 1 on unfair_slots bucket_slots;
        a_reader_sleeps_behind_a_writer_in_place: 1 on unfair_bucket_slots;
        two_writers_overlapping: 1 on slots bucket_slots;
        a_reader_and_a_writer: 1 on slots;
        one_behind_two: 1 on fair_slots;
        a_grant_is_revoked_while_it_is_taken: 1 on keeping_slots;
    }
}

models! {
    a_range_in_two_buckets: 1 on bucket_slots;
    a_wide_request_meets_a_narrow_one: 2 on bucket_slots;
    a_line_is_full: 2 on bucket_slots;
    a_slot_is_not_counted_any_more: 2 on unfair_bucket_slots;
    an_idle_slot_is_uncounted_by_another_thread: 2 on bucket_slots;
    a_busy_slot_stays_counted: 2 on bucket_slots;
    a_narrow_request_beside_two_wide_ones: 2 on bucket_slots;
    an_announcement_beside_a_tidy_thread: 2 on bucket_slots;
    buckets_are_made_beside_a_request: 2 on listing_slots;
}

models! {
    a_slot_is_used_again_under_a_look: 2 on slots, 1 on keeping_slots;
    an_heir_beside_a_late_release: 2 on slots, 1 on keeping_slots bucket_slots;
    an_heir_beside_two_late_releases: 1 on slots bucket_slots annex_slots;
    one_narrow_range_after_another_beside_a_hold: 2 on bucket_slots annex_slots;
    a_grant_is_revoked_while_it_is_taken: 2 on keeping_slots;
    a_shared_grant_is_revoked_while_it_is_taken: 2 on keeping_slots;
    a_reader_s_grant_does_not_do_for_a_writer: 2 on keeping_slots;
    a_writer_s_grant_is_shared_for_once: 2 on keeping_slots;
    a_grant_of_everything_beside_a_writer: 1 on everything_slots;
    a_part_of_a_grant_is_taken_beside_a_writer: 1 on everything_slots;
    a_sleeper_behind_a_grant: 2 on keeping_slots;
    the_first_of_two_sleepers_wakes_the_second: 1 on unfair_slots;
    a_holder_stays_in_the_list: 2 on moving_slots;
    an_insertion_beside_the_move: 2 on moving_slots;
}

// The scenarios of all range locks. A request takes more steps than in a list, so the bounds are tighter.
models! {
    two_writers_overlapping: 2 on slots keeping_slots bucket_slots, 3 on moving_slots;
    a_reader_and_a_writer: 1 on slots keeping_slots everything_slots bucket_slots, 3 on moving_slots;
    overlapping_readers_coexist: 2 on slots bucket_slots moving_slots;
    disjoint_holders_coexist: 2 on slots moving_slots, 1 on bucket_slots;
    neighbours_do_not_wait_for_each_other: 2 on slots bucket_slots;
    sleepers_are_woken_one_after_another: 1 on fair_slots unfair_slots bucket_slots moving_slots;
    a_writer_and_a_reader_sleep_behind_one_holder: 1 on fair_slots unfair_slots;
    one_behind_two: 2 on fair_slots, 1 on patient_slots;
    a_waiting_reader_blocks_nobody: 1 on unfair_slots;
    going_back_to_sleep_passes_the_turn_on: 1 on unfair_slots;
    a_sleeper_has_empty_hands: 2 on unfair_slots;
    a_try_never_waits_and_never_intrudes: 1 on slots bucket_slots;
    a_refused_try_refuses_nobody: 2 on slots bucket_slots, 1 on keeping_slots moving_slots annex_slots;
    a_try_refused_beside_a_hold_refuses_nobody: 1 on slots bucket_slots annex_slots;
    a_refused_reader_refuses_nobody: 1 on slots bucket_slots moving_slots annex_slots;
    many_that_are_refused_refuse_nobody: 1 on slots bucket_slots annex_slots moving_slots;
    one_of_two_tries_is_granted: 1 on slots bucket_slots, 2 on moving_slots;
    a_try_to_read_or_one_to_write_is_granted: 1 on slots, 2 on moving_slots;
    giving_up_passes_the_turn_on: 1 on fair_slots;
    a_time_out_beside_an_inheritance: 1 on fair_slots patient_slots;
    a_time_out_beside_a_downgrade: 1 on fair_slots;
    two_that_give_up: 1 on fair_slots bucket_slots patient_slots annex_slots;
    downgrade_lets_waiting_readers_in: 2 on slots bucket_slots;
    a_downgrade_beside_a_reader: 1 on slots bucket_slots;
    downgrade_keeps_writers_out: 2 on slots;
    many_against_each_other: 1 on fair_slots annex_slots;
    many_shared_beside_a_writer: 2 on slots, 1 on annex_slots;
    a_holder_joins_a_worker: 1 on fair_slots annex_slots;
    a_holder_does_not_give_way_to_a_request_behind_it: 1 on fair_slots;
    a_sleeping_reader_is_not_overtaken_for_ever: 1 on later_slots;
    a_sleeping_writer_is_not_overtaken_for_ever: 1 on later_slots;
    newcomers_give_way_and_are_not_forgotten: 1 on fair_slots;
}
