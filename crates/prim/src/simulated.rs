//! The common parts of `prim-loom` and `prim-sim`, which replace this crate on the model checker and on the simulated
//! machine. The hardware build uses nothing of this.

use crate::clock::Duration;
use core::marker::PhantomData;
use core::ops::Add;

/// The clock of a simulation.
pub trait Clock {
    /// The time since the simulation began.
    fn since_start() -> Duration;
}

/// A point in simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant<C>(Duration, PhantomData<C>);

impl<C: Clock> Instant<C> {
    const fn at(since_start: Duration) -> Self {
        Self(since_start, PhantomData)
    }

    /// The time now.
    #[must_use]
    pub fn now() -> Self {
        Self::at(C::since_start())
    }

    /// The time from `earlier` until this; zero if this is not later.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from this until now.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(Self::at(self.0))
    }

    /// This instant plus a duration; `None` if the sum cannot be represented.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self::at)
    }

    /// The time from the beginning of the simulation to this point.
    #[must_use]
    pub fn since_start(self) -> Duration {
        self.0
    }

    /// Nanoseconds from the beginning of the simulation to now.
    #[must_use]
    pub fn nanoseconds() -> u64 {
        u64::try_from(C::since_start().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl<C: Clock> Add<Duration> for Instant<C> {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self::at(self.0 + duration)
    }
}

/// A hook for forked children. It never runs, because a simulation does not fork.
#[derive(Debug)]
pub struct ForkHook;

impl ForkHook {
    /// A hook that is ignored.
    #[must_use]
    pub const fn new(_hook: extern "C" fn()) -> Self {
        Self
    }

    /// Does nothing.
    pub fn register(&self) {}
}

/// Does nothing, because a simulation does not fork.
pub fn after_fork_in_child(_hook: extern "C" fn()) {}

/// Declares `compare_exchange_by_owner` for the atomics in scope.
#[doc(hidden)]
#[macro_export]
macro_rules! simulated_exchange_by_owner {
    () => {
        /// Compare-exchange on a word that no other thread writes at the same time. To other threads it is a load
        /// followed by a store, which is the weakest form that a processor has. There are no signal handlers here.
        ///
        /// # Errors
        /// The value found, if it differs from `current`.
        #[track_caller]
        pub fn compare_exchange_by_owner(
            word: &AtomicUsize,
            current: usize,
            new: usize,
            success: Ordering,
        ) -> Result<usize, usize> {
            let found = word.load(Ordering::Relaxed);
            if found != current {
                return Err(found);
            }
            word.store(new, success);
            Ok(found)
        }
    };
}

/// `order!` for platforms on which a run can weaken the edge. The calling crate must name the platform `prim`.
#[doc(hidden)]
#[macro_export]
macro_rules! simulated_order {
    ($edge:literal, $ordering:expr) => {
        $crate::simulated_order!($edge, $ordering, prim::atomic::Ordering::Relaxed)
    };
    ($edge:literal, $ordering:expr, $weaker:expr) => {
        if prim::edge::is_intact($edge) {
            $ordering
        } else {
            $weaker
        }
    };
}

/// `intact!` for platforms on which a run can weaken the edge. The calling crate must name the platform `prim`.
#[doc(hidden)]
#[macro_export]
macro_rules! simulated_intact {
    ($edge:literal) => {
        prim::edge::is_intact($edge)
    };
}

/// Declares `high_water` of the word `HIGH_WATER` in scope.
#[doc(hidden)]
#[macro_export]
macro_rules! simulated_high_water {
    () => {
        /// An upper bound of the indices: all that are in use are smaller. Call it after a `SeqCst` fence to miss no
        /// thread that took its index before.
        #[must_use]
        pub fn high_water() -> usize {
            HIGH_WATER.load(Ordering::Relaxed)
        }
    };
}
