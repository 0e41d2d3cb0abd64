//! The variants that P1 and P2 compare, and ours: each a lock and how much of the space operations lock.

use crate::Refinement;
use baseline::KernelRw;
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use prim::clock::Instant;
use spanlock::range::Span;
use spanlock::range::list::{Fairness, ListRw};
use spanlock::range::raw::{RawRangeLock, RawRangeMutex, Wait};
use spanlock::rw::{Bravo, FutexRwLock};

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
    fn variant<L: RawRangeLock + Send + Sync + 'static>(
        &mut self,
        variant: Variant,
        make: fn() -> L,
    );
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
    let ours: fn() -> ListRw = || ListRw::new();
    let stock = of("stock", "one reader-writer lock", Refinement::FULL);
    table.variant(stock, OneLock::<FutexRwLock>::new);
    let biased = of(
        "stock-bravo",
        "one reader-writer lock with a bias (P2 §4)",
        Refinement::FULL,
    );
    table.variant(biased, OneLock::<Bravo<FutexRwLock>>::new);
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
            "the default range lock, always whole",
            Refinement::FULL,
        ),
        ours,
    );
    table.variant(
        of(
            "ours",
            "the default range lock, refined for all operations",
            Refinement::REFINED,
        ),
        ours,
    );
}

/// A reader-writer lock that takes every range for the whole.
#[derive(Debug)]
pub struct OneLock<R>(R);

impl<R: Default> OneLock<R> {
    /// An unlocked lock.
    #[must_use]
    pub fn new() -> Self {
        Self(R::default())
    }
}

impl<R: Default> Default for OneLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

/// How the lock is held.
#[derive(Debug)]
pub enum OneToken<S, E> {
    /// With other readers.
    Shared(S),
    /// Alone.
    Exclusive(E),
}

type Token<R> = OneToken<<R as RawRwLock>::SharedGuard, <R as RawRwLock>::ExclusiveGuard>;

// SAFETY: holders of this lock in exclusive mode exclude all others, whatever their ranges, and the lock orders them.
unsafe impl<R> RawRangeMutex for OneLock<R>
where
    R: RawRwLockDowngrade + RawRwLockTimed<Instant = Instant>,
{
    type Token = Token<R>;

    fn lock_exclusive(&self, _span: Span, wait: Wait) -> Option<Token<R>> {
        let guard = match wait {
            Wait::Forever => Some(self.0.lock_exclusive()),
            Wait::Never => self.0.try_lock_exclusive(),
            Wait::Until(deadline) => self.0.try_lock_exclusive_until(deadline),
        };
        guard.map(OneToken::Exclusive)
    }

    unsafe fn unlock(&self, token: Token<R>) {
        match token {
            // SAFETY: the guard came from this lock, as the caller promises of the token.
            OneToken::Shared(guard) => unsafe { self.0.unlock_shared(guard) },
            // SAFETY: the same.
            OneToken::Exclusive(guard) => unsafe { self.0.unlock_exclusive(guard) },
        }
    }

    fn granule(&self, _span: Span) -> Span {
        Span::ALL
    }
}

// SAFETY: as above, and holders in shared mode are inside together.
unsafe impl<R> RawRangeLock for OneLock<R>
where
    R: RawRwLockDowngrade + RawRwLockTimed<Instant = Instant>,
{
    fn lock_shared(&self, _span: Span, wait: Wait) -> Option<Token<R>> {
        let guard = match wait {
            Wait::Forever => Some(self.0.lock_shared()),
            Wait::Never => self.0.try_lock_shared(),
            Wait::Until(deadline) => self.0.try_lock_shared_until(deadline),
        };
        guard.map(OneToken::Shared)
    }

    unsafe fn downgrade(&self, token: Token<R>) -> Token<R> {
        match token {
            // SAFETY: the guard came from this lock, as the caller promises of the token.
            OneToken::Exclusive(guard) => OneToken::Shared(unsafe { self.0.downgrade(guard) }),
            shared @ OneToken::Shared(_) => shared,
        }
    }
}
