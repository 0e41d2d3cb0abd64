//! The variants that P1 and P2 compare, and ours: each a lock and how much of the space operations lock.

use crate::baseline::{KernelRw, TreeWaits};
use spanlock::range::list::{Fairness, ListRw};
use spanlock::range::raw::RawRangeLock;
use spanlock::range::slots::RawSlots;
use spanlock::rw::{Bravo, FutexRwLock, Standard, WholeRange};
use structures::vm::Refinement;

/// A variant in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// How much of the space operations lock.
    pub refinement: Refinement,
}

/// Takes the variants.
pub trait Table {
    /// A variant, and how its lock is made.
    fn variant<L: Lock>(&mut self, variant: Variant, make: fn() -> L);
}

/// A variant's lock. Threads can share it.
pub trait Lock: RawRangeLock + Send + Sync + Sized + 'static {
    /// The lock, which records from now on what happens inside it, if it can.
    #[must_use]
    fn recorded(self) -> Self {
        self
    }

    /// What was recorded inside it, for a lock that has a tree.
    fn tree_waits(&self) -> Option<TreeWaits> {
        None
    }
}

impl Lock for WholeRange<FutexRwLock> {}
impl Lock for WholeRange<Bravo<FutexRwLock>> {}
impl Lock for ListRw {}
impl Lock for RawSlots {}

impl Lock for KernelRw {
    fn recorded(self) -> Self {
        Self::recorded(self)
    }

    fn tree_waits(&self) -> Option<TreeWaits> {
        self.waits()
    }
}

/// All of them, in the order of tables of results.
pub fn all(table: &mut impl Table) {
    let of = |name, about, refinement| Variant {
        name,
        about,
        refinement,
    };
    let tree: fn() -> KernelRw = || KernelRw::new();
    // P1's list in the kernel lets requests be overtaken.
    let list: fn() -> ListRw = || ListRw::builder().fairness(Fairness::Unfair).build();
    let stock = of("stock", "one reader-writer lock", Refinement::FULL);
    table.variant(stock, || WholeRange::new(<FutexRwLock>::new()));
    let biased = of(
        "stock-bravo",
        "one reader-writer lock with a bias (P2 §4)",
        Refinement::FULL,
    );
    table.variant(biased, || {
        WholeRange::new(Bravo::with_policy(FutexRwLock::new(), Standard))
    });
    table.variant(
        of(
            "tree-full",
            "the kernel's tree lock, always whole (P1)",
            Refinement::FULL,
        ),
        tree,
    );
    table.variant(
        of(
            "tree-refined",
            "the tree lock, refined as in P1 §5",
            Refinement::P1,
        ),
        tree,
    );
    table.variant(
        of(
            "list-full",
            "P1's list lock, always whole",
            Refinement::FULL,
        ),
        list,
    );
    table.variant(
        of(
            "list-refined",
            "P1's list lock, refined as in P1 §5",
            Refinement::P1,
        ),
        list,
    );
    table.variant(
        of(
            "list-pf",
            "P1's list lock, refined for faults only",
            Refinement::P1_FAULTS,
        ),
        list,
    );
    table.variant(
        of(
            "list-mprotect",
            "P1's list lock, refined for mprotect only",
            Refinement::P1_PROTECT,
        ),
        list,
    );
    table.variant(
        of(
            "ours-full",
            "the default lock, always whole",
            Refinement::FULL,
        ),
        RawSlots::new,
    );
    table.variant(
        of(
            "ours",
            "the default lock, refined for all operations",
            Refinement::REFINED,
        ),
        RawSlots::new,
    );
    table.variant(
        of(
            "ours-list",
            "the list lock with fairness, refined for all operations",
            Refinement::REFINED,
        ),
        ListRw::new,
    );
}
