//! A file store for many writers of one file: files and directories in one mapped file or device, recovered after a
//! crash at any instant.
//!
//! The design is that of *Parallelizing Shared File I/O Operations of NVM File System for Manycore Servers* (P3 in this
//! documentation) over NOVA: a log for each inode, pages that are never overwritten in place, a range lock for each
//! file, and commit marks in the log. `docs/store.md` explains the protocol and what was mended;
//! `docs/store-format.md` is the format.
//!
//! ```
//! use spanlock_structures::store::{Durability, Geometry, Memory, Options, Store, make};
//!
//! let medium = Memory::new(1 << 20);
//! make(&medium, &Geometry::default())?;
//! let (store, _) = Store::open(medium, Options::default())?;
//! let file = store.create("/shared", 0o644)?;
//! std::thread::scope(|scope| {
//!     scope.spawn(|| file.write_at(b"one", 0));
//!     scope.spawn(|| file.write_at(b"two", 4096)); // Another page: runs in parallel with the first.
//! });
//! assert_eq!(file.stat()?.size, 4099);
//! assert_eq!(store.status().durability, Durability::Process);
//! drop(file);
//! store.close()?;
//! # Ok::<(), spanlock_structures::store::Error>(())
//! ```
//!
//! # When not to use it
//! - Files are small and each has one writer: a file system of the kernel is as fast, and shared by all programs.
//! - Several processes work on the files at a time: a store belongs to one process.
//!
//! # One write
//!
//! ```text
//!   round the range out to pages                                    [round-pages]
//!   lock it in the file's range lock
//!     fill fresh pages, fence                                       [data-flush] [data-fence]
//!     reserve slots of the group's log, by one addition             [link-first] [head-first] [branch-first]
//!     write the entry with its checksum, the commit mark, fence     [mark] [entry-flush] [entry-fence]
//!     publish the pages in the index; now the old pages are free    [free-after] [free-at-sync]
//!   unlock
//! ```
//!
//! # Edges: what recovery depends on
//!
//! - **round-pages**: a write copies the rest of its first and last page, so it locks whole pages.
//! - **data-flush** / **data-fence**: the pages of a write are durable before its entry is written.
//! - **entry-flush** / **entry-fence**: the entry is durable before the write returns.
//! - **mark**: the checksum of an entry covers the generation of its log page, so an entry that an earlier log left in
//!   a recycled page is none.
//! - **as-published**: the same, and the slots of a fresh log page are zero. P3 does neither.
//! - **link-first**: a log page is linked durably before its slots are handed out.
//! - **head-first**: the same for the first page, whose link is in the inode's slot.
//! - **head-halves**: the slot has two halves. A new head goes into the half that is not in force.
//! - **free-after**: the page that a write replaces is free only after the write's entry is durable.
//! - **free-at-sync**: on media that are durable only at a sync, it is free after the next sync only.
//! - **size-max**: the recovered size is the largest end of all writes since the last truncation.
//! - **truncate-zaps**: a truncation in the log removes the pages of the writes before it.
//! - **truncate-zeroes**: what a truncation cuts off the last page reads as zeros if the file grows again.
//! - **branch-first**: the same for the first page of a further log of a file, to which an entry leads.
//! - **later**: the time of a write is later than that of each write that it replaces, whatever the clock says. That of
//!   a truncation is later than all before, and all that come after it are later still.
//! - **by-time**: recovery takes the entries of a file's logs in the order of their times.
//! - **clean-waits**: logs are rewritten after all reservations in the rewritten part have been committed, and nothing
//!   in that part comes after what is not in it. Who has reserved holds a range of the file, so the rewriting takes the
//!   lock of the whole file for a moment, and seals the part meanwhile.
//! - **compact-alone**: logs are rewritten as one trunk alone while nobody writes the file: all pages that they had
//!   are given up.
//! - **clean-sync**: a rewritten log is durable before the head points to it.
//! - **attributes-wait**: attributes are set while no write of the file is under way. Such a write may have its time
//!   already, and the time of the attributes is later: then the time of the write would not count.
//! - **tail-after**: after recovery the log goes on behind its last entry.
//! - **inode-generation**: a log belongs to a file if the inode's generation is that of the file's creation. So a
//!   recycled inode number does not bring back the log of the file that had the number before.
//! - **data-checksum**: where the kernel writes pages in any order, recovery takes a page only if its checksum is
//!   right.
//! - **tree-order**: recovery takes the directories' entries up to the first that is missing, and none behind it.
//! - **rename-once**: a rename is one entry, though it changes two directories.
//! - **epoch-first**: each opening takes a new epoch, durably, before it writes anything. Epochs make generations
//!   unique.
//! - **drop-for-good**: what an opening that has returned has dropped stays dropped. It rewrites the logs that had it,
//!   then writes data of its own, and only then lets anybody write. So no page of data belongs to two files.
//!
//! | file | content |
//! |---|---|
//! | `format/` | the bytes of each structure |
//! | `medium/` | where a store is: a mapped file, memory, the simulated medium |
//! | `core.rs` | what all parts share: medium, geometry, free pages, durability |
//! | `alloc.rs` | free pages, mostly in per-thread stocks |
//! | `log.rs`, `clean.rs` | a log: reserve, commit, extend; rewrite |
//! | `logs.rs`, `once.rs` | the logs of a file, one for each group of threads, made when they are first needed |
//! | `room.rs` | what a write does that finds the store full |
//! | `index.rs` | the radix tree from a file's pages to their places |
//! | `inode.rs`, `file.rs` | read, write, append, truncate; open files |
//! | `tree.rs`, `exchange.rs` | directories in memory, and the entries that change them |
//! | `namespace.rs`, `path.rs` | operations on directories, by inode and by path |
//! | `replay.rs` | what a file is, by the entries of its log |
//! | `load.rs`, `tree_state.rs`, `recover.rs`, `check.rs` | reading a store, mending it after a crash, and naming what is wrong with it |
//! | `finding.rs` | what does not fit, and whether a crash explains it |
//! | `open.rs` | making, opening, closing |
//! | `locks.rs` | the locks of files |

mod alloc;
mod check;
mod clean;
mod core;
mod error;
mod exchange;
mod file;
mod finding;
mod format;
mod index;
mod inode;
mod load;
pub mod locks;
mod log;
mod logs;
pub mod medium;
mod namespace;
mod once;
mod open;
mod path;
mod recover;
mod replay;
mod room;
mod tree;
mod tree_state;

pub use check::{Report, check, inspect};
pub use core::{Durability, Space};
pub use error::{Error, Result};
pub use file::File;
pub use finding::{Cause, Finding};
pub use format::{FORMAT_VERSION, PAGE};
pub use inode::MAX_FILE_SIZE;
pub use medium::{Durable, Mapped, Medium, Memory};
pub use open::{Geometry, Status, Store, make};
pub use recover::{Options, Recovered};
pub use tree::{Attributes, Entry, Ino, Kind, MAX_NAME, NewNode, ROOT, Stat};
