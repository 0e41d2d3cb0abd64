//! What fails, and what is held then.

use crate::child::Child;
use crate::network::{Direction, Way};
use crate::server::{LONG, Server, runtime};
use crate::store::{Checks, Store};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{Engine, News, Refused, Wanted};
use std::time::Duration;

/// Nobody polls in these tests.
pub fn a_release_wakes_who_waits(server: &Server) {
    let (a, b) = (server.lease(), server.lease());
    for _ in 0..20 {
        let held = a.acquire(0..10, Exclusive, LONG).wait().unwrap();
        let next = b.acquire(5..20, Shared, LONG).start();
        let with_it = a.acquire(7..8, Shared, LONG).start();
        assert_eq!(held.wanted().wait(), Wanted::Yes);
        let fence = held.fence();
        held.release().wait().unwrap();
        let (next, with_it) = (next.wait().unwrap(), with_it.wait().unwrap());
        assert!(next.fence() > fence && with_it.fence() > fence);
    }
}

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
    let direct = network.at().parse().expect("it connects");
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

pub fn a_dead_holder_is_waited_for(server: &Server) {
    let store = Store::new(Checks::Fences);
    let mut holder = Child::start(&server.at, &store, "hold", Duration::from_millis(500));
    store.wait_for_reads(1);
    holder.kill();
    let token = server.lease().acquire(.., Exclusive, LONG).wait().unwrap();
    assert!(store.admits(token.fence()));
}

pub fn leases_survive_a_crash(server: &Server) {
    let (a, b) = (server.lease(), server.lease());
    let token = a.acquire(0..10, Exclusive, LONG).wait().unwrap();
    server.crash();
    assert_eq!(token.renew().wait(), Ok(()));
    let soon = Duration::from_millis(500);
    let busy = b.acquire(0..1, Shared, LONG).within(soon).wait();
    assert!(matches!(busy, Err(Refused::TimedOut)), "{busy:?}");
    let next = b.acquire(9..11, Shared, LONG).start();
    let fence = token.fence();
    token.release().wait().unwrap();
    assert!(next.wait().unwrap().fence() > fence);
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
    assert!(matches!(early, Err(Refused::TimedOut)), "{early:?}");
    let wait = "select ceil(extract(epoch from grants_from - clock_timestamp()))::bigint from spanlock_lease.era";
    assert!((30..=60).contains(&server.number(wait)));
    server.execute("update spanlock_lease.era set grants_from = clock_timestamp()");
    let after = lease.acquire(20..30, Exclusive, LONG).wait().unwrap();
    assert_eq!(after.fence().epoch, before.fence().epoch + 1);
    assert!(after.fence() > before.fence());
}
