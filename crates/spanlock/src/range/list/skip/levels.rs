//! The index of a skip list: sparser lists above the list.
//!
//! ```text
//!   level 1   head ------------------------------> [40] ------------------------> null
//!   level 0   head ---------> [10] --------------> [40] ---------> [70] --------> null
//!   list      head --> [0] -> [10] -> [20] -> [30] [40] -> [50] -> [70] -> [80] -> null
//!
//!   A request for 55 descends from the head of level 1: [40] starts before 55, go there; the end, go down. In level 0,
//!   [70] starts after 55: go down. The start hint is [40], and the walk in the list goes from [40] over [50] to its
//!   place.
//! ```
//!
//! The index only says where a walk may begin. The list decides which request holds what, as if there were no index. So
//! a node may be missing from a level at any time, and a search may stop early: the walk then takes more steps, and
//! nothing else changes.

use super::index::{Index, StartHints};
use super::tower::{AtomicTowerLink, MAX_LEVELS, TallNode, TowerLink};
use crate::range::inspect::Request;
use crate::range::list::node::Node;
use crate::range::mode::Mode;
use crate::range::order::Positions;
use crate::range::span::Span;
use crate::range::thread::{Pin, ThreadRecord};
use prim::atomic::{AtomicU32, AtomicU64, Ordering};
use std::fmt;
use std::ptr::NonNull;

/// One node in `2^DIGITS` of a level is in the next level, too.
const DIGITS: u32 = 2;

/// Where nodes are linked in each level.
pub(in crate::range) struct Levels {
    heads: [AtomicTowerLink; MAX_LEVELS],
    /// How many levels nodes may be in.
    limit: u16,
    /// A node enters the levels if the walk to it passed at least this many ranges, or its thread holds as many.
    /// `None`: the usual number.
    enter_after: Option<u8>,
    /// How many levels have ever been in use. A hint: a search that begins lower takes longer.
    used: AtomicU32,
}

/// The levels, and what a writer has to know to begin at a node that it finds there.
pub struct SkipIndex {
    levels: Levels,
    /// The length, less one, of the longest range that was ever to be held shared.
    max_shared_len: AtomicU64,
}

/// Where a node belongs in a level: at that link, which was last seen so.
#[derive(Clone, Copy)]
struct InsertionPoint<'a> {
    link: &'a AtomicTowerLink,
    seen: TowerLink,
}

/// The search stands on a node that is gone [tower-cut-off].
struct CutOff;

impl Levels {
    pub(in crate::range::list) const MAX: u32 = MAX_LEVELS as u32;

    /// Enough for some thousands of ranges held at a time.
    pub(in crate::range) const DEFAULT: u32 = prim::sized(6, MAX_LEVELS) as u32;

    prim::const_fn! {
        #[expect(clippy::cast_possible_truncation, reason = "the builder checks that it is at most `MAX`")]
        pub(in crate::range) const fn new(limit: u32, enter_after: Option<u8>) -> Self {
            Self {
                heads: prim::array![AtomicTowerLink::new(); MAX_LEVELS],
                limit: limit as u16,
                enter_after,
                used: AtomicU32::new(0),
            }
        }
    }

    /// Draws by lot in how many levels a node may be.
    pub(in crate::range) fn draw(&self, record: &ThreadRecord) -> u32 {
        prim::wins(record.random(), DIGITS).min(self.limit.into())
    }

    /// After how many ranges a node enters the levels. A node that a short walk finds is not worth the upkeep.
    fn enter_after(&self) -> usize {
        // Where nodes are scarce, on a model checker and in some simulated runs, towers are to be common.
        self.enter_after
            .map_or_else(|| prim::stock(4, 0), usize::from)
    }

