//! Who holds leases, and who waits.

use crate::config::{Config, decoded};
use crate::engine::LONGEST;
use crate::etcd::PREFIX;
use crate::keys::{Entry, Place, below, place};
use crate::link::{Calls, Cluster, Line, PATIENCE};
use crate::wire::{KeyValue, LeaseTimeToLiveRequest};
use futures_util::future::join_all;
use spanlock_lease::{Listed, Span, State, Trouble};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Lists all leases below the prefix `spanlock/lease`, the wishes for others, and the resources of which nothing is
/// granted after a restore, by resources and places. It changes nothing.
///
/// The keys are as they were at one moment. When each ends is asked afterwards, in whole seconds; how old it is, by the
/// clock of the machine that asked for it.
///
/// # Errors
/// When the cluster cannot be reached.
pub async fn status(config: &Config) -> Result<Vec<Listed>, Trouble> {
    list(&Line::new(Arc::new(Cluster::new(config.clone())))).await
}

/// So many leases are asked for at a time.
const AT_A_TIME: usize = 64;

async fn list(calls: &impl Calls) -> Result<Vec<Listed>, Trouble> {
    let by = Instant::now() + PATIENCE;
    let prefix = format!("{PREFIX}/");
    let answer = calls.call(by, &below(prefix.clone())).await?;
    let known = answer.kvs.iter().filter_map(|kv| parse(&prefix, kv));
    let known: Vec<_> = known.collect();
    let mut all = Vec::new();
    for some in known.chunks(AT_A_TIME) {
        let asks = |id: i64| async move { calls.call(by, &LeaseTimeToLiveRequest { id }).await };
        let left = join_all(some.iter().map(|(_, lease, _)| asks(*lease))).await;
        for ((resource, _, what), left) in some.iter().zip(left) {
            // It has ended since the keys were read.
            if let Ok(left) = u64::try_from(left?.ttl) {
                all.push(listed(resource.clone(), what, Duration::from_secs(left)));
            }
        }
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

/// What is known of a resource.
enum What {
    Claimed(State, Entry),
    Grace,
}

/// A resource, the lease of etcd that ends what is known of it, and that.
fn parse(prefix: &str, kv: &KeyValue) -> Option<(String, i64, What)> {
    let end = kv.key.strip_prefix(prefix.as_bytes())?;
    let slash = end.iter().position(|byte| *byte == b'/')?;
    let resource = decoded(std::str::from_utf8(&end[..slash]).ok()?)?;
    let what = match place(&end[slash + 1..])? {
        Place::Held(id) => What::Claimed(State::Held, Entry::new(id, kv)?),
        Place::Wish(id) => What::Claimed(State::Awaited, Entry::new(id, kv)?),
        Place::Grace => What::Grace,
        Place::Version => return None,
    };
    Some((resource, kv.lease, what))
}

fn listed(resource: String, what: &What, left: Duration) -> Listed {
    let (state, Entry { id, claim, .. }) = match what {
        What::Grace => {
            return Listed::grace(resource, Span::ALL, LONGEST.saturating_sub(left), left);
        }
        What::Claimed(state, entry) => (*state, entry),
    };
    let began = SystemTime::UNIX_EPOCH + Duration::from_millis(claim.since);
    Listed {
        resource,
        state,
        span: claim.span,
        mode: claim.mode,
        client: claim.client.clone(),
        id: *id,
        age: SystemTime::now().duration_since(began).unwrap_or_default(),
        left,
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_A_TIME, list};
    use crate::grpc::Failed;
    use crate::link::Calls;
    use crate::wire::{Call, KeyValue, LeaseTimeToLiveResponse, RangeRequest, RangeResponse};
    use prost::Message;
    use std::cell::Cell;
    use std::time::Duration;
    use tokio::runtime::Builder;
    use tokio::time::{Instant, sleep};

    /// A call takes so long.
    const TRIP: Duration = Duration::from_millis(100);

    /// A cluster with so many leases.
    #[derive(Default)]
    struct Slow {
        leases: i64,
        under_way: Cell<usize>,
        most: Cell<usize>,
    }

    impl Calls for Slow {
        async fn call<C: Call>(&self, _by: Instant, _asked: &C) -> Result<C::Answer, Failed> {
            self.under_way.set(self.under_way.get() + 1);
            self.most.set(self.most.get().max(self.under_way.get()));
            sleep(TRIP).await;
            self.under_way.set(self.under_way.get() - 1);
            let held = |id: i64| KeyValue {
                key: format!("spanlock/lease/resource/held/{id:x}").into_bytes(),
                value: format!("exclusive {id} {id} 1 0 somebody").into_bytes(),
                lease: id,
                ..KeyValue::default()
            };
            let answer = match C::PATH == RangeRequest::PATH {
                true => RangeResponse {
                    kvs: (1..=self.leases).map(held).collect(),
                    ..RangeResponse::default()
                }
                .encode_to_vec(),
                false => LeaseTimeToLiveResponse { ttl: 7 }.encode_to_vec(),
            };
            Ok(C::Answer::decode(answer.as_slice())?)
        }
    }

    /// In simulated time.
    #[test]
    fn many_leases_are_listed_in_few_round_trips() {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.expect("it needs nothing").block_on(async {
            let cluster = Slow {
                leases: 1000,
                ..Slow::default()
            };
            let began = Instant::now();
            let listed = list(&cluster).await.expect("it answers");
            assert_eq!(listed.len(), 1000);
            assert!(listed.is_sorted_by_key(|listed| listed.span.start()));
            assert!(began.elapsed() < 20 * TRIP, "{:?}", began.elapsed());
            assert!(cluster.most.get() <= AT_A_TIME);
        });
    }
}
