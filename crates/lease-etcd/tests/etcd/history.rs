//! The history of all leases, as the server has it, beside what clients were granted.

use crate::grpc::{Channel, Then};
use crate::server::Server;
use crate::wire::{Call, EventType, WatchResponse};
use prost::Message;
use spanlock_lease::RequestId;
use spanlock_lease_testkit::order::{Change, Wrong, work, wrong};
use spanlock_lease_testkit::server::{Server as _, runtime};
use tokio::net::UnixStream;

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

/// In the order of the server's transactions, no two leases that conflict are held at a time, and each fence is that of
/// its transaction.
pub fn grants_and_fences_agree(server: &Server) {
    let grants = work(server, 250);
    let history = history(server);
    let changes = history.iter().map(|(id, kind, revision)| match kind {
        EventType::Put => {
            assert_eq!(grants[id].fence.counter, *revision);
            (*id, Change::Began)
        }
        EventType::Delete => (*id, Change::Ended),
    });
    let changes: Vec<_> = changes.collect();
    let count = |of| changes.iter().filter(|(_, change)| *change == of).count();
    assert_eq!(count(Change::Began), grants.len());
    assert_eq!(count(Change::Ended), grants.len());
    assert!(grants.len() > 200, "{} grants", grants.len());
    assert_eq!(wrong(&changes, &grants), Wrong::default());
    println!("{} grants in the history", grants.len());
}
