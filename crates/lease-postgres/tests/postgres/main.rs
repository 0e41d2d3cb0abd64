//! Leases over a PostgreSQL server, which each test starts for itself. Without one they are left out, and say so.

mod failover;
mod failures;
mod fences;
mod keys;
mod migration;
mod order;
mod schema;
mod server;
mod status;
mod table;
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
            "schema::programs_that_start_together_make_one_schema",
            schema::programs_that_start_together,
        ),
        (
            "schema::no_call_looks_at_all_leases",
            schema::no_call_looks_at_all_leases,
        ),
        (
            "schema::a_later_schema_is_refused",
            schema::a_later_schema_is_refused,
        ),
        (
            "status::lists_who_holds_and_who_waits",
            status::lists_who_holds_and_who_waits,
        ),
        (
            "status::an_old_schema_is_brought_up",
            status::an_old_schema_is_brought_up,
        ),
        (
            "status::an_old_schema_that_is_in_use_is_brought_up_later",
            status::an_old_schema_that_is_in_use_is_brought_up_later,
        ),
        (
            "status::who_may_not_make_the_schema_is_told",
            status::who_may_not_make_the_schema_is_told,
        ),
        (
            "fences::are_drawn_in_the_order_of_conflicting_grants",
            fences::are_drawn_in_order,
        ),
        (
            "fences::a_schema_that_draws_them_before_is_found",
            fences::drawn_before_is_found,
        ),
        (
            "order::commits_and_fences_agree",
            order::commits_and_fences_agree,
        ),
        (
            "order::a_schema_that_draws_them_before_is_found_in_the_log",
            order::drawn_before_is_in_the_log,
        ),
        ("keys::agree_with_a_map", keys::agree_with_a_map),
        (
            "keys::are_of_a_limited_length",
            keys::are_of_a_limited_length,
        ),
        ("keys::who_waits_is_told", keys::who_waits_is_told),
        ("keys::no_update_is_lost", keys::no_update_is_lost),
        (
            "keys::no_resource_is_leased_by_both",
            keys::no_resource_is_leased_by_both,
        ),
        ("keys::are_listed", keys::are_listed),
        (
            "keys::a_table_refuses_what_no_lease_allows",
            keys::a_table_refuses_what_no_lease_allows,
        ),
        (
            "migration::who_holds_and_who_waits_goes_on",
            migration::who_holds_and_who_waits_goes_on,
        ),
        (
            "migration::a_table_stays_guarded",
            migration::a_table_stays_guarded,
        ),
        (
            "failover::a_standby_that_lags_takes_over",
            failover::a_standby_that_lags_takes_over,
        ),
        (
            "failures::a_release_wakes_who_waits",
            shared::failures::a_release_wakes_who_waits,
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
            "failures::a_dead_holder_is_waited_for",
            shared::failures::a_dead_holder_is_waited_for,
        ),
        (
            "failures::leases_survive_a_crash_of_the_server",
            shared::failures::leases_survive_a_crash,
        ),
        (
            "failures::a_promotion_raises_the_epoch",
            failures::a_promotion_raises_the_epoch,
        ),
        (
            "table::refuses_what_no_lease_allows",
            table::refuses_what_no_lease_allows,
        ),
        (
            "table::keeps_the_lease_while_a_write_is_open",
            table::keeps_the_lease_while_a_write_is_open,
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
            "turns::who_gave_way_is_told_that_the_other_gave_up",
            turns::who_gave_way_is_told_that_the_other_gave_up,
        ),
        (
            "turns::who_is_granted_what_another_waits_for_is_told",
            turns::who_is_granted_what_another_waits_for_is_told,
        ),
        (
            "turns::who_is_granted_while_another_is_refused_is_told",
            turns::who_is_granted_while_another_is_refused_is_told,
        ),
        (
            "turns::who_need_not_give_way_waits_for_the_holder",
            turns::who_need_not_give_way_waits_for_the_holder,
        ),
        (
            "turns::who_removes_what_has_run_out_waits_for_nobody_who_does",
            turns::who_removes_what_has_run_out_waits_for_nobody_who_does,
        ),
        (
            "turns::wishes_of_those_who_have_died_go",
            turns::wishes_of_those_who_have_died_go,
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
