//! Reader-writer locks.
//!
//! | type | what it is |
//! |---|---|
//! | [`RwLock`] | the lock to use: [`Bravo`] over [`FutexRwLock`] |
//! | [`Bravo`] | makes any lock scale with its readers |
//! | [`FutexRwLock`] | a lock of two words that prefers writers, or readers |
//! | [`PhaseFairTicket`], [`PhaseFairQueue`] | readers and writers take turns |
//! | [`ForTasks`] | a lock that tasks may wait for, too |
//! | [`SendGuards`] | makes the guards of any lock ones that may go to other threads |
//! | [`ReadRecursive`] | to read again while a writer waits |
//! | [`Bias`], [`Counted`] | when a lock is biased, and what is counted |
//!
//! All are raw locks of [`lock_api`], which has the guards, and the locks that hold a value. It is re-exported here, so
//! that its version fits; the features `arc_lock`, `serde` and `owning_ref` are passed on to it. `docs/rwlocks.md`
//! explains the protocols.
//!
//! # Guards and threads
//!
//! A guard stays on the thread that acquired it:
//!
//! ```compile_fail,E0277
//! let lock = spanlock::rw::RwLock::new(5);
//! let guard = lock.write();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || drop(guard));
//! });
//! ```
//!
//! The guards of a lock in [`SendGuards`] may go to other threads.
//!
//! # A thread that waits for itself
//!
//! In debug builds a thread that would wait for itself panics. The message names the lock, how it is held and how it is
//! asked for, and the two lines. The check covers [`RwLock`], [`Bravo`], [`FutexRwLock`], [`PhaseFairTicket`] and
//! [`PhaseFairQueue`], but not in [`SendGuards`]. It finds a thread that
//!
//! - asks for anything while it writes;
//! - asks to write while it reads;
//! - upgrades while it also reads otherwise;
//! - reads again while a writer waits that cannot give up, in [`FutexRwLock`] that gives way to writers, and in locks
//!   made of it.
//!
//! Release builds wait for ever. Tries are refused, and timed requests wait until their deadline. The check does not
//! find rings of several threads or of several locks. A leaked guard counts as held.
//!
//! # Forked children
//!
//! A forked child has one thread. The child holds what that thread held when it forked, and may release it. What other
//! threads held stays held in the child for good, as for any lock. Threads of the parent that were acquiring or
//! releasing at the time leave traces:
//!
//! - [`RwLock`], [`FutexRwLock`], and [`Bravo`] over it: the child forgets writers that waited (on Linux), and uses the
//!   lock as if they had not been there. If a writer had arrived, the lock is never biased again in the child, and each
//!   read there may spin for 32 microseconds and then yield its processor, which takes a time slice if others want it.
//!   A thread that was just getting in or out may count as a holder there for good: a reader that had published or
//!   counted itself, or a writer that was about to look at the bias. Then those whom it excludes wait for good.
//! - [`PhaseFairTicket`], [`PhaseFairQueue`], and locks made of these: a thread that waited, or was about to, keeps its
//!   place and never takes it. The child may hang when it acquires or releases the lock, unless no other thread of the
//!   parent used it at the time.

mod again;
mod bravo;
mod futex;
mod phase_fair;
mod raw;
mod sending;
mod tasks;
mod watch;
mod whole;
mod word;

pub use again::{RawRwLockRecursive, ReadRecursive};
use bravo::Way;
pub use bravo::options::{Bias, Counted, Counts, Event, Policy, Standard};
pub use bravo::{Bravo, ReadToken, UnderToken, WriteToken};
pub use futex::{FutexRwLock, GiveWay, Preference, ReadersFirst, WritersFirst};
pub use phase_fair::queue::PhaseFairQueue;
pub use phase_fair::ticket::{PhaseFairTicket, Ticket};
pub use sending::{ForeignRelease, SendGuards, SentToken};
pub use tasks::{AwaitRwLock, ForTasks, ReadAsync, WriteAsync};
pub use whole::{WholeRange, WholeToken};

/// The crate of the guards, and of the locks that hold a value.
pub use ::lock_api;

/// The parts of the preload library's lock. Not part of the library's interface: they may change at any time.
#[doc(hidden)]
pub mod pthread {
    pub use super::bravo::Sampler;
    pub use super::bravo::bias::{BiasState, Revocation};
    pub use super::bravo::pthread::AnonymousUnlock;
    pub use super::bravo::table;
}

/// A reader-writer lock around a value. It scales with its readers, and takes 16 bytes beside the value.
///
/// ```
/// use spanlock::rw::RwLock;
///
/// static CONFIG: RwLock<Vec<u32>> = RwLock::new(Vec::new());
/// CONFIG.write().push(5);
/// assert_eq!(*CONFIG.read(), [5]);
/// ```
///
/// [`Bravo`] and [`FutexRwLock`] document its cost and its promises. A writer that waits holds new readers back, so a
/// thread that reads should not read the same lock again. A debug build panics when that would hang.
///
/// A downgrade lets no writer in. Whether readers that wait get in beside the one that has downgraded is a toss if a
/// writer waits as well: all are woken, and that writer may come first, and then holds them back.
pub type RwLock<T> = lock_api::RwLock<Bravo<FutexRwLock>, T>;

/// Reads a [`RwLock`].
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, Bravo<FutexRwLock>, T>;

/// Reads a [`RwLock`] beside other readers, and may upgrade to write it.
pub type RwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, Bravo<FutexRwLock>, T>;

/// Writes a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, Bravo<FutexRwLock>, T>;
