//! Requests that are repeated, that come late, and that are not ours.

use crate::server::Server;
use spanlock_lease::{Answer, Engine, Trouble};
use spanlock_lease_etcd::{Etcd, status};
use spanlock_lease_testkit::network::{Direction, Way};
use spanlock_lease_testkit::server::{Engines as _, LONG, Server as _, request, runtime};
use std::time::Duration;
use tokio::join;

/// A way to the server on which each message takes its time.
async fn slow(server: &Server) -> (Etcd, impl Sized) {
    let network = server.network();
    let engine = Server::engine_at(&Server::at_port(network.port()));
    engine.open().await.unwrap();
    network.set(Direction::ToServer, Way::Delays(Duration::from_millis(300)));
    (engine, network)
}

/// The first attempt is under way for longer than the second one.
pub fn a_retry_that_overtakes_its_first_attempt_gets_the_lease(server: &Server) {
    runtime().block_on(async {
        let (slow, _network) = slow(server).await;
        let fast = server.opened().await;
        let asked = request(0..10);
        let (first, second) = join!(slow.acquire(&asked), fast.acquire(&asked));
        let granted = |answer| match answer {
            Ok(Answer::Granted { span, fence }) => (span, fence),
            other => panic!("{other:?}"),
        };
        assert_eq!(granted(first), granted(second));
        fast.release(asked.id).await.unwrap();
        assert!(server.keys("").iter().all(|key| key.ends_with("/version")));
    });
}

/// It is dropped while a message is on its way, and what it has begun may arrive after the release.
pub fn a_release_overtakes_what_was_dropped(server: &Server) {
    runtime().block_on(async {
        let (slow, _network) = slow(server).await;
        let fast = server.opened().await;
        for pieces in 1..6 {
            let asked = request(0..10);
            // Cut off after each of its messages, and between them.
            let cut =
                tokio::time::timeout(Duration::from_millis(150) * pieces, slow.acquire(&asked));
            let is_answered = cut.await.is_ok();
            fast.release(asked.id).await.unwrap();
            // All that was on its way has arrived.
            let last = request(20..30);
            slow.acquire(&last).await.unwrap();
            slow.release(last.id).await.unwrap();
            let left = server.keys("held/");
            assert!(left.is_empty(), "{left:?}, answered: {is_answered}");
        }
    });
}

pub fn a_ttl_is_for_a_minute_at_most(server: &Server) {
    runtime().block_on(async {
        let engine = server.opened().await;
        let mut asked = request(0..10);
        asked.ttl = LONG + Duration::from_millis(1);
        let refused = engine.acquire(&asked).await;
        assert!(matches!(refused, Err(Trouble::Refused(_))), "{refused:?}");
        // It is for longer, and never for less.
        asked.ttl = Duration::from_millis(1500);
        assert!(matches!(
            engine.acquire(&asked).await.unwrap(),
            Answer::Granted { .. }
        ));
        let longer = engine.renew(asked.id, Duration::from_secs(3)).await;
        assert!(matches!(longer, Err(Trouble::Refused(_))), "{longer:?}");
    });
}

/// A later version of the library may have written what is held.
pub fn what_is_not_understood_is_refused(server: &Server) {
    runtime().block_on(async {
        let engine = server.opened().await;
        let asked = request(0..10);
        let key = "spanlock/lease/resource/held/1";
        for value in ["alone 20 30 1 0 somebody", ""] {
            server.ctl(&["put", key, value]);
            match engine.acquire(&asked).await {
                Err(Trouble::Refused(why)) => assert!(why.to_string().contains(key), "{why}"),
                other => panic!("{other:?}"),
            }
        }
        server.ctl(&["put", key, "exclusive 20 30 1 0 somebody"]);
        assert!(matches!(
            engine.acquire(&asked).await.unwrap(),
            Answer::Granted { .. }
        ));
    });
}

/// Its slash does not make it a part of another one.
pub fn resources_are_apart(server: &Server) {
    runtime().block_on(async {
        let names = ["resource", "resource/held", "resource/", "/", "%2F"];
        for name in names {
            let engine = Server::engine_of(&server.at, name);
            engine.open().await.unwrap();
            let all = engine.acquire(&request(0..u64::MAX)).await.unwrap();
            assert!(matches!(all, Answer::Granted { .. }), "{name}");
        }
        let config = server.at.parse().expect("it is one");
        let mut listed: Vec<_> = status(&config).await.unwrap();
        listed.sort_by_key(|listed| names.iter().position(|name| *name == listed.resource));
        let listed = listed.iter().map(|listed| listed.resource.as_str());
        assert!(listed.eq(names));
    });
}
