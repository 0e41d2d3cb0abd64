//! Waiting, the same in all locks: giving way, sleeping, ageing, and what a request owes to others when it goes on.
//!
//! A lock says how a blocker is looked at and marked, and what a holder is called.
//!
//! - **gate**, **holder-bypass**: a newcomer sleeps behind a conflicting request that has waited too long, unless its
//!   thread holds anything, in any lock: that request may be waiting for it.
//! - **age**: where a sleeper may never be woken, it gets its claim where it sleeps.

use super::inspect::Claim;
use super::queue::{Claims, HolderId, Queue, Request, Stage};
use super::raw::Wait;
use crate::local::Local;
use crate::wait::{Ticket, Wakeups};
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::{Duration, Instant};
use prim::sync::{Mutex, MutexGuard};

/// Who goes first when requests keep overtaking one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Nobody waits but for holders. A request may be overtaken without end.
    Unfair,
    /// A request that finds its range taken again after waiting so long is overtaken no more by threads that hold
    /// nothing. Starvation-free.
    /// Counted in whole microseconds, rounded down, and in an hour at most.
    After(Duration),
}

impl Fairness {
    /// Fair after a millisecond: long against a short critical section, so that throughput does not suffer, and
    /// short against what people notice.
    pub const DEFAULT: Self = Self::After(Duration::from_millis(1));
}

/// After how many microseconds of waiting a request has a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience(u32);

impl Patience {
    pub(super) const NONE: Self = Self(0);
    /// More than the longest: no claims.
    pub(super) const ENDLESS: Self = Self(u32::MAX);

    pub(super) const fn of(fairness: Fairness) -> Self {
        const LONGEST: Duration = Duration::from_secs(3600);
        match fairness {
            Fairness::Unfair => Self::ENDLESS,
            Fairness::After(patience) if patience.as_secs() < LONGEST.as_secs() => {
                Self(micros(patience))
            }
            Fairness::After(_) => Self(micros(LONGEST)),
        }
    }

    pub(super) const fn claims(self) -> Claims {
        match self {
            Self::ENDLESS => Claims::Unknown,
            _ => Claims::Granted,
        }
    }

    fn limit(self) -> Option<Duration> {
        (self != Self::ENDLESS).then(|| Duration::from_micros(self.0.into()))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an hour has fewer")]
const fn micros(duration: Duration) -> u32 {
    duration.as_micros() as u32
}

/// When a request whose patience has ended gets its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ageing {
    /// When it finds its range taken again: whoever it sleeps behind wakes it.
    Awake,
    /// While it sleeps, too: others may take turns, and nobody wakes it.
    Asleep,
}

/// Whether a thread is entered in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Newcomer,
    Queued,
}

/// Why a request ends without its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    NoTime,
    WaitsForItself,
}

/// A request that did not get its range at once.
pub(super) struct Contender {
    local: &'static Local,
    claim: Claim,
    wait: Wait,
    patience: Patience,
    ageing: Ageing,
    standing: Standing,
    /// Whether newcomers are to give way.
    has_claim: bool,
    /// When it first waited.
    since: Option<Instant>,
}

impl Contender {
    pub(super) fn new(
        local: &'static Local,
        claim: Claim,
        wait: Wait,
        patience: Patience,
        ageing: Ageing,
    ) -> Self {
        Self {
            local,
            claim,
            wait,
            patience,
            ageing,
            standing: Standing::Newcomer,
            has_claim: false,
            since: None,
        }
    }

    pub(super) fn local(&self) -> &'static Local {
        self.local
    }

    pub(super) fn claim(&self) -> &Claim {
        &self.claim
    }

    pub(super) fn wait(&self) -> Wait {
        self.wait
    }

    fn waits(&mut self) -> Instant {
        *self.since.get_or_insert_with(Instant::now)
    }

    /// Gets its claim if that is due.
    fn ages(&mut self) {
        let since = self.waits();
        self.has_claim |= self
            .patience
            .limit()
            .is_some_and(|limit| since.elapsed() >= limit);
    }

    /// When to get its claim, if it is still asleep then.
    fn ages_asleep_at(&mut self) -> Option<Instant> {
        let since = self.waits();
        let may = self.ageing == Ageing::Asleep && !self.has_claim && prim::intact!("age");
        let due = since.checked_add(self.patience.limit().filter(|_| may)?)?;
        let in_time = self.wait.deadline().is_none_or(|deadline| due < deadline);
        in_time.then_some(due)
    }

    /// Its entry in the queue.
    fn request(&self, stage: Stage, behind: Claim) -> Request {
        Request {
            id: self.local.parker.id(),
            claim: self.claim,
            parker: &self.local.parker,
            is_holder: self.local.holds_any(),
            has_claim: self.has_claim,
            stage,
            behind,
        }
    }
}

/// The queue of a lock, its mutex, and what newcomers look at first.
pub(super) struct WaitingRoom {
    /// How many requests have a claim. A hint: the queue knows.
    claims: AtomicU32,
    patience: Patience,
    queue: Mutex<Queue>,
}

