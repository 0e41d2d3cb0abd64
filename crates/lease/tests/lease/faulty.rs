//! An engine that fails as it is told to.

use spanlock_lease::{Answer, Engine, Memory, News, Renewal, Request, RequestId, Span, Trouble};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[derive(Default)]
struct Faults {
    unreachable: AtomicBool,
    forgets: AtomicBool,
    panics: AtomicBool,
    loses_an_answer: AtomicBool,
    delay_ms: AtomicU64,
    renewals: AtomicU64,
    acquisitions: AtomicU64,
}

/// Clones fail together.
#[derive(Clone, Default)]
pub struct Faulty {
    inside: Memory,
    faults: Arc<Faults>,
}

impl Faulty {
    pub fn fail(&self) {
        self.faults.unreachable.store(true, SeqCst);
    }

    pub fn mend(&self) {
        self.faults.unreachable.store(false, SeqCst);
    }

    /// What is held was lost by the engine.
    pub fn forget(&self) {
        self.faults.forgets.store(true, SeqCst);
    }

    /// Renewals panic.
    pub fn panic(&self) {
        self.faults.panics.store(true, SeqCst);
    }

    /// The next acquisition happens, and its answer is lost.
    pub fn lose_the_next_answer(&self) {
        self.faults.loses_an_answer.store(true, SeqCst);
    }

    pub fn delay_the_next(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).expect("a short time");
        self.faults.delay_ms.store(time, SeqCst);
    }

    pub fn renewals(&self) -> u64 {
        self.faults.renewals.load(SeqCst)
    }

    pub fn acquisitions(&self) -> u64 {
        self.faults.acquisitions.load(SeqCst)
    }

    fn reach(&self) -> Result<(), Trouble> {
        if self.faults.unreachable.load(SeqCst) {
            return Err(Trouble::Unreachable("it was told to".into()));
        }
        Ok(())
    }
}

impl Engine for Faulty {
    type Range = Span;

    async fn open(&self) -> Result<(), Trouble> {
        self.reach()
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        self.reach()?;
        self.faults.acquisitions.fetch_add(1, SeqCst);
        let answer = self.inside.acquire(request).await;
        // The keeper alone runs on this thread.
        thread::sleep(Duration::from_millis(self.faults.delay_ms.swap(0, SeqCst)));
        if self.faults.loses_an_answer.swap(false, SeqCst) {
            return Err(Trouble::Unreachable("the answer was lost".into()));
        }
        answer
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        self.reach()?;
        self.faults.renewals.fetch_add(1, SeqCst);
        assert!(!self.faults.panics.load(SeqCst), "it was told to");
        if self.faults.forgets.load(SeqCst) {
            return Ok(Renewal::Gone);
        }
        self.inside.renew(id, ttl).await
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        self.reach()?;
        self.inside.release(id).await
    }

    async fn news(&self) -> News {
        self.inside.news().await
    }
}
