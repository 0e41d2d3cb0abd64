//! Waiting, the same in all locks: giving way, sleeping, ageing, and what a request owes to others when it goes on.
//!
//! A lock says how a blocker is looked at and marked, what a holder is called, and what a thread holds in it.
//!
//! - **gate**: a request sleeps behind an earlier one that conflicts with it and has waited too long: it has a *claim*.
//! - **turn**: it does so for a limited time, then goes on whatever the earlier one waits for. A holder may be waiting
//!   for *this* request (it joins the thread, say), and the earlier one for that holder.
//! - **holder-bypass**: it does not sleep behind a request that waits for what its own thread holds in this lock, nor
//!   behind a later one.
//! - **age**: where a sleeper may never be woken, it gets its claim where it sleeps.
//!
//! # Turns
//!
//! Claims whose ranges are connected, each overlapping the next, are in force and suspended together, by the age of the
//! first of them. Each round has three turns of equal length and is twice as long as the one before; the first turn lasts
//! [`FIRST_TURN`].
//!
//! ```text
//!  claim
//!    |##########|::::::::::|..........|####################|::::::::::::::::::::|....................|####
//!    0         10         20         30                   50                   70                   90 ms
//!
//!  #  in force: later requests that conflict with a claim give way until the turn ends
//!  :  the same, but for those who have given way in this round: they have a pass
//!  .  suspended: nobody gives way
//! ```
//!
//! - A request gives way for one turn of a round: [`FIRST_TURN`], or as long as the first claim is old, whichever is more.
//! - Claims are suspended for a third of the time. So a computation that a claim's owner waits for, unknown to the lock,
//!   takes about three times as long, if that owner waits without a limit: one who gives up and asks again begins the
//!   rounds anew.
//! - The owner of the first claim gets its range in the first turn `#` that is longer than those in its way stay. Those who
//!   have a pass are served fairly among each other and newcomers in the turn `:`, also while the first claim waits for
//!   somebody who waits for them.
//! - A thread that is in the way of a claim heeds no later one: two claims whose blockers gave way to each other would
//!   both stay blocked.

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
    /// A request that finds its range taken again after waiting so long has a *claim*: others give way to it, by
    /// turns that grow with its age. It gets its range in the first turn that is longer than those in its way stay:
    /// [`RangeLock`](super::RangeLock#fairness) states the bounds, and what they depend on.
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

/// How long others give way to a claim at first: a few time slices of a scheduler, so that a holder that was
/// preempted can leave meanwhile.
const FIRST_TURN: Duration = Duration::from_millis(10);

/// A turn in which claims are in force. Times are counted from the grant of the first of them, or told by the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn<T> {
    /// When the rounds began.
    pub(super) since: T,
    pub(super) ends: T,
    /// When the next round begins.
    pub(super) round_ends: T,
}

