//! Lines: requests in a queue that sleep behind the same, and want the same.
//!
//! What is in the way of one of them is in the way of all. So a line moves as a whole, by its head, which is the
//! request that came first. Of ten thousand that want one range two are woken, and the rest is behind one of them at
//! once. Only what an owner holds is not in the way of a piece of it: so a piece is in a line of its own.

use super::entry::{Entry, HolderId, RequestId};
use crate::range::inspect::Request;
use crate::range::mode::Mode;
use crate::range::order::QueueOrder;
use std::collections::{BTreeMap, VecDeque};

/// What requests sleep behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Behind {
    Holder(HolderId),
    Request(RequestId),
}

/// What the requests in a line have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wish {
    behind: Behind,
    start: u64,
    last: u64,
    is_shared: bool,
    /// A request that is in a line of its own, or 0.
    alone: RequestId,
}

impl Wish {
    fn of(order: &QueueOrder, behind: Behind, entry: &Entry) -> Self {
        // What its owner shares may matter to others, and what it holds is not in the way of a piece.
        // Nor may it join one that has named another range by the same words, and is gone.
        let is_alone = entry.shares.is_some() || entry.is_piece || !order.is_by_position();
        Self {
            behind,
            start: entry.request.span.start(),
            last: entry.request.span.last(),
            is_shared: entry.request.mode == Mode::Shared,
            alone: if is_alone { entry.id } else { 0 },
        }
    }

    /// The first and the last wish behind that.
    fn all_behind(behind: Behind) -> [Self; 2] {
        [(0, false), (u64::MAX, true)].map(|(end, is_last)| Self {
            behind,
            start: end,
            last: end,
            is_shared: is_last,
            alone: if is_last { RequestId::MAX } else { 0 },
        })
    }
}

/// Names a line. None is used again.
pub(super) type LineId = u64;

#[derive(Debug)]
struct Line {
    wish: Wish,
    /// What is in the way, as tools show it.
    blocker: Request,
    /// In order of their names, at least one.
    members: VecDeque<RequestId>,
}

/// The lines of a queue.
#[derive(Debug)]
pub(super) struct Lines {
    named: LineId,
    by_id: BTreeMap<LineId, Line>,
    by_wish: BTreeMap<Wish, LineId>,
}

impl Lines {
    pub(super) const fn new() -> Self {
        Self {
            named: 0,
            by_id: BTreeMap::new(),
            by_wish: BTreeMap::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The lines behind that, those with the first heads first.
    pub(super) fn behind(&self, behind: Behind) -> Vec<LineId> {
        let [first, last] = Wish::all_behind(behind);
        let mut lines: Vec<_> = self
            .by_wish
            .range(first..=last)
            .map(|(_, &line)| line)
            .collect();
        lines.sort_unstable_by_key(|&line| self.head(line));
        lines
    }

    /// The line of those who want what the entry wants, behind that.
    pub(super) fn same(&self, order: &QueueOrder, behind: Behind, entry: &Entry) -> Option<LineId> {
        let wish = Wish {
            alone: 0,
            ..Wish::of(order, behind, entry)
        };
        self.by_wish.get(&wish).copied()
    }

    /// The first in a line, if the line has not ended.
    pub(super) fn head(&self, line: LineId) -> Option<RequestId> {
        self.by_id.get(&line)?.members.front().copied()
    }

    pub(super) fn members(&self, line: LineId) -> impl Iterator<Item = RequestId> {
        let line = self.by_id.get(&line);
        line.into_iter()
            .flat_map(|line| line.members.iter().copied())
    }

    pub(super) fn is_behind(&self, line: LineId) -> Behind {
        self.by_id[&line].wish.behind
    }

    pub(super) fn blocker(&self, line: LineId) -> Request {
        self.by_id[&line].blocker
    }

    /// Adds a request to the line where it belongs.
    pub(super) fn join(&mut self, order: &QueueOrder, behind: Behind, entry: &Entry) -> LineId {
        let wish = Wish::of(order, behind, entry);
        let line = *self.by_wish.entry(wish).or_insert_with(|| {
            self.named += 1;
            let line = Line {
                wish,
                blocker: entry.behind,
                members: VecDeque::new(),
            };
            self.by_id.insert(self.named, line);
            self.named
        });
        insert(&mut self.line(line).members, entry.id);
        line
    }

    /// Takes a request out of its line.
    pub(super) fn leave(&mut self, line: LineId, id: RequestId) {
        let members = &mut self.line(line).members;
        if let Ok(at) = members.binary_search(&id) {
            members.remove(at);
        }
        if members.is_empty() {
            let ended = self
                .by_id
                .remove(&line)
                .expect("a line that is named exists");
            self.by_wish.remove(&ended.wish);
        }
    }

    /// Puts a line behind something else. If there is one already that wants the same, the shorter becomes a part of
    /// the longer: then the result is who changes lines, and where to.
    pub(super) fn put_behind(
        &mut self,
        line: LineId,
        behind: Behind,
        blocker: Request,
    ) -> Option<(VecDeque<RequestId>, LineId)> {
        let mut moved = self
            .by_id
            .remove(&line)
            .expect("a line that is named exists");
        self.by_wish.remove(&moved.wish);
        moved.wish.behind = behind;
        moved.blocker = blocker;
        let wish = moved.wish;
        let Some(&other) = self.by_wish.get(&wish) else {
            self.by_wish.insert(wish, line);
            self.by_id.insert(line, moved);
            return None;
        };
        let there = self.line(other);
        if there.members.len() >= moved.members.len() {
            moved
                .members
                .iter()
                .for_each(|&id| insert(&mut there.members, id));
            return Some((moved.members, other));
        }
        let there = self.by_id.remove(&other).expect("just seen");
        there
            .members
            .iter()
            .for_each(|&id| insert(&mut moved.members, id));
        self.by_wish.insert(wish, line);
        self.by_id.insert(line, moved);
        Some((there.members, line))
    }

    fn line(&mut self, line: LineId) -> &mut Line {
        self.by_id
            .get_mut(&line)
            .expect("a line that is named exists")
    }
}

/// Inserts a name in its place, which is the end as a rule.
fn insert(members: &mut VecDeque<RequestId>, id: RequestId) {
    let at = match members.back() {
        Some(&last) if last > id => members.partition_point(|&member| member < id),
        _ => members.len(),
    };
    members.insert(at, id);
}
