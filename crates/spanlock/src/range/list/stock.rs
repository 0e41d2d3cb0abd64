//! What a thread keeps for the list locks: nodes that are ready, and how many ranges it holds.

use super::naming::NamingNode;
use super::node::{Height, Node};
use super::skip::tower::TallNode;
use crate::range::id::OwnerId;
use crate::reclaim::{Epoch, Pool, Recycled};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// The nodes of a thread.
pub(in crate::range) struct Stock {
    nodes: Pool<Node>,
    tall_nodes: Pool<TallNode>,
    naming_nodes: Pool<NamingNode>,
    /// How many nodes the thread allocates before it sweeps a list.
    sweep_after: Cell<usize>,
    /// How many ranges are held in lists, without the range that the spare node is used for. A hint: a leaked guard
    /// counts for ever.
    holds: Cell<usize>,
}

/// The fewest allocations between two sweeps.
fn fewest_between_sweeps() -> usize {
    prim::stock(64, 1)
}

/// The allocations before a thread's first sweep: filling its pools is no reason for one.
fn first_sweep() -> usize {
    Node::ready() + TallNode::ready() + fewest_between_sweeps()
}

/// Once a sweep is due, one acquisition in `2^SWEEP_DIGITS`, by lot, makes it. So each of the locks that a thread uses
/// in turn is swept, whatever the order.
const SWEEP_DIGITS: u32 = 4;

impl Default for Stock {
    fn default() -> Self {
        Self {
            nodes: Pool::new(),
            tall_nodes: Pool::new(),
            naming_nodes: Pool::new(),
            sweep_after: Cell::new(first_sweep()),
            holds: Cell::new(0),
        }
    }
}

impl Stock {
    /// A node that no other thread knows, assigned to that thread, which is this one.
    #[inline]
    pub(in crate::range) fn take_node<E: Iterator<Item = &'static Epoch>>(
        &self,
        thread: u32,
        epochs: impl Fn() -> E,
    ) -> NonNull<Node> {
        let node = self.nodes.take(epochs);
        // SAFETY: `take` returns a live node that no other thread knows.
        unsafe { Node::assign(node, OwnerId::of_thread(thread)) };
        node
    }

    /// Waits until the nodes that this thread has retired may be used again.
    pub(in crate::range) fn await_grace<E: Iterator<Item = &'static Epoch>>(
        &self,
        epochs: impl Fn() -> E,
    ) {
        self.nodes.await_grace(epochs);
    }

    /// A node as by [`take_node`](Self::take_node), which may be linked in `levels` levels of an index.
    pub(in crate::range) fn take_tall_node<E: Iterator<Item = &'static Epoch>>(
        &self,
        levels: u32,
        thread: u32,
        epochs: impl Fn() -> E,
    ) -> NonNull<Node> {
        let tall = self.tall_nodes.take(epochs);
        // SAFETY: `take` returns a live node.
        let fresh = unsafe { tall.as_ref() };
        // SAFETY: `take` returns a node that no other thread knows.
        unsafe { fresh.draw(levels) };
        let node = tall.cast();
        // SAFETY: alive and unknown to other threads, and a tall node begins with its base.
        unsafe { Node::assign(node, OwnerId::of_thread(thread)) };
        node
    }

    /// A node as by [`take_tall_node`](Self::take_tall_node), which may bear keys. It has keys already, of its last
    /// request.
    pub(in crate::range) fn take_naming_node<E: Iterator<Item = &'static Epoch>>(
        &self,
        levels: u32,
        thread: u32,
        epochs: impl Fn() -> E,
    ) -> NonNull<Node> {
        let node = self.naming_nodes.take(epochs).cast::<TallNode>();
        // SAFETY: `take` returns a live node, and such a node begins with its tower.
        let fresh = unsafe { node.as_ref() };
        // SAFETY: `take` returns a node that no other thread knows.
        unsafe { fresh.draw(levels) };
        let node = node.cast();
        // SAFETY: the same, and a tall node begins with its base.
        unsafe { Node::assign(node, OwnerId::of_thread(thread)) };
        node
    }

    /// Returns a node that no other thread has known since it was taken.
    pub(in crate::range) fn put_back(&self, node: NonNull<Node>) {
        // SAFETY: it was taken and not returned, so it is alive.
        match unsafe { node.as_ref() }.height() {
            Height::Plain => self.nodes.put_back(node),
            Height::Tall => self.tall_nodes.put_back(node.cast()),
            Height::Naming => self.naming_nodes.put_back(node.cast()),
        }
    }

    /// Takes over a node that no other thread knows any more. Another thread may have taken it from its pool.
    #[inline]
    pub(in crate::range) fn take_over(&self, node: NonNull<Node>) {
        // SAFETY: nobody has freed it, so it is alive.
        match unsafe { node.as_ref() }.height() {
            Height::Plain => self.nodes.take_over(node),
            Height::Tall => self.tall_nodes.take_over(node.cast()),
            Height::Naming => self.naming_nodes.take_over(node.cast()),
        }
    }

    /// Gives up a node from which this thread has removed a link, if that was the last link to it.
    ///
    /// # Safety
    /// It was reached in a walk that goes on.
    #[inline]
    pub(in crate::range) unsafe fn unlinked(&self, node: NonNull<Node>) {
        // SAFETY: reached in this walk, so not reused before the walk ends.
        match unsafe { TallNode::of(node) } {
            None => self.nodes.retire(node),
            // SAFETY: the same node.
            Some(tall) if unsafe { tall.as_ref() }.lost_link() => self.retire(tall),
            Some(_) => {}
        }
    }

    /// Gives up a tall node to which no link leads any more.
    fn retire(&self, tall: NonNull<TallNode>) {
        // SAFETY: it is in its grace period, so it is alive.
        match unsafe { tall.as_ref() }.base().height() {
            Height::Naming => self.naming_nodes.retire(tall.cast()),
            Height::Plain | Height::Tall => self.tall_nodes.retire(tall),
        }
    }

    /// Frees what may be freed, if too many nodes are retired.
    #[inline]
    pub(in crate::range) fn collect<E: Iterator<Item = &'static Epoch>>(
        &self,
        epochs: impl Fn() -> E + Copy,
    ) {
        if self.nodes.is_bloated() {
            self.nodes.collect(epochs);
        }
        if self.tall_nodes.is_bloated() {
            self.tall_nodes.collect(epochs);
        }
        if self.naming_nodes.is_bloated() {
            self.naming_nodes.collect(epochs);
        }
    }

    /// The thread is exiting. `sweep_after` stays: the next thread with this record inherits the progress towards a
    /// sweep. Many short-lived threads leave as many nodes behind as one long-lived thread.
    pub(in crate::range) fn flush<E: Iterator<Item = &'static Epoch>>(
        &self,
        epochs: impl Fn() -> E + Copy,
    ) {
        self.nodes.flush(epochs);
        self.tall_nodes.flush(epochs);
        self.naming_nodes.flush(epochs);
        self.holds.set(0);
    }

    /// Whether this thread is to sweep the list that it is about to walk. It has allocated so many nodes that nodes of
    /// released ranges may be piling up where no walk passes.
    #[inline]
    pub(in crate::range) fn is_sweep_due(&self, random: impl FnOnce() -> u64) -> bool {
        self.nodes.made() + self.tall_nodes.made() + self.naming_nodes.made()
            >= self.sweep_after.get()
            && prim::wins(random(), SWEEP_DIGITS) > 0
    }

    /// Notes a sweep that found `held` ranges held. The next sweep is due when as many nodes were allocated, so
    /// sweeping costs a few steps for each allocation.
    pub(in crate::range) fn swept(&self, held: usize) {
        self.sweep_after.set(held.max(fewest_between_sweeps()));
        self.nodes.count_anew();
        self.tall_nodes.count_anew();
        self.naming_nodes.count_anew();
    }

    /// How many ranges the thread holds in lists, but for one. A hint.
    pub(in crate::range) fn holds(&self) -> usize {
        self.holds.get()
    }

    /// Counts an acquisition that did not take the spare node.
    pub(in crate::range) fn acquired(&self) {
        self.holds.set(self.holds.get() + 1);
    }

    /// Counts a release of a range for which the spare node was not taken. `false`: there is no such range.
    pub(in crate::range) fn released(&self) -> bool {
        let holds = self.holds.get();
        self.holds.set(holds.saturating_sub(1));
        holds > 0
    }
}

