//! The protocol over a store in memory, under random schedules: clients whose calls take random times, are lost, arrive
//! late or are cut off, who stand still, and a store that is restored. The clock is tokio's, and stands still while
//! something can be done, so a schedule follows from its seed.

mod oracle;
mod store;

use super::{Core, IsAlive, Known, Leases};
use crate::edge::LEFT_OUT;
use crate::interests::Interests;
use crate::keys::{Keys, Place};
use crate::link::Calls;
use crate::txn::{put, transaction};
use oracle::{Granted, Oracle};
use spanlock_lease::{Answer, Mode, Renewal, Request, Span, Wanted};
use spanlock_testkit::setting;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use store::{Network, Store};
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, timeout};

const CLIENTS: usize = 3;
const POSITIONS: u64 = 6;

/// How many schedules each model runs.
fn schedules() -> u64 {
    setting("SPANLOCK_LEASE_SCHEDULES", 150)
}

/// An edge that is left out is missed in one of some hundreds.
const ENOUGH: u64 = 10_000;

/// A request that waits for so long waits for ever.
const HANGS: Duration = Duration::from_secs(1000);

fn core(network: &Network) -> Core<Network> {
    let (interests, _news) = Interests::new();
    Core {
        calls: network.clone(),
        keys: Keys::new("spanlock/lease", "resource"),
        client: "a client".to_owned(),
        interests: Arc::new(interests),
        known: Known::default(),
    }
}

fn milliseconds(up_to: u64) -> Duration {
    Duration::from_millis(fastrand::u64(..=up_to))
}

fn request(span: Span) -> Request {
    let id = format!("{:x}", fastrand::u128(..));
    Request {
        id: id.parse().expect("a number"),
        span,
        mode: match fastrand::u32(..3) {
            0 => Mode::Shared,
            _ => Mode::Exclusive,
        },
        ttl: Duration::from_millis(fastrand::u64(800..3000)),
        grow: fastrand::bool().then(|| fastrand::u32(..3)),
    }
}

/// A client's requests, one after the other, as the keeper would make them.
async fn client(network: Network, oracle: Rc<Oracle>, times: u32) {
    let core = core(&network);
    for _ in 0..times {
        let first = fastrand::u64(..POSITIONS);
        let last = fastrand::u64(first..POSITIONS);
        let request = request(span(first, last));
        let granted = match fastrand::u32(..4) {
            // Dropped in the middle of a call, or between two.
            0 => timeout(milliseconds(400), asks(&core, &request)).await.ok(),
            _ => Some(
                timeout(HANGS, asks(&core, &request))
                    .await
                    .expect("it is granted in the end"),
            ),
        };
        let mut until = Instant::now() + request.ttl;
        if let Some(granted) = granted {
            let holder = oracle.enter(&request, granted);
            until = granted.until;
            for _ in 0..fastrand::u32(..4) {
                sleep(milliseconds(request.ttl.as_millis() as u64 / 3)).await;
                let sent = Instant::now();
                match core.renew(request.id, request.ttl).await {
                    Ok(Renewal::Kept { .. }) => until = sent + request.ttl,
                    // Before its end, only what has lost leases ends one.
                    Ok(Renewal::Gone) => {
                        until = until.min(Instant::now());
                        break;
                    }
                    Err(_) => {}
                }
                oracle.until(holder, until);
            }
            if fastrand::u32(..8) == 0 {
                // It stands still, and its lease runs out.
                tokio::time::sleep_until(until).await;
            }
            oracle.leave(holder);
        }
        while core.release(request.id).await.is_err() && Instant::now() < until {}
    }
}

