//! An interval tree: a balanced search tree of ranges, ordered by start. Every node stores the largest last position in
//! its subtree, so a search for overlapping ranges skips subtrees that end too early.
//!
//! ```text
//!                    [20, 30) max 60
//!                   /               \
//!        [10, 15) max 15         [40, 60) max 60
//! ```
//!
//! The tree is balanced as a treap: nodes have random priorities, and no node has a higher priority than its parent.
//! Nodes live in an arena, and freed nodes are reused.

use spanlock::range::Span;
use std::cmp::Ordering;

/// The place of a node in the arena, which does not change while the node is in the tree.
pub(super) type Slot = u32;

/// No node.
const NIL: Slot = Slot::MAX;

struct Node<V> {
    span: Span,
    /// The sequence number, which grows with each insertion. It orders nodes of equal start, and tells which came
    /// first.
    sequence: u64,
    /// The largest last position in the subtree.
    max_last: u64,
    priority: u32,
    left: Slot,
    right: Slot,
    /// `None` for a free node.
    value: Option<V>,
}

/// A set of ranges, each with a value. It finds the ranges that overlap a given one.
pub(super) struct IntervalTree<V> {
    nodes: Vec<Node<V>>,
    root: Slot,
    /// The first free node; the others follow by `left`.
    free: Slot,
    sequence: u64,
    random: u32,
}

