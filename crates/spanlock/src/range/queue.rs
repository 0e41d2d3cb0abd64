//! The requests that sleep in a range lock, and those among them that have been woken and are on their way.
//!
//! A request that finds its range taken goes to sleep *behind the holder* in its way. When a holder leaves, the
//! requests behind it are dispatched, first come first: woken, unless they conflict with one that was woken before
//! them and has not arrived yet; those sleep on *behind that request* and are not woken in vain. When it arrives it
//! is a holder, and they sleep behind it. If it goes back to sleep or gives up, they are dispatched again.
//!
//! A request that has waited too long *claims* its range: those that come later and conflict with it give way, for a
//! turn at a time (`waiting.rs`). So does one that later requests overtake while it sleeps.
//!
//! ```text
//!                sleep                    holder_left, and nobody awake is in the way
//!   (newcomer) --------> behind a holder ---------------------------------------------> awake
//!       |                     |     ^                                                    |  |
//!       |          holder_left,     | the other is granted                      granted  |  | sleep
//!       |     one awake in the way  |                                                    v  v
//!       |                     v     |                                              (holder) behind a holder
//!       |                 behind a request ---------------------------> awake
//!       |                                    the other sleeps or gives up
//!       |  gate
//!       +--------------> giving way -----------------------------------> awake
//!                                            the other gives up, or the turn ends; if the other
//!                                            is granted: behind a holder
//! ```
//!
//! # Invariants
//!
//! 1. A request sleeps behind one that is awake, or gives way for a turn to an earlier one with a claim. So no two sleep
//!    behind each other for ever, however long the chain.
//! 2. A request behind a holder was put there while the holder was to call [`Queue::holder_left`] still.
//! 3. An awake request's thread calls one of [`sleep`](Queue::sleep), [`arrived`](Queue::arrived) and
//!    [`gave_up`](Queue::gave_up) after finitely many steps of its own.
//!
//! The queue is guarded by its lock's mutex; nothing here waits.

use super::inspect::{Claim, Waiter};
use super::raw::Mode;
use super::waiting::{Turn, turn_at};
use crate::wait::{Parker, Wakeups};
use prim::clock::Instant;

/// Names a holder: the address of its node, or of the segment's word.
pub(super) type HolderId = usize;

/// Names a request: each thread has one at a time.
pub(super) type RequestId = usize;

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Woken, on its way.
    Awake,
    /// Asleep until that holder leaves.
    BehindHolder(HolderId),
    /// Asleep until that request, which is awake, has arrived and left, or sleeps again.
    BehindRequest(RequestId),
    /// Asleep until that request, which has a claim, has arrived and left, or for a turn.
    GivingWay(RequestId),
}

impl Stage {
    /// Whether it is asleep because of that request.
    fn is_behind(self, id: RequestId) -> bool {
        self == Self::BehindRequest(id) || self == Self::GivingWay(id)
    }
}

/// A request that did not get its range at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) claim: Claim,
    pub(super) parker: &'static Parker,
    /// Since when others give way to it.
    pub(super) claimed: Option<Instant>,
    pub(super) stage: Stage,
    /// Who it sleeps behind.
    pub(super) behind: Claim,
}

/// Whether requests can have claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claims {
    Granted,
    Unknown,
}

/// The sleeping and the awake requests of one lock, first come first.
#[derive(Debug)]
pub(super) struct Queue {
    requests: Vec<Request>,
    /// How many of them have a claim.
    claims: u32,
    policy: Claims,
}

impl Queue {
    pub(super) const fn new(policy: Claims) -> Self {
        Self {
            requests: Vec::new(),
            claims: 0,
            policy,
        }
    }

    /// How many requests have a claim.
    pub(super) fn claims(&self) -> u32 {
        self.claims
    }

    /// The first request whose claim stands in the way of the one with that id. All that are entered are ahead of one
    /// that is not. A claim that waits for that one's thread is not in its way, nor are those behind it.
    pub(super) fn claim_ahead_of(
        &self,
        id: RequestId,
        claim: &Claim,
        waits_for_it: impl Fn(&Claim) -> bool,
    ) -> Option<&Request> {
        self.requests
            .iter()
            .take_while(|r| r.id != id)
            .filter(|r| r.claimed.is_some())
            .take_while(|r| !waits_for_it(&r.claim))
            .find(|r| r.claim.conflicts(claim))
    }

