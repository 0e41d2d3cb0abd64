//! Words in the leaves of a radix tree, made when a request first touches them (the paper's SRL(tree)).
//!
//! ```text
//!   segment number, 2 bits a level:   01 | 10 | 11
//!
//!       root slot --> [ . | * | . | . ]                       level 2: slots
//!                           |
//!                           v
//!                         [ . | . | * | . ]                   level 1: slots
//!                                   |
//!                                   v
//!                                 [ w | w | w | W ]           level 0: a leaf of words
//! ```
//!
//! A node is an array without a header: of slots, or of words in a leaf. The level determines which. A node that was
//! linked stays until the tree is dropped, so a reference to a word is valid as long as a reference to the tree.

use super::store::{Sealed, Store};
use super::word::Word;
use prim::atomic::{AtomicPtr, Ordering};
use prim::track::Track;
use std::ptr::{self, NonNull};
use std::slice;

/// A place for a node.
struct Slot {
    node: AtomicPtr<()>,
    /// Has a size on the model checker only.
    _track: Track,
}

impl Slot {
    fn new() -> Self {
        Self {
            node: AtomicPtr::new(ptr::null_mut()),
            _track: Track::new(),
        }
    }

    /// The node here, if there is one.
    #[inline]
    fn get(&self) -> Option<NonNull<()>> {
        // [node-acquire] Acquire: pairs with [node-publish].
        NonNull::new(
            self.node
                .load(prim::order!("node-acquire", Ordering::Acquire)),
        )
    }
}

/// The words of the segments in use, in a tree.
pub struct Tree {
    root: Slot,
    /// Binary digits of a segment's number that one level decides.
    bits: u32,
    /// Levels of nodes, the leaves among them.
    depth: u32,
}

impl Tree {
    pub(super) fn new(bits: u32, depth: u32) -> Self {
        Self {
            root: Slot::new(),
            bits,
            depth,
        }
    }

    fn fan_out(&self) -> usize {
        1 << self.bits
    }

    /// Which of the children of a node at that level (0: a leaf) leads to a segment.
    #[inline]
    fn index(&self, segment: u64, level: u32) -> usize {
        (segment >> (level * self.bits)) as usize & (self.fan_out() - 1)
    }

    /// The children of a node above the leaves.
    ///
    /// # Safety
    /// The node is in this tree, at a level above the leaves.
    #[inline]
    unsafe fn slots(&self, node: NonNull<()>) -> &[Slot] {
        // SAFETY: `make` made it for a level above the leaves, as the caller promises: so many slots, side by side.
        unsafe { slice::from_raw_parts(node.as_ptr().cast(), self.fan_out()) }
    }

    /// The words of a leaf.
    ///
    /// # Safety
    /// The node is in this tree, and a leaf.
    #[inline]
    unsafe fn words(&self, node: NonNull<()>) -> &[Word] {
        // SAFETY: `make` made it for level 0, as the caller promises: so many words, side by side.
        unsafe { slice::from_raw_parts(node.as_ptr().cast(), self.fan_out()) }
    }

    /// The node in a slot, which is made if there is none.
    #[inline]
    fn node(&self, slot: &Slot, level: u32) -> NonNull<()> {
        slot.get().unwrap_or_else(|| self.grow(slot, level))
    }

    #[cold] // Once for each node, or a few times when threads race.
    #[inline(never)]
    fn grow(&self, slot: &Slot, level: u32) -> NonNull<()> {
        let fresh = self.make(level);
        // [node-publish] Release: the node's content, for threads that find the node.
        let linked = slot.node.compare_exchange(
            ptr::null_mut(),
            fresh.as_ptr(),
            prim::order!("node-publish", Ordering::Release),
            // [node-winner] Acquire: pairs with [node-publish].
            prim::order!("node-winner", Ordering::Acquire),
        );
        match linked.map_err(NonNull::new) {
            // [lost-race] A thread that went on with its own node would lock words that no other thread finds.
            Err(Some(winner)) if prim::intact!("lost-race") => {
                // SAFETY: made above for this level, and not linked, so no other thread knows it.
                unsafe { self.free(fresh, level) };
                winner
            }
            _ => fresh,
        }
    }

    fn make(&self, level: u32) -> NonNull<()> {
        let node = if level == 0 {
            let words: Box<[Word]> = (0..self.fan_out()).map(|_| Word::new()).collect();
            Box::into_raw(words).cast()
        } else {
            let slots: Box<[Slot]> = (0..self.fan_out()).map(|_| Slot::new()).collect();
            Box::into_raw(slots).cast()
        };
        NonNull::new(node).expect("a box is somewhere")
    }

