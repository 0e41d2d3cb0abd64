//! Which reservations in a queue share their turns.

use super::entry::{Entry, RequestId};
use super::reservation::{Turn, turn_at};
use crate::range::inspect::Request;
use crate::range::order::QueueOrder;
use crate::range::span::Span;
use prim::clock::Instant;

/// Reservations whose ranges are connected.
struct Group {
    /// All their ranges.
    hull: Span,
    /// The name of the first.
    first: RequestId,
    /// When that one was granted.
    since: Instant,
}

impl Group {
    /// Takes another one in. `hull` is the range of both.
    fn join(&mut self, other: &Self, hull: Span) {
        (self.first, self.since) = (self.first, self.since).min((other.first, other.since));
        self.hull = hull;
    }
}

/// The reservations in a queue, by groups that share their turns.
pub(super) struct Turns {
    groups: Vec<Group>,
}

impl Turns {
    /// Of these requests, those that have reservations.
    pub(super) fn new<'a>(order: &QueueOrder, entries: impl Iterator<Item = &'a Entry>) -> Self {
        let alone = |entry: &Entry| {
            let (hull, first) = (entry.request.span, entry.id);
            entry.reserved.map(|since| Group { hull, first, since })
        };
        let mut groups: Vec<Group> = entries.filter_map(alone).collect();
        if !order.is_by_position() {
            return Self::join_each(order, groups);
        }
        groups.sort_unstable_by_key(|group| (group.hull.start(), group.first));
        groups.dedup_by(|next, group| {
            let joined = group.hull.joined(next.hull);
            let joined = joined.filter(|_| group.hull.overlaps(next.hull));
            if let Some(hull) = joined {
                group.join(next, hull);
            }
            joined.is_some()
        });
        Self { groups }
    }

    /// The same where ranges cannot be sorted: each is compared with each group.
    fn join_each(order: &QueueOrder, alone: Vec<Group>) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for mut next in alone {
            groups.retain(|group| {
                let is_connected = order.overlap(group.hull, next.hull);
                if is_connected {
                    let hull = order.hull(group.hull, next.hull);
                    next.join(group, hull);
                }
                !is_connected
            });
            groups.push(next);
        }
        Self { groups }
    }

    /// The turn that is under way for the reservations on the request's range and all that are connected with those by
    /// the range; `None` while they are suspended.
    pub(super) fn under_way(
        &self,
        order: &QueueOrder,
        request: &Request,
        now: Instant,
    ) -> Option<Turn<Instant>> {
        let connected = self
            .groups
            .iter()
            .filter(|group| order.overlap(group.hull, request.span));
        let since = connected.min_by_key(|group| group.first)?.since;
        let turn = turn_at(now.saturating_duration_since(since))?;
        Some(Turn {
            since,
            ends: since.checked_add(turn.ends)?,
            round_ends: since.checked_add(turn.round_ends)?,
        })
    }
}
