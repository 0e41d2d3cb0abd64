//! How a thread takes the nodes of lists, and gives them up.

use super::node::Node;
use crate::range::parts::Local;
use crate::range::thread::{Pin, ThreadRecord, epochs, with_local, with_record};
use std::ptr::NonNull;

impl Local {
    /// Returns a node that no other thread knows, after its range was released. It becomes the spare node if there is
    /// none.
    #[inline]
    pub(super) fn return_spare(&self, node: NonNull<Node>) {
        if let Err(node) = self.spare.put(node) {
            released_beside_spare(node);
        }
    }
}

#[cold] // The thread holds several ranges, or is exiting.
fn released_beside_spare(node: NonNull<Node>) {
    with_record(|record| {
        record.parts.list.put_back(node);
        record.parts.list.released();
    });
}

impl ThreadRecord {
    /// A node that no other thread knows, assigned to this one.
    #[inline]
    pub(in crate::range) fn take_node(&self) -> NonNull<Node> {
        // [grace-nonblocking]
        if !prim::intact!("grace-nonblocking") && !self.epoch.is_walking() {
            self.parts.list.await_grace(epochs);
        }
        self.parts.list.take_node(self.thread(), epochs)
    }

    /// A node as by [`take_node`](Self::take_node), which may be linked in `levels` levels of an index.
    pub(in crate::range) fn take_tall_node(&self, levels: u32) -> NonNull<Node> {
        let list = &self.parts.list;
        list.take_tall_node(levels, self.thread(), epochs)
    }

    /// A node as by [`take_tall_node`](Self::take_tall_node), which may bear keys.
    pub(in crate::range) fn take_naming_node(&self, levels: u32) -> NonNull<Node> {
        let list = &self.parts.list;
        list.take_naming_node(levels, self.thread(), epochs)
    }

    /// Whether the thread may hold a range in a list. Not reliable in a thread that is exiting.
    pub(super) fn may_hold_nodes(&self) -> bool {
        self.parts.list.holds() > 0 || with_local(|local| local.spare.is_taken())
    }

    /// Counts a release whose node stays in a list. If that was the spare node, the thread gets another one.
    pub(super) fn released(&self) {
        let was_spare = !self.parts.list.released();
        if was_spare && self.is_here() && with_local(|local| local.spare.is_taken()) {
            with_local(|local| local.return_spare(self.take_node()));
        }
    }
}

impl Pin {
    /// Gives up a node from which this thread has removed a link, if that was the last link to it.
    #[inline]
    pub(in crate::range) fn unlinked(&self, node: NonNull<Node>) {
        // SAFETY: the walk has reached it.
        unsafe { self.record().parts.list.unlinked(node) };
    }
}
