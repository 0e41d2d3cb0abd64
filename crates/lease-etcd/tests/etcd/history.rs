//! The history of all leases, as the server has it, beside what clients were granted.

use crate::grpc::{Channel, Then};
use crate::server::Server;
use crate::wire::{Call, EventType, WatchResponse};
use prost::Message;
use spanlock_lease::{Answer, Engine, Fence, Mode, Request, RequestId, Span};
use spanlock_lease_testkit::server::{LONG, Server as _, runtime};
use std::collections::HashMap;
use std::thread;
use tokio::net::UnixStream;

const CLIENTS: u64 = 4;
const POSITIONS: u64 = 16;

/// What a client was granted.
struct Grant {
    span: Span,
    mode: Mode,
    fence: Fence,
}

/// Asks for what has happened since a revision.
#[derive(Clone, PartialEq, Eq, Message)]
struct WatchSince {
    #[prost(message, optional, tag = "1")]
    create: Option<Since>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Since {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    start_revision: i64,
}

impl Call for WatchSince {
    const PATH: &'static str = "/etcdserverpb.Watch/Watch";
    type Answer = WatchResponse;
}

/// What happened to keys below `held/`, with the transactions: a lease began, or ended. It ends with the deletion of
/// `end`.
fn history(server: &Server) -> Vec<(RequestId, EventType, u64)> {
    let below = "spanlock/lease/resource/held/";
    let end = format!("{below}0");
    server.ctl(&["put", &end, ""]);
    runtime().block_on(async {
        let stream = UnixStream::connect(server.socket()).await.unwrap();
        let (channel, _pings) = Channel::new(Box::new(stream), "http://etcd").await.unwrap();
        let mut watch = channel.begin::<WatchSince>().await.unwrap();
        let since = Since {
            key: below.into(),
            range_end: b"spanlock/lease/resource/held0".into(),
            start_revision: 1,
        };
        watch
            .send(
                &WatchSince {
                    create: Some(since),
                },
                Then::More,
            )
            .unwrap();
        let mut history = Vec::new();
        loop {
            for event in watch.next().await.unwrap().expect("it goes on").events {
                let (kind, kv) = (event.kind(), event.kv.unwrap());
                let key = String::from_utf8(kv.key).unwrap();
                if key == end {
                    return history;
                }
                let id = key.strip_prefix(below).unwrap().parse().unwrap();
                history.push((id, kind, kv.mod_revision.cast_unsigned()));
            }
        }
    })
}

/// Clients that acquire and release at random. What they were granted.
fn work(server: &Server, times: u32) -> HashMap<RequestId, Grant> {
    let client = |seed: u64| {
        let engine = server.engine();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut grants = Vec::new();
        runtime().block_on(async {
            engine.open().await.expect("it opens");
            for _ in 0..times {
                let first = random.u64(..POSITIONS);
                let last = first + random.u64(..4);
                let request = Request {
                    id: format!("{:x}", random.u128(..)).parse().expect("a number"),
                    span: Span::inclusive(first, last).expect("in order"),
                    mode: match random.u32(..4) {
                        0 => Mode::Shared,
                        _ => Mode::Exclusive,
                    },
                    ttl: LONG,
                    grow: None,
                };
                let answer = engine.acquire(&request).await.expect("it answers");
                if let Answer::Granted { span, fence } = answer {
                    let mode = request.mode;
                    grants.push((request.id, Grant { span, mode, fence }));
                }
                engine.release(request.id).await.expect("it answers");
            }
        });
        server.step();
        grants
    };
    thread::scope(|scope| {
        let seeds = std::iter::repeat_with(|| fastrand::u64(..));
        let client = &client;
        let clients: Vec<_> = seeds
            .take(CLIENTS as usize)
            .map(|seed| scope.spawn(move || client(seed)))
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().expect("no panic"))
            .collect()
    })
}

/// In the order of the server's transactions, no two leases that conflict are held at a time, and each fence is that of
/// its transaction.
pub fn grants_and_fences_agree(server: &Server) {
    let grants = work(server, 250);
    let history = history(server);
    let began = history
        .iter()
        .filter(|(_, kind, _)| *kind == EventType::Put);
    assert_eq!(began.count(), grants.len());
    assert!(grants.len() > 200, "{} grants", grants.len());
    let mut held: Vec<&Grant> = Vec::new();
    for (id, kind, revision) in &history {
        let grant = &grants[id];
        match kind {
            EventType::Put => {
                assert_eq!(grant.fence.counter, *revision);
                for other in &held {
                    let conflict =
                        other.span.overlaps(grant.span) && other.mode.conflicts(grant.mode);
                    assert!(!conflict, "{} and {}", other.fence, grant.fence);
                }
                held.push(grant);
            }
            EventType::Delete => held.retain(|held| held.fence != grant.fence),
        }
    }
    assert!(held.is_empty());
    println!("{} grants in the history", grants.len());
}