    /// Frees a node and all below it.
    ///
    /// # Safety
    /// It was made for that level, and no other thread uses it any more.
    unsafe fn free(&self, node: NonNull<()>, level: u32) {
        if level == 0 {
            let words = ptr::slice_from_raw_parts_mut(node.as_ptr().cast::<Word>(), self.fan_out());
            // SAFETY: `make` took it from a box of so many words, and the caller gives it up.
            drop(unsafe { Box::from_raw(words) });
            return;
        }
        let slots = ptr::slice_from_raw_parts_mut(node.as_ptr().cast::<Slot>(), self.fan_out());
        // SAFETY: `make` took it from a box of so many slots, and the caller gives it up.
        let slots = unsafe { Box::from_raw(slots) };
        for child in slots.iter().filter_map(Slot::get) {
            // SAFETY: linked in a slot of this level, so made for the level below, and given up with its parent.
            unsafe { self.free(child, level - 1) };
        }
    }

    /// Passes the leaves below a slot to `visit`. The slot leads to the segments from `first` on.
    fn visit_below(
        &self,
        slot: &Slot,
        level: u32,
        first: u64,
        visit: &mut dyn FnMut(u64, &[Word]),
    ) {
        let Some(node) = slot.get() else { return };
        if level == 0 {
            // SAFETY: found in this tree at the level of leaves.
            visit(first, unsafe { self.words(node) });
            return;
        }
        // SAFETY: found in this tree above the level of leaves.
        let slots = unsafe { self.slots(node) };
        for (at, slot) in (0..).zip(slots) {
            let first = first + (at << (level * self.bits));
            self.visit_below(slot, level - 1, first, visit);
        }
    }

    fn bytes_below(&self, slot: &Slot, level: u32) -> usize {
        let Some(node) = slot.get() else { return 0 };
        if level == 0 {
            // SAFETY: found in this tree at the level of leaves.
            return size_of_val(unsafe { self.words(node) });
        }
        // SAFETY: found in this tree above the level of leaves.
        let slots = unsafe { self.slots(node) };
        let below = |slot| self.bytes_below(slot, level - 1);
        size_of_val(slots) + slots.iter().map(below).sum::<usize>()
    }
}

impl Sealed for Tree {}

impl Store for Tree {
    fn last(&self) -> u64 {
        u64::MAX >> (u64::BITS - self.bits * self.depth)
    }

    #[inline]
    fn words_from(&self, segment: u64) -> &[Word] {
        let mut slot = &self.root;
        for level in (1..self.depth).rev() {
            let node = self.node(slot, level);
            // SAFETY: found in this tree above the level of leaves.
            slot = unsafe { &self.slots(node)[self.index(segment, level)] };
        }
        let leaf = self.node(slot, 0);
        // SAFETY: found in this tree at the level of leaves.
        unsafe { &self.words(leaf)[self.index(segment, 0)..] }
    }

    fn visit(&self, visit: &mut dyn FnMut(u64, &[Word])) {
        self.visit_below(&self.root, self.depth - 1, 0, visit);
    }

    fn bytes(&self) -> usize {
        self.bytes_below(&self.root, self.depth - 1)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(node) = self.root.get() {
            // SAFETY: linked at the root, so made for the highest level; a tree that is dropped is not in use.
            unsafe { self.free(node, self.depth - 1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Store, Tree};

    #[test]
    fn nodes_are_made_when_asked_for() {
        let tree = Tree::new(4, 3);
        assert_eq!((tree.last(), tree.bytes()), (4095, 0));
        let word = tree.words_from(17).as_ptr();
        let once = 2 * 16 * size_of::<usize>() + 16 * 4;
        assert_eq!(tree.bytes(), once);
        assert_eq!(tree.words_from(17).as_ptr(), word);
        assert_eq!(tree.words_from(17).len(), 15);
        assert_eq!(tree.bytes(), once);
        assert_eq!(tree.words_from(32).len(), 16);
        assert_eq!(tree.bytes(), once + 16 * 4);
        let mut shown = Vec::new();
        tree.visit(&mut |first, words| shown.push((first, words.len())));
        assert_eq!(shown, [(16, 16), (32, 16)]);
    }

    #[test]
    fn the_largest_tree_reaches_the_last_position() {
        let tree = Tree::new(8, 8);
        assert_eq!(tree.last(), u64::MAX);
        assert_eq!(tree.words_from(u64::MAX).len(), 1);
        assert_eq!(tree.words_from(0).len(), 256);
    }
}
