//! How a list lock is made, with another policy or height.

use super::policy::Policy;
use super::{Fairness, FastPath, NoIndex, Preference, Protocol, RawList, SkipIndex};
use crate::deadlock::Deadlocks;
use crate::range::wait::Patience;
use std::marker::PhantomData;

impl<P: Protocol> RawList<P> {
    prim::const_fn! {
        /// A fair lock with a fast path, that prefers readers.
        #[must_use]
        pub const fn new() -> Self {
            Self::builder().build()
        }
    }

    /// Begins a lock with another policy.
    pub const fn builder() -> Builder<P> {
        Builder::DEFAULT
    }
}

impl<P: Protocol> RawList<P, SkipIndex> {
    prim::const_fn! {
        /// A fair lock with a fast path, that prefers readers, of [`Builder::HEIGHT`].
        #[must_use]
        pub const fn new() -> Self {
            Self::builder().build()
        }
    }

    /// Begins a lock with another policy, or of another height.
    pub const fn builder() -> Builder<P, SkipIndex> {
        Builder::DEFAULT
    }
}

impl<P: Protocol> Default for RawList<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Protocol> Default for RawList<P, SkipIndex> {
    fn default() -> Self {
        Self::new()
    }
}

/// A list lock to be built.
#[derive(Debug)]
#[must_use]
pub struct Builder<P, I = NoIndex> {
    policy: Policy,
    patience: Patience,
    deadlocks: Deadlocks,
    /// Levels above the list, if there is an index.
    levels: u32,
    enter_after: Option<u8>,
    kind: PhantomData<fn() -> (P, I)>,
}

impl<P: Protocol, I> Builder<P, I> {
    const DEFAULT: Self = Self {
        policy: Policy::DEFAULT,
        patience: Patience::of(Fairness::DEFAULT),
        deadlocks: Deadlocks::BY_ENVIRONMENT,
        levels: SkipIndex::DEFAULT,
        enter_after: None,
        kind: PhantomData,
    };

    /// How to treat requests that others keep overtaking. The default is [`Fairness::DEFAULT`].
    pub const fn fairness(mut self, fairness: Fairness) -> Self {
        self.patience = Patience::of(fairness);
        self
    }

    /// Whether to look for deadlocks. The default is [`Deadlocks::BY_ENVIRONMENT`].
    pub const fn deadlocks(mut self, deadlocks: Deadlocks) -> Self {
        self.deadlocks = deadlocks;
        self
    }

    /// Which mode stays when a reader and a writer meet. The default is [`Preference::Readers`].
    pub const fn preference(mut self, preference: Preference) -> Self {
        self.policy.preference = preference;
        self
    }

    /// Whether there is a fast path. The default is [`FastPath::On`].
    pub const fn fast_path(mut self, fast_path: FastPath) -> Self {
        self.policy.fast_path = fast_path;
        self
    }
}

impl<P: Protocol> Builder<P> {
    prim::const_fn! {
        /// The lock.
        #[must_use]
        pub const fn build(self) -> RawList<P> {
            RawList::assemble(self.policy, self.patience, self.deadlocks, NoIndex)
        }
    }
}

impl<P: Protocol> Builder<P, SkipIndex> {
    /// The default height.
    pub const HEIGHT: u32 = SkipIndex::DEFAULT + 1;

    /// The largest height.
    pub const MAX_HEIGHT: u32 = SkipIndex::MAX + 1;

    /// How many lists there are, including the list of all ranges. One list makes a list lock; each further list makes
    /// the lock fit for four times as many ranges held at a time. The default is [`HEIGHT`](Self::HEIGHT).
    ///
    /// # Panics
    /// When that is zero, or more than [`MAX_HEIGHT`](Self::MAX_HEIGHT).
    pub const fn height(mut self, lists: u32) -> Self {
        assert!(
            lists >= 1 && lists <= Self::MAX_HEIGHT,
            "the height of a skip list is out of bounds: expected 1 to 15"
        );
        self.levels = lists - 1;
        self
    }

    /// A range enters the index if the walk to it took at least `steps` steps. For tests, which hold few ranges and
    /// still want towers.
    #[doc(hidden)]
    pub const fn index_after(mut self, steps: u8) -> Self {
        self.enter_after = Some(steps);
        self
    }

    prim::const_fn! {
        /// The lock.
        #[must_use]
        pub const fn build(self) -> RawList<P, SkipIndex> {
            let index = SkipIndex::new(self.levels, self.enter_after);
            RawList::assemble(self.policy, self.patience, self.deadlocks, index)
        }
    }
}
