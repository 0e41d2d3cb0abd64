//! An engine that answers late, or not at all, as it is told to.

use crate::{
    Answer, Engine, Memory, News, Options, RangeLease, Renewal, Request, RequestId, Span, Token,
    Trouble,
};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// What becomes of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Calls {
    #[default]
    Answered,
    /// They are done, and no answer comes.
    Unanswered,
    /// They do not arrive, and no answer comes.
    Lost,
    /// They are not done, and the answer says so.
    Refused,
    /// They panic.
    Panics,
}

#[derive(Default)]
struct Told {
    requests: Cell<Calls>,
    renewals: Cell<Calls>,
    releases: Cell<Calls>,
    /// An answer comes after so long.
    takes: Cell<Duration>,
    acquisitions: Cell<u32>,
    /// Requests that have asked, and have not ended.
    known: RefCell<HashSet<RequestId>>,
}

/// Clones keep the same leases, and stall together.
#[derive(Clone, Default)]
pub(super) struct Stalling {
    memory: Memory,
    told: Rc<Told>,
}

/// After so long without an answer it is known that none will come.
pub(super) const SILENCE: Duration = Duration::from_secs(1);

impl Stalling {
    pub(super) fn requests_are(&self, calls: Calls) {
        self.told.requests.set(calls);
    }

    pub(super) fn renewals_are(&self, calls: Calls) {
        self.told.renewals.set(calls);
    }

    pub(super) fn releases_are(&self, calls: Calls) {
        self.told.releases.set(calls);
    }

    pub(super) fn takes(&self, time: Duration) {
        self.told.takes.set(time);
    }

    pub(super) fn acquisitions(&self) -> u32 {
        self.told.acquisitions.get()
    }

    /// It has lost what this holds.
    pub(super) async fn forgets(&self, token: &Token) {
        let released = self.memory.release(token.id()).await;
        released.expect("it answers");
    }

    /// How many requests it still has to do with.
    pub(super) fn known(&self) -> usize {
        self.told.known.borrow().len()
    }

    /// A client of it.
    pub(super) async fn client(&self) -> RangeLease {
        let (opening, keeps) = RangeLease::open_here(self.clone(), Options::default());
        spawn_local(keeps);
        opening.await.expect("it opens")
    }

    async fn call<T>(
        &self,
        calls: Calls,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let done = match calls {
            Calls::Panics => panic!("it was told to"),
            Calls::Refused => return Err(Trouble::Refused("it was told to refuse".into())),
            Calls::Lost => None,
            Calls::Answered | Calls::Unanswered => Some(work.await),
        };
        match done.filter(|_| calls == Calls::Answered) {
            Some(answer) => {
                sleep(self.told.takes.get()).await;
                answer
            }
            None => {
                sleep(SILENCE).await;
                Err(Trouble::Unreachable("it was told to stall".into()))
            }
        }
    }
}

impl Engine for Stalling {
    type Range = Span;

    async fn open(&self) -> Result<(), Trouble> {
        Ok(())
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        self.told.acquisitions.set(self.acquisitions() + 1);
        self.told.known.borrow_mut().insert(request.id);
        self.call(self.told.requests.get(), self.memory.acquire(request))
            .await
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        let renewed = self.call(self.told.renewals.get(), self.memory.renew(id, ttl));
        let renewed = renewed.await?;
        if renewed == Renewal::Gone {
            self.told.known.borrow_mut().remove(&id);
        }
        Ok(renewed)
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        self.told.known.borrow_mut().remove(&id);
        self.call(self.told.releases.get(), self.memory.release(id))
            .await
    }

    async fn news(&self) -> News {
        self.memory.news().await
    }
}
