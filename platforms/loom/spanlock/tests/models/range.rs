//! The scenarios of range locks, each on the locks that it fits.

use crate::locks::*;
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;

// Exclusion.
models! {
    two_writers_overlapping:
        all on list slow_list exclusive_list slow_exclusive_list segments,
        3 on slow_skip_list slow_exclusive_skip_list tree,
        2 on exclusive_skip_list higher_exclusive_skip_list;
    a_reader_and_a_writer:
        all on list slow_list writers_first_list slow_writers_first_list,
        4 on segments unfair_segments,
        3 on slow_skip_list;
    two_readers_and_a_writer: 2 on segments;
    three_writers: 2 on slow_list;
    overlapping_readers_coexist: 2 on list segments;
    disjoint_holders_coexist: 2 on list;
    neighbours_do_not_wait_for_each_other: 2 on list;
    nodes_return_under_a_walk:
        3 on slow_list slow_exclusive_list,
        2 on slow_skip_list slow_exclusive_skip_list;
}

// P1's Figure 1.
models! {
    figure_one: 3 on list writers_first_list;
    figure_one_with_a_lasting_separator: 3 on list writers_first_list slow_skip_list;
    figure_one_with_a_detour:
        4 on list,
        3 on slow_list writers_first_list;
    figure_one_with_a_downgrade: 3 on list writers_first_list;
    figure_one_timed: 3 on list writers_first_list;
    a_writer_starts_over_with_a_fresh_node: 2 on unfair_list;
}

// Waiting.
models! {
    sleepers_are_woken_one_after_another: 2 on fair_list unfair_list segments unfair_segments;
    a_writer_and_a_reader_sleep_behind_one_holder:
        2 on fair_list unfair_list segments unfair_segments;
    one_behind_two: 2 on fair_list;
    a_downgrade_after_an_inheritance: 2 on fair_list unfair_list;
    a_waiting_reader_blocks_nobody: 2 on unfair_list unfair_writers_first_list;
    going_back_to_sleep_passes_the_turn_on: 2 on unfair_list;
    a_sleeper_has_empty_hands: 2 on segments unfair_segments;
    a_sleeper_does_not_walk_and_a_dropped_lock_leaks_nothing: 2 on unfair_list;
}

// Giving up.
models! {
    a_try_never_waits_and_never_intrudes: 3 on list writers_first_list;
    a_refused_try_rolls_back: 3 on segments;
    a_refused_try_refuses_nobody: 3 on list slow_exclusive_list slow_skip_list segments tree;
    a_refused_reader_refuses_nobody: 3 on list slow_skip_list segments;
    many_that_are_refused_refuse_nobody: 2 on list slow_skip_list exclusive_list segments;
    one_of_two_tries_is_granted: 3 on list slow_list slow_skip_list exclusive_list;
    a_try_to_read_or_one_to_write_is_granted: 3 on list slow_list writers_first_list slow_skip_list;
    giving_up_passes_the_turn_on: 2 on fair_list unfair_list segments unfair_segments;
    a_time_out_beside_an_inheritance:
        1 on fair_skip_list unfair_exclusive_skip_list,
        2 on fair_list slow_unfair_list fair_exclusive_list segments tree;
    a_time_out_beside_a_downgrade:
        1 on fair_skip_list,
        2 on fair_list slow_unfair_list segments;
    two_that_give_up:
        1 on fair_skip_list unfair_exclusive_skip_list,
        2 on fair_list slow_unfair_list fair_exclusive_list segments;
}

// Downgrade.
models! {
    downgrade_lets_waiting_readers_in: 2 on list slow_list, 3 on segments;
    a_downgrade_beside_a_reader: 5 on list writers_first_list;
    downgrade_keeps_writers_out: 3 on list;
    downgrade_keeps_writers_out_and_does_not_forget_them: 2 on segments unfair_segments;
}

// Several ranges in one call.
models! {
    many_against_each_other:
        2 on fair_list slow_unfair_list fair_exclusive_list fair_skip_list
            unfair_exclusive_skip_list segments tree;
    many_against_each_other_and_a_wide_one:
        0 on fair_list fair_exclusive_list,
        1 on segments;
    many_beside_a_reader_of_all: 2 on fair_list slow_unfair_list fair_skip_list segments tree;
    many_shared_beside_a_writer:
        2 on fair_list slow_unfair_list fair_skip_list,
        3 on segments tree;
    many_beside_a_writer_at_the_end: 3 on warm_list;
    many_around_a_writer: 3 on segments_of_four;
}

// Giving way.
models! {
    a_holder_joins_a_worker: 2 on fair_list writers_first_list slow_fair_list segments;
    a_holder_joins_two_workers_that_sleep: 0 on later_list;
    a_holder_joins_a_worker_that_sleeps:
        2 on fair_list writers_first_list slow_fair_list segments;
    a_holder_does_not_give_way_to_a_request_behind_it:
        2 on fair_list writers_first_list slow_fair_list segments;
    a_holder_heeds_no_reservation_after_one_behind_it:
        1 on fair_list segments;
    a_holder_elsewhere_gives_way: 2 on fair_list writers_first_list slow_fair_list segments;
    a_sleeping_reader_is_not_overtaken_for_ever: 2 on later_list patient_segments;
    a_sleeping_writer_is_not_overtaken_for_ever: 2 on later_list patient_segments;
    newcomers_give_way_and_are_not_forgotten:
        2 on fair_list writers_first_list slow_fair_list segments;
}

mod spinning {
    use super::*;

    models! {
        [.spinning()]
        sleepers_are_woken_one_after_another:
            1 on fair_list slow_unfair_list fair_exclusive_list fair_skip_list
                unfair_exclusive_skip_list,
            2 on segments;
        two_writers_overlapping:
            3 on fair_list slow_unfair_list fair_exclusive_list fair_skip_list
                unfair_exclusive_skip_list segments;
        a_downgrade_before_two_that_wait:
            1 on fair_list slow_unfair_list,
            2 on segments;
    }
}
