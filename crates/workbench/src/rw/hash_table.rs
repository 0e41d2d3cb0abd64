//! Lookups, an inserter and an eraser in one table (P2 §5.6, after rocksdb's `hash_table_bench`).
//!
//! All work without a pause: one thread inserts random keys, one erases random keys, and the others look up random
//! keys, of which half are there to begin with. The table is made for this: chains of nodes that are all there from
//! the beginning, so that no allocator is measured, and in words that may be read while they are written, so that a
//! lock that does not exclude is found out and does no worse. The paper does not give its size.

use super::{
    Argument, Deserialize, Kind, OnWhole, Outcome, Rng, Run, Serialize, Settings, Signal, Tally,
    WHOLE, Workload, fmt, until_stop,
};
use crossbeam_utils::CachePadded;
use prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The most elements.
const MAX_ENTRIES: usize = 1 << 24;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Elements to begin with.
    pub entries: usize,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hash_table, {} entries", self.entries)
    }
}

impl Settings for Load {
    const NAME: &'static str = "hash_table";
    const KIND: Kind = Kind::Whole;
    const BESIDE: usize = 2;
}

impl Workload for Load {
    const ABOUT: &'static str = "Lookups in a hash table, with an inserter and an eraser";
    const ARGUMENTS: &'static [Argument] = &[Argument::whole(
        "entries",
        1..=MAX_ENTRIES,
        "65536",
        "Elements to begin with",
    )];
}

impl OnWhole for Load {
    fn run(run: Run<'_, Self>) -> Outcome {
        let Self { entries } = run.load();
        // On lines of their own: else it is the compiler that decides what shares one with the head of the free nodes.
        let table = CachePadded::new(Table::filled(entries));
        let keys = 2 * entries as u64;
        let lock = run.lock();
        let expected = CachePadded::new(AtomicU64::new(entries as u64));
        // Thread 0 inserts and thread 1 erases.
        let work = |thread: usize, mut rng: Rng, signal: &Signal, tally: &mut Tally| {
            let mut grown = 0_u64; // Or shrunk: it wraps.
            let mut write =
                |change: fn(&Table, u64) -> bool, by: u64, rng: &mut Rng, counts: u64| {
                    let key = rng.u64(..keys);
                    let held = lock.write(WHOLE);
                    let changed = change(&table, key);
                    drop(held);
                    grown = grown.wrapping_add(by * u64::from(changed));
                    tally.writes += counts;
                };
            match thread {
                0 => until_stop(signal, |counts| write(Table::insert, 1, &mut rng, counts)),
                1 => until_stop(signal, |counts| {
                    write(Table::erase, u64::MAX, &mut rng, counts);
                }),
                _ => until_stop(signal, |counts| {
                    let key = rng.u64(..keys);
                    let held = lock.read(WHOLE);
                    let seen = table.find(key);
                    drop(held);
                    tally.torn += u64::from(seen == Seen::Torn);
                    tally.reads += counts;
                }),
            }
            expected.fetch_add(grown, Relaxed);
        };
        run.work(work, |_| table.lost(expected.load(Relaxed)))
    }
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// A node with the key, and its value.
    Element,
    /// Half of a write.
    Torn,
}

/// No node.
const NONE: u32 = u32::MAX;

/// On a line of its own, as what an allocator hands out one by one.
#[derive(Debug)]
#[repr(align(64))]
struct Node {
    key: AtomicU64,
    value: AtomicU64,
    next: AtomicU32,
}

/// Heads of chains in a line.
const HEADS: usize = 16;

#[derive(Debug)]
#[repr(align(64))]
struct Heads([AtomicU32; HEADS]);

/// Chains of nodes. Relaxed, all: the lock is to order them.
#[derive(Debug)]
struct Table {
    heads: Vec<Heads>,
    chains: usize,
    nodes: Vec<Node>,
    /// The chain of nodes that hold nothing.
    free: AtomicU32,
}

