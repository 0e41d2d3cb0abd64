//! Requests that are repeated, that come late, and that are not ours.

use crate::server::Server;
use spanlock_lease::Mode::Exclusive;
use spanlock_lease::{Answer, Engine, News, Renewal, Trouble, Wanted};
use spanlock_lease_etcd::{Etcd, status};
use spanlock_lease_testkit::network::{Direction, Way};
use spanlock_lease_testkit::server::{LONG, Server as _, request, runtime};
use std::time::Duration;
use tokio::join;

/// One that listens.
pub async fn opened(server: &Server) -> Etcd {
    let engine = server.engine();
    engine.open().await.unwrap();
    while !matches!(engine.news().await, News::Missed) {}
    engine
}

/// A way to the server on which each message takes its time.
async fn slow(server: &Server) -> (Etcd, impl Sized) {
    let network = server.network();
    let engine = Server::engine_at(&Server::at_port(network.port()));
    engine.open().await.unwrap();
    network.set(Direction::ToServer, Way::Delays(Duration::from_millis(300)));
    (engine, network)
}

pub fn a_request_that_is_repeated_is_granted_again(server: &Server) {
    runtime().block_on(async {
        let (one, other) = (opened(server).await, opened(server).await);
        let asked = request(0..10);
        let Answer::Granted { span, fence } = one.acquire(&asked).await.unwrap() else {
            panic!("it is free");
        };
        for engine in [&one, &other] {
            match engine.acquire(&asked).await.unwrap() {
                Answer::Granted {
                    span: again,
                    fence: its,
                } => assert_eq!((again, its), (span, fence)),
                busy @ Answer::Busy { .. } => panic!("{busy:?}"),
            }
        }
        assert_eq!(server.keys("held/").len(), 1);
        let kept = Renewal::Kept { wanted: Wanted::No };
        assert_eq!(other.renew(asked.id, asked.ttl).await.unwrap(), kept);
        other.release(asked.id).await.unwrap();
        assert_eq!(one.renew(asked.id, asked.ttl).await.unwrap(), Renewal::Gone);
        assert!(server.keys("held/").is_empty());
    });
}

/// The first attempt is under way for longer than the second one.
pub fn a_retry_that_overtakes_its_first_attempt_gets_the_lease(server: &Server) {
    runtime().block_on(async {
        let (slow, _network) = slow(server).await;
        let fast = opened(server).await;
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
        let fast = opened(server).await;
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
        let engine = opened(server).await;
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
        let engine = opened(server).await;
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

pub fn lists_who_holds_and_who_waits(server: &Server) {
    use spanlock_lease::State::{Awaited, Held};
    let config = server.at().parse().unwrap();
    let listed = || runtime().block_on(status(&config)).unwrap();
    assert!(listed().is_empty());
    let held = server.lease().acquire(5.., Exclusive, LONG).wait().unwrap();
    let next = server.lease().acquire(..=u64::MAX, Exclusive, LONG).start();
    assert_eq!(held.wanted().wait(), Wanted::Yes);
    let both = listed();
    let states: Vec<_> = both
        .iter()
        .map(|listed| (listed.state, listed.span.start(), listed.span.last()))
        .collect();
    assert_eq!(states, [(Held, 5, u64::MAX), (Awaited, 0, u64::MAX)]);
    assert_eq!(both[0].id, held.id());
    for listed in &both {
        let own = format!("[{}]@", std::process::id());
        assert!(
            listed.client.contains(&own) && listed.resource == "resource",
            "{listed:?}"
        );
        assert!(listed.left <= LONG, "{listed:?}");
    }
    drop(next);
}

/// Its slash does not make it a part of another one.
pub fn resources_are_apart(server: &Server) {
    let config = || server.at().parse().unwrap();
    runtime().block_on(async {
        let names = ["resource", "resource/held", "resource/", "", "%2F"];
        for name in names {
            let engine = Etcd::new(config(), name);
            engine.open().await.unwrap();
            let all = engine.acquire(&request(0..u64::MAX)).await.unwrap();
            assert!(matches!(all, Answer::Granted { .. }), "{name}");
        }
        let mut listed: Vec<_> = status(&config()).await.unwrap();
        listed.sort_by_key(|listed| names.iter().position(|name| *name == listed.resource));
        assert!(
            listed
                .iter()
                .map(|listed| listed.resource.as_str())
                .eq(names)
        );
    });
}
