//! Leases over a PostgreSQL server, which each test starts for itself. Without one they are left out, and say so.

mod child;
mod exact;
mod failover;
mod failures;
mod fences;
mod network;
mod order;
mod server;
mod status;
mod store;
mod storm;
mod table;
mod tls;
mod turns;

use libtest_mimic::{Arguments, Trial};
use server::Server;
use spanlock_testkit::watchdog::{HANG, watched};
use std::sync::atomic::Ordering::Relaxed;

/// Ends a test that hangs.
fn in_time(name: &'static str, test: fn(&Server)) -> Trial {
    Trial::test(name, move || {
        let server = Server::start()?;
        let steps = || server.steps.load(Relaxed);
        watched(
            2 * HANG,
            steps,
            |steps| format!("{name}, after step {steps}"),
            || test(&server),
        );
        Ok(())
    })
}

fn main() {
    if child::is_asked_for() {
        return child::run();
    }
    let missing = Server::start().err();
    let tests = [
        in_time(
            "exact::agrees_with_the_engine_in_memory",
            exact::agrees_with_the_engine_in_memory,
        ),
        in_time(
            "exact::programs_that_start_together_make_one_schema",
            exact::programs_that_start_together,
        ),
        in_time(
            "exact::a_later_schema_is_refused",
            exact::a_later_schema_is_refused,
        ),
        in_time(
            "status::lists_who_holds_and_who_waits",
            status::lists_who_holds_and_who_waits,
        ),
        in_time(
            "status::an_old_schema_is_brought_up",
            status::an_old_schema_is_brought_up,
        ),
        in_time(
            "status::an_old_schema_that_is_in_use_is_brought_up_later",
            status::an_old_schema_that_is_in_use_is_brought_up_later,
        ),
        in_time(
            "status::who_may_not_make_the_schema_is_told",
            status::who_may_not_make_the_schema_is_told,
        ),
        in_time(
            "fences::are_drawn_in_the_order_of_conflicting_grants",
            fences::are_drawn_in_order,
        ),
        in_time(
            "fences::a_schema_that_draws_them_before_is_found",
            fences::drawn_before_is_found,
        ),
        in_time(
            "order::commits_and_fences_agree",
            order::commits_and_fences_agree,
        ),
        in_time(
            "order::a_schema_that_draws_them_before_is_found_in_the_log",
            order::drawn_before_is_in_the_log,
        ),
        in_time(
            "failover::a_standby_that_lags_takes_over",
            failover::a_standby_that_lags_takes_over,
        ),
        in_time(
            "failures::a_release_wakes_who_waits",
            failures::a_release_wakes_who_waits,
        ),
        in_time(
            "failures::a_lost_listener_loses_no_release",
            failures::a_lost_listener_loses_no_release,
        ),
        in_time(
            "failures::a_listener_that_is_not_answered_connects_again",
            failures::a_listener_that_is_not_answered_connects_again,
        ),
        in_time(
            "failures::a_dead_holder_is_waited_for",
            failures::a_dead_holder_is_waited_for,
        ),
        in_time(
            "failures::leases_survive_a_crash_of_the_server",
            failures::leases_survive_a_crash,
        ),
        in_time(
            "failures::a_promotion_raises_the_epoch",
            failures::a_promotion_raises_the_epoch,
        ),
        in_time(
            "table::refuses_what_no_lease_allows",
            table::refuses_what_no_lease_allows,
        ),
        in_time(
            "table::keeps_the_lease_while_a_write_is_open",
            table::keeps_the_lease_while_a_write_is_open,
        ),
        in_time(
            "turns::who_came_first_is_served_first",
            turns::who_came_first_is_served_first,
        ),
        in_time(
            "turns::who_has_given_way_for_long_passes",
            turns::who_has_given_way_for_long_passes,
        ),
        in_time(
            "turns::who_gave_way_is_told_that_the_other_gave_up",
            turns::who_gave_way_is_told_that_the_other_gave_up,
        ),
        in_time(
            "turns::who_is_granted_what_another_waits_for_is_told",
            turns::who_is_granted_what_another_waits_for_is_told,
        ),
        in_time(
            "turns::who_is_granted_while_another_is_refused_is_told",
            turns::who_is_granted_while_another_is_refused_is_told,
        ),
        in_time(
            "turns::who_need_not_give_way_waits_for_the_holder",
            turns::who_need_not_give_way_waits_for_the_holder,
        ),
        in_time(
            "turns::who_removes_what_has_run_out_waits_for_nobody_who_does",
            turns::who_removes_what_has_run_out_waits_for_nobody_who_does,
        ),
        in_time(
            "turns::wishes_of_those_who_have_died_go",
            turns::wishes_of_those_who_have_died_go,
        ),
        in_time(
            "tls::all_connections_are_encrypted",
            tls::all_connections_are_encrypted,
        ),
        in_time(
            "storm::a_late_write_is_refused",
            storm::a_late_write_is_refused,
        ),
        in_time(
            "storm::a_late_write_without_fences_is_found",
            storm::a_late_write_without_fences_is_found,
        ),
        in_time("storm::no_update_is_lost", storm::no_update_is_lost),
    ];
    let tests = tests.map(|test| test.with_ignored_flag(missing.is_some()));
    if let Some(why) = missing {
        println!("skipped: the tests of leases over PostgreSQL, because {why}");
    }
    libtest_mimic::run(&Arguments::from_args(), tests.into()).exit();
}
