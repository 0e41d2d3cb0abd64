#![doc = include_str!("../README.md")]
//!
//! # Which lock
//!
//! | lock | use when | avoid when |
//! |---|---|---|
//! | [`RangeLock`] | readers and writers of ranges | every request is for everything |
//! | [`RangeMutex`] | only writers | there are readers |
//! | [`RangeLocked<T>`](range::RangeLocked) | the resource is a slice: `RangeLocked::from` a `Vec`, a box or an array | several ranges are read at a time, or as many as only the running program knows |
//! | [`KeyRangeLock<K>`](range::keys::KeyRangeLock) | ranges of keys, in their order or [one of your own](range::keys::KeyRangeLock::ordered_by): byte strings, names | keys are integers of up to 64 bits, addresses or times: then [`positions`](range::positions()) |
//! | `RangeLock<`[`ListRw`]`>`, `RangeMutex<`[`ListEx`]`>` | memory is scarce, or threads come and go by the thousand | many threads use it and rarely conflict |
//! | `RangeLock<`[`SkipRw`]`>`, `RangeMutex<`[`SkipEx`]`>` | dozens of ranges or more are held at a time | few ranges are held |
//! | `RangeLock<`[`SrlArray`]`>`, `RangeLock<`[`SrlTree`]`>` | ranges are narrow compared with the resource, and many are held | ranges are wide, or neighbours must not conflict |
//! | [`Limited<L>`](range::Limited) around any of them | owners are not to hold too much | it must scale |
//! | [`rw::RwLock<T>`](rw::RwLock) | many readers, on many processors | it is mostly written; threads read it recursively |
//! | [`rw::FutexRwLock`] | it must be small; few read at a time; readers upgrade | many processors read it often |
//! | [`rw::PhaseFairTicket`], [`rw::PhaseFairQueue`] | waits must be bounded for readers and writers | timed acquisitions must be fair |
//!
//! [`rw::Bravo<L>`](rw::Bravo) makes any raw lock of `lock_api` scale with its readers, as [`rw::RwLock`] does.
//!
//! # Who holds, and who waits
//!
//! | | how |
//! |---|---|
//! | a thread, until its guard is dropped | [`read`](range::RangeLock::read), [`write`](range::RangeLock::write), tries and limits of time; several ranges by [`write_many`](range::RangeLock::write_many) |
//! | a transaction or a client that goes from thread to thread | an [`Owner`](range::Owner): [`by`](range::RangeLock::by). It can [convert](range::Holding::convert), extend and release parts, lock several ranges in several modes, and be [cancelled](range::Owner::cancel) |
//! | nobody in particular, and any thread releases it | [`read_owned`](range::RangeLock::read_owned), [`write_owned`](range::RangeLock::write_owned) |
//! | a task, on any executor | [`read_async`](range::RangeLock::read_async), [`write_async`](range::RangeLock::write_async); for an owner [`By::write_async`](range::By::write_async); a reader-writer lock by [`rw::ForTasks`] |
//! | an owner that locks again what it holds | [`Reentrant`](range::Reentrant) |
//! | a transaction over several tables of keys | [`KeySpace`](range::keys::KeySpace) |
//!
//! What an owner or a task holds is a [`Holding`](range::Holding). A thread's guard is not sent to another thread, and
//! not kept over an `.await`.
//!
//! # A program that hangs
//!
//! With `SPANLOCK_DEADLOCKS=report` in its environment, a program prints within two seconds which threads and owners
//! wait for each other, and in which lines. The module [`deadlock`] has that as data, and as an error for those who
//! ask; the module [`observe`] tells of waits and of ranges that are held for long.
//!
//! [`RangeLock`]: range::RangeLock
//! [`RangeMutex`]: range::RangeMutex
//! [`ListRw`]: range::list::ListRw
//! [`ListEx`]: range::list::ListEx
//! [`SkipRw`]: range::skip::SkipRw
//! [`SkipEx`]: range::skip::SkipEx
//! [`SrlArray`]: range::segment::SrlArray
//! [`SrlTree`]: range::segment::SrlTree

pub mod deadlock;
pub mod observe;
pub mod range;
mod reclaim;
#[cfg(feature = "rw")]
pub mod rw;
pub mod timer;
mod wait;
