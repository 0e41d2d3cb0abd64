//! Who holds leases, and who waits.

use crate::config::{Config, decoded};
use crate::etcd::PREFIX;
use crate::keys::{Entry, Place, below, place};
use crate::link::{Calls, Cluster, Line, PATIENCE};
use crate::wire::{KeyValue, LeaseTimeToLiveRequest};
use spanlock_lease::{Listed, State, Trouble};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use tokio_rustls::rustls::ClientConfig;

/// Lists all leases below the prefix `spanlock/lease`, and the wishes for others, by resources and places. It changes
/// nothing.
///
/// The keys are as they were at one moment. When each ends is asked afterwards, in whole seconds; how old it is, by the
/// clock of the machine that asked for it.
///
/// # Errors
/// When the cluster cannot be reached.
pub async fn status(config: &Config) -> Result<Vec<Listed>, Trouble> {
    list(Cluster::new(config.clone())).await
}

/// As [`status()`], over connections as [`Etcd::with_tls`](crate::Etcd::with_tls) has them.
///
/// # Errors
/// When the cluster cannot be reached.
pub async fn status_with_tls(config: &Config, tls: ClientConfig) -> Result<Vec<Listed>, Trouble> {
    let mut cluster = Cluster::new(config.clone());
    cluster.encrypt(tls);
    list(cluster).await
}

async fn list(cluster: Cluster) -> Result<Vec<Listed>, Trouble> {
    let line = Line::new(Arc::new(cluster));
    let by = Instant::now() + PATIENCE;
    let prefix = format!("{PREFIX}/");
    let answer = line.call(by, &below(prefix.clone())).await?;
    let mut all = Vec::new();
    for kv in &answer.kvs {
        let Some((resource, state, entry)) = parse(&prefix, kv) else {
            continue;
        };
        let left = line
            .call(by, &LeaseTimeToLiveRequest { id: entry.lease })
            .await?;
        // It has ended since the keys were read.
        let Ok(left) = u64::try_from(left.ttl) else {
            continue;
        };
        let began = SystemTime::UNIX_EPOCH + Duration::from_millis(entry.claim.since);
        all.push(Listed {
            resource,
            state,
            span: entry.claim.span,
            mode: entry.claim.mode,
            client: entry.claim.client,
            id: entry.id,
            age: SystemTime::now().duration_since(began).unwrap_or_default(),
            left: Duration::from_secs(left),
        });
    }
    let order = |listed: &Listed| {
        (
            listed.resource.clone(),
            listed.state,
            listed.span.start(),
            listed.span.last(),
        )
    };
    // By age among equals, as they come.
    all.sort_by_cached_key(order);
    Ok(all)
}

/// What is held or wished for, and of which resource.
fn parse(prefix: &str, kv: &KeyValue) -> Option<(String, State, Entry)> {
    let end = kv.key.strip_prefix(prefix.as_bytes())?;
    let slash = end.iter().position(|byte| *byte == b'/')?;
    let resource = decoded(std::str::from_utf8(&end[..slash]).ok()?)?;
    let (state, id) = match place(&end[slash + 1..])? {
        Place::Held(id) => (State::Held, id),
        Place::Wish(id) => (State::Awaited, id),
        Place::Version | Place::Grace => return None,
    };
    Some((resource, state, Entry::new(id, kv)?))
}
