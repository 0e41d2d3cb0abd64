//! Leases over an etcd cluster, which each test starts for itself. Without one they are left out, and say so.

mod failures;
mod history;
mod news;
mod requests;
mod server;
mod stall;
mod tls;

use server::Server;
use spanlock_lease_testkit::server::run;
use spanlock_lease_testkit::tests;

fn main() {
    run::<Server>(tests![
        history::grants_and_fences_agree,
        requests::a_retry_that_overtakes_its_first_attempt_gets_the_lease,
        requests::a_release_overtakes_what_was_dropped,
        requests::a_ttl_is_for_a_minute_at_most,
        requests::what_is_not_understood_is_refused,
        requests::resources_are_apart,
        news::those_whom_a_change_concerns_are_told,
        failures::a_listener_that_is_not_answered_connects_again,
        failures::a_release_that_is_lost_is_told_again,
        failures::a_member_that_is_lost_is_not_missed,
        stall::a_leader_that_stands_still_lets_nobody_in_twice,
        failures::a_restore_raises_the_epoch,
        failures::an_epoch_of_another_cluster_is_raised,
        failures::users_have_passwords,
        tls::all_connections_are_encrypted,
    ]);
}
