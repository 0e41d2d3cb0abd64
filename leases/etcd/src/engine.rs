//! The protocol: what is asked of etcd for each call.
//!
//! Each change that could exclude somebody is one transaction on the keys of its resource (see `keys`), and each such
//! transaction writes the key `version`. What frees does not: a release and the end of a ttl delete keys and leave
//! `version` alone. A grant that has not seen that was decided on more holders than there are, so it would be granted
//! all the more.
//!
//! | edge | what it says |
//! |---|---|
//! | **version-compared** | a grant is decided on all keys, read at one revision, and its transaction compares the revision of `version` with the one that was read. So no two grants are decided on the same keys |
//! | **lease-attached** | what is held is attached to a lease of etcd whose number follows from the request's name. To revoke it is to release; a transaction for a released request that comes late finds no lease, and fails as a whole |
//! | **counted-after-asked** | that lease is made or kept alive after the call began, and before its transaction. So it lasts for the ttl from then |
//! | **kept-then-seen** | who has its lease already is told so if the lease was kept alive first, and the key seen then. Otherwise the lease that was kept could be a later one, of the same number, to which nothing is attached |
//! | **wish-unless-held** | a wish is made by a transaction that compares: the request holds nothing. So one that comes late is none |
//! | **marks-pass** | a wish is written again when it has waited for 1, 2, 4, 8, … seconds. A request gives way to wishes that were last written before it came itself. No clocks of two machines are compared |
//! | **fence-is-revision** | the fence is the revision of the transaction that granted: the store's own order of all changes |
//! | **answered-in-order** | a grant is answered by the store that was read, at a later revision. Otherwise the store was restored between the two, and the grant counts for nothing: once the epoch is raised, what was granted in an earlier one and not answered is deleted |
//! | **deleted-as-read** | that deletion compares the revision of what is held with the one that was read. So one that comes late ends no later grant of the same request, as to revoke its lease, of the same number, would |
//! | **epoch-raised** | whoever finds that the cluster's number has changed, or that revisions went back, raises the epoch before anything is granted, and nothing is granted for the longest ttl |
//!
//! `model` runs this over a store in memory, and finds what happens without each of them.

#[cfg(test)]
mod model;
mod wish;

use crate::decide::{Decision, fence, wanted};
use crate::edge::intact;
use crate::grpc::Code;
use crate::interests::{Interests, MayWish};
use crate::keys::{Claim, Entry, Foreign, Keys, Place, State, Version};
use crate::link::{Calls, PATIENCE};
use crate::txn::{is_status, last_range, needed, one, put, seconds, transaction, was_written};
use crate::wire::{
    DeleteRangeRequest, LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, Operation,
    RangeResponse, ResponseHeader,
};
use spanlock_lease::{Answer, Renewal, Request, RequestId, Span, Trouble, Wanted};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tokio::join;
use tokio::time::{Instant, sleep};

/// The longest ttl.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Who collides with others for the second time waits for up to so long, then for twice as long, …
const PAUSE: Duration = Duration::from_millis(2);

/// A release is given so much time at least, whatever its ttl was.
const LEAST: Duration = Duration::from_millis(250);

/// The calls for one resource.
pub(crate) struct Core<C> {
    pub(crate) calls: C,
    pub(crate) keys: Keys,
    pub(crate) client: String,
    pub(crate) interests: Arc<Interests>,
    pub(crate) known: Known,
}

/// The latest epoch and revision that were seen: neither goes back.
#[derive(Default)]
pub(crate) struct Known(Mutex<(u32, i64)>);

impl Known {
    fn latest(&self) -> MutexGuard<'_, (u32, i64)> {
        self.0.lock().expect("no panic while held")
    }

    fn get(&self) -> (u32, i64) {
        *self.latest()
    }

    fn learn(&self, epoch: u32, revision: i64) {
        let mut latest = self.latest();
        *latest = (epoch, revision).max(*latest);
    }
}

/// The leases of etcd that a request has.
#[derive(Clone, Copy)]
struct Leases {
    held: i64,
    wish: i64,
}

