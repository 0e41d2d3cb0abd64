//! Which reservations in a queue share their turns.

use super::entry::Entry;
use super::reservation::{Turn, turn_at};
use crate::range::inspect::Request;
use crate::range::span::Span;
use prim::clock::Instant;

/// Reservations whose ranges are connected.
struct Group {
    /// All their ranges.
    hull: Span,
    /// The position in the queue of the first.
    first: usize,
    /// When that one was granted.
    since: Instant,
}

/// The reservations in a queue, by groups that share their turns.
pub(super) struct Turns {
    groups: Vec<Group>,
}

impl Turns {
    pub(super) fn new(entries: &[Entry]) -> Self {
        let alone = |(first, entry): (usize, &Entry)| {
            let hull = entry.request.span;
            entry.reserved.map(|since| Group { hull, first, since })
        };
        let mut groups: Vec<Group> = entries.iter().enumerate().filter_map(alone).collect();
        groups.sort_unstable_by_key(|group| (group.hull.start(), group.first));
        groups.dedup_by(|next, group| {
            let joined = group.hull.joined(next.hull);
            let joined = joined.filter(|_| group.hull.overlaps(next.hull));
            if let Some(hull) = joined {
                let (first, since) = (group.first, group.since).min((next.first, next.since));
                *group = Group { hull, first, since };
            }
            joined.is_some()
        });
        Self { groups }
    }

    /// The turn that is under way for the reservations on the request's range and all that are connected with those by
    /// the range; `None` while they are suspended.
    pub(super) fn under_way(&self, request: &Request, now: Instant) -> Option<Turn<Instant>> {
        let connected = self
            .groups
            .iter()
            .filter(|group| group.hull.overlaps(request.span));
        let since = connected.min_by_key(|group| group.first)?.since;
        let turn = turn_at(now.saturating_duration_since(since))?;
        Some(Turn {
            since,
            ends: since.checked_add(turn.ends)?,
            round_ends: since.checked_add(turn.round_ends)?,
        })
    }
}