    /// The turn, if claims on the request's range, or connected with those, are in force now.
    pub(super) fn turn(&self, request: &Claim, now: Instant) -> Option<Turn<Instant>> {
        let claims = || self.requests.iter().filter(|r| r.claimed.is_some());
        let mut connected = request.span;
        loop {
            let hull = claims()
                .filter(|r| r.claim.span.overlaps(connected))
                .filter_map(|r| r.claim.span.joined(connected))
                .fold(connected, |hull, joined| {
                    hull.joined(joined).unwrap_or(hull)
                });
            if hull == connected {
                break;
            }
            connected = hull;
        }
        let since = claims()
            .find(|r| r.claim.span.overlaps(connected))?
            .claimed?;
        let turn = turn_at(now.saturating_duration_since(since))?;
        Some(Turn {
            since,
            ends: since.checked_add(turn.ends)?,
            round_ends: since.checked_add(turn.round_ends)?,
        })
    }

    /// Enters a request, or renews the one with its id, which then is awake no more.
    pub(super) fn sleep(&mut self, request: Request, wakeups: &mut Wakeups) {
        self.enter(request);
        if prim::intact!("sleep-dispatch") {
            self.dispatch(wakeups, |r| r.stage == Stage::BehindRequest(request.id));
        }
    }

    /// Has newcomers give way to a request that is awake, entering it if need be.
    pub(super) fn claim(&mut self, request: Request) {
        self.enter(request);
    }

    /// Has newcomers give way to a request that is entered, asleep or awake.
    pub(super) fn age(&mut self, id: RequestId, now: Instant) {
        let at = self.position(id).expect("a request that sleeps is entered");
        self.grant_claim(at, now);
    }

    /// A request that slept goes on by itself.
    pub(super) fn goes_on(&mut self, id: RequestId) {
        let at = self.position(id).expect("a request that sleeps is entered");
        self.requests[at].stage = Stage::Awake;
    }

    /// Enters a request at the end, or renews it in its place. A claim once granted stays.
    fn enter(&mut self, request: Request) {
        let at = self.position(request.id).unwrap_or_else(|| {
            self.requests.push(Request {
                claimed: None,
                ..request
            });
            self.requests.len() - 1
        });
        let claimed = self.requests[at].claimed;
        self.requests[at] = Request { claimed, ..request };
        if let Some(now) = request.claimed {
            self.grant_claim(at, now);
        }
    }

    fn grant_claim(&mut self, at: usize, now: Instant) {
        if self.requests[at].claimed.is_none() {
            self.requests[at].claimed = Some(now);
            self.claims += 1;
        }
    }

    /// Removes a request that got its range. Whether others were asleep behind it: they now are behind the holder that
    /// `holder_of` chooses for each.
    pub(super) fn arrived(
        &mut self,
        id: RequestId,
        mut holder_of: impl FnMut(&Claim) -> HolderId,
    ) -> bool {
        self.remove(id);
        let mut any = false;
        for request in &mut self.requests {
            if request.stage.is_behind(id) {
                request.stage = Stage::BehindHolder(holder_of(&request.claim));
                any = true;
            }
        }
        any
    }

    /// Removes a request that no longer wants its range.
    pub(super) fn gave_up(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        self.remove(id);
        if prim::intact!("give-up-dispatch") {
            self.dispatch(wakeups, |r| r.stage.is_behind(id));
        }
    }

    /// Dispatches the requests behind a holder that left.
    pub(super) fn holder_left(&mut self, holder: HolderId, wakeups: &mut Wakeups) {
        self.dispatch(wakeups, |r| r.stage == Stage::BehindHolder(holder));
    }

    /// Dispatches the shared requests behind a holder that is shared now.
    pub(super) fn holder_downgraded(&mut self, holder: HolderId, wakeups: &mut Wakeups) {
        self.dispatch(wakeups, |r| {
            r.stage == Stage::BehindHolder(holder) && r.claim.mode == Mode::Shared
        });
    }

    /// The sleeping requests.
    pub(super) fn waiters(&self) -> Vec<Waiter> {
        self.requests
            .iter()
            .filter(|r| r.stage != Stage::Awake)
            .map(|r| Waiter {
                request: r.claim,
                behind: r.behind,
            })
            .collect()
    }

    fn position(&self, id: RequestId) -> Option<usize> {
        self.requests.iter().position(|r| r.id == id)
    }

    fn remove(&mut self, id: RequestId) {
        if let Some(at) = self.position(id) {
            let request = self.requests.remove(at);
            self.claims -= u32::from(request.claimed.is_some());
        }
    }