    /// Goes along a level, past the nodes that `is_before` accepts, and removes the nodes that are gone from its way.
    /// Begins at the link `from`, of a node or the level's head. Returns the last node passed, if any, and the link at
    /// which the search leaves the level.
    fn go_along<'a>(
        pin: &'a Pin,
        level: usize,
        from: &'a AtomicTowerLink,
        is_before: impl Fn(&Node) -> bool,
    ) -> Result<(Option<&'a TallNode>, InsertionPoint<'a>), CutOff> {
        let mut on: Option<&'a TallNode> = None;
        let mut at = from;
        let mut seen = at.load();
        loop {
            // [tower-cut-off] The successor may have left the level long ago.
            if seen.is_gone() && prim::intact!("tower-cut-off") {
                return Err(CutOff);
            }
            let Some(next) = seen.node() else { break };
            // SAFETY: the link was not gone when it was loaded, so its node was in the level, and so was the next node.
            // A node in a level is not retired, and is not reused before the pin is dropped [grace].
            let node: &'a TallNode = unsafe { next.as_ref() };
            let link = node.link(level).load();
            if link.is_gone() {
                match at.replace(seen, link.unmarked()) {
                    Ok(()) => {
                        pin.unlinked(next.cast());
                        seen = link.unmarked();
                    }
                    Err(found) => seen = found,
                }
            } else if is_before(node.base()) {
                on = Some(node);
                at = node.link(level);
                seen = link;
            } else {
                break;
            }
        }
        Ok((on, InsertionPoint { link: at, seen }))
    }

    /// Goes from the highest level in use to the lowest, past the nodes that `is_before` accepts. Passes to `leaves`
    /// where it leaves each level. Returns the last node passed.
    fn descend<'a>(
        &'a self,
        pin: &'a Pin,
        is_before: impl Fn(&Node) -> bool,
        mut leaves: impl FnMut(usize, InsertionPoint<'a>),
    ) -> Option<&'a TallNode> {
        'from_the_top: loop {
            let mut on: Option<&'a TallNode> = None;
            for level in (0..self.used()).rev() {
                let from = on.map_or(&self.heads[level], |node| node.link(level));
                let Ok((passed, point)) = Self::go_along(pin, level, from, &is_before) else {
                    // [tower-gone] The next search does not pass this node again, because it sees the marks in the
                    // links above, too.
                    prim::edge::starts_over();
                    continue 'from_the_top;
                };
                on = passed.or(on);
                leaves(level, point);
            }
            return on;
        }
    }

    /// How many levels are in use, as far as this thread knows.
    pub(in crate::range) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed) as usize
    }

    /// The last node that a search passes which goes past those that `is_before` accepts.
    pub(in crate::range) fn last_before<'a>(
        &'a self,
        pin: &'a Pin,
        is_before: impl Fn(&Node) -> bool,
    ) -> Option<&'a Node> {
        Some(self.descend(pin, is_before, |_, _| ())?.base())
    }

    /// Where a node belongs in each level, behind those that `is_before` accepts.
    fn insertion_points<'a>(
        &'a self,
        pin: &'a Pin,
        is_before: impl Fn(&Node) -> bool,
    ) -> [InsertionPoint<'a>; MAX_LEVELS] {
        let mut points = std::array::from_fn(|level| InsertionPoint {
            link: &self.heads[level],
            seen: TowerLink::NULL,
        });
        self.descend(pin, is_before, |level, point| points[level] = point);
        points
    }

    /// Enters a node that this thread holds, in each level behind those that `is_before` accepts.
    pub(in crate::range) fn enter(
        &self,
        pin: &Pin,
        node: NonNull<Node>,
        passed: usize,
        is_before: impl Fn(&Node) -> bool,
    ) {
        // SAFETY: this thread holds the node, so it is not reused.
        let Some(node) = (unsafe { TallNode::of(node) }).filter(|_| passed >= self.enter_after())
        else {
            return;
        };
        // SAFETY: the same node, which is a tall one.
        let tall = unsafe { node.as_ref() };
        // SAFETY: this thread's request, which holds its range.
        let levels = unsafe { tall.plan_links() };
        if levels == 0 {
            return;
        }
        if self.used.load(Ordering::Relaxed) < levels {
            self.used.fetch_max(levels, Ordering::Relaxed);
        }
        let levels = levels as usize;
        let mut points = self.insertion_points(pin, &is_before);
        tall.prepare_links(0, &points.map(|point| point.seen)[..levels]);
        let mut level = 0;
        // From the lowest level up: a search that finds the node in one level finds it in all levels below.
        while level < levels {
            let InsertionPoint { link, seen } = points[level];
            match link.replace(seen, TowerLink::to(node)) {
                Ok(()) => level += 1,
                Err(_) => {
                    points = self.insertion_points(pin, &is_before);
                    // [tower-prepare] The planned successor may have left the level.
                    if prim::intact!("tower-prepare") {
                        tall.prepare_links(level, &points.map(|point| point.seen)[level..levels]);
                    }
                }
            }
        }
    }

    pub(in crate::range) fn sweep(&self, pin: &Pin) {
        for level in (0..self.used()).rev() {
            // If it is cut off, other threads are removing nodes there, and the next sweep removes the rest.
            let _ = Self::go_along(pin, level, &self.heads[level], |_| true);
        }
    }

    pub(in crate::range) fn clear(&self, pin: &Pin) {
        for (level, head) in self.heads.iter().enumerate() {
            let mut next = head.load().node();
            while let Some(node) = next {
                // SAFETY: linked in the level, so not retired yet.
                next = unsafe { node.as_ref() }.link(level).load().node();
                pin.unlinked(node.cast());
            }
        }
    }
}

