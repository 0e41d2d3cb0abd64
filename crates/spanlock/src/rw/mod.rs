//! Reader-writer locks.
//!
//! | type | what it is |
//! |---|---|
//! | [`RwLock`] | the lock to use: [`Bravo`] over [`FutexRwLock`] |
//! | [`Bravo`] | makes any lock scale with its readers |
//! | [`FutexRwLock`] | two words; readers or writers first |
//! | [`PhaseFairTicket`], [`PhaseFairQueue`] | readers and writers take turns |
//! | [`CohortRwLock`] | for machines of several memory nodes |
//! | [`PerCpu`] | a lock for each processor |
//! | [`FutexMutex`], [`MutexRwLock`] | a mutex, and any mutex as a lock to put under [`Bravo`] |
//! | [`Standard`], [`Tuning`], [`Counted`] | when a lock is biased, and what is counted |
//! | [`visible`], [`BiasState`] | what `Bravo` is made of, for builders of other locks |
//! | [`Tokenless`] | the same for locks that C releases |
//!
//! All are raw locks of [`lock_api`], which has the guards, and `T` inside the lock. `docs/rwlocks.md` tells the
//! protocols.
//!
//! # Forked children
//!
//! A forked child has one thread. What that held when it forked the child holds, and may release; what other threads
//! held stays held in the child for good, as for any lock. Of what else they were about when the process forked,
//! this is left:
//!
//! - [`RwLock`], [`FutexRwLock`], [`FutexMutex`], [`Bravo`] over these, and a [`MutexRwLock`] of them: writers who waited
//!   are forgotten (on Linux), so the child uses the lock as if they had not been there. If one waited for readers in the table, the lock is never
//!   biased again in the child. A reader that was just finding a writer in its way may stay counted: then writers
//!   in the child wait for good.
//! - [`PhaseFairTicket`], [`PhaseFairQueue`], [`CohortRwLock`]: who waited, or was about to, keeps its place and never takes it. A
//!   child may hang that acquires the lock, or releases it, unless no other thread of the parent used it at the time.
//!   So do locks made of these.

mod bias;
mod bravo;
mod cohort;
mod futex;
mod mutex;
mod pace;
mod park;
mod per_cpu;
mod phases;
mod policy;
mod queue;
mod raw;
mod ticket;
mod tokenless;
pub mod visible;

pub use bias::{Arrival, BiasState};
pub use bravo::{Bravo, ReadToken};
pub use cohort::{CohortRwLock, NodeToken};
pub use futex::{FutexRwLock, GiveWay, Preference, ReadersFirst, WritersFirst};
pub use mutex::{FutexMutex, MutexRwLock};
pub use per_cpu::{PartToken, PerCpu};
pub use policy::{Bias, Counted, Counts, Event, Policy, Standard, Tuning};
pub use queue::PhaseFairQueue;
pub use ticket::{PhaseFairTicket, Ticket};
pub use tokenless::Tokenless;

/// A reader-writer lock around a value: scales with readers, in 16 bytes beside the value.
///
/// ```
/// use spanlock::rw::RwLock;
///
/// static CONFIG: RwLock<Vec<u32>> = RwLock::new(Vec::new());
/// CONFIG.write().push(5);
/// assert_eq!(*CONFIG.read(), [5]);
/// ```
///
/// [`Bravo`] and [`FutexRwLock`] say what it costs and promises. A writer that waits holds new readers back, so a
/// thread that reads should not read the same lock again.
pub type RwLock<T> = lock_api::RwLock<Bravo<FutexRwLock>, T>;

/// Reads a [`RwLock`].
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, Bravo<FutexRwLock>, T>;

/// Reads a [`RwLock`] beside others, and may upgrade to write it.
pub type RwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, Bravo<FutexRwLock>, T>;

/// Writes a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, Bravo<FutexRwLock>, T>;
