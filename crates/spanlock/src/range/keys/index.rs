//! What makes a list lock one over keys: its order, nodes that bear keys, and where walks begin.
//!
//! Positions are subtracted, to find how far before a writer a reader may start that reaches into its range. Keys have
//! no difference. So the index counts the *scans*: the shared ranges of more than one key that are held or asked for.
//! While there are none, a writer begins its walk at a start hint, as in a [skip list](crate::range::skip), and its
//! insertion decides, as in a list without readers. Else it begins at the head, and validates.
//!
//! # Edges
//!
//! - **scan-counted**: a scan is counted before its node is inserted or becomes shared, and so before its fence. A
//!   writer looks at the count after its own fence.
//! - **scan-over**: Release by uncounting a scan, Acquire by the look at the count: what was read in the scan comes
//!   before what is written by a writer that does not pass its place.

use super::order::KeyOrder;
use super::{Compare, Key};
use crate::range::inspect::Request;
use crate::range::list::naming::NamingNode;
use crate::range::list::node::Announced;
use crate::range::list::skip::StartHints;
use crate::range::list::skip::levels::Levels;
use crate::range::list::{Index, Node};
use crate::range::mode::Mode;
use crate::range::named::{Named, contained};
use crate::range::order::{Order, Ranges, Relation};
use crate::range::sought::Sought;
use crate::range::span::Span;
use crate::range::thread::{self, Pin, ThreadRecord};
use prim::atomic::{AtomicU32, Ordering};
use prim::sync::Arc;
use std::cell::RefCell;
use std::fmt;
use std::ptr::NonNull;

/// How many counts of scans there are. Each has a cache line, so that scans of several threads do not share one.
const COUNTS: usize = prim::sized(8, 2);

#[repr(align(64))]
struct Count(AtomicU32);

/// The index of a lock over keys.
pub struct KeyIndex<K: ?Sized, C> {
    order: Arc<KeyOrder<K, C>>,
    levels: Levels,
    scans: [Count; COUNTS],
}

impl<K: ?Sized + Key, C: Compare<K>> KeyIndex<K, C> {
    pub(super) fn new(order: Arc<KeyOrder<K, C>>, levels: Levels) -> Self {
        Self {
            order,
            levels,
            scans: std::array::from_fn(|_| Count(AtomicU32::new(0))),
        }
    }

    /// Whether a scan may be in the way of a writer that begins behind it.
    fn has_scans(&self) -> bool {
        // [scan-over] Acquire.
        let count = |count: &Count| count.0.load(prim::order!("scan-over", Ordering::Acquire));
        self.scans.iter().any(|scans| count(scans) > 0)
    }
}

impl<K: ?Sized + Key, C: Compare<K>> Index for KeyIndex<K, C> {}

impl<K: ?Sized + Key, C: Compare<K>> StartHints for KeyIndex<K, C> {
    const NAMING: bool = true;

    type Order = KeyOrder<K, C>;
    type Noted = RefCell<Vec<Named>>;

    #[inline]
    fn order(&self) -> &KeyOrder<K, C> {
        &self.order
    }

    #[inline]
    fn take_node(&self, record: &ThreadRecord) -> NonNull<Node> {
        unannounced(record.take_naming_node(self.levels.draw(record)))
    }

    #[inline]
    fn take_plain_node(&self, record: &ThreadRecord) -> NonNull<Node> {
        unannounced(record.take_naming_node(0))
    }

    /// Its tower stays empty: where the list is, no level is worth the upkeep.
    #[inline]
    fn make_plain(&self, node: NonNull<Node>) -> bool {
        // SAFETY: nodes of this index bear keys, and the caller has this one.
        let node = unsafe { NamingNode::of(node) };
        // [plain-node]
        if prim::intact!("plain-node") {
            // SAFETY: no other thread knows it, as the caller promises.
            unsafe { node.draw_none() };
        }
        true
    }

    #[inline]
    fn bear(&self, node: NonNull<Node>, span: Span) {
        // SAFETY: who asks for the span has a use of its cell, or has offered it, or a node of this thread has it.
        let keys = unsafe { Named::take(span) };
        // SAFETY: nodes of this index bear keys.
        let node = unsafe { NamingNode::of(node) };
        // SAFETY: no other thread knows it.
        let last = unsafe { node.set_named(Some(keys)) };
        if let Some(last) = last {
            thread::with_record(|record| record.parts.spares.put(last));
        }
    }

