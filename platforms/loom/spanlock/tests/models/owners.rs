//! The scenarios of owners that are no threads.

use crate::locks::*;
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;

models! {
    another_thread_releases:
        3 on list slow_skip_list,
        2 on moving_slots slots bucket_slots;
    another_thread_releases_and_locks: 2 on list slow_skip_list moving_slots, 1 on slots;
    what_was_lent_is_lent_again: 1 on slots bucket_slots;
    another_thread_releases_beside_the_first: 2 on slots, 1 on bucket_slots;
    a_part_is_released: 1 on unfair_list fair_list unfair_slots;
    a_part_that_is_shared_is_released:
        2 on unfair_list slow_skip_list,
        1 on unfair_slots;
    a_part_is_shared:
        2 on unfair_list slow_skip_list,
        1 on unfair_slots moving_slots;
    an_upgrade_beside_a_reader:
        2 on unfair_list fair_list slow_skip_list,
        1 on unfair_slots fair_slots moving_slots bucket_slots;
    an_upgrade_beside_a_writer:
        2 on unfair_list fair_list slow_skip_list,
        1 on unfair_slots fair_slots bucket_slots;
    two_upgrades:
        2 on unfair_list fair_list,
        1 on unfair_slots;
    what_is_locked_again_beside_a_writer: 1 on unfair_list unfair_slots;
    an_upgrade_beside_refused_tries:
        2 on unfair_list slow_skip_list,
        1 on unfair_slots moving_slots bucket_slots;
    an_owner_s_refused_try_refuses_nobody: 1 on unfair_slots moving_slots bucket_slots annex_slots;
    a_refused_extension_refuses_nobody: 1 on unfair_list slow_skip_list unfair_slots;
    a_wait_is_cancelled: 3 on unfair_list;
    a_cancellation_beside_a_grant: 2 on unfair_list fair_list;
}

/// What is held is in no level of the index, and its pieces are.
mod of_different_heights {
    use super::*;

    models! {
        [.wins(&[0, 1, 1])]
        a_writer_begins_behind_a_piece:
            2 on slow_skip_list,
            1 on unfair_slots;
    }
}