impl WaitingRoom {
    prim::const_fn! {
        pub(super) const fn new(patience: Patience) -> Self {
            Self {
                claims: AtomicU32::new(0),
                patience,
                queue: Mutex::new(Queue::new(patience.claims())),
            }
        }
    }

    pub(super) fn patience(&self) -> Patience {
        self.patience
    }

    /// Whether newcomers may have to give way. A hint.
    #[inline]
    pub(super) fn has_claims(&self) -> bool {
        self.claims.load(Ordering::Relaxed) != 0
    }

    /// The queue, for a look.
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// [gate] Gives way to those who have waited too long.
    pub(super) fn gate(&self, contender: &mut Contender) -> Result<(), Refused> {
        if contender.standing == Standing::Queued
            || !self.has_claims()
            // [holder-bypass] Those who have waited too long may be waiting for this thread.
            || (contender.local.holds_any() && prim::intact!("holder-bypass"))
        {
            return Ok(());
        }
        let ticket = self.with_queue(|queue, wakeups| {
            let first = queue.claim_against(&contender.claim);
            let Some(first) = first.filter(|_| prim::intact!("gate")) else {
                return Ok(None);
            };
            if contender.wait == Wait::Never {
                return Err(Refused::NoTime);
            }
            let ticket = contender.local.parker.ticket();
            let request = contender.request(Stage::BehindRequest(first.id), first.claim);
            queue.sleep(request, wakeups);
            Ok(Some(ticket))
        })?;
        ticket.map_or(Ok(()), |ticket| self.park(contender, ticket))
    }

    /// Enters a request behind the holder that `mark` has marked; not, if that finds it in the way no more. To be
    /// followed by [`rest`](Self::rest).
    pub(super) fn enter(
        &self,
        contender: &mut Contender,
        mark: impl FnOnce() -> Option<(HolderId, Claim)>,
    ) -> Option<Ticket> {
        contender.ages();
        let ticket = contender.local.parker.ticket();
        self.with_queue(|queue, wakeups| {
            let (holder, behind) = mark()?;
            let request = contender.request(Stage::BehindHolder(holder), behind);
            queue.sleep(request, wakeups);
            Some(ticket)
        })
    }

    /// Sleeps, if the request was entered.
    pub(super) fn rest(
        &self,
        contender: &mut Contender,
        ticket: Option<Ticket>,
    ) -> Result<(), Refused> {
        match ticket {
            Some(ticket) => self.park(contender, ticket),
            None => self.hurry(contender),
        }
    }

    fn park(&self, contender: &mut Contender, ticket: Ticket) -> Result<(), Refused> {
        contender.standing = Standing::Queued;
        let parker = &contender.local.parker;
        if let Some(due) = contender.ages_asleep_at() {
            if parker.park(ticket, Some(due)) {
                return Ok(());
            }
            // Where it sleeps: whoever it is asleep behind by now, others are to go on waking it.
            contender.has_claim = true;
            self.with_queue(|queue, _| queue.age(parker.id()));
        }
        let signalled = parker.park(ticket, contender.wait.deadline());
        signalled.then_some(()).ok_or(Refused::NoTime)
    }

    /// Goes on after others were faster, or after a wait too short to sleep: with a claim, if that is due.
    pub(super) fn hurry(&self, contender: &mut Contender) -> Result<(), Refused> {
        match contender.wait {
            // Each failure was somebody else's success, not a conflict: the answer is still open.
            Wait::Never => return Ok(()),
            Wait::Until(deadline) if Instant::now() >= deadline => return Err(Refused::NoTime),
            Wait::Until(_) | Wait::Forever => {}
        }
        contender.ages();
        if contender.has_claim {
            contender.standing = Standing::Queued;
            let request = contender.request(Stage::Awake, contender.claim);
            self.with_queue(|queue, _| queue.claim(request));
        }
        Ok(())
    }

    /// Leaves the queue as a holder; those asleep behind the request now are behind the holder that `holder_of`
    /// chooses for each. Whether there are any.
    pub(super) fn arrive(
        &self,
        contender: &Contender,
        holder_of: impl FnMut(&Claim) -> HolderId,
    ) -> bool {
        contender.standing == Standing::Queued
            && self.with_queue(|queue, _| queue.arrived(contender.local.parker.id(), holder_of))
    }

    pub(super) fn give_up(&self, contender: &Contender) {
        if contender.standing == Standing::Queued {
            let id = contender.local.parker.id();
            self.with_queue(|queue, wakeups| queue.gave_up(id, wakeups));
        }
    }

    /// The one way to change the queue: under its mutex, with the hint kept true, and wake-ups after.
    #[cold] // Somebody sleeps, or is about to.
    #[inline(never)]
    pub(super) fn with_queue<R>(&self, f: impl FnOnce(&mut Queue, &mut Wakeups) -> R) -> R {
        let mut wakeups = Wakeups::default();
        let mut queue = self.queue.lock();
        let result = f(&mut queue, &mut wakeups);
        let claims = queue.claims();
        // Relaxed: a hint, and written under the mutex only. Not written in vain: all acquisitions read its line.
        if self.claims.load(Ordering::Relaxed) != claims {
            self.claims.store(claims, Ordering::Relaxed);
        }
        drop(queue);
        wakeups.deliver();
        result
    }
}
