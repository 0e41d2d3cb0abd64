//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-loom --test models mutants -- --nocapture` prints the table.

use crate::mutation::{self, Mutant};

/// An edge, and the model that fails without it.
const MUTANTS: &[Mutant] = &[
    ("admit-reader", "segment::a_reader_and_a_writer"),
    ("admit-writer", "segment::two_writers_overlapping"),
    ("age", "segment::a_sleeping_writer_ages"),
    (
        "alone",
        "rw::tokenless::a_stranger_comes_while_a_reader_leaves",
    ),
    (
        "asked",
        "barrier::the_kernel_is_asked_while_two_look_for_each_other",
    ),
    (
        "asked-passed-on",
        "barrier::the_kernel_is_asked_while_two_look_for_each_other",
    ),
    (
        "asked-relied",
        "barrier::the_kernel_is_asked_while_two_look_for_each_other",
    ),
    ("await", "rw::bias::a_reader_and_a_writer"),
    (
        "barrier",
        "reclaim::a_sleeper_does_not_walk_and_a_dropped_lock_leaks_nothing",
    ),
    ("bias-arrived", "rw::tokenless::writers_and_a_reader"),
    ("bias-arrived-none", "rw::bias::writers_and_a_reader"),
    (
        "bias-checked",
        "rw::bias::a_slow_reader_sets_the_bias_against_a_writer",
    ),
    ("bias-checked-none", "rw::bias::writers_and_a_reader"),
    ("bias-closed", "rw::bias::a_seated_reader_and_a_writer"),
    ("bias-drain", "rw::bias::a_bias_brings_what_writers_did"),
    (
        "bias-forget",
        "rw::bias::a_lock_that_is_dropped_forgets_leaked_readers",
    ),
    ("bias-off", "rw::bias::writers_and_a_reader"),
    (
        "bias-owed",
        "rw::tokenless::released_by_the_publication_of_one_turned_away",
    ),
    ("bias-reader", "rw::bias::a_seated_reader_and_a_writer"),
    ("bias-recheck", "rw::bias::a_seated_reader_and_a_writer"),
    (
        "bias-seen",
        "rw::bias::a_seated_reader_a_writer_and_another_reader",
    ),
    ("bias-set", "rw::bias::a_bias_brings_what_writers_did"),
    (
        "bias-unpublished",
        "rw::bias::a_lock_where_a_leaked_reader_is_published",
    ),
    (
        "bias-withdraw",
        "rw::bias::a_writer_gives_up_while_it_revokes",
    ),
    ("bias-writer", "rw::bias::a_reader_and_a_writer"),
    ("cohort-depart", "rw::cohort::a_reader_and_a_writer"),
    ("cohort-drained", "rw::cohort::a_reader_and_a_writer"),
    ("cohort-gone", "rw::cohort::a_reader_and_a_writer"),
    (
        "cohort-handed",
        "rw::cohort::a_node_that_gave_up_the_lock_waits_for_readers",
    ),
    ("cohort-look", "rw::cohort::a_reader_and_a_writer"),
    (
        "cohort-queue",
        "rw::cohort::of_one_node::writers_and_a_reader",
    ),
    ("cohort-reader", "rw::cohort::a_reader_and_a_writer"),
    ("cohort-turn-back", "rw::cohort::a_reader_and_a_writer"),
    ("cohort-uncounted", "rw::cohort::a_writer_gives_up"),
    ("cohort-wake-readers", "rw::cohort::a_reader_and_a_writer"),
    ("cohort-wake-writer", "rw::cohort::a_reader_and_a_writer"),
    ("cohort-writer", "rw::cohort::a_reader_and_a_writer"),
    ("cut-off", "list::neighbours_are_unlinked_together"),
    ("demote", "list::fast_path_against_regular_path"),
    (
        "demote-acquire",
        "list::fast_nodes_come_and_go_under_a_walk",
    ),
    ("depart", "rw::bias::a_reader_and_a_writer"),
    ("depart-acquire", "rw::bias::a_reader_and_a_writer"),
    ("depart-any", "rw::tokenless::a_reader_of_many_and_a_writer"),
    ("downgrade", "list::downgrade_lets_waiting_readers_in"),
    ("downgrade-wake", "list::downgrade_lets_waiting_readers_in"),
    ("fast-acquire", "list::fast_path_against_regular_path"),
    ("fast-behind", "list::many_begin_by_the_fast_path"),
    ("fast-publish", "list::fast_path_against_regular_path"),
    ("fast-release", "list::fast_path_against_regular_path"),
    (
        "fenced-heavy",
        "barrier::the_kernel_is_asked_while_two_look_for_each_other",
    ),
    (
        "fenced-light",
        "barrier::the_kernel_is_asked_while_two_look_for_each_other",
    ),
    ("fresh-node", "list::a_writer_starts_over_with_a_fresh_node"),
    ("futex-conservative", "rw::futex::three_writers"),
    (
        "futex-downgrade",
        "rw::futex::downgrade_lets_waiting_readers_in",
    ),
    ("futex-early", "rw::tokenless::a_reader_and_a_writer"),
    ("futex-enter-exclusive", "rw::futex::a_reader_and_a_writer"),
    ("futex-enter-shared", "rw::futex::a_reader_and_a_writer"),
    ("futex-enter-upgradable", "rw::upgrade::futex::beside_one"),
    (
        "futex-in-vain",
        "rw::futex::a_reader_in_vain_and_a_writer_that_saw_it",
    ),
    (
        "futex-last",
        "rw::futex::a_reader_in_vain_and_a_writer_that_saw_it",
    ),
    ("futex-leave-any", "rw::tokenless::writers_and_a_reader"),
    ("futex-leave-exclusive", "rw::futex::a_reader_and_a_writer"),
    ("futex-leave-last", "rw::tokenless::a_reader_and_a_writer"),
    ("futex-leave-shared", "rw::futex::a_reader_and_a_writer"),
    ("futex-leave-upgradable", "rw::upgrade::futex::beside_one"),
    ("futex-mark", "rw::futex::a_reader_and_a_writer"),
    (
        "futex-next-upgradable",
        "rw::upgrade::futex::one_after_another",
    ),
    (
        "futex-pass-on",
        "rw::futex::a_reader_goes_on_when_the_writer_gives_up",
    ),
    (
        "futex-share",
        "rw::futex::downgrade_lets_waiting_readers_in",
    ),
    (
        "futex-signal",
        "rw::futex::a_writer_gives_up_beside_another",
    ),
    (
        "futex-wake-upgrader",
        "rw::upgrade::futex::beside_a_reader_and_a_writer",
    ),
    (
        "gate",
        "giving_way::list::newcomers_give_way_and_are_not_forgotten",
    ),
    ("gate", "giving_way::segments::a_holder_elsewhere_gives_way"),
    ("give-up-dispatch", "queue::giving_up_passes_the_turn_on"),
    ("granules", "segment::many_in_one_segment"),
    ("grace", "reclaim::nodes_return_only_after_a_grace_period"),
    (
        "holder-bypass",
        "giving_way::list::a_holder_does_not_give_way_to_who_waits_for_it",
    ),
    (
        "holder-bypass",
        "giving_way::segments::a_holder_does_not_give_way_to_who_waits_for_it",
    ),
    ("inherit", "queue::sleepers_are_woken_one_after_another"),
    ("leave", "rw::bias::a_reader_and_a_writer"),
    (
        "leave-closed",
        "rw::tokenless::two_released_by_other_threads",
    ),
    ("leave-reader", "segment::a_reader_and_a_writer"),
    (
        "leave-unwritten",
        "rw::tokenless::a_writer_leaves_beside_a_reader_in_vain",
    ),
    ("leave-writer", "segment::two_writers_overlapping"),
    ("lost-race", "segment::writers_race_to_grow_the_tree"),
    (
        "last-link",
        "skip::the_last_link_is_removed_by_another_thread",
    ),
    (
        "mark-inherited",
        "segment::sleepers_are_woken_one_after_another",
    ),
    ("mark-sleeper", "segment::two_writers_overlapping"),
    ("mutex-conservative", "rw::cohort::mutexes::three_holders"),
    (
        "mutex-enter",
        "rw::cohort::mutexes::holders_exclude_each_other",
    ),
    (
        "mutex-enter-contended",
        "rw::cohort::mutexes::holders_exclude_each_other",
    ),
    (
        "mutex-leave",
        "rw::cohort::mutexes::holders_exclude_each_other",
    ),
    (
        "mutex-wake",
        "rw::cohort::mutexes::holders_exclude_each_other",
    ),
    (
        "newcomers",
        "reclaim::nodes_return_only_after_a_grace_period_in_the_exclusive_lock",
    ),
    (
        "no-fast-release",
        "queue::sleepers_are_woken_one_after_another",
    ),
    ("node-acquire", "segment::writers_race_to_grow_the_tree"),
    ("node-publish", "segment::writers_race_to_grow_the_tree"),
    ("node-winner", "segment::writers_race_to_grow_the_tree"),
    ("phase", "rw::phase::ticket::a_reader_and_a_writer"),
    ("phase-acquire", "rw::phase::ticket::a_reader_and_a_writer"),
    (
        "phase-alternate",
        "rw::phase::ticket::a_reader_waits_for_one_writer_only",
    ),
    ("phase-out", "rw::phase::ticket::a_reader_and_a_writer"),
    (
        "phase-out-acquire",
        "rw::phase::ticket::a_reader_and_a_writer",
    ),
    ("phase-try", "rw::phase::ticket::a_try_does_not_wait"),
    (
        "phase-share",
        "rw::phase::ticket::a_writer_becomes_a_reader",
    ),
    (
        "phase-wake-readers",
        "rw::phase::ticket::a_reader_and_a_writer",
    ),
    (
        "phase-wake-writer",
        "rw::phase::ticket::a_reader_and_a_writer",
    ),
    ("pin", "reclaim::nodes_return_only_after_a_grace_period"),
    ("publish", "list::figure_one_with_a_detour"),
    ("publish-acquire", "list::figure_one"),
    ("queue-closed", "rw::phase::queue::a_reader_and_a_writer"),
    (
        "queue-enter",
        "rw::phase::queue::a_reader_waits_for_one_writer_only",
    ),
    (
        "queue-free",
        "rw::phase::queue::a_reader_waits_for_one_writer_only",
    ),
    ("queue-late", "rw::phase::queue::a_reader_and_a_writer"),
    ("queue-open", "rw::phase::queue::a_reader_and_a_writer"),
    ("queue-push", "rw::phase::queue::a_reader_and_a_writer"),
    ("queue-take", "rw::phase::queue::a_reader_and_a_writer"),
    (
        "reader-handshake",
        "list::figure_one_with_a_lasting_separator",
    ),
    (
        "reader-validation",
        "list::figure_one_with_a_lasting_separator",
    ),
    ("reach", "skip::figure_one_with_a_waypoint_as_separator"),
    ("release", "list::two_writers_overlapping"),
    ("release-acquire", "list::two_writers_overlapping"),
    ("roll-back", "segment::a_sleeper_has_empty_hands"),
    ("rung-cut-off", "skip::searching_past_neighbours_that_leave"),
    (
        "rung-gone",
        "skip::a_search_that_starts_over_does_not_come_to_the_same_node",
    ),
    ("rung-prepare", "skip::entering_behind_one_that_leaves"),
    ("rung-publish", "skip::entering_behind_one_that_leaves"),
    ("rouse", "rw::bias::a_reader_and_a_writer"),
    (
        "rouse-count",
        "rw::bias::a_writer_does_not_wait_for_the_next_in_the_slot",
    ),
    ("row-in-use", "rw::bias::a_bias_brings_what_writers_did"),
    (
        "seal",
        "reclaim::nodes_return_only_after_a_grace_period_in_the_exclusive_lock",
    ),
    ("share", "segment::downgrade_lets_waiting_readers_in"),
    ("share-wake", "segment::downgrade_lets_waiting_readers_in"),
    (
        "sleep-dispatch",
        "queue::going_back_to_sleep_passes_the_turn_on",
    ),
    ("sleeper", "list::two_writers_overlapping"),
    (
        "slot-free",
        "rw::bias::the_next_in_the_slot_tells_what_another_thread_did",
    ),
    (
        "strangers",
        "rw::tokenless::a_stranger_comes_while_a_reader_leaves",
    ),
    (
        "ticket-parity",
        "rw::phase::ticket::a_reader_waits_for_one_writer_only",
    ),
    ("ticket-turn", "rw::phase::ticket::writers_and_a_reader"),
    (
        "ticket-turn-acquire",
        "rw::phase::ticket::writers_and_a_reader",
    ),
    ("ticket-wake", "rw::phase::ticket::writers_and_a_reader"),
    ("tokenless-checked", "rw::tokenless::writers_and_a_reader"),
    (
        "tokenless-refused",
        "rw::tokenless::released_by_the_count_of_one_refused",
    ),
    (
        "tokenless-whose",
        "rw::tokenless::a_reader_that_leaves_is_not_the_writer_who_waits_for_it",
    ),
    ("turn", "giving_way::list::a_holder_joins_a_worker"),
    ("turn", "giving_way::segments::a_holder_joins_a_worker"),
    ("unlink", "list::unlinked_by_one_who_goes_beyond"),
    ("unlink-acquire", "list::fast_path_against_regular_path"),
    ("unpin", "reclaim::nodes_return_only_after_a_grace_period"),
    ("wake", "list::two_writers_overlapping"),
    ("wake-sleeper", "segment::two_writers_overlapping"),
    ("withdraw", "queue::a_waiting_reader_blocks_nobody"),
    (
        "writer-handshake",
        "list::figure_one_with_a_lasting_separator",
    ),
    (
        "writer-validation",
        "list::figure_one_with_a_lasting_separator",
    ),
];

#[test]
fn every_mutant_is_killed() {
    mutation::kill_all(MUTANTS);
}

/// The models fail because of the mutants: a name that weakens nothing changes nothing.
#[test]
fn a_mutant_of_nothing_survives() {
    mutation::survives_a_mutant_of_nothing("list::two_writers_overlapping");
}

#[test]
fn every_named_edge_has_a_mutant() {
    mutation::covers(&["../spanlock/src", "../prim/src/barrier"], MUTANTS);
}
