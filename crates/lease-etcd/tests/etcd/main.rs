//! Leases over an etcd cluster, which each test starts for itself. Without one they are left out, and say so.

mod failures;
mod history;
mod requests;
mod server;
mod stall;
mod tls;
mod turns;

use server::Server;
use spanlock_lease_testkit::{self as shared, server::run};

fn main() {
    run::<Server>(&[
        (
            "exact::agrees_with_the_engine_in_memory",
            shared::exact::agrees_with_the_engine_in_memory,
        ),
        (
            "history::grants_and_fences_agree",
            history::grants_and_fences_agree,
        ),
        (
            "requests::a_request_that_is_repeated_is_granted_again",
            requests::a_request_that_is_repeated_is_granted_again,
        ),
        (
            "requests::a_retry_that_overtakes_its_first_attempt_gets_the_lease",
            requests::a_retry_that_overtakes_its_first_attempt_gets_the_lease,
        ),
        (
            "requests::a_release_overtakes_what_was_dropped",
            requests::a_release_overtakes_what_was_dropped,
        ),
        (
            "requests::a_ttl_is_for_a_minute_at_most",
            requests::a_ttl_is_for_a_minute_at_most,
        ),
        (
            "requests::what_is_not_understood_is_refused",
            requests::what_is_not_understood_is_refused,
        ),
        (
            "requests::lists_who_holds_and_who_waits",
            requests::lists_who_holds_and_who_waits,
        ),
        (
            "requests::resources_are_apart",
            requests::resources_are_apart,
        ),
        (
            "turns::who_came_first_is_served_first",
            turns::who_came_first_is_served_first,
        ),
        (
            "turns::who_has_given_way_for_long_passes",
            turns::who_has_given_way_for_long_passes,
        ),
        (
            "turns::who_waits_passes_its_marks",
            turns::who_waits_passes_its_marks,
        ),
        (
            "turns::who_gave_way_is_told_that_the_other_gave_up",
            turns::who_gave_way_is_told_that_the_other_gave_up,
        ),
        (
            "turns::who_is_granted_what_another_waits_for_is_told",
            turns::who_is_granted_what_another_waits_for_is_told,
        ),
        (
            "turns::those_whom_a_change_concerns_are_told",
            turns::those_whom_a_change_concerns_are_told,
        ),
        (
            "turns::blocks_leave_out_what_is_wished_for",
            turns::blocks_leave_out_what_is_wished_for,
        ),
        (
            "failures::a_release_wakes_who_waits",
            shared::failures::a_release_wakes_who_waits,
        ),
        (
            "failures::a_dead_holder_is_waited_for",
            shared::failures::a_dead_holder_is_waited_for,
        ),
        (
            "failures::leases_survive_a_crash_of_the_server",
            shared::failures::leases_survive_a_crash,
        ),
        (
            "failures::a_lost_listener_loses_no_release",
            failures::a_lost_listener_loses_no_release,
        ),
        (
            "failures::a_listener_that_is_not_answered_connects_again",
            failures::a_listener_that_is_not_answered_connects_again,
        ),
        (
            "failures::a_release_that_is_lost_is_told_again",
            failures::a_release_that_is_lost_is_told_again,
        ),
        (
            "failures::a_member_that_is_lost_is_not_missed",
            failures::a_member_that_is_lost_is_not_missed,
        ),
        (
            "stall::a_leader_that_stands_still_lets_nobody_in_twice",
            stall::a_leader_that_stands_still_lets_nobody_in_twice,
        ),
        (
            "failures::a_restore_raises_the_epoch",
            failures::a_restore_raises_the_epoch,
        ),
        (
            "failures::an_epoch_of_another_cluster_is_raised",
            failures::an_epoch_of_another_cluster_is_raised,
        ),
        (
            "failures::users_have_passwords",
            failures::users_have_passwords,
        ),
        (
            "tls::all_connections_are_encrypted",
            tls::all_connections_are_encrypted,
        ),
        (
            "storm::a_late_write_is_refused",
            shared::storm::a_late_write_is_refused,
        ),
        (
            "storm::a_late_write_without_fences_is_found",
            shared::storm::a_late_write_without_fences_is_found,
        ),
        ("storm::no_update_is_lost", shared::storm::no_update_is_lost),
    ]);
}