impl<V> IntervalTree<V> {
    pub(super) const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            root: NIL,
            free: NIL,
            sequence: 0,
            random: 0x9e37_79b9,
        }
    }

    /// Adds a range. The tree may contain equal ranges already.
    pub(super) fn insert(&mut self, span: Span, value: V) -> Slot {
        self.sequence += 1;
        let node = Node {
            span,
            sequence: self.sequence,
            max_last: span.last(),
            priority: self.next_priority(),
            left: NIL,
            right: NIL,
            value: Some(value),
        };
        let slot = self.place(node);
        self.root = self.insert_below(self.root, slot);
        slot
    }

    /// Removes a node; returns its value and its sequence number.
    pub(super) fn remove(&mut self, slot: Slot) -> (V, u64) {
        self.root = self.remove_below(self.root, slot);
        let free = self.free;
        let node = self.node_mut(slot);
        let value = node.value.take().expect("removed once");
        node.left = free;
        let sequence = node.sequence;
        self.free = slot;
        (value, sequence)
    }

    pub(super) fn span(&self, slot: Slot) -> Span {
        self.node(slot).span
    }

    pub(super) fn sequence(&self, slot: Slot) -> u64 {
        self.node(slot).sequence
    }

    pub(super) fn value_mut(&mut self, slot: Slot) -> &mut V {
        self.node_mut(slot).value.as_mut().expect("in the tree")
    }

    /// Calls `visit` with the sequence number and the value of every range that overlaps `span`, by start.
    pub(super) fn for_each_overlapping(&self, span: Span, mut visit: impl FnMut(u64, &V)) {
        self.visit_below(self.root, span, &mut visit);
    }

    fn visit_below(&self, root: Slot, span: Span, visit: &mut impl FnMut(u64, &V)) {
        let Some(node) = self.nodes.get(root as usize) else {
            return;
        };
        prim::cost::read(node);
        if node.max_last < span.start() {
            return;
        }
        self.visit_below(node.left, span, visit);
        if node.span.start() > span.last() {
            return;
        }
        if node.span.overlaps(span) {
            visit(node.sequence, node.value.as_ref().expect("in the tree"));
        }
        self.visit_below(node.right, span, visit);
    }

    /// Inserts the node in `slot` into a subtree; returns the subtree's new root.
    fn insert_below(&mut self, root: Slot, slot: Slot) -> Slot {
        if root == NIL {
            return slot;
        }
        let top = if self.node(slot).priority > self.node(root).priority {
            let (left, right) = self.split(root, slot);
            let node = self.node_mut(slot);
            node.left = left;
            node.right = right;
            slot
        } else {
            match self.order(slot, root) {
                Ordering::Less => {
                    let left = self.insert_below(self.node(root).left, slot);
                    self.node_mut(root).left = left;
                }
                Ordering::Equal | Ordering::Greater => {
                    let right = self.insert_below(self.node(root).right, slot);
                    self.node_mut(root).right = right;
                }
            }
            root
        };
        self.update(top);
        top
    }

    /// Removes the node in `slot` from a subtree; returns the subtree's new root.
    fn remove_below(&mut self, root: Slot, slot: Slot) -> Slot {
        let Node { left, right, .. } = *self.node(root);
        match self.order(slot, root) {
            Ordering::Equal => return self.merge(left, right),
            Ordering::Less => {
                let left = self.remove_below(left, slot);
                self.node_mut(root).left = left;
            }
            Ordering::Greater => {
                let right = self.remove_below(right, slot);
                self.node_mut(root).right = right;
            }
        }
        self.update(root);
        root
    }

    /// Splits a subtree into the nodes before the node in `slot` and the nodes after it.
    fn split(&mut self, root: Slot, slot: Slot) -> (Slot, Slot) {
        if root == NIL {
            return (NIL, NIL);
        }
        let Node { left, right, .. } = *self.node(root);
        let parts = if self.order(root, slot) == Ordering::Less {
            let (inner, after) = self.split(right, slot);
            self.node_mut(root).right = inner;
            (root, after)
        } else {
            let (before, inner) = self.split(left, slot);
            self.node_mut(root).left = inner;
            (before, root)
        };
        self.update(root);
        parts
    }

    /// Joins two subtrees, all nodes of the first being before those of the second.
    fn merge(&mut self, before: Slot, after: Slot) -> Slot {
        if before == NIL || after == NIL {
            return before.min(after);
        }
        let top = if self.node(before).priority > self.node(after).priority {
            let right = self.merge(self.node(before).right, after);
            self.node_mut(before).right = right;
            before
        } else {
            let left = self.merge(before, self.node(after).left);
            self.node_mut(after).left = left;
            after
        };
        self.update(top);
        top
    }

    fn order(&self, a: Slot, b: Slot) -> Ordering {
        let key = |slot| (self.node(slot).span.start(), self.node(slot).sequence);
        key(a).cmp(&key(b))
    }

    /// Updates a node's `max_last` from its children's.
    fn update(&mut self, slot: Slot) {
        let Node { left, right, .. } = *self.node(slot);
        let below = |child: Slot| {
            self.nodes
                .get(child as usize)
                .map_or(0, |node| node.max_last)
        };
        let max_last = below(left).max(below(right));
        let node = self.node_mut(slot);
        node.max_last = max_last.max(node.span.last());
        prim::cost::write(node);
    }

    fn place(&mut self, node: Node<V>) -> Slot {
        if self.free == NIL {
            self.nodes.push(node);
            Slot::try_from(self.nodes.len() - 1).expect("fewer than 2^32 requests at a time")
        } else {
            let slot = self.free;
            self.free = self.node(slot).left;
            *self.node_mut(slot) = node;
            slot
        }
    }

    fn next_priority(&mut self) -> u32 {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    fn node(&self, slot: Slot) -> &Node<V> {
        &self.nodes[slot as usize]
    }

    fn node_mut(&mut self, slot: Slot) -> &mut Node<V> {
        &mut self.nodes[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{IntervalTree, NIL, Slot};
    use proptest::prelude::*;
    use spanlock::range::Span;

    #[derive(Debug, Clone)]
    enum Op {
        Insert(Span),
        /// The present node at this index, modulo the number of nodes.
        Remove(usize),
        Find(Span),
    }

    fn spans() -> impl Strategy<Value = Span> {
        let ends = prop_oneof![0..30_u64, Just(u64::MAX)];
        (ends.clone(), ends).prop_map(|(a, b)| Span::of(a.min(b)..=a.max(b)).unwrap())
    }

    fn ops() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => spans().prop_map(Op::Insert),
            2 => (0..100_usize).prop_map(Op::Remove),
            1 => spans().prop_map(Op::Find),
        ]
    }

    /// Heap order, search order and `max_last` below a node; returns how many there are and their `max_last`.
    fn check(tree: &IntervalTree<u32>, root: Slot) -> (usize, u64) {
        if root == NIL {
            return (0, 0);
        }
        let node = tree.node(root);
        let below = [node.left, node.right].map(|child| {
            if child != NIL {
                assert!(tree.node(child).priority <= node.priority);
            }
            check(tree, child)
        });
        let max_last = below[0].1.max(below[1].1).max(node.span.last());
        assert_eq!(node.max_last, max_last);
        (1 + below[0].0 + below[1].0, max_last)
    }

    proptest! {
        #[test]
        fn agrees_with_a_vector(ops in prop::collection::vec(ops(), 0..200)) {
            let mut tree = IntervalTree::new();
            let mut model: Vec<(Slot, Span, u32)> = Vec::new();
            let mut most = 0;
            for (tag, op) in (0_u32..).zip(ops) {
                match op {
                    Op::Insert(span) => model.push((tree.insert(span, tag), span, tag)),
                    Op::Remove(_) if model.is_empty() => {}
                    Op::Remove(at) => {
                        let (slot, span, tag) = model.remove(at % model.len());
                        prop_assert_eq!(tree.span(slot), span);
                        prop_assert_eq!(*tree.value_mut(slot), tag);
                        let sequence = tree.sequence(slot);
                        prop_assert_eq!(tree.remove(slot), (tag, sequence));
                    }
                    Op::Find(span) => {
                        let mut found = Vec::new();
                        tree.for_each_overlapping(span, |sequence, tag| found.push((sequence, *tag)));
                        found.sort_unstable();
                        let found: Vec<_> = found.into_iter().map(|(_, tag)| tag).collect();
                        let expected: Vec<_> = model
                            .iter()
                            .filter(|(_, other, _)| other.overlaps(span))
                            .map(|(.., tag)| *tag)
                            .collect();
                        prop_assert_eq!(found, expected);
                    }
                }
                most = most.max(model.len());
                prop_assert_eq!(check(&tree, tree.root).0, model.len());
                prop_assert_eq!(tree.nodes.len(), most, "freed nodes are used again");
            }
        }
    }

    #[test]
    fn stays_shallow() {
        fn depth(tree: &IntervalTree<()>, root: Slot) -> usize {
            if root == NIL {
                return 0;
            }
            let node = tree.node(root);
            1 + depth(tree, node.left).max(depth(tree, node.right))
        }
        let mut tree = IntervalTree::new();
        for start in 0..10_000_u64 {
            tree.insert(Span::of(start..=start).unwrap(), ());
        }
        assert!(depth(&tree, tree.root) < 60, "{}", depth(&tree, tree.root));
    }
}
