//! What fails, and what is held then.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::Mode::Exclusive;
use spanlock_lease::{Engine, News, State, Wanted};
use spanlock_lease_postgres::status;
use spanlock_lease_testkit::network::{Direction, Way};
use spanlock_lease_testkit::server::Server as _;
use std::time::Duration;

pub fn a_lost_listener_loses_no_release(server: &Server) {
    let (a, b) = (server.lease(), server.lease());
    let held = a.acquire(.., Exclusive, LONG).wait().unwrap();
    let next = b.acquire(.., Exclusive, LONG).start();
    assert_eq!(held.wanted().wait(), Wanted::Yes);
    server.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'",
    );
    held.release().wait().unwrap();
    drop(next.wait().unwrap());
}

/// What it says first is lost, and so it is not answered: it leaves that connection.
pub fn a_listener_that_is_not_answered_connects_again(server: &Server) {
    let network = server.network();
    network.set(Direction::ToServer, Way::Loses);
    let direct = Server::at_port(network.port())
        .parse()
        .expect("it connects");
    let engine = server.engine().listening(direct);
    runtime().block_on(async {
        engine.open().await.unwrap();
        // The listener is a task of this thread.
        while !network.has_lost() {
            tokio::task::yield_now().await;
        }
        network.mend();
        // That is said by who listens.
        assert!(matches!(engine.news().await, News::Missed));
    });
}

pub fn a_promotion_raises_the_epoch(server: &Server) {
    let lease = server.lease();
    let before = lease.acquire(0..10, Exclusive, LONG).wait().unwrap();
    server.promote();
    // What the new server knows is kept. But it may lack something, so nothing is granted for a minute.
    assert_eq!(before.renew().wait(), Ok(()));
    let early = lease
        .acquire(20..30, Exclusive, LONG)
        .within(Duration::from_millis(500))
        .wait();
    assert!(early.is_err(), "{early:?}");
    let listed = runtime().block_on(status(&server.config(), "spanlock_lease"));
    let mut listed = listed.unwrap().into_iter();
    let grace = listed.find(|listed| listed.state == State::Grace).unwrap();
    assert_eq!(grace.resource, "resource");
    assert!(grace.left > LONG / 2 && grace.left <= LONG, "{grace:?}");
    let wait = "select ceil(extract(epoch from grants_from - clock_timestamp()))::bigint from spanlock_lease.era";
    assert!((30..=60).contains(&server.number(wait)));
    server.execute("update spanlock_lease.era set grants_from = clock_timestamp()");
    let after = lease.acquire(20..30, Exclusive, LONG).wait().unwrap();
    assert_eq!(after.fence().epoch, before.fence().epoch + 1);
    assert!(after.fence() > before.fence());
}