    fn keep(&self, kept: &Self::Noted, node: NonNull<Node>) {
        // SAFETY: nodes of this index bear keys.
        let node = unsafe { NamingNode::of(node) };
        // SAFETY: a walk has reached it.
        let keys = unsafe { node.named() };
        kept.borrow_mut().extend(keys);
    }

    fn own(&self, span: Span) -> Option<Sought> {
        // [own-keys]
        prim::intact!("own-keys").then(|| self.order.part(span))
    }

    fn describe(&self, span: Span) -> Option<String> {
        Some(self.order.describe(span))
    }

    #[inline]
    fn shares_points_alone(&self) -> bool {
        // [scan-counted]
        !self.has_scans() || !prim::intact!("scan-counted")
    }

    fn start_hint<'a>(&'a self, pin: &'a Pin, request: &Request) -> Option<&'a Node> {
        if self.levels.used() == 0 {
            return None;
        }
        // [scan-counted] An exclusive range ends before any later node starts (invariant 2 of the list), so it is
        // enough that the hint itself does not conflict. (A writer searches before and after its insertion. What is
        // downgraded in between was in its way.)
        if request.mode == Mode::Exclusive && self.has_scans() && prim::intact!("scan-counted") {
            return None;
        }
        // A search that stops early finds a hint that is further away. So a panic stops it.
        let is_before = |node: &Node| {
            let theirs = node.request(node.load());
            contained(false, || match request.mode {
                Mode::Exclusive => self.order.is_behind(request.span, theirs.span),
                Mode::Shared => self.order.relation(&theirs, request) == Relation::Earlier,
            })
        };
        self.levels.last_before(pin, is_before)
    }

    fn enter(&self, pin: &Pin, node: NonNull<Node>, passed: usize) {
        // SAFETY: this thread holds the node, so it is not reused.
        let span = unsafe { node.as_ref() }.span();
        let is_before =
            |other: &Node| contained(false, || self.order.starts_before(other.span(), span));
        self.levels.enter(pin, node, passed, is_before);
    }

    #[inline]
    fn announce_shared(&self, node: NonNull<Node>, span: Span) {
        if self.order.is_point(span) {
            return;
        }
        // SAFETY: nodes of this index bear keys, and the caller has this one.
        let announced = unsafe { NamingNode::of(node) }.announced();
        let at = thread::with_record(|record| record.thread() as usize % COUNTS);
        announced.set(Announced(at as u32 + 1));
        // [scan-counted] Relaxed: a writer looks after its fence, or after it has found a node within the range.
        self.scans[at].0.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn announced(&self, node: NonNull<Node>) -> Announced {
        // SAFETY: nodes of this index bear keys, and the caller has this one.
        let node = unsafe { NamingNode::of(node) };
        // [key-life] In the mutant, the keys go to the next request as soon as the range is released.
        if !prim::intact!("key-life") {
            // SAFETY: as above. That other threads may compare the keys is what is wrong.
            if let Some(keys) = unsafe { node.set_named(None) } {
                thread::with_record(|record| record.parts.spares.put(keys));
            }
        }
        node.announced().replace(Announced::NOTHING)
    }

    #[inline]
    fn ended(&self, announced: Announced) {
        if announced != Announced::NOTHING {
            // [scan-over] Release.
            self.scans[announced.0 as usize - 1]
                .0
                .fetch_sub(1, prim::order!("scan-over", Ordering::Release));
        }
    }

    fn sweep(&self, pin: &Pin) {
        self.levels.sweep(pin);
    }

    fn clear(&self, pin: &Pin) {
        self.levels.clear(pin);
    }
}

/// The node of another lock, which is gone, may have been a scan that was leaked.
#[inline]
fn unannounced(node: NonNull<Node>) -> NonNull<Node> {
    // SAFETY: nodes of this index bear keys, and this one is the running thread's.
    let announced = unsafe { NamingNode::of(node) }.announced();
    announced.set(Announced::NOTHING);
    node
}

impl<K: ?Sized, C> fmt::Debug for KeyIndex<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyIndex")
    }
}
