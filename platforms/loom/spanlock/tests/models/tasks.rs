//! The scenarios of tasks, which are polled, woken and dropped.

use crate::locks::*;
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;

models! {
    a_task_and_a_thread:
        2 on unfair_list fair_list slow_skip_list unfair_slots,
        1 on moving_slots bucket_slots;
    a_task_and_a_reader: 2 on unfair_list, 1 on unfair_slots;
    a_reading_task_and_a_thread: 2 on unfair_list, 1 on unfair_slots;
    a_task_and_a_reading_task: 2 on unfair_list, 1 on unfair_slots;
    a_task_and_a_thread_behind_a_writer:
        1 on unfair_list fair_list slow_skip_list unfair_slots;
    a_writing_task_is_dropped: 1 on unfair_list fair_list slow_skip_list unfair_slots;
    a_reading_task_is_dropped: 1 on unfair_list fair_list unfair_slots;
    a_writing_task_is_dropped_before_a_task: 1 on unfair_list;
    a_reading_task_is_dropped_before_a_task: 1 on unfair_list;
    a_woken_task_is_dropped_before_a_reader: 2 on unfair_list, 1 on unfair_slots;
    a_woken_reading_task_is_dropped_before_a_writer: 2 on unfair_list, 1 on unfair_slots;
    a_woken_reading_task_is_dropped_before_a_task: 1 on unfair_list;
    a_woken_task_is_dropped_before_another: 2 on unfair_list fair_list unfair_slots;
    a_task_is_polled_with_another_waker: 3 on unfair_list unfair_slots;
    a_reading_task_is_polled_with_another_waker: 2 on unfair_list, 1 on unfair_slots;
    a_woken_task_is_never_polled: 2 on unfair_list unfair_slots;
    two_woken_tasks_are_never_polled: 2 on unfair_list;
    a_turn_ends_beside_a_poll: 1 on unfair_list unfair_slots;
    a_turn_ends_beside_a_drop: 2 on unfair_list;
    a_reservation_ends_with_the_turn: 2 on fair_list fair_slots;
    a_holder_awaits_a_task_that_gives_way: 1 on fair_list;
    a_task_awaits_its_second_request: 2 on unfair_list unfair_slots;
    a_waker_asks_for_a_range: 1 on unfair_list;
    a_waiting_task_is_cancelled: 2 on unfair_list;
    a_task_locks_many_beside_a_writer: 1 on unfair_list unfair_keys;
    a_task_locks_again_beside_a_writer: 1 on unfair_list;
}