/// Until it is granted: what, and until when it counts.
async fn asks(core: &Core<Network>, request: &Request) -> Granted {
    loop {
        let sent = Instant::now();
        match core.acquire(request).await {
            Ok(Answer::Granted { span, fence }) if sent.elapsed() < request.ttl / 4 * 3 => {
                let until = sent + request.ttl;
                return Granted { span, fence, until };
            }
            Ok(Answer::Granted { .. }) => {}
            Ok(Answer::Busy { expires }) => {
                let wait = expires.unwrap_or(Duration::MAX);
                sleep(wait.min(Duration::from_millis(500))).await;
            }
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Acquires and releases.
async fn passes(core: &Core<Network>, oracle: &Oracle, request: &Request) {
    let granted = asks(core, request).await;
    let holder = oracle.enter(request, granted);
    core.release(request.id).await.expect("nothing fails here");
    oracle.leave(holder);
}

fn span(first: u64, last: u64) -> Span {
    Span::inclusive(first, last).expect("in order")
}

/// A schedule, in a runtime of its own.
fn schedule(seed: u64, model: impl AsyncFnOnce(Network)) {
    fastrand::seed(seed);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("it needs nothing");
    LocalSet::new().block_on(&runtime, async {
        let network = Network::new(Store::new());
        let ticks = network.clone();
        // Leases end somewhat late.
        tokio::task::spawn_local(async move {
            loop {
                sleep(milliseconds(300)).await;
                ticks.store().expire();
            }
        });
        model(network.clone()).await;
        assert_eq!(network.store().wrong, None);
    });
}

/// Some clients at a time, and a store that is restored as another cluster now and then.
fn at_random(seed: u64) {
    schedule(seed, async |network: Network| {
        // A store that does not know the resource cannot tell that it was restored.
        let oracle = Rc::new(Oracle::default());
        passes(&core(&network), &oracle, &request(span(0, 0))).await;
        network.fails.set(fastrand::u32(..4));
        let clients = (0..CLIENTS).map(|_| client(network.clone(), Rc::clone(&oracle), 6));
        let clients: Vec<_> = clients.map(tokio::task::spawn_local).collect();
        if fastrand::u32(..4) == 0 {
            sleep(milliseconds(10_000)).await;
            let saved = network.store().clone();
            sleep(milliseconds(10_000)).await;
            network.store().restore(saved);
        }
        for client in clients {
            if let Err(panicked) = client.await {
                std::panic::resume_unwind(panicked.into_panic());
            }
        }
        // What nobody holds any more ends by itself, whatever was late.
        sleep(Duration::from_secs(200)).await;
        network.store().is_empty();
    });
}

/// Somebody holds 0..5 until the last one is granted what is free, and gives way no more to one that came before.
fn who_gives_way_passes(seed: u64) {
    schedule(seed, async |network: Network| {
        let request = |first, last| Request {
            mode: Mode::Exclusive,
            grow: None,
            ttl: Duration::from_secs(60),
            ..request(span(first, last))
        };
        let (holder, waits, passes) = (core(&network), core(&network), core(&network));
        let held = request(0, 4);
        asks(&holder, &held).await;
        let renews = async {
            loop {
                sleep(Duration::from_secs(20)).await;
                holder
                    .renew(held.id, held.ttl)
                    .await
                    .expect("nothing fails here");
            }
        };
        let is_granted = Cell::new(false);
        let earlier = async {
            asks(&waits, &request(0, 9)).await;
            is_granted.set(true);
        };
        let later = async {
            sleep(milliseconds(5000)).await;
            asks(&passes, &request(5, 9)).await;
        };
        tokio::select! {
            () = renews => {}
            () = earlier => panic!("it is held"),
            granted = timeout(HANGS, later) => granted.expect("it passes in the end"),
        }
        assert!(!is_granted.get());
    });
}

/// What was granted after the snapshot is unknown to the restored store, which has the number that it had. The client
/// that knows better is no holder any more.
fn who_has_seen_more_notices(seed: u64) {
    schedule(seed, async |network: Network| {
        let oracle = Oracle::default();
        let core = core(&network);
        let all = span(0, 9);
        let saved = network.store().clone();
        for _ in 0..fastrand::u32(1..9) {
            let request = request(all);
            passes(&core, &oracle, &request).await;
        }
        let cluster = network.store().cluster;
        network.store().restore(saved);
        network.store().cluster = cluster;
        let request = request(all);
        let granted = timeout(HANGS, asks(&core, &request))
            .await
            .expect("the minute ends");
        oracle.enter(&request, granted);
    });
}

/// A client has read before the first grant of its resource, which was another client's. The restored store does not
/// have the resource, and goes back.
fn who_has_read_before_the_first_grant_notices(seed: u64) {
    schedule(seed, async |network: Network| {
        let oracle = Oracle::default();
        let saved = network.store().clone();
        let elsewhere = Core {
            keys: Keys::new("spanlock/lease", "elsewhere"),
            ..core(&network)
        };
        let all = span(0, 9);
        // More transactions than those of the minute in which nothing is granted.
        for _ in 0..30 {
            asks(&elsewhere, &request(span(0, 0))).await;
        }
        let (early, other) = (core(&network), core(&network));
        let by = Instant::now() + Duration::from_secs(1);
        early.read(by).await.expect("nothing fails here");
        let first = request(all);
        passes(&other, &oracle, &first).await;
        network.store().restore(saved);
        let next = Request {
            mode: Mode::Exclusive,
            ..request(all)
        };
        let granted = timeout(HANGS, asks(&early, &next))
            .await
            .expect("the minute ends");
        oracle.enter(&next, granted);
    });
}

/// A request has a lease of an earlier epoch, whose answer was lost. It begins again, over connections that break, and
/// what was sent over them comes late.
fn who_begins_again_ends_nothing_later(seed: u64) {
    schedule(seed, async |network: Network| {
        let oracle = Oracle::default();
        let (restored, slow) = (core(&network), network.apart());
        let again = core(&slow);
        let all = span(0, 9);
        let asked = Request {
            mode: Mode::Exclusive,
            ttl: Duration::from_secs(60),
            ..request(all)
        };
        asks(&restored, &asked).await;
        let saved = network.store().clone();
        network.store().restore(saved);
        let soon = || Instant::now() + Duration::from_secs(1);
        restored.read(soon()).await.expect("nothing fails here");
        // Of an attempt at this time nothing arrives but what comes first.
        sleep(Duration::from_secs(30)).await;
        let kept = again.keep(soon(), Leases::of(asked.id).held, asked.ttl);
        assert_eq!(kept.await.ok(), Some(IsAlive::Yes));
        sleep(Duration::from_secs(32)).await;
        slow.fails.set(20);
        let granted = loop {
            if let Ok(granted) = timeout(milliseconds(2000), asks(&again, &asked)).await {
                break granted;
            }
        };
        oracle.enter(&asked, granted);
        let next = request(all);
        let granted = asks(&restored, &next).await;
        oracle.enter(&next, granted);
    });
}

/// A request whose answer was lost is repeated when its lease has nearly run out.
fn who_is_granted_again_has_the_whole_ttl(seed: u64) {
    schedule(seed, async |network: Network| {
        let oracle = Oracle::default();
        let (one, other) = (core(&network), core(&network));
        let all = span(0, 9);
        let ttl = Duration::from_secs(3);
        let asked = Request {
            ttl,
            mode: Mode::Exclusive,
            ..request(all)
        };
        asks(&one, &asked).await;
        sleep(Duration::from_millis(fastrand::u64(2000..3300))).await;
        // Calls that are made at a time arrive at different ones.
        network.fails.set(10);
        let granted = asks(&one, &asked).await;
        network.fails.set(0);
        oracle.enter(&asked, granted);
        let next = request(all);
        let granted = asks(&other, &next).await;
        oracle.enter(&next, granted);
        assert_eq!(one.renew(asked.id, ttl).await.ok(), Some(Renewal::Gone));
        assert!(matches!(
            other.renew(next.id, next.ttl).await,
            Ok(Renewal::Kept { wanted: Wanted::No })
        ));
    });
}

/// A client reads. Another one is granted what it asks for, and the store is restored to what it was before. Then comes
/// the transaction of the first one, which finds what it has read.
fn who_is_granted_by_a_restored_store_begins_again(seed: u64) {
    schedule(seed, async |network: Network| {
        let oracle = Rc::new(Oracle::default());
        passes(&core(&network), &oracle, &request(span(0, 0))).await;
        let all = span(0, POSITIONS - 1);
        let saved = network.store().clone();
        let slow = network.apart();
        slow.fails.set(20);
        let slow = core(&slow);
        let (first, other) = (request(all), request(all));
        let reads = async {
            let granted = asks(&slow, &first).await;
            oracle.enter(&first, granted);
        };
        let restores = async {
            let core = core(&network);
            sleep(milliseconds(300)).await;
            passes(&core, &oracle, &other).await;
            network.store().restore(saved);
        };
        tokio::join!(reads, restores);
    });
}

/// What fails in one of many schedules.
fn fails(edge: &'static str, model: Model, schedules: u64) -> Option<String> {
    LEFT_OUT.set(edge);
    let failed = (1..=schedules).find_map(|number| {
        let seed = fastrand::u64(..);
        let failed = catch_unwind(AssertUnwindSafe(|| model(seed))).err()?;
        let text = failed.downcast_ref::<String>().cloned();
        let text = text.or_else(|| failed.downcast_ref().map(|text: &&str| (*text).to_owned()));
        let text = text.unwrap_or_default();
        Some(format!(
            "schedule {number}, SPANLOCK_LEASE_SEED={seed}: {text}"
        ))
    });
    LEFT_OUT.set("none");
    failed
}

/// A model, which runs the schedule of a seed.
type Model = fn(u64);

/// Each model, and the edges without each of which it fails.
const MODELS: [(Model, &[&str]); 7] = [
    (
        at_random,
        &[
            "version-compared",
            "lease-attached",
            "counted-after-asked",
            "wish-unless-held",
            "fence-is-revision",
        ],
    ),
    (who_gives_way_passes, &["marks-pass"]),
    (who_has_seen_more_notices, &["epoch-raised"]),
    (
        who_has_read_before_the_first_grant_notices,
        &["epoch-raised"],
    ),
    (who_begins_again_ends_nothing_later, &["deleted-as-read"]),
    (who_is_granted_again_has_the_whole_ttl, &["kept-then-seen"]),
    (
        who_is_granted_by_a_restored_store_begins_again,
        &["answered-in-order"],
    ),
];

/// A wish that another version of the library writes counts as one for everything, and ends nothing.
#[test]
fn who_does_not_understand_a_wish_is_wished_for() {
    schedule(1, async |network: Network| {
        let (core, all) = (core(&network), span(0, 9));
        let request = request(all);
        asks(&core, &request).await;
        let key = core.keys.key(Place::Wish(self::request(all).id));
        let wish = vec![put(key, "upgrade 0 9 1 1 all of it", 0)];
        let by = Instant::now() + Duration::from_secs(1);
        let wishes = transaction(Vec::new(), wish, Vec::new());
        core.calls.call(by, &wishes).await.expect("nothing fails");
        assert_eq!(
            core.renew(request.id, request.ttl).await.ok(),
            Some(Renewal::Kept {
                wanted: Wanted::Yes
            })
        );
    });
}

#[test]
fn the_protocol_holds() {
    for (model, edges) in MODELS {
        if let Ok(seed) = std::env::var("SPANLOCK_LEASE_SEED") {
            model(seed.parse().expect("a number"));
        } else {
            assert_eq!(
                fails("none", model, schedules()),
                None,
                "the model of {edges:?}"
            );
        }
    }
}

#[test]
fn no_edge_can_be_left_out() {
    let header = include_str!("../engine.rs").lines();
    let named = header.filter_map(|line| line.strip_prefix("//! | **")?.split("**").next());
    let mut named: Vec<_> = named.collect();
    for (model, edges) in MODELS {
        for edge in edges {
            let killed = fails(edge, model, ENOUGH);
            let why = killed.unwrap_or_else(|| panic!("nothing fails without {edge}"));
            println!("{edge}: {why}");
            named.retain(|named| named != edge);
        }
    }
    assert!(named.is_empty(), "no model is for {named:?}");
}