impl Leases {
    /// The two halves of the name, which is random.
    fn of(id: RequestId) -> Self {
        let number = id.number();
        let half = |bits: u128| (bits as i64 & i64::MAX).max(1);
        Self {
            held: half(number >> 64),
            wish: half(number),
        }
    }
}

/// What a transaction that grants has come to.
enum Granted {
    /// In this revision; others may wish for it.
    At(i64, Wanted),
    /// Others were granted something meanwhile: what is known now.
    Changed(State),
    /// The request's lease has run out.
    NoLease,
}

/// How long an answer is waited for. One that comes after the ttl is of no use, and a connection that loses what is
/// sent says nothing.
fn patience(ttl: Duration) -> Duration {
    ttl.clamp(Duration::from_secs(1), PATIENCE)
}

pub(crate) fn refused(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Trouble {
    Trouble::Refused(why.into())
}

impl<C: Calls> Core<C> {
    /// All that is known of the resource. If it lacks what was known before, it is made known that it does.
    pub(crate) async fn read(&self, by: Instant) -> Result<State, Trouble> {
        loop {
            let known = self.known.get();
            let answer = self.calls.call(by, &self.keys.all()).await?;
            let header = answer
                .header
                .ok_or_else(|| refused("etcd does not say who it is"))?;
            let state = self.state(header, &answer)?;
            match self.goes_on(known, &state) {
                true => return Ok(state),
                false => self.raise(by, known, &state).await?,
            }
        }
    }

    fn state(&self, header: ResponseHeader, answer: &RangeResponse) -> Result<State, Trouble> {
        State::parse(&self.keys, header, &answer.kvs).map_err(refused)
    }

    /// Whether nothing was lost since: what was known before the call is not later than its answer.
    fn goes_on(&self, known: (u32, i64), state: &State) -> bool {
        let version = state.version;
        let is_ours = version.modified == 0 || version.cluster == state.cluster;
        let goes_on =
            is_ours && (version.epoch, state.revision) >= known || !intact("epoch-raised");
        if goes_on {
            self.known.learn(version.epoch, state.revision);
        }
        goes_on
    }

    /// The store was restored, and lacks what came later (*epoch-raised*).
    async fn raise(&self, by: Instant, known: (u32, i64), state: &State) -> Result<(), Trouble> {
        let ttl = seconds(LONGEST);
        let grace = self
            .calls
            .call(by, &LeaseGrantRequest { ttl, id: 0 })
            .await?;
        // The first grant is of epoch 1, also where none was seen.
        let epoch = state.version.epoch.max(known.0).max(1) + 1;
        let version = Version {
            epoch,
            cluster: state.cluster,
            modified: 0,
        };
        let raise = transaction(
            vec![was_written(
                self.keys.key(Place::Version),
                state.version.modified,
            )],
            vec![
                put(self.keys.key(Place::Version), version, 0),
                put(self.keys.key(Place::Grace), "", grace.id),
            ],
            Vec::new(),
        );
        // Or somebody else has raised it.
        self.calls.call(by, &raise).await?;
        Ok(())
    }

    /// Makes a lease of etcd, or keeps it alive if there is one.
    async fn lease(&self, by: Instant, id: i64, ttl: Duration) -> Result<(), Trouble> {
        loop {
            let made = self
                .calls
                .call(
                    by,
                    &LeaseGrantRequest {
                        ttl: seconds(ttl),
                        id,
                    },
                )
                .await;
            match made {
                Ok(_) => return Ok(()),
                Err(failed) if is_status(&failed, Code::FailedPrecondition) => {}
                Err(failed) => return Err(failed.into()),
            }
            // (counted-after-asked)
            if !intact("counted-after-asked") || self.keep(by, id, ttl).await? == IsAlive::Yes {
                return Ok(());
            }
        }
    }

    async fn keep(&self, by: Instant, id: i64, ttl: Duration) -> Result<IsAlive, Trouble> {
        let answer = self.calls.call(by, &LeaseKeepAliveRequest { id }).await?;
        match answer.ttl {
            ..=0 => Ok(IsAlive::No),
            kept if kept < seconds(ttl) => {
                Err(refused("a lease cannot be repeated for a longer ttl"))
            }
            _ => Ok(IsAlive::Yes),
        }
    }

    pub(crate) async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        if request.ttl > LONGEST {
            return Err(refused(format!(
                "a lease is for {} s at most",
                LONGEST.as_secs()
            )));
        }
        let by = Instant::now() + patience(request.ttl);
        let lease = Leases::of(request.id).held;
        self.interests.begin(request);
        // Who has not waited is likely to be granted it.
        let (mut is_leased, mut state) = match self.interests.wish(request.id) {
            Some(_) => (false, self.read(by).await?),
            None => {
                let (leased, state) = join!(self.lease(by, lease, request.ttl), self.read(by));
                leased?;
                (true, state?)
            }
        };
        let drawn = state.revision;
        let mut is_kept = !intact("kept-then-seen");
        let mut collisions = 0;
        loop {
            match state.decide(request) {
                // (answered-in-order)
                Decision::Held(held) if held.claim.epoch < state.version.epoch => {
                    self.forget(by, held).await?;
                    state = self.read(by).await?;
                }
                // (kept-then-seen)
                Decision::Held(held) if is_kept => {
                    let (span, fence) = (held.claim.span, held.fence());
                    let wanted = state.wanted(request.id, span, request.mode);
                    self.interests
                        .holds(request.id, span, state.revision, wanted);
                    return Ok(Answer::Granted { span, fence });
                }
                Decision::Held(_) => {
                    is_kept = self.keep(by, lease, request.ttl).await? == IsAlive::Yes;
                    is_leased = is_kept;
                    state = self.read(by).await?;
                }
                Decision::Grant(span) => {
                    // One that has waited has made its lease when it came, so it may be there.
                    if !is_leased && self.keep(by, lease, request.ttl).await? == IsAlive::No {
                        self.lease(by, lease, request.ttl).await?;
                    }
                    is_leased = true;
                    match self.grant(by, &state, request, span).await? {
                        Granted::At(revision, wanted) => {
                            self.interests.holds(request.id, span, revision, wanted);
                            let revision = match intact("fence-is-revision") {
                                true => revision,
                                false => drawn,
                            };
                            let fence = fence(state.version.epoch.max(1), revision);
                            return Ok(Answer::Granted { span, fence });
                        }
                        Granted::Changed(now) if collisions == 0 => state = now,
                        Granted::Changed(_) => {
                            sleep(pause(collisions)).await;
                            state = self.read(by).await?;
                        }
                        Granted::NoLease => {
                            is_leased = false;
                            state = self.read(by).await?;
                        }
                    }
                    collisions += 1;
                }
                Decision::Wait(wish) => match self.wish(by, &state, request, wish).await? {
                    Some(expires) => {
                        return Ok(Answer::Busy {
                            expires: Some(expires),
                        });
                    }
                    None => state = self.read(by).await?,
                },
            }
        }
    }

    /// Grants, unless somebody else was granted something since the state was read (*version-compared*).
    async fn grant(
        &self,
        by: Instant,
        state: &State,
        request: &Request,
        span: Span,
    ) -> Result<Granted, Trouble> {
        let known = self.known.get();
        let epoch = state.version.epoch.max(1);
        let version = Version {
            epoch,
            cluster: state.cluster,
            modified: 0,
        };
        let lease = match intact("lease-attached") {
            true => Leases::of(request.id).held,
            false => 0,
        };
        let grant = transaction(
            needed(
                "version-compared",
                was_written(self.keys.key(Place::Version), state.version.modified),
            ),
            vec![
                put(self.keys.key(Place::Version), version, 0),
                put(
                    self.keys.key(Place::Held(request.id)),
                    self.claim(request, span, epoch),
                    lease,
                ),
                Operation::Delete(DeleteRangeRequest {
                    key: self.keys.key(Place::Wish(request.id)),
                }),
                Operation::Range(self.keys.wishes()),
            ],
            vec![Operation::Range(self.keys.all())],
        );
        let answer = match self.calls.call(by, &grant).await {
            Err(failed) if is_status(&failed, Code::NotFound) => return Ok(Granted::NoLease),
            answer => answer?,
        };
        let succeeded = answer.succeeded;
        let (header, range) = last_range(answer)?;
        let now = self.state(header, &range)?;
        if !succeeded && self.goes_on(known, &now) {
            return Ok(Granted::Changed(now));
        }
        // (answered-in-order)
        let is_later = now.cluster == state.cluster && now.revision > state.revision;
        if succeeded && (is_later || !intact("answered-in-order")) {
            self.known.learn(epoch, now.revision);
            let wanted = now.wanted(request.id, span, request.mode);
            return Ok(Granted::At(now.revision, wanted));
        }
        Ok(Granted::Changed(self.read(by).await?))
    }

    /// Deletes what was granted and not answered, unless it was granted again since (*deleted-as-read*).
    async fn forget(&self, by: Instant, held: &Entry) -> Result<(), Trouble> {
        let key = self.keys.key(Place::Held(held.id));
        let forget = transaction(
            needed("deleted-as-read", was_written(key.clone(), held.modified)),
            vec![Operation::Delete(DeleteRangeRequest { key })],
            Vec::new(),
        );
        self.calls.call(by, &forget).await?;
        Ok(())
    }

    fn claim(&self, request: &Request, span: Span, epoch: u32) -> Claim {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Claim {
            span,
            mode: request.mode,
            epoch,
            since: since.as_millis().try_into().unwrap_or(u64::MAX),
            client: self.client.clone(),
        }
    }

    pub(crate) async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        // Time for another attempt, on another connection, is left.
        let by = Instant::now() + PATIENCE.min(ttl / 4);
        // (kept-then-seen)
        let held = match self.keep(by, Leases::of(id).held, ttl).await? {
            IsAlive::Yes => self.look(by, id).await?,
            IsAlive::No => None,
        };
        match held {
            Some(wanted) => Ok(Renewal::Kept { wanted }),
            None => {
                let _ended = self.interests.end(id);
                Ok(Renewal::Gone)
            }
        }
    }

    /// Whether others wish for what a request holds, if it does.
    async fn look(&self, by: Instant, id: RequestId) -> Result<Option<Wanted>, Trouble> {
        let key = self.keys.key(Place::Held(id));
        let both = vec![
            Operation::Range(one(key)),
            Operation::Range(self.keys.wishes()),
        ];
        let answer = self
            .calls
            .call(by, &transaction(Vec::new(), both, Vec::new()))
            .await?;
        let mut ranges = answer
            .responses
            .into_iter()
            .filter_map(|response| response.range);
        let (Some(held), Some(wishes)) = (ranges.next(), ranges.next()) else {
            return Err(refused("etcd's answer lacks what was read"));
        };
        let Some(kv) = held.kvs.first() else {
            return Ok(None);
        };
        let held = Entry::new(id, kv).ok_or_else(|| refused(Foreign(kv.key.clone())))?;
        Ok(Some(wanted(&self.keys, &wishes.kvs, &held)))
    }

    pub(crate) async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        let (may_wish, ttl) = self.interests.end(id);
        // The first attempt leaves time for another one, as a renewal does.
        let by = Instant::now() + ttl.map_or(PATIENCE, |ttl| (ttl / 4).clamp(LEAST, PATIENCE));
        let Leases { held, wish } = Leases::of(id);
        match may_wish {
            MayWish::No => self.revoke(by, held).await,
            MayWish::Yes => {
                let (held, wish) = join!(self.revoke(by, held), self.revoke(by, wish));
                held.and(wish)
            }
        }
    }

    /// Ends a lease of etcd, and all that is attached to it (*lease-attached*).
    async fn revoke(&self, by: Instant, id: i64) -> Result<(), Trouble> {
        match self.calls.call(by, &LeaseRevokeRequest { id }).await {
            Err(failed) if is_status(&failed, Code::NotFound) => Ok(()),
            answer => answer.map(drop).map_err(Into::into),
        }
    }
}

/// Whether a lease of etcd is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsAlive {
    Yes,
    No,
}

fn pause(collisions: u32) -> Duration {
    PAUSE.mul_f64(fastrand::f64()) * 2_u32.pow(collisions.min(6))
}