    /// Wakes those of `whom`, but for those that would meet one that was woken before: they go behind that one. Who is
    /// to give way to a claim finds that out itself, at the gate.
    fn dispatch(&mut self, wakeups: &mut Wakeups, whom: impl Fn(&Request) -> bool) {
        // So that many sleepers do not look at each other.
        let mut awake = Awake::new(&self.requests);
        for at in 0..self.requests.len() {
            let request = self.requests[at];
            if !whom(&request) {
                continue;
            }
            match awake.in_the_way(&self.requests, &request) {
                Some(other) => {
                    self.requests[at].stage = Stage::BehindRequest(self.requests[other].id);
                    self.requests[at].behind = self.requests[other].claim;
                    if other > at && self.policy == Claims::Granted {
                        // Overtaken while it slept, and so unable to see that its claim is due: once is enough.
                        self.grant_claim(at, Instant::now());
                    }
                }
                None => {
                    self.requests[at].stage = Stage::Awake;
                    awake.add(&self.requests, at);
                    wakeups.signal(request.parker);
                }
            }
        }
    }
}

/// Places in the queue of the requests that are awake.
struct Awake {
    places: Vec<usize>,
    any_exclusive: bool,
}

impl Awake {
    fn new(requests: &[Request]) -> Self {
        let mut awake = Self {
            places: Vec::new(),
            any_exclusive: false,
        };
        for (at, request) in requests.iter().enumerate() {
            if request.stage == Stage::Awake {
                awake.add(requests, at);
            }
        }
        awake
    }

    fn add(&mut self, requests: &[Request], at: usize) {
        self.places.push(at);
        self.any_exclusive |= requests[at].claim.mode == Mode::Exclusive;
    }

    /// The place of one that conflicts with a request that is asleep.
    fn in_the_way(&self, requests: &[Request], asleep: &Request) -> Option<usize> {
        if asleep.claim.mode == Mode::Shared && !self.any_exclusive {
            return None;
        }
        let mut places = self.places.iter().copied();
        places.find(|&other| requests[other].claim.conflicts(&asleep.claim))
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Claims, HolderId, Instant, Mode, Queue, Request, RequestId, Stage};
    use crate::range::span::Span;
    use crate::wait::Wakeups;
    use std::ops::Range;

    fn asleep(id: RequestId, range: Range<u64>, behind: HolderId) -> Request {
        let claim = Claim::new(Span::of(range).unwrap(), Mode::Exclusive, 1);
        Request {
            id,
            claim,
            parker: Box::leak(Box::default()),
            claimed: None,
            stage: Stage::BehindHolder(behind),
            behind: claim,
        }
    }

    /// A wide request came first; requests for either half of it come and go, so that one is awake whenever the wide
    /// one might be woken. It must not sleep through that for ever.
    #[test]
    fn a_first_comer_is_not_put_behind_later_ones_for_ever() {
        let mut queue = Queue::new(Claims::Granted);
        let wide = 1;
        let mut holders = [1000, 2000];
        queue.sleep(asleep(wide, 0..2, holders[0]), &mut Wakeups::default());
        queue.sleep(asleep(2, 1..2, holders[1]), &mut Wakeups::default());
        let mut at = 1;
        for next in 3..100 {
            let other = 1 - at;
            let narrow = other as u64..other as u64 + 1;
            let mut wakeups = Wakeups::default();
            let newcomer = asleep(next, narrow, holders[other]);
            queue.sleep(newcomer, &mut wakeups);
            queue.holder_left(holders[at], &mut wakeups);
            queue.holder_left(holders[other], &mut wakeups);
            // Woken, it passes the gate.
            let first = queue.claim_ahead_of(next, &newcomer.claim, |_| false);
            if let Some(stage) = first.map(|first| Stage::GivingWay(first.id)) {
                queue.sleep(Request { stage, ..newcomer }, &mut wakeups);
            }
            if queue.requests[0].stage == Stage::Awake {
                return;
            }
            assert_eq!(queue.requests[0].id, wide);
            holders[at] += 1;
            queue.arrived(next - 1, |_| holders[at]);
            at = other;
        }
        panic!("the wide request was never woken");
    }

    #[test]
    fn claims_are_counted() {
        let mut queue = Queue::new(Claims::Granted);
        let mut wakeups = Wakeups::default();
        let claimed = Request {
            claimed: Some(Instant::now()),
            ..asleep(1, 0..1, 7)
        };
        queue.sleep(claimed, &mut wakeups);
        queue.sleep(asleep(1, 0..1, 8), &mut wakeups);
        assert_eq!(
            queue.claims(),
            1,
            "a claim stays when its request sleeps again"
        );
        queue.sleep(asleep(2, 0..1, 8), &mut wakeups);
        queue.claim(claimed);
        assert_eq!(queue.claims(), 1);
        assert!(!queue.arrived(1, |_| 9));
        assert_eq!(queue.claims(), 0);
    }
}
