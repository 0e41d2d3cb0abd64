//! `song`: a skip list of the held ranges under a spin lock (Song et al., VEE 2013, as described in P4 §2.1.2).
//!
//! A request takes the spin lock and searches the list, which is ordered by start, for a held range that overlaps. If
//! there is one, the request releases the spin lock, waits a little and starts over. Otherwise it inserts its range and
//! holds it. A release takes the spin lock and deletes the range. There is no queue, so a request may be overtaken
//! without end.
//!
//! Two faults of the original are corrected. It shifted keys by one bit and lost the highest; here positions are all of
//! `0..=u64::MAX`. It released by value, so that a release of a range that was not held damaged the list; here a
//! release deletes the node of its token. As in all baselines, a waiting thread spins for a bounded time and then
//! yields.
//!
//! # Memory ordering
//! - [spin-lock-acquire], [spin-lock-release]: see `spin_lock.rs`. It protects all state of the lock, so it alone
//!   orders the critical sections of holders.

use super::spin_lock::{SpinLock, gives_up, spin_until};
use spanlock::range::Span;
use spanlock::range::raw::{Ask, RawRangeMutex};

/// The largest number of levels.
pub const MAX_HEIGHT: usize = 16;

/// The default number of levels, which P4 found best for its own list (§4.3.2).
pub const HEIGHT: usize = 10;

/// The place of a node in the arena, which does not change while the node is in the list.
type Slot = u32;

/// No node: the end of every level.
const NIL: Slot = Slot::MAX;

/// The next node on each level.
type Tower = [Slot; MAX_HEIGHT];

struct Node {
    span: Span,
    /// The links, of which those beyond the node's height are unused. A free node links the next free node on the
    /// lowest level.
    next: Tower,
}

/// Disjoint ranges, ordered by start and therefore by last position as well.
struct SkipList {
    height: usize,
    /// The first node on each level.
    head: Tower,
    nodes: Vec<Node>,
    free: Slot,
    random: u32,
}

impl SkipList {
    const fn new(height: usize) -> Self {
        assert!(height >= 1 && height <= MAX_HEIGHT);
        Self {
            height,
            head: [NIL; MAX_HEIGHT],
            nodes: Vec::new(),
            free: NIL,
            random: 0x9e37_79b9,
        }
    }

    /// Adds a range, unless a range in the list overlaps it.
    fn insert(&mut self, span: Span) -> Option<Slot> {
        let before = self.before(span.start());
        let next = self.next(before[0], 0);
        // The ranges before `next` end before `span` starts. The ranges after `next` start after `next` ends.
        if next != NIL && self.node(next).span.overlaps(span) {
            return None;
        }
        let slot = self.place(span);
        let height = self.random_height();
        for (level, &before) in before.iter().enumerate().take(height) {
            let next = self.next(before, level);
            self.nodes[slot as usize].next[level] = next;
            *self.next_mut(before, level) = slot;
        }
        Some(slot)
    }

    fn remove(&mut self, slot: Slot) {
        let before = self.before(self.node(slot).span.start());
        for (level, &before) in before.iter().enumerate().take(self.height) {
            if self.next(before, level) != slot {
                // The node is no higher than this level.
                break;
            }
            *self.next_mut(before, level) = self.node(slot).next[level];
        }
        self.nodes[slot as usize].next[0] = self.free;
        self.free = slot;
    }

    /// The last node on each level that ends before `start`; `NIL` for the head.
    fn before(&self, start: u64) -> Tower {
        let mut before = [NIL; MAX_HEIGHT];
        let mut at = NIL;
        for level in (0..self.height).rev() {
            loop {
                let next = self.next(at, level);
                if let Some(node) = self.nodes.get(next as usize) {
                    prim::cost::read(node);
                }
                if next == NIL || self.node(next).span.last() >= start {
                    break;
                }
                at = next;
            }
            before[level] = at;
        }
        before
    }

    fn next(&self, at: Slot, level: usize) -> Slot {
        match self.nodes.get(at as usize) {
            Some(node) => node.next[level],
            None => self.head[level],
        }
    }

    fn next_mut(&mut self, at: Slot, level: usize) -> &mut Slot {
        let next = match self.nodes.get_mut(at as usize) {
            Some(node) => &mut node.next[level],
            None => &mut self.head[level],
        };
        prim::cost::write(next);
        next
    }

    fn node(&self, slot: Slot) -> &Node {
        &self.nodes[slot as usize]
    }

    fn place(&mut self, span: Span) -> Slot {
        let node = Node {
            span,
            next: [NIL; MAX_HEIGHT],
        };
        if self.free == NIL {
            self.nodes.push(node);
            let slot = Slot::try_from(self.nodes.len() - 1).ok();
            slot.filter(|&slot| slot != NIL)
                .expect("fewer than 2^32 - 1 ranges at a time")
        } else {
            let slot = self.free;
            self.free = self.node(slot).next[0];
            self.nodes[slot as usize] = node;
            slot
        }
    }