/// The value of a key.
fn value(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

impl Table {
    /// With the even keys of twice as many.
    fn filled(entries: usize) -> Self {
        assert!((1..=MAX_ENTRIES).contains(&entries));
        let nodes = 2 * entries as u32;
        let table = Self {
            heads: (0..entries.div_ceil(HEADS))
                .map(|_| Heads([const { AtomicU32::new(NONE) }; HEADS]))
                .collect(),
            chains: entries,
            nodes: (0..nodes)
                .map(|at| Node {
                    key: AtomicU64::new(0),
                    value: AtomicU64::new(0),
                    next: AtomicU32::new(if at + 1 < nodes { at + 1 } else { NONE }),
                })
                .collect(),
            free: AtomicU32::new(0),
        };
        (0..entries as u64).for_each(|half| _ = table.insert(2 * half));
        table
    }

    fn head(&self, key: u64) -> &AtomicU32 {
        let at = (value(key) >> 20) as usize % self.chains;
        &self.heads[at / HEADS].0[at % HEADS]
    }

    /// The nodes of a chain; ends also if the chain does not.
    fn chain<'a>(&'a self, head: &'a AtomicU32) -> impl Iterator<Item = &'a Node> {
        let follow = |link: &AtomicU32| self.nodes.get(link.load(Relaxed) as usize);
        std::iter::successors(follow(head), move |node| follow(&node.next)).take(self.nodes.len())
    }

    fn find(&self, key: u64) -> Seen {
        let found = self
            .chain(self.head(key))
            .find(|node| node.key.load(Relaxed) == key);
        match found {
            None => Seen::Nothing,
            Some(node) if node.value.load(Relaxed) == value(key) => Seen::Element,
            Some(_) => Seen::Torn,
        }
    }

    /// Whether it was not there.
    fn insert(&self, key: u64) -> bool {
        let free = self.free.load(Relaxed);
        let Some(node) = self.nodes.get(free as usize) else {
            return false;
        };
        if self.find(key) != Seen::Nothing {
            return false;
        }
        self.free.store(node.next.load(Relaxed), Relaxed);
        let head = self.head(key);
        node.next.store(head.load(Relaxed), Relaxed);
        // Visible before it has its value: a lookup that is not kept out sees it.
        head.store(free, Relaxed);
        node.key.store(key, Relaxed);
        node.value.store(value(key), Relaxed);
        true
    }

    /// Whether it was there.
    fn erase(&self, key: u64) -> bool {
        let links = std::iter::once(self.head(key))
            .chain(self.chain(self.head(key)).map(|node| &node.next));
        for link in links {
            let at = link.load(Relaxed);
            let Some(node) = self.nodes.get(at as usize) else {
                return false;
            };
            if node.key.load(Relaxed) == key {
                link.store(node.next.load(Relaxed), Relaxed);
                node.value.store(0, Relaxed);
                node.next.store(self.free.load(Relaxed), Relaxed);
                self.free.store(at, Relaxed);
                return true;
            }
        }
        false
    }

    /// Elements that are missing, or too many, or not what they should be; likewise free nodes.
    fn lost(&self, expected: u64) -> u64 {
        let right = |head: &AtomicU32| {
            let own = |node: &&Node| {
                let key = node.key.load(Relaxed);
                std::ptr::eq(self.head(key), head) && node.value.load(Relaxed) == value(key)
            };
            self.chain(head).filter(own).count() as u64
        };
        let heads = self.heads.iter().flat_map(|Heads(heads)| heads);
        let elements = heads.map(right).sum::<u64>();
        let free = self.chain(&self.free).count() as u64;
        let all = self.nodes.len() as u64;
        expected
            .abs_diff(elements)
            .max((all - expected.min(all)).abs_diff(free))
    }
}

#[cfg(test)]
mod tests {
    use super::{Relaxed, Seen, Table};

    #[test]
    fn elements_come_and_go() {
        let table = Table::filled(8);
        assert_eq!(
            (table.find(4), table.find(5)),
            (Seen::Element, Seen::Nothing)
        );
        assert!(table.insert(5) && !table.insert(5));
        assert_eq!((table.find(5), table.lost(9)), (Seen::Element, 0));
        assert!(table.erase(4) && !table.erase(4) && table.erase(5));
        assert_eq!(
            (table.find(4), table.find(5)),
            (Seen::Nothing, Seen::Nothing)
        );
        assert_eq!((table.lost(7), table.lost(8)), (0, 1));
        for key in 0..16 {
            table.insert(key);
        }
        assert_eq!((table.lost(16), table.insert(99)), (0, false));
    }

    #[test]
    fn damage_is_seen() {
        let table = Table::filled(8);
        let head = table.head(4);
        let node = &table.nodes[head.load(Relaxed) as usize];
        node.value.store(0, Relaxed);
        assert_eq!(table.find(node.key.load(Relaxed)), Seen::Torn);
        assert_eq!(table.lost(8), 1);
        // A chain without end has an end all the same.
        node.next.store(head.load(Relaxed), Relaxed);
        assert_eq!(table.find(1), Seen::Nothing);
        assert!(!table.erase(1));
    }
}
