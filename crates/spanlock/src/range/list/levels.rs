//! The index of a skip list: sparser lists above the list, each of nodes that are also in the one below.
//!
//! It only says where a walk may begin. Who holds what is decided in the list, as if there were no index; so a node
//! may be missing here at any time, or a search may stop early, and no more is lost than a few steps.

use super::index::{Guide, Index};
use super::node::Node;
use super::tower::{AtomicRung, MAX_LEVELS, Rung, TallNode};
use crate::local::{Local, Pin};
use crate::range::inspect::Claim;
use crate::range::raw::Mode;
use crate::range::span::Span;
use prim::atomic::{AtomicU32, AtomicU64, Ordering};
use std::fmt;
use std::ptr::NonNull;

/// Walks of fewer steps are not worth a tower. (In debug builds all are, so that tests meet towers.)
const WORTH: usize = if cfg!(debug_assertions) { 0 } else { 4 };

/// Binary digits a level: one node in four is in the next one.
const DIGITS: u32 = 2;

/// The levels above a list, and what a writer has to know to begin at a node of theirs.
pub struct Levels {
    heads: [AtomicRung; MAX_LEVELS],
    /// How many levels nodes may be in.
    limit: u32,
    /// How many have ever been in use. A hint: a search that begins lower takes longer.
    used: AtomicU32,
    /// The longest range that was ever to be held shared, less one.
    reach: AtomicU64,
}

/// Where a node belongs in a level: in that rung, which was last seen so.
#[derive(Clone, Copy)]
struct Place<'a> {
    rung: &'a AtomicRung,
    seen: Rung,
}

/// A rung's node is gone, so that nothing may be followed from it [rung-cut-off].
struct CutOff;

impl Levels {
    pub(super) const MAX: u32 = MAX_LEVELS as u32;

    /// Enough for some thousands of ranges held at a time.
    pub(super) const DEFAULT: u32 = prim::sized(6, MAX_LEVELS) as u32;

    prim::const_fn! {
        pub(super) const fn new(limit: u32) -> Self {
            Self {
                heads: prim::array![AtomicRung::new(); MAX_LEVELS],
                limit,
                used: AtomicU32::new(0),
                reach: AtomicU64::new(0),
            }
        }
    }

    /// Goes along a level, from the rung of a node or the level's head, past the nodes that are before, and removes nodes
    /// that are gone from its way. Returns the last node passed, if any, and where it leaves the level.
    fn go_along<'a>(
        pin: &'a Pin,
        level: usize,
        from: &'a AtomicRung,
        is_before: impl Fn(&Node) -> bool,
    ) -> Result<(Option<&'a TallNode>, Place<'a>), CutOff> {
        let mut on: Option<&'a TallNode> = None;
        let mut rung = from;
        let mut seen = rung.load();
        loop {
            if seen.is_gone() && prim::intact!("rung-cut-off") {
                // What it points to may have left the level long ago.
                return Err(CutOff);
            }
            let Some(next) = seen.node() else { break };
            // SAFETY: the rung was not gone when it was read, so its node was in the level and the next one
            // too. A node in a level is not retired, and not re-used before the pin is dropped [grace].
            let node: &'a TallNode = unsafe { next.as_ref() };
            let link = node.rung(level).load();
            if link.is_gone() {
                match rung.replace(seen, link.unmarked()) {
                    Ok(()) => {
                        pin.unlinked(next.cast());
                        seen = link.unmarked();
                    }
                    Err(found) => seen = found,
                }
            } else if is_before(node.base()) {
                on = Some(node);
                rung = node.rung(level);
                seen = link;
            } else {
                break;
            }
        }
        Ok((on, Place { rung, seen }))
    }

    /// Goes from the highest level in use to the lowest, past the nodes that are before. Shows where it leaves each level;
    /// returns the last node passed.
    fn descend<'a>(
        &'a self,
        pin: &'a Pin,
        is_before: impl Fn(&Node) -> bool,
        mut leaves: impl FnMut(usize, Place<'a>),
    ) -> Option<&'a TallNode> {
        'from_the_top: loop {
            let mut on: Option<&'a TallNode> = None;
            for level in (0..self.used()).rev() {
                let from = on.map_or(&self.heads[level], |node| node.rung(level));
                let Ok((passed, place)) = Self::go_along(pin, level, from, &is_before) else {
                    // [rung-gone] The next search does not pass this node again: it sees the rungs above marked, too.
                    prim::edge::starts_over();
                    continue 'from_the_top;
                };
                on = passed.or(on);
                leaves(level, place);
            }
            return on;
        }
    }

    /// How many levels are in use, as far as this thread knows.
    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed) as usize
    }

    /// Where a node with that range belongs, in each level.
    fn places<'a>(&'a self, pin: &'a Pin, span: Span) -> [Place<'a>; MAX_LEVELS] {
        let mut places = std::array::from_fn(|level| Place {
            rung: &self.heads[level],
            seen: Rung::NULL,
        });
        self.descend(
            pin,
            |other| other.span().start() < span.start(),
            |level, place| places[level] = place,
        );
        places
    }
}

