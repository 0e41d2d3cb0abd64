//! The requests in a queue that are awake.

use super::entry::{Entry, RequestId};
use crate::range::inspect::Request;
use crate::range::mode::Mode;
use crate::range::order::QueueOrder;
use prim::clock;
use std::collections::{BTreeMap, BTreeSet};

/// The awake requests by the starts of their ranges. A dispatch compares a sleeper with those that may overlap it.
#[derive(Debug, Default)]
pub(super) struct Awake {
    by_start: BTreeSet<(u64, RequestId)>,
    exclusive: usize,
    /// How many of them threads are to go on with.
    threads: usize,
    /// When the last thread has gone on with one, or the first of them was woken.
    acted: u64,
    /// No range reaches further from its start.
    longest: u64,
}

fn place(id: RequestId, request: &Request) -> (u64, RequestId) {
    (request.span.start(), id)
}

impl Awake {
    pub(super) const fn new() -> Self {
        Self {
            by_start: BTreeSet::new(),
            exclusive: 0,
            threads: 0,
            acted: 0,
            longest: 0,
        }
    }

    pub(super) fn add(&mut self, order: &QueueOrder, entry: &Entry) {
        let request = &entry.request;
        if self.by_start.is_empty() {
            self.longest = 0;
        }
        self.longest = self.longest.max(order.length(request.span));
        self.exclusive += usize::from(request.mode == Mode::Exclusive);
        self.by_start.insert(place(entry.id, request));
        if !entry.sleeper.is_task() {
            if self.threads == 0 {
                self.acted = clock::nanoseconds();
            }
            self.threads += 1;
        }
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        let request = &entry.request;
        if self.by_start.remove(&place(entry.id, request)) {
            self.exclusive -= usize::from(request.mode == Mode::Exclusive);
            if !entry.sleeper.is_task() {
                self.threads -= 1;
                self.acted = clock::nanoseconds();
            }
        }
    }

    /// Since when no thread has gone on with one of them, in nanoseconds; `None`: none is to.
    pub(super) fn idle_since(&self) -> Option<u64> {
        (self.threads > 0).then_some(self.acted)
    }

    /// The first awake request that conflicts with a sleeping one, and is not of the same task.
    pub(super) fn conflicting_with(
        &self,
        order: &QueueOrder,
        entries: &BTreeMap<RequestId, Entry>,
        asleep: &Entry,
    ) -> Option<RequestId> {
        if asleep.request.mode == Mode::Shared && self.exclusive == 0 {
            return None;
        }
        let [first, last] = order.starts_near(asleep.request.span, self.longest);
        let near = self.by_start.range((first, 0)..=(last, RequestId::MAX));
        let conflicts = |&(_, id): &(u64, RequestId)| {
            let other = &entries[&id];
            let is_other = !other.sleeper.is_woken_with(asleep.sleeper);
            (is_other && order.conflict(&other.request, &asleep.request)).then_some(id)
        };
        near.filter_map(conflicts).min()
    }
}