/// The turn at that age of the first claim; `None` if claims are suspended.
pub(super) fn turn_at(age: Duration) -> Option<Turn<Duration>> {
    let (mut begins, mut length) = (Duration::ZERO, FIRST_TURN);
    while age >= begins + 3 * length {
        begins += 3 * length;
        length *= 2;
    }
    let round_ends = begins + 3 * length;
    [begins + length, begins + 2 * length]
        .into_iter()
        .find(|&ends| age < ends)
        .map(|ends| Turn {
            since: Duration::ZERO,
            ends,
            round_ends,
        })
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

/// Why a request that slept goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    Signalled,
    /// It has given way long enough.
    TurnEnded,
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
    /// Since when others are to give way.
    claimed: Option<Instant>,
    /// The last turn in which it gave way: a pass for the rest of the round.
    gave_way: Option<Turn<Instant>>,
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
            claimed: None,
            gave_way: None,
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
        if self.claimed.is_some() {
            return;
        }
        let since = self.waits();
        let now = Instant::now();
        let due = |limit| now.saturating_duration_since(since) >= limit;
        self.claimed = self.patience.limit().is_some_and(due).then_some(now);
    }

    /// When to get its claim, if it is still asleep then.
    fn ages_asleep_at(&mut self) -> Option<Instant> {
        let since = self.waits();
        let may = self.ageing == Ageing::Asleep && self.claimed.is_none() && prim::intact!("age");
        since.checked_add(self.patience.limit().filter(|_| may)?)
    }

    /// Its entry in the queue.
    fn request(&self, stage: Stage, behind: Claim) -> Request {
        Request {
            id: self.local.parker.id(),
            claim: self.claim,
            parker: &self.local.parker,
            claimed: self.claimed,
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

    /// [gate] Gives way, for a turn, to an earlier request that has waited too long. `held` lists what the thread holds
    /// in this lock.
    #[inline]
    pub(super) fn gate(
        &self,
        contender: &mut Contender,
        held: impl FnOnce() -> Vec<Claim>,
    ) -> Result<(), Refused> {
        if self.has_claims() {
            self.give_way(contender, held)
        } else {
            Ok(())
        }
    }

    #[cold] // Somebody has waited too long.
    fn give_way(
        &self,
        contender: &mut Contender,
        held: impl FnOnce() -> Vec<Claim>,
    ) -> Result<(), Refused> {
        let parker = &contender.local.parker;
        let id = parker.id();
        let is_unconcerned = {
            let queue = self.queue();
            queue
                .claim_ahead_of(id, &contender.claim, |_| false)
                .is_none()
        };
        if is_unconcerned {
            return Ok(());
        }
        // [holder-bypass] Those who have waited too long may be waiting for what this thread holds.
        let held = held();
        let waits_for_us = |claim: &Claim| {
            held.iter().any(|h| h.conflicts(claim)) && prim::intact!("holder-bypass")
        };
        loop {
            let turn = self.with_queue(|queue, wakeups| {
                let first = queue.claim_ahead_of(id, &contender.claim, waits_for_us);
                let now = Instant::now();
                let turn =
                    first.and_then(|first| Some((first, queue.turn(&contender.claim, now)?)));
                let has_pass = |turn: &Turn<Instant>| {
                    let last = contender.gave_way.as_ref();
                    last.is_some_and(|last| last.since == turn.since && now < last.round_ends)
                };
                let turn = turn.filter(|(_, turn)| prim::intact!("gate") && !has_pass(turn));
                let Some((first, turn)) = turn else {
                    return Ok(None);
                };
                if contender.wait == Wait::Never {
                    return Err(Refused::NoTime);
                }
                let ticket = parker.ticket();
                let request = contender.request(Stage::GivingWay(first.id), first.claim);
                queue.sleep(request, wakeups);
                Ok(Some((ticket, turn)))
            })?;
            let Some((ticket, turn)) = turn else {
                return Ok(());
            };
            // [turn] Not for ever.
            let ends = Some(turn.ends).filter(|_| prim::intact!("turn"));
            if self.park(contender, ticket, ends)? == Woken::TurnEnded {
                contender.gave_way = Some(turn);
                self.with_queue(|queue, _| queue.goes_on(id));
                return Ok(());
            }
        }
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
            Some(ticket) => self.park(contender, ticket, None).map(|_| ()),
            None => self.hurry(contender),
        }
    }

    /// Sleeps until signalled, until the turn ends that it gives way for, or as long as the request may wait.
    fn park(
        &self,
        contender: &mut Contender,
        ticket: Ticket,
        turn_ends: Option<Instant>,
    ) -> Result<Woken, Refused> {
        contender.standing = Standing::Queued;
        let parker = &contender.local.parker;
        let deadline = contender.wait.deadline();
        let limit = [turn_ends, deadline].into_iter().flatten().min();
        let ages_at = contender.ages_asleep_at();
        if let Some(due) = ages_at.filter(|&due| limit.is_none_or(|limit| due < limit)) {
            if parker.park(ticket, Some(due)) {
                return Ok(Woken::Signalled);
            }
            // Where it sleeps: whoever it is asleep behind by now, others are to go on waking it.
            let now = Instant::now();
            contender.claimed = Some(now);
            self.with_queue(|queue, _| queue.age(parker.id(), now));
        }
        if parker.park(ticket, limit) {
            Ok(Woken::Signalled)
        } else if limit == deadline {
            Err(Refused::NoTime)
        } else {
            Ok(Woken::TurnEnded)
        }
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
        if contender.claimed.is_some() {
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

#[cfg(test)]
mod tests {
    use super::{Duration, FIRST_TURN, turn_at};

    fn ms(count: u64) -> Duration {
        FIRST_TURN * u32::try_from(count).unwrap() / 10
    }

    /// Three turns of equal length, of which claims are in force in two, and each round twice as long as the one before.
    #[test]
    fn rounds_double() {
        for (ages, ends) in [
            (0..10, Some((10, 30))),
            (10..20, Some((20, 30))),
            (20..30, None),
            (30..50, Some((50, 90))),
            (50..70, Some((70, 90))),
            (70..90, None),
            (90..130, Some((130, 210))),
        ] {
            for age in ages {
                let turn = turn_at(ms(age)).map(|turn| (turn.ends, turn.round_ends));
                let expected = ends.map(|(turn, round)| (ms(turn), ms(round)));
                assert_eq!(turn, expected, "after {age} ms");
            }
        }
    }

    /// Nobody gives way for longer than the first claim is old, but for the first turn.
    #[test]
    fn turns_are_bounded_by_the_age_of_the_claim() {
        for exponent in 0..40 {
            let age = Duration::from_micros(1 << exponent);
            if let Some(turn) = turn_at(age) {
                assert!(turn.ends - age <= age.max(FIRST_TURN), "{age:?}");
            }
        }
    }
}
