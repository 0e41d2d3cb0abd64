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
//! # Guards and threads
//!
//! A guard stays on the thread that acquired it:
//!
#![cfg_attr(not(feature = "send_guard"), doc = "```compile_fail,E0277")]
#![cfg_attr(feature = "send_guard", doc = "```")]
//! let lock = spanlock::rw::RwLock::new(5);
//! let guard = lock.write();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || drop(guard)); // A guard that stays on its thread does not compile here.
//! });
//! ```
//!
//! The cargo feature `send_guard` lets guards go to other threads, as parking_lot's does. Futures that hold one across an
//! `await` then compile for executors of several threads; such a program deadlocks when all threads of the executor
//! wait for the lock while the future that holds it is suspended.
//!
//! # A thread that waits for itself
//!
//! In debug builds, and without `send_guard`, a thread that asks for what it would wait for itself to release panics. The message
//! names the lock, both ways of holding it, and the lines where it was acquired and where it is asked for. Found are,
//! in [`RwLock`], [`Bravo`], [`FutexRwLock`], [`PhaseFairTicket`], [`PhaseFairQueue`] and [`CohortRwLock`]: to ask for anything while it writes,
//! to ask to write while it reads, and to upgrade while it also reads otherwise; in [`FutexRwLock`] that gives way to
//! writers, and locks made of it, also to read again while a writer waits that will not give up. Release builds wait
//! for ever. Tries are refused, and timed requests wait for their time. What is not found are rings of several threads or locks. A thread
//! that leaked a guard holds the lock still, also by this account.
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
mod watch;

pub use bias::{Arrival, BiasState};
pub use bravo::{Bravo, ReadToken, UnderToken};
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
/// thread that reads should not read the same lock again; a debug build panics when that would hang.
pub type RwLock<T> = lock_api::RwLock<Bravo<FutexRwLock>, T>;

/// Reads a [`RwLock`].
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, Bravo<FutexRwLock>, T>;

/// Reads a [`RwLock`] beside others, and may upgrade to write it.
pub type RwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, Bravo<FutexRwLock>, T>;

/// Writes a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, Bravo<FutexRwLock>, T>;
