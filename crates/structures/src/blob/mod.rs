//! An aliasing area: parts of a memory pool, scattered in it, are shown as one contiguous `&[u8]` without a copy.
//!
//! A large object (BLOB) of a storage engine lies in several *extents* of its buffer pool. An [`AliasArea`] is a range
//! of virtual addresses. [`AliasArea::map`] makes the extents' pages appear there, one after the other. What appears
//! is an *alias* of the BLOB: the same memory at another address.
//!
//! ```text
//!   pool     | C |  B   | free |    A     |  free  |        memory; each extent was written once, then sealed
//!              \     \               |
//!               \     '-----.        |                      the page table of the process
//!                '-----------\--.    |
//!                     .-------\--\---'
//!                     v        v  v
//!   area     |      |    A     |  B   | C |            |    addresses
//!                   '---------------------'
//!                    an alias: one `&[u8]`, its range of addresses held in a range lock
//! ```
//!
//! Threads that make aliases share the area. A range lock gives out its ranges: any typed range lock of `spanlock`, or
//! any [`raw::Ranges`].
//!
//! ```
//! # #[cfg(target_os = "linux")] {
//! use spanlock_structures::blob::{AliasArea, Pool};
//!
//! let page = Pool::page();
//! let pool = Pool::new(16 * page)?;
//! let mut blob = Vec::new();
//! for part in 1..=3 {
//!     let mut draft = pool.allocate(page)?;
//!     draft.fill(part);
//!     blob.push(draft.seal()); // From now on these bytes do not change.
//! }
//!
//! let area = AliasArea::new(&pool, 64 * page)?;
//! let alias = area.map(&blob)?;
//! assert_eq!(alias.len(), 3 * page);
//! assert_eq!(alias[page - 1..=page], [1, 2]);
//! # }
//! # Ok::<(), spanlock_structures::blob::Error>(())
//! ```
//!
//! # Why this is sound
//! Safe code cannot race on the pool's memory, and cannot keep an alias too long:
//!
//! 1. An extent of the pool has one owner. Its bytes are writable through a [`Draft`], whose owner alone has them, and
//!    readable through an [`Extent`]. [`Draft::seal`] and [`Extent::reopen`] consume the one and yield the other.
//! 2. Only extents can be aliased. An [`AliasGuard`] borrows them, so nobody can drop or reopen them meanwhile.
//! 3. An alias is read-only memory. The guard lends it as `&[u8]`, which cannot outlive the guard.
//! 4. The guard's range of addresses is held in the range lock until it shows nothing any more. A cached alias keeps
//!    its range, but nobody has a reference into it.
//! 5. The memory behind the pool is anonymous, of fixed size, and cannot be mapped writable a second time.
//!
//! # Forks
//! A child that was forked has neither the pool's memory nor its aliases. There, requests fail with
//! [`Error::Forked`], and dropping something does nothing. A child that touches an extent or an alias that it inherited
//! is killed, unless it has mapped other memory at that address meanwhile. To fork is `unsafe`, and not to touch them
//! is part of what its caller promises. A child that executes a program is not affected.
//!
//! # When not to use it
//! An alias costs system calls, page faults, and work under a lock that the kernel has for each process. To copy a BLOB
//! extent by extent is often faster, even for large ones. `spanlock bench blob` measures both. An alias pays when
//! the reader needs contiguous memory and reads little of it, reads it in place several times, or finds it in an
//! [`AliasCache`].
//!
//! # Platforms
//! Linux 5.1 or later. On other systems there is only [`raw`].
//!
//! # Source
//! P4 §4.4 (see the repository's README) and LeanStore, whose aliasing area it describes.

#[cfg(target_os = "linux")]
mod area;
#[cfg(target_os = "linux")]
mod cache;
mod error;
#[cfg(target_os = "linux")]
mod pool;
pub mod raw;
#[cfg(target_os = "linux")]
mod sys;

#[cfg(target_os = "linux")]
pub use self::{
    area::{AliasArea, AliasGuard},
    cache::AliasCache,
    pool::{Draft, Extent, Pool},
};
pub use error::Error;