    /// A random height, at least 1. Each level is half as likely as the one below.
    fn random_height(&mut self) -> usize {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        // The high bits are more random than the low ones.
        let more = self.random.leading_zeros() as usize;
        (1 + more).min(self.height)
    }
}

/// The token of an acquisition: its node.
#[derive(Debug)]
pub struct SongToken(Slot);

/// Song's range lock: exclusive ranges in a skip list under a spin lock. The source of this module describes it.
///
/// It allocates nothing after its arena has grown to the largest number of ranges held at a time.
pub struct Song(SpinLock<SkipList>);

impl Song {
    prim::const_fn! {
        /// A free lock with so many levels, from 1 to [`MAX_HEIGHT`].
        ///
        /// # Panics
        /// When the number of levels is not in that range.
        #[must_use]
        pub const fn new(height: usize) -> Self {
            Self(SpinLock::new(SkipList::new(height)))
        }
    }
}

// SAFETY: all held ranges are in the list. A range is granted when it is inserted, in the same section of the spin lock
// that has found no overlapping range. The critical sections of earlier holders are visible by [spin-lock-release].
unsafe impl RawRangeMutex for Song {
    type Token = SongToken;

    fn lock_exclusive(&self, ask: Ask<'_, SongToken>) -> Option<SongToken> {
        let mut granted = None;
        spin_until(|| {
            granted = self.0.with(|list| list.insert(ask.span));
            granted.is_some() || gives_up(ask.wait)
        });
        granted.map(SongToken)
    }

    unsafe fn unlock(&self, token: SongToken) {
        self.0.with(|list| list.remove(token.0));
    }
}

#[cfg(test)]
mod tests {
    use super::{HEIGHT, MAX_HEIGHT, NIL, SkipList, Slot};
    use proptest::prelude::*;
    use spanlock::range::Span;

    /// Checks that every level is ordered and a subset of the level below; returns the number of nodes.
    fn check(list: &SkipList) -> usize {
        let level = |level| {
            let first = Some(list.head[level]);
            let slots = std::iter::successors(first, |&slot| {
                (slot != NIL).then(|| list.node(slot).next[level])
            });
            slots.take_while(|&slot| slot != NIL).collect::<Vec<Slot>>()
        };
        let all = level(0);
        let key = |slot: &Slot| list.node(*slot).span;
        assert!(all.is_sorted_by(|a, b| key(a).last() < key(b).start()));
        for above in 1..list.height {
            let below = level(above - 1);
            let mut rest = below.iter();
            assert!(
                level(above)
                    .iter()
                    .all(|slot| rest.any(|other| other == slot))
            );
        }
        all.len()
    }

    fn spans() -> impl Strategy<Value = Span> {
        let ends = prop_oneof![8 => 0..60_u64, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)];
        (ends.clone(), ends).prop_map(|(a, b)| Span::of(a.min(b)..=a.max(b)).unwrap())
    }

    proptest! {
        #[test]
        fn agrees_with_a_vector(
            height in 1..=MAX_HEIGHT,
            ops in prop::collection::vec((any::<bool>(), spans(), 0..100_usize), 0..200),
        ) {
            let mut list = SkipList::new(height);
            let mut model: Vec<(Slot, Span)> = Vec::new();
            let mut most = 0;
            for (insert, span, at) in ops {
                if insert {
                    let free = model.iter().all(|(_, held)| !held.overlaps(span));
                    let slot = list.insert(span);
                    prop_assert_eq!(slot.is_some(), free);
                    model.extend(slot.map(|slot| (slot, span)));
                } else if !model.is_empty() {
                    let (slot, span) = model.swap_remove(at % model.len());
                    prop_assert_eq!(list.node(slot).span, span);
                    list.remove(slot);
                }
                most = most.max(model.len());
                prop_assert_eq!(check(&list), model.len());
                prop_assert_eq!(list.nodes.len(), most, "freed nodes are used again");
            }
        }
    }

    #[test]
    fn heights_halve_and_end_where_they_were_told_to() {
        let mut list = SkipList::new(4);
        let mut seen = [0_u32; 5];
        (0..8000).for_each(|_| seen[list.random_height()] += 1);
        assert_eq!(seen[0], 0);
        assert!(
            seen[1] > 3500 && seen[2] > 1600 && seen[3] > 700 && seen[4] > 700,
            "{seen:?}"
        );
        let mut tall = SkipList::new(HEIGHT);
        assert!((0..8000).any(|_| tall.random_height() == HEIGHT));
    }
}
