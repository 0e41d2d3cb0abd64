//! Leases over a PostgreSQL server, which each test starts for itself. Without one they are left out, and say so.

mod failover;
mod failures;
mod fences;
mod keys;
mod order;
mod pool;
mod rights;
mod schema;
mod server;
mod table;
mod tls;
mod turns;

use server::Server;
use spanlock_lease_testkit::server::run;
use spanlock_lease_testkit::tests;

fn main() {
    run::<Server>(tests![
        schema::programs_that_start_together,
        schema::no_call_looks_at_all_leases,
        schema::a_schema_of_another_version_is_refused,
        rights::a_role_leases_what_it_is_granted,
        fences::are_drawn_in_order,
        fences::drawn_before_is_found,
        order::commits_and_fences_agree,
        order::drawn_before_is_in_the_log,
        keys::agree_with_a_map,
        keys::are_of_a_limited_length,
        keys::who_waits_is_told,
        keys::no_update_is_lost,
        keys::no_resource_is_leased_by_both,
        keys::are_listed,
        keys::a_table_refuses_what_no_lease_allows,
        failover::a_standby_that_lags_takes_over,
        failover::a_release_is_heard_after_each_switch_over,
        failover::another_server_begins_another_epoch,
        pool::sessions_that_are_kept_do,
        pool::sessions_that_change_are_refused,
        failures::a_listener_that_is_not_answered_connects_again,
        table::refuses_what_no_lease_allows,
        table::keeps_the_lease_while_a_write_is_open,
        turns::marks_are_powers_of_two,
        turns::who_is_granted_while_another_is_refused_is_told,
        turns::who_need_not_give_way_waits_for_the_holder,
        turns::who_removes_what_has_run_out_waits_for_nobody_who_does,
        turns::wishes_of_those_who_have_died_go,
        tls::all_connections_are_encrypted,
        tls::certificates_are_checked_as_the_words_say,
        tls::certificates_of_clients_are_checked,
    ]);
}