impl SkipIndex {
    pub(in crate::range::list) const MAX: u32 = Levels::MAX;
    pub(in crate::range::list) const DEFAULT: u32 = Levels::DEFAULT;

    prim::const_fn! {
        pub(in crate::range::list) const fn new(limit: u32, enter_after: Option<u8>) -> Self {
            Self {
                levels: Levels::new(limit, enter_after),
                max_shared_len: AtomicU64::new(0),
            }
        }
    }

    /// An index for any number of ranges.
    pub(in crate::range) fn of_many() -> Self {
        Self::new(Self::MAX, None)
    }
}

impl Index for SkipIndex {}

impl StartHints for SkipIndex {
    type Order = Positions;
    type Noted = ();

    fn order(&self) -> &Positions {
        &Positions
    }

    fn take_node(&self, record: &ThreadRecord) -> NonNull<Node> {
        match self.levels.draw(record) {
            0 => record.take_node(),
            levels => record.take_tall_node(levels),
        }
    }

    fn start_hint<'a>(&'a self, pin: &'a Pin, request: &Request) -> Option<&'a Node> {
        let longest = || match request.mode {
            Mode::Shared => 0,
            Mode::Exclusive => self.max_shared_len.load(Ordering::Relaxed),
        };
        let mut length = longest();
        loop {
            // [max-shared-len] No shared range that starts before `from` extends into the request. An exclusive range
            // ends before any later node starts (invariant 2), so it is enough that the hint itself does not conflict.
            let from = request.span.start().saturating_sub(length);
            let is_before = |node: &Node| {
                node.span().start() < from && !node.request(node.load()).conflicts(request)
            };
            let hint = self.levels.last_before(pin, is_before)?;
            // [shared-len-again] Relaxed: the hint was found by an Acquire, and comes after what it overlaps.
            let now = longest();
            if now == length || !prim::intact!("shared-len-again") {
                return Some(hint);
            }
            length = now;
        }
    }

    fn enter(&self, pin: &Pin, node: NonNull<Node>, passed: usize) {
        // SAFETY: this thread holds the node, so it is not reused.
        let start = unsafe { node.as_ref() }.span().start();
        let is_before = |other: &Node| other.span().start() < start;
        self.levels.enter(pin, node, passed, is_before);
    }

    #[inline]
    fn announce_shared(&self, _: NonNull<Node>, span: Span) {
        let length = span.last() - span.start();
        // [max-shared-len] Before the node is inserted, or becomes shared. Relaxed: a writer loads it after the fence
        // of its handshake, or after it has found a node inside the range.
        if self.max_shared_len.load(Ordering::Relaxed) < length && prim::intact!("max-shared-len") {
            self.max_shared_len.fetch_max(length, Ordering::Relaxed);
        }
    }

    fn sweep(&self, pin: &Pin) {
        self.levels.sweep(pin);
    }

    fn clear(&self, pin: &Pin) {
        self.levels.clear(pin);
    }
}

impl fmt::Debug for SkipIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkipIndex")
            .field("limit", &self.levels.limit)
            .field("used", &self.levels.used)
            .field("max_shared_len", &self.max_shared_len)
            .finish()
    }
}
