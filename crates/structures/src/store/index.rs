//! The index of a file: a radix tree from the file's pages to their places on the medium.
//!
//! ```text
//!   roots     [0]          [1]                [2]   ...      the tree of root h has the pages from 64^h on (0: all
//!   below 64)
//!              |            |
//!            leaf       inner node
//!          64 items    64 pointers -> leaves
//!
//!   an item:   63         62 .. 32     31 .. 0
//!            +----------+------------+-----------------+
//!            | VERIFIED | block      | checksum        |     zero: a hole
//!            +----------+------------+-----------------+
//! ```
//!
//! Nodes are made on demand and live as long as the index. Threads that make the same node compete by one
//! compare-exchange. The file's range lock orders the accesses to an item: a thread that changes it holds its page
//! exclusively.
//!
//! # Edge: memory ordering
//!
//! - **index-node**: Release by the compare-exchange that links a node, Acquire by following the link: the node's
//!   content.

use crate::store::format::{Block, Item};
use prim::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::ops::Range;
use std::ptr;

/// Digits of a page number that a node decides.
const DIGITS: u32 = prim::sized(6, 1) as u32;

const FAN_OUT: usize = 1 << DIGITS;

/// Trees, the last of which has this many levels.
const HEIGHTS: usize = 6;

/// Files have fewer pages.
pub(crate) const MAX_PAGES: u64 = 1 << (DIGITS * HEIGHTS as u32);

/// The page was compared with its checksum, or written, since the store was opened.
const VERIFIED: u64 = 1 << 63;

/// An item as the index stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packed(u64);

impl Packed {
    /// A page whose checksum is yet to be compared.
    pub(crate) fn unverified(item: Item) -> Self {
        Self(u64::from(item.block) << 32 | u64::from(item.sum))
    }

    /// A page that this process has written.
    pub(crate) fn verified(item: Item) -> Self {
        match item.is_hole() {
            true => Self(0),
            false => Self(Self::unverified(item).0 | VERIFIED),
        }
    }

    pub(crate) fn item(self) -> Item {
        Item {
            block: Block::try_from(self.0 << 1 >> 33).expect("31 bits"),
            sum: (self.0 & u64::from(u32::MAX)) as u32,
        }
    }

    pub(crate) fn is_verified(self) -> bool {
        self.0 & VERIFIED != 0
    }
}

/// Sixty-four items.
struct Leaf {
    items: [AtomicU64; FAN_OUT],
    /// The latest time of a write here, in nanoseconds since 1970.
    latest: AtomicU64,
}

/// Sixty-four pointers to nodes one level below.
struct Inner([AtomicPtr<()>; FAN_OUT]);

impl Leaf {
    fn new() -> Self {
        Self {
            items: std::array::from_fn(|_| AtomicU64::new(0)),
            latest: AtomicU64::new(0),
        }
    }
}

impl Inner {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())))
    }
}

/// The index of a file.
pub(crate) struct Index {
    /// Root `h` points to a leaf if `h` is zero, else to an inner node with `h` levels below it.
    roots: [AtomicPtr<()>; HEIGHTS],
    nodes: AtomicUsize,
}

/// The digit of a page number at a level.
fn digit(page: u64, level: usize) -> usize {
    (page >> (DIGITS as usize * level)) as usize % FAN_OUT
}

/// The tree that has a page: as many levels as the page's number has digits, less one.
fn tree(page: u64) -> usize {
    (page.checked_ilog2().unwrap_or(0) / DIGITS) as usize
}

