//! What fails, and what is held then.

use crate::server::Server;
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{Answer, End, Engine, NotOpened, RangeLease, State, Wanted};
use spanlock_lease_testkit::network::{Direction, Way};
use spanlock_lease_testkit::server::{Engines as _, LONG, Server as _, request, runtime};
use std::thread;
use std::time::Duration;

/// It asks whether the other side is there, is not answered, and leaves that connection.
pub fn a_listener_that_is_not_answered_connects_again(server: &Server) {
    let network = server.network();
    let engine = Server::engine_at(&Server::at_port(network.port()));
    runtime().block_on(async {
        engine.open().await.unwrap();
        Server::hears(&engine).await;
        network.set(Direction::ToServer, Way::Loses);
        while !network.has_lost() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        network.mend();
        // That is said by who listens anew.
        Server::hears(&engine).await;
    });
}

/// The connection loses it without a word. The ttl is not over when that is noticed.
pub fn a_release_that_is_lost_is_told_again(server: &Server) {
    let network = server.network();
    let engine = Server::engine_at(&Server::at_port(network.port()));
    let lease = RangeLease::open(engine).wait().unwrap();
    // Shorter than any call is waited for.
    let ttl = Duration::from_secs(8);
    let held = lease.acquire(0..10, Exclusive, ttl).wait().unwrap();
    network.set(Direction::ToServer, Way::Loses);
    let released = held.release();
    while !network.has_lost() {
        thread::yield_now();
    }
    network.mend();
    assert_eq!(released.wait(), Ok(()));
    assert!(server.keys("held/").is_empty());
}

/// Whichever member it is.
pub fn a_member_that_is_lost_is_not_missed(_one: &Server) {
    for member in ["1", "2", "3"] {
        let server = Server::of_three();
        let (a, b) = (server.lease(), server.lease());
        let held = a.acquire(0..10, Exclusive, LONG).wait().unwrap();
        server.does("kill", &[member]);
        assert_eq!(held.renew().wait(), Ok(()));
        let next = b.acquire(5..15, Shared, LONG).start();
        let fence = held.fence();
        assert_eq!(held.wanted().wait(), Wanted::Yes);
        held.release().wait().unwrap();
        assert!(next.wait().unwrap().fence() > fence);
        server.step();
    }
}

/// The snapshot lacks the latest lease, and its revisions come again.
pub fn a_restore_raises_the_epoch(server: &Server) {
    let lease = server.lease();
    let before = lease.acquire(0..10, Exclusive, LONG).wait().unwrap();
    server.does("save", &[]);
    let mut latest = Vec::new();
    for at in 20..40 {
        latest.push(lease.acquire(at..=at, Exclusive, LONG).wait().unwrap());
    }
    let largest = latest.last().expect("there are some").fence();
    server.does("restore", &[]);
    // What the snapshot has is kept.
    assert_eq!(before.renew().wait(), Ok(()));
    for lost in latest {
        assert!(lost.renew().wait().is_err());
        assert_eq!(lost.lost().wait(), End::Lost);
    }
    // Something may be missing, so nothing is granted for a minute.
    let soon = Duration::from_millis(500);
    let early = lease.acquire(50..60, Exclusive, LONG).within(soon).wait();
    assert!(early.is_err(), "{early:?}");
    let mut listed = server.listed().into_iter();
    let grace = listed.find(|listed| listed.state == State::Grace).unwrap();
    assert_eq!(grace.resource, "resource");
    assert!(
        grace.left > LONG / 2 && grace.age + grace.left == LONG,
        "{grace:?}"
    );
    let next = server.lease().acquire(20..30, Exclusive, LONG).start();
    // The minute is over.
    assert_eq!(server.ctl(&["del", "spanlock/lease/resource/grace"]), "1");
    let fence = next.wait().unwrap().fence();
    assert_eq!(fence.epoch, largest.epoch + 1);
    assert!(
        fence > largest && fence.counter < largest.counter,
        "{fence} after {largest}"
    );
}

/// People raise it so by hand, after a restore that keeps the cluster's number.
pub fn an_epoch_of_another_cluster_is_raised(server: &Server) {
    let lease = server.lease();
    let before = lease.acquire(0..10, Exclusive, LONG).wait().unwrap();
    let key = "spanlock/lease/resource/version";
    server.ctl(&["put", key, &format!("{} 0", before.fence().epoch)]);
    runtime().block_on(async {
        let engine = server.opened().await;
        let asked = request(20..30);
        let answer = engine.acquire(&asked).await.unwrap();
        assert!(matches!(answer, Answer::Busy { .. }), "{answer:?}");
    });
    let epoch = before.fence().epoch + 1;
    let value = server.ctl(&["get", "--print-value-only", key]);
    assert!(
        value.starts_with(&format!("{epoch} ")) && !value.ends_with(" 0"),
        "{value}"
    );
}

pub fn users_have_passwords(server: &Server) {
    server.ctl(&["user", "add", "root:a:b@c"]);
    server.ctl(&["user", "grant-role", "root", "root"]);
    server.ctl(&["auth", "enable"]);
    let members = server.at.strip_prefix("etcd://").unwrap();
    let open =
        |user: &str| RangeLease::open(Server::engine_at(&format!("etcd://{user}{members}"))).wait();
    for (user, why) in [
        ("", "user name is empty"),
        ("root:wrong@", "authentication failed"),
    ] {
        match open(user) {
            Err(NotOpened::Engine(said)) => assert!(said.to_string().contains(why), "{said}"),
            other => panic!("{other:?}"),
        }
    }
    let lease = open("root:a%3ab%40c@").unwrap();
    let held = lease.acquire(.., Exclusive, LONG).wait().unwrap();
    // It says again who it is, to a server that has forgotten.
    server.crash();
    assert_eq!(held.renew().wait(), Ok(()));
    held.release().wait().unwrap();
}