impl Index for Levels {}

impl Guide for Levels {
    fn take_node(&self, local: &Local) -> NonNull<Node> {
        match prim::wins(local.random(), DIGITS).min(self.limit) {
            0 => local.take_node(),
            levels => local.take_tall_node(levels),
        }
    }

    fn waypoint<'a>(&'a self, pin: &'a Pin, claim: &Claim) -> Option<&'a Node> {
        // [reach] No shared range that starts before this reaches into the request. Exclusive ones end before any node
        // that follows them starts (invariant 2), so it is enough that the waypoint itself does not conflict.
        let from = match claim.mode {
            Mode::Shared => claim.span.start(),
            Mode::Exclusive => {
                let reach = self.reach.load(Ordering::Relaxed);
                claim.span.start().saturating_sub(reach)
            }
        };
        let is_before =
            |node: &Node| node.span().start() < from && !node.claim(node.look()).conflicts(claim);
        Some(self.descend(pin, is_before, |_, _| ())?.base())
    }

    fn enter(&self, pin: &Pin, node: NonNull<Node>, steps: usize) {
        // SAFETY: held by this thread.
        let Some(node) = (unsafe { TallNode::of(node) }).filter(|_| (WORTH..).contains(&steps))
        else {
            return;
        };
        // SAFETY: as above.
        let tall = unsafe { node.as_ref() };
        let span = tall.base().span();
        // SAFETY: as above.
        let levels = unsafe { tall.plan_links() };
        if self.used.load(Ordering::Relaxed) < levels {
            self.used.fetch_max(levels, Ordering::Relaxed);
        }
        let levels = levels as usize;
        let mut places = self.places(pin, span);
        tall.prepare_rungs(0, &places.map(|place| place.seen)[..levels]);
        let mut level = 0;
        // From the lowest up: who finds the node in one level finds it in those below.
        while level < levels {
            let Place { rung, seen } = places[level];
            match rung.replace(seen, Rung::to(node)) {
                Ok(()) => level += 1,
                Err(_) => {
                    places = self.places(pin, span);
                    // [rung-prepare] What was to follow may have left the level.
                    if prim::intact!("rung-prepare") {
                        tall.prepare_rungs(level, &places.map(|place| place.seen)[level..levels]);
                    }
                }
            }
        }
    }

    #[inline]
    fn announce_shared(&self, span: Span) {
        let length = span.last() - span.start();
        // [reach] Before the node is inserted, or made shared. Relaxed: writers look after their handshake's fence, or
        // after they have found something inside the range.
        if self.reach.load(Ordering::Relaxed) < length && prim::intact!("reach") {
            self.reach.fetch_max(length, Ordering::Relaxed);
        }
    }

    fn sweep(&self, pin: &Pin) {
        for level in (0..self.used()).rev() {
            // Where it is cut off others are at work; the next sweep comes.
            let _ = Self::go_along(pin, level, &self.heads[level], |_| true);
        }
    }

    fn clear(&self, pin: &Pin) {
        for (level, head) in self.heads.iter().enumerate() {
            let mut next = head.load().node();
            while let Some(node) = next {
                // SAFETY: linked in the level, so not retired yet.
                next = unsafe { node.as_ref() }.rung(level).load().node();
                pin.unlinked(node.cast());
            }
        }
    }
}

impl fmt::Debug for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Levels")
            .field("limit", &self.limit)
            .field("used", &self.used)
            .field("reach", &self.reach)
            .finish()
    }
}
