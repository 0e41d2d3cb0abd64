//! The requests in a queue that give way, and who may follow them.

use super::entry::{Entry, RequestId};
use super::places::Places;
use super::reservation::Turn;
use super::turns::Turns;
use crate::range::order::QueueOrder;
use prim::clock::Instant;

/// Those who give way. A dispatch compares each sleeper with what they differ in, which is little.
pub(super) struct Leaders {
    /// To which reservations they give way, and in which turns.
    ways: Vec<(RequestId, Turn<Instant>)>,
    turns: Turns,
    now: Instant,
}

impl Leaders {
    /// `None`: nobody gives way.
    pub(super) fn new(places: &Places) -> Option<Self> {
        let ways: Vec<_> = places.leaders().collect();
        if ways.is_empty() {
            return None;
        }
        let (turns, now) = (Turns::new(&places.order, places.reserved()), Instant::now());
        Some(Self { ways, turns, now })
    }

    /// Whether one of them gives way to that reservation, and goes on no later than the sleeper would that gives way to
    /// it, too. (A leader's range may connect the reservation with older ones, whose turns are longer.)
    pub(super) fn may_be_followed_by(
        &self,
        order: &QueueOrder,
        asleep: &Entry,
        first: RequestId,
    ) -> bool {
        let Some(own) = self.turns.under_way(order, &asleep.request, self.now) else {
            return false;
        };
        let has_pass = asleep
            .gave_way
            .is_some_and(|last| last.is_pass_in(&own, self.now));
        let leads = |&(to, turn)| to == first && own.outlasts(&turn);
        !has_pass && self.ways.iter().any(leads)
    }
}
