//! Listens to what happens to a resource. What is lost costs time only.

use crate::grpc::{Failed, Then};
use crate::interests::Interests;
use crate::keys::Keys;
use crate::link::{Cluster, PATIENCE};
use crate::wire::{RangeRequest, WatchCreateRequest, WatchRequest};
use h2::{Ping, PingPong};
use std::sync::Arc;
use std::time::Duration;
use tokio::select;
use tokio::time::{sleep, timeout};

/// A connection is asked so often whether it still is one.
const SILENCE: Duration = Duration::from_secs(5);

/// Listens until nobody wants the news, over as many connections as it takes.
pub(crate) async fn watch(cluster: Arc<Cluster>, keys: Keys, interests: Arc<Interests>) {
    let watches = async {
        loop {
            // What is lost meanwhile is found out by asking from time to time, and by renewals.
            let _ = watch_once(&cluster, &keys, &interests).await;
            sleep(Duration::from_millis(200)).await;
        }
    };
    select! {
        () = watches => {}
        () = interests.unheard() => {}
    }
}

/// Listens over one connection.
async fn watch_once(cluster: &Cluster, keys: &Keys, interests: &Interests) -> Result<(), Failed> {
    let late = |late: tokio::time::error::Elapsed| Failed::Broken(late.into());
    let connecting = timeout(PATIENCE, cluster.connect());
    let (channel, pings) = connecting.await.map_err(late)??;
    let mut stream = channel.begin::<WatchRequest>().await?;
    let RangeRequest { key, range_end } = keys.all();
    let create = Some(WatchCreateRequest {
        key,
        range_end,
        prev_kv: true,
    });
    stream.send(&WatchRequest { create }, Then::More)?;
    let listens = async {
        while let Some(answer) = stream.next().await? {
            if answer.created {
                // What happened before was not heard.
                interests.missed();
            }
            if answer.canceled {
                return Err(Failed::Broken(answer.cancel_reason.into()));
            }
            interests.tell(keys, &answer.events);
        }
        Ok(())
    };
    select! {
        ended = listens => ended,
        () = silence(pings) => Ok(()),
    }
}

/// Until the other side does not answer. A connection that loses what is sent says nothing by itself.
async fn silence(mut pings: PingPong) {
    loop {
        sleep(SILENCE).await;
        match timeout(PATIENCE, pings.ping(Ping::opaque())).await {
            Ok(Ok(_answered)) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}