/// A node for the fast path of list locks. A thread has one for its own ranges, which is assigned to it, and one for
/// owners', which is assigned to whoever asks.
pub(in crate::range) struct Spare(Cell<*mut Node>);

impl Spare {
    /// No node: the thread is exiting, has given up its nodes, and keeps none any more.
    const EXITED: *mut Node = NonNull::dangling().as_ptr();

    /// There is none before the thread's first acquisition.
    pub(in crate::range) const fn none() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// None is kept, until it is [opened](Self::open).
    pub(in crate::range) const fn closed() -> Self {
        Self(Cell::new(Self::EXITED))
    }

    /// From now on a node is kept. Who opens it closes it when the thread exits.
    pub(in crate::range) fn open(&self) {
        self.0.set(ptr::null_mut());
    }

    /// Takes it. `None`: a range is held by it, or the thread is new or exiting.
    #[inline]
    pub(in crate::range) fn take(&self) -> Option<NonNull<Node>> {
        let node = self.0.get();
        if node <= Self::EXITED {
            return None;
        }
        // Before the acquisition's atomic operation this store costs nothing. After it the store would have to wait.
        self.0.set(ptr::null_mut());
        NonNull::new(node)
    }

    /// Returns a node that no other thread knows, after its range was released. `Err`: there is a spare node already,
    /// or the thread is exiting.
    #[inline]
    pub(in crate::range) fn put(&self, node: NonNull<Node>) -> Result<(), NonNull<Node>> {
        if self.is_taken() {
            self.0.set(node.as_ptr());
            Ok(())
        } else {
            Err(node)
        }
    }

    /// Assigns the node, if it is not in use, to the running thread, which has another id now.
    pub(in crate::range) fn assign(&self, thread: u32) {
        if let Some(node) = self.take() {
            // SAFETY: a spare node is alive, and known to its thread only.
            unsafe { Node::assign(node, OwnerId::of_thread(thread)) };
            self.0.set(node.as_ptr());
        }
    }

    /// Whether it is in use, or the thread is new.
    #[inline]
    pub(in crate::range) fn is_taken(&self) -> bool {
        self.0.get().is_null()
    }

    /// The thread is exiting. Returns the node, if it is not in use.
    pub(in crate::range) fn close(&self) -> Option<NonNull<Node>> {
        let node = self.take();
        self.0.set(Self::EXITED);
        node
    }
}
