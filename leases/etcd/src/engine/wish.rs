//! What is done for the wish of a request that has to wait.

use super::{Core, IsAlive, Leases};
use crate::edge::intact;
use crate::grpc::Code;
use crate::interests::OwnWish;
use crate::keys::{Entry, Place, State};
use crate::link::Calls;
use crate::txn::{is_absent, is_status, needed, put, transaction, was_written};
use crate::wire::TxnRequest;
use spanlock_lease::{Request, Trouble};
use std::time::Duration;
use tokio::time::Instant;

/// For how long a wish counts that nobody repeats. Requests that wait repeat theirs each half second.
const WISH: Duration = Duration::from_secs(5);

/// How often a wish that is repeated is kept alive.
const KEEPS: Duration = Duration::from_secs(1);

impl<C: Calls> Core<C> {
    /// Makes the wish of a request that has to wait, or does what is due for it. After the time that is returned
    /// something is due again; without one, what is known has changed.
    pub(super) async fn wish(
        &self,
        by: Instant,
        state: &State,
        request: &Request,
        known: Option<&Entry>,
    ) -> Result<Option<Duration>, Trouble> {
        let lease = Leases::of(request.id).wish;
        let key = self.keys.key(Place::Wish(request.id));
        let Some(known) = known else {
            self.lease(by, lease, WISH).await?;
            // It may be there from now on, also if there is no answer.
            let own = OwnWish::new();
            self.interests.set_wish(request.id, own);
            let claim = self.claim(request, request.span, state.version.epoch);
            let make = transaction(
                [
                    needed(
                        "wish-unless-held",
                        is_absent(self.keys.key(Place::Held(request.id))),
                    ),
                    vec![is_absent(key.clone())],
                ]
                .concat(),
                vec![put(key, claim, lease)],
                Vec::new(),
            );
            let made = self.succeeds(by, &make).await?;
            return Ok(made.then(|| due(&own)));
        };
        let mut own = self.interests.wish(request.id).unwrap_or_else(OwnWish::new);
        if own.kept.elapsed() >= KEEPS {
            if self.keep(by, lease, WISH).await? == IsAlive::No {
                return Ok(None);
            }
            own.kept = Instant::now();
        }
        let mut has_passed = false;
        while own.until_mark().is_zero() {
            own.marks += 1;
            has_passed = true;
        }
        if has_passed && intact("marks-pass") {
            let mark = transaction(
                vec![was_written(key.clone(), known.modified)],
                vec![put(key, &known.claim, lease)],
                Vec::new(),
            );
            if !self.succeeds(by, &mark).await? {
                return Ok(None);
            }
        }
        self.interests.set_wish(request.id, own);
        Ok(Some(due(&own)))
    }

    /// Whether a transaction that needs a lease is done.
    async fn succeeds(&self, by: Instant, asked: &TxnRequest) -> Result<bool, Trouble> {
        match self.calls.call(by, asked).await {
            Err(failed) if is_status(&failed, Code::NotFound) => Ok(false),
            answer => Ok(answer?.succeeded),
        }
    }
}

/// When a request that waits has something to do for its wish.
fn due(own: &OwnWish) -> Duration {
    own.until_mark().min(WISH / 2)
}