/// A page of each leaf that has some of these pages.
fn leaves(pages: Range<u64>) -> impl Iterator<Item = u64> {
    let width = FAN_OUT as u64;
    (pages.start / width..pages.end.div_ceil(width)).map(move |leaf| leaf * width)
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            roots: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            nodes: AtomicUsize::new(0),
        }
    }

    /// Where a page is. The page is below [`MAX_PAGES`].
    pub(crate) fn get(&self, page: u64) -> Packed {
        let slot = self.find(page);
        Packed(slot.map_or(0, |slot| slot.load(Ordering::Relaxed)))
    }

    /// Changes where a page is; returns where it was. The caller holds the page exclusively, and it is below
    /// [`MAX_PAGES`].
    pub(crate) fn replace(&self, page: u64, new: Packed) -> Packed {
        let slot = match new.0 {
            0 => self.find(page),
            _ => Some(self.make(page)),
        };
        let old = slot.map_or(0, |slot| {
            let old = slot.load(Ordering::Relaxed);
            slot.store(new.0, Ordering::Relaxed);
            old
        });
        Packed(old)
    }

    /// Notes that the page of an item has the right checksum. The caller holds the page, shared.
    pub(crate) fn set_verified(&self, page: u64) {
        if let Some(slot) = self.find(page) {
            slot.fetch_or(VERIFIED, Ordering::Relaxed);
        }
    }

    /// Calls `f` with each page from `first` on that is no hole. The caller holds them all.
    pub(crate) fn for_each(&self, first: u64, mut f: impl FnMut(u64, Packed)) {
        for height in tree(first)..HEIGHTS {
            let root = followed(&self.roots[height]);
            visit(root, height, 0, first, &mut |page, slot| {
                let packed = Packed(slot.load(Ordering::Relaxed));
                if packed != Packed(0) {
                    f(page, packed);
                }
            });
        }
    }

    /// Bytes of its nodes.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.load(Ordering::Relaxed) * size_of::<Leaf>()
    }

    /// The latest time that was noted for one of these pages, or for a neighbour. The caller holds them exclusively.
    pub(crate) fn latest(&self, pages: Range<u64>) -> u64 {
        let leaves = leaves(pages).filter_map(|page| self.find_leaf(page));
        // Relaxed: the range lock orders the writes of a page.
        let times = leaves.map(|leaf| leaf.latest.load(Ordering::Relaxed));
        times.max().unwrap_or(0)
    }

    /// Notes the time of a write of these pages. The caller holds them exclusively, and has put them here.
    pub(crate) fn note(&self, pages: Range<u64>, time: u64) {
        for leaf in leaves(pages).filter_map(|page| self.find_leaf(page)) {
            leaf.latest.fetch_max(time, Ordering::Relaxed);
        }
    }

    fn find(&self, page: u64) -> Option<&AtomicU64> {
        Some(&self.find_leaf(page)?.items[digit(page, 0)])
    }

    fn find_leaf(&self, page: u64) -> Option<&Leaf> {
        let height = tree(page);
        let mut node = followed(&self.roots[height]);
        for level in (1..=height).rev() {
            // SAFETY: pointers at this level are null or to inner nodes, which live as long as the index.
            let inner = unsafe { node.cast::<Inner>().as_ref() }?;
            node = followed(&inner.0[digit(page, level)]);
        }
        // SAFETY: as above, for leaves.
        unsafe { node.cast::<Leaf>().as_ref() }
    }

    fn make(&self, page: u64) -> &AtomicU64 {
        let height = tree(page);
        let mut link = &self.roots[height];
        for level in (1..=height).rev() {
            let node = self.follow(link, Inner::new);
            // SAFETY: `follow` returns a node of this level, which lives as long as the index.
            let inner = unsafe { &*node };
            link = &inner.0[digit(page, level)];
        }
        let node = self.follow(link, Leaf::new);
        // SAFETY: as above, for leaves.
        let leaf = unsafe { &*node };
        &leaf.items[digit(page, 0)]
    }

    /// The node that a link points to. If it is null, makes the node.
    fn follow<T>(&self, link: &AtomicPtr<()>, new: impl FnOnce() -> T) -> *const T {
        let there = followed(link);
        if !there.is_null() {
            return there.cast();
        }
        let made = Box::into_raw(Box::new(new()));
        // Release: the node's content; pairs with [index-node]. Acquire: that of another thread's node.
        match link.compare_exchange(
            ptr::null_mut(),
            made.cast(),
            prim::order!("index-node", Ordering::Release),
            prim::order!("index-node", Ordering::Acquire),
        ) {
            Ok(_) => {
                self.nodes.fetch_add(1, Ordering::Relaxed);
                made
            }
            Err(winner) => {
                // SAFETY: it came from a box just now, and was not published.
                drop(unsafe { Box::from_raw(made) });
                winner.cast()
            }
        }
    }
}

/// The node that a link points to, or null.
fn followed(link: &AtomicPtr<()>) -> *mut () {
    // [index-node] Acquire: the node's content.
    link.load(prim::order!("index-node", Ordering::Acquire))
}

/// Calls `f` with the slots at or below a node that are for pages from `first` on. `prefix` has the digits above.
fn visit(
    node: *mut (),
    level: usize,
    prefix: u64,
    first: u64,
    f: &mut impl FnMut(u64, &AtomicU64),
) {
    let width = 1_u64 << (DIGITS as usize * level);
    let below = |at: usize| prefix + at as u64 * width;
    if level == 0 {
        // SAFETY: pointers at this level are null or to leaves, which live as long as the index.
        let leaf = unsafe { node.cast::<Leaf>().as_ref() };
        for (at, slot) in leaf.iter().flat_map(|leaf| leaf.items.iter().enumerate()) {
            if below(at) >= first {
                f(below(at), slot);
            }
        }
        return;
    }
    // SAFETY: as above, for inner nodes.
    let inner = unsafe { node.cast::<Inner>().as_ref() };
    for (at, link) in inner.iter().flat_map(|inner| inner.0.iter().enumerate()) {
        if below(at) + width > first {
            visit(followed(link), level - 1, below(at), first, f);
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        for height in 0..HEIGHTS {
            free(followed(&self.roots[height]), height);
        }
    }
}

/// Frees a node and what is below it. Nothing else points to them.
fn free(node: *mut (), level: usize) {
    if node.is_null() {
        return;
    }
    if level == 0 {
        // SAFETY: a pointer to a leaf, from a box, and the last one.
        drop(unsafe { Box::from_raw(node.cast::<Leaf>()) });
        return;
    }
    // SAFETY: as above, for inner nodes.
    let inner = unsafe { Box::from_raw(node.cast::<Inner>()) };
    for link in &inner.0 {
        free(followed(link), level - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_is_a_map() {
        let index = Index::new();
        let mut model = BTreeMap::new();
        let mut rng = fastrand::Rng::with_seed(1);
        let pages = [0, 1, 63, 64, 65, 4095, 4096, 262_144, MAX_PAGES - 1];
        for _ in 0..2000 {
            let page = pages[rng.usize(..pages.len())];
            let block = if rng.bool() { rng.u32(1..1 << 31) } else { 0 };
            let new = Packed::verified(Item {
                block,
                sum: rng.u32(..),
            });
            let old = model.insert(page, new).unwrap_or(Packed(0));
            assert_eq!(index.replace(page, new), old);
            assert_eq!(index.get(page).item().block, block);
            let first = pages[rng.usize(..pages.len())];
            let mut found = Vec::new();
            index.for_each(first, |page, item| found.push((page, item)));
            let kept = model.range(first..).filter(|(_, item)| **item != Packed(0));
            assert!(kept.map(|(page, item)| (*page, *item)).eq(found));
        }
        assert!(index.bytes() > 0);
    }
}
