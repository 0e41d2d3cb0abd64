//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-loom --test models mutants -- --nocapture` prints the table.

// A model, and the edges without each of which it fails.
spanlock_testkit::mutants! {
    edges in "../../../crates/spanlock/src", "../../../crates/prim/src/barrier";
    harmless "range::two_writers_overlapping::list";
    killed by "
    barrier::the_kernel_is_asked_while_two_look_for_each_other: asked asked-passed-on asked-relied fenced-heavy
    barrier::the_kernel_is_asked_while_two_look_for_each_other: fenced-light
    range::a_holder_does_not_give_way_to_a_request_behind_it::fair_list: holder-bypass
    range::a_holder_does_not_give_way_to_a_request_behind_it::segments: holder-bypass
    range::a_holder_elsewhere_gives_way::segments: admission
    range::a_holder_heeds_no_reservation_after_one_behind_it::fair_list: later-bypass
    range::a_holder_heeds_no_reservation_after_one_behind_it::segments: later-bypass
    range::a_holder_joins_a_worker::fair_list: turn-ends
    range::a_holder_joins_a_worker::segments: turn-ends
    range::a_reader_and_a_writer::segments: admit-reader leave-reader
    range::a_refused_reader_refuses_nobody::list: try-looks
    range::a_refused_try_refuses_nobody::segments: segment-try-looks
    range::many_that_are_refused_refuse_nobody::list: many-try-looks
    range::a_sleeper_does_not_walk_and_a_dropped_lock_leaks_nothing::unfair_list: grace-nonblocking
    range::a_sleeper_has_empty_hands::segments: roll-back
    range::a_sleeping_reader_is_not_overtaken_for_ever::later_list: reserve-asleep
    range::a_sleeping_reader_is_not_overtaken_for_ever::patient_segments: reserve-asleep
    range::a_sleeping_writer_is_not_overtaken_for_ever::later_list: reserve-asleep
    range::a_sleeping_writer_is_not_overtaken_for_ever::patient_segments: reserve-asleep
    range::a_waiting_reader_blocks_nobody::unfair_list: withdraw
    range::a_writer_starts_over_with_a_fresh_node::unfair_list: fresh-node
    range::downgrade_lets_waiting_readers_in::list: downgrade downgrade-wake
    range::downgrade_lets_waiting_readers_in::segments: share share-wake
    range::figure_one::list: publish-acquire
    range::figure_one_with_a_detour::writers_first_list: publish
    range::figure_one_with_a_lasting_separator::list: reader-handshake reader-validation writer-handshake
    range::figure_one_with_a_lasting_separator::list: writer-validation
    range::figure_one_with_a_lasting_separator::slow_skip_list: max-shared-len
    range::giving_up_passes_the_turn_on::fair_list: give-up-dispatch
    range::going_back_to_sleep_passes_the_turn_on::unfair_list: sleep-dispatch
    range::many_around_a_writer::segments_of_four: granules
    range::many_beside_a_writer_at_the_end::warm_list: demote-own
    range::newcomers_give_way_and_are_not_forgotten::fair_list: admission
    range::nodes_return_under_a_walk::slow_exclusive_list: new-threads seal
    range::nodes_return_under_a_walk::slow_list: grace pin unpin
    range::sleepers_are_woken_one_after_another::fair_list: inherit no-fast-release
    range::sleepers_are_woken_one_after_another::segments: mark-inherited
    range::two_writers_overlapping::list: release release-acquire sleeper wake
    range::two_writers_overlapping::segments: admit-writer leave-writer mark-sleeper wake-sleeper
    range::two_writers_overlapping::tree: lost-race node-acquire node-publish node-winner
    deadlocks::a_ring_that_never_was_is_not_told: second-look
    deadlocks::one_of_two_owners_is_refused: refused-wakes
    owners::a_wait_is_cancelled::unfair_list: cancel
    tasks::a_holder_awaits_a_task_that_gives_way::fair_list: task-way-ends
    tasks::a_reservation_ends_with_the_turn::fair_list: turn-takes-reservation
    tasks::a_task_awaits_its_second_request::unfair_list: equal-wakers
    tasks::a_task_is_polled_with_another_waker::unfair_list: waker-swap
    tasks::a_waker_asks_for_a_range::unfair_list: tasks-unpinned
    tasks::a_waiting_task_is_cancelled::unfair_list: cancel
    tasks::a_woken_task_is_dropped_before_another::unfair_list: cancel-dispatch
    tasks::a_woken_task_is_never_polled::unfair_list: task-turn-ends
    owners::of_different_heights::a_writer_begins_behind_a_piece::slow_skip_list: pieces-descend
    owners::a_refused_extension_refuses_nobody::unfair_list: many-try-looks
    owners::an_upgrade_beside_a_reader::unfair_list: replaced
    owners::an_upgrade_beside_a_reader::unfair_slots: replaced
    owners::another_thread_releases_beside_the_first::slots: lent-waits
    owners::what_was_lent_is_lent_again::slots: lent
    owners::two_upgrades::unfair_list: one-upgrade
    list::fast_nodes_come_and_go_under_a_walk::list: demote-acquire
    list::fast_path_against_regular_path::list: demote fast-acquire fast-publish fast-release unlink-acquire
    list::neighbours_are_unlinked_together::slow_list: cut-off
    list::unlinked_by_one_that_goes_beyond::slow_exclusive_list: unlink
    keys::figure_one_with_a_lasting_separator::slow_keys: scan-counted
    keys::a_key_is_compared_while_its_holder_leaves::slow_keys: key-life
    keys::of_different_heights::a_writer_begins_behind_a_scan_that_is_over::slow_keys: scan-over
    points::an_upgrade: upgrade-validates
    keys::tables::two_tasks_name_two_tables_in_different_orders: tables-ascend
    keys::a_node_alone_is_used_again::keys: plain-node
    keys::a_task_waits_while_its_thread_goes_on::unfair_keys: own-keys
    keys::uses::the_last_user_writes_the_next_keys: last-use
    keys::panics::a_comparison_panics_anywhere: panic-leaves
    keys::panics::a_sleeper_that_panics_passes_the_turn_on: panic-gives-up
    keys::panics::an_innocent_thread_does_not_panic: innocent
    skip::a_search_that_starts_over_does_not_come_to_the_same_node::higher_exclusive_skip_list: tower-gone
    skip::entering_behind_one_that_leaves::slow_exclusive_skip_list: tower-prepare tower-publish
    skip::searching_past_neighbours_that_leave::slow_exclusive_skip_list: tower-cut-off
    skip::the_last_link_is_removed_by_another_thread::slow_exclusive_skip_list: last-link
    slots::a_grant_of_everything_beside_the_annex::everything_annex_slots: annex-whole
    slots::a_request_in_the_annex_beside_one_in_a_slot::annex_slots: annex-insert annex-look
    slots::of_different_heights::a_writer_searches_the_annex_beside_a_downgrade::annex_slots: shared-len-again
    slots::a_refused_try_refuses_nobody::bucket_slots: slot-try-looks
    slots::a_try_refused_beside_a_hold_refuses_nobody::annex_slots: annex-try-looks
    slots::a_busy_slot_stays_counted::bucket_slots: uncount-idle
    slots::a_grant_is_revoked_while_it_is_taken::keeping_slots: grant-revoke
    slots::a_grant_of_everything_beside_a_writer::everything_slots: grant-whole
    slots::a_holder_stays_in_the_list::moving_slots: residue
    slots::a_line_is_full::bucket_slots: counted
    slots::a_narrow_request_beside_two_wide_ones::bucket_slots: counted-only
    slots::a_part_of_a_grant_is_taken_beside_a_writer::everything_slots: grant-part
    slots::a_range_in_two_buckets::bucket_slots: bucket-listed bucket-look
    slots::a_reader_s_grant_does_not_do_for_a_writer::keeping_slots: grant-mode
    slots::a_slot_is_not_counted_any_more::unfair_bucket_slots: uncount uncount-acquire
    slots::a_slot_is_used_again_under_a_look::slots: rewrite
    slots::a_wide_request_meets_a_narrow_one::bucket_slots: counted counted-look
    slots::a_writer_s_grant_is_shared_for_once::keeping_slots: grant-contended
    slots::an_announcement_beside_a_tidy_thread::bucket_slots: counted-again
    slots::an_heir_beside_a_late_release::slots: heir heir-waits
    slots::an_insertion_beside_the_move::moving_slots: moved-check
    slots::buckets_are_made_beside_a_request::listing_slots: board-part
    slots::downgrade_lets_waiting_readers_in::slots: slot-downgrade slot-downgrade-wake
    slots::spinning::a_reader_wants_more_before_a_writer::unfair_slots: stay-bounded
    slots::spinning::a_reader_sleeps_behind_a_writer_in_place::unfair_bucket_slots: slot-sleeper slot-wake stay-bounded
    slots::the_first_of_two_sleepers_wakes_the_second::unfair_slots: slot-inherit
    slots::two_writers_overlapping::slots: board-part move registry slot-acquire slot-handshake
    slots::two_writers_overlapping::bucket_slots: bucket-acquire bucket-release
    slots::two_writers_overlapping::slots: slot-release slot-sleeper slot-validation slot-wake
    rw::tasks::a_task_beside_a_reader_that_backs_out: failed-looks
    rw::tasks::two_tasks_in_each_other_s_way: task-tries-again
    rw::tasks::a_woken_task_is_dropped: woken-passes-on
    rw::tasks::a_writing_task_holds_no_reader_of_a_futex_lock_back: read-passes-on
    rw::tasks::a_woken_task_is_never_polled: woken-turn-ends
    rw::tasks::a_writing_task_and_a_writer: task-listed task-released
    rw::a_bias_brings_what_a_writer_did::biased: bias-reopened
    rw::a_bias_brings_what_a_writer_did::returning: bias-drain bias-set row-in-use
    rw::a_bias_is_set_beside_a_writer::returning: bias-checked
    rw::a_hasty_writer_beside_a_writer::futex: futex-signal
    rw::a_reader_and_a_writer::biased: bias-writer depart depart-acquire slot-await slot-leave slot-wake
    rw::a_reader_and_a_writer::futex: futex-enter-exclusive futex-enter-shared futex-leave-exclusive
    rw::a_reader_and_a_writer::futex: futex-leave-shared futex-mark
    rw::a_reader_and_a_writer::pthread: pthread-leave-writer pthread-marks-first
    rw::a_reader_and_a_writer::queue: queue-closed queue-end queue-ended queue-late queue-open queue-push queue-take
    rw::a_reader_is_seen_beside_another::queue: phase-looked
    rw::a_reader_and_a_writer::ticket: phase phase-acquire phase-out phase-out-acquire phase-wake-readers
    rw::a_reader_and_a_writer::ticket: phase-wake-writer
    rw::a_reader_and_a_writer_behind_a_writer::futex: futex-back-out futex-last-reader
    rw::a_reader_and_a_writer_behind_a_writer::queue: queue-enter queue-free
    rw::a_reader_and_a_writer_behind_a_writer::ticket: phase-alternate ticket-parity
    rw::a_reader_goes_on_when_the_writer_gives_up::futex: futex-pass-on
    rw::a_fast_reader_and_a_writer::biased: bias-reader bias-recheck
    rw::a_fast_reader_and_two_writes::biased: bias-closed bias-reader-fenced bias-seen bias-writer-fenced
    rw::a_try_does_not_wait::ticket: phase-try
    rw::an_upgradable_before_a_writer::futex: futex-leave-upgradable futex-writer-next
    rw::an_upgrade_beside_a_reader_and_a_writer::futex: futex-wake-upgrader
    rw::an_upgrade_beside_a_writer::futex: futex-enter-upgradable
    rw::downgrade_keeps_writers_out::ticket: phase-downgrade
    rw::downgrade_lets_waiting_readers_in::futex: futex-downgrade futex-downgrade-wake
    rw::one_upgradable_after_another::futex: futex-next-upgradable
    rw::three_writers::futex: futex-conservative
    rw::readers_get_in_while_a_writer_waits::biased: await-bounded
    rw::two_writers_and_a_reader::biased: bias-kept-last
    rw::a_fast_reader_leaves_two_writers::returning: bias-off bias-off-begin bias-off-checked
    rw::two_writers_and_a_reader::pthread: bias-no-writer pthread-checked pthread-leave-reader
    rw::two_writers_and_a_reader::ticket: ticket-turn ticket-turn-acquire ticket-wake
    rw::bias::a_lock_that_is_dropped_forgets_leaked_readers: bias-forget
    rw::bias::a_lock_where_a_leaked_reader_is_published: bias-unpublished
    rw::bias::a_plain_store_under_a_fenced_bias: bias-grade
    rw::bias::a_writer_does_not_wait_for_the_next_in_the_slot::biased: slot-wake-count
    rw::bias::a_writer_gives_up_while_it_revokes::counted: bias-withdraw
    rw::bias::the_next_in_the_slot_brings_what_another_thread_did::biased: slot-free
    rw::pthread::a_foreign_release_comes_while_a_reader_leaves::pthread: foreign-clears owner-clears
    rw::pthread::a_reader_of_many_and_a_writer::pthread: depart-any
    rw::pthread::a_reader_that_leaves_is_not_the_writer_that_waits_for_it::pthread_without_bias: pthread-is-writer
    rw::pthread::a_reader_that_leaves_is_not_the_writer_that_was_there::pthread: pthread-was-writer
    rw::pthread::a_writer_leaves_beside_a_reader_that_backs_out::pthread: pthread-leave-unwritten
    rw::pthread::released_by_the_count_of_one_refused::pthread: pthread-owed-futex
    rw::pthread::released_by_the_publication_of_a_refused_reader::pthread: pthread-owed-table
    rw::pthread::two_released_by_other_threads::pthread: pthread-closed
    "
}
