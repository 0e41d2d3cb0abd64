//! Mounts a [store](spanlock_structures::store) through FUSE, so that any program uses its files.
//!
//! Reads and writes go straight to the store, past the kernel's cache, and several at a time for one file. The file's
//! range lock orders them. Directories and attributes are cached by the kernel. `fcntl` locks are served by a range
//! lock of the mount.
//!
//! ```text
//!   programs ---> kernel ---> /dev/fuse ---> threads of the server ---> Store: the file's range lock, its log
//!                                                   |
//!                                                   | fcntl locks, and the end of files that had some
//!                                                   v
//!                                                keeper: one thread, a range lock for each file with locks
//! ```
//!
//! # When not to use it
//! When the program can be changed: a call into the store takes a fraction of the way through the kernel.
//!
//! # What differs from a file system of the kernel
//! - The kernel passes on a write of more than a mebibyte in parts. Each part is one step to the others; the whole is
//!   not.
//! - There are no extended attributes, and space cannot be reserved.
//! - Access times change only when a program sets them.
//!
//! | file | content |
//! |---|---|
//! | `server.rs`, `operations.rs` | what the kernel asks for, and what is done for it |
//! | `nodes.rs` | the nodes that the kernel knows, also after their last name is gone |
//! | `convert.rs` | the kernel's numbers for the store's types |
//! | `keeper.rs`, `locks.rs` | `fcntl` locks: requests that wait, and who holds what |
//! | `mounted.rs` | mounting, serving, unmounting |
//! | `passthrough.rs` | a mount that passes everything on to another folder, for comparison |
#![cfg(target_os = "linux")]

mod convert;
mod departures;
mod keeper;
mod locks;
mod mounted;
mod nodes;
mod operations;
mod passthrough;
mod server;

/// The example in the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use mounted::{Error, Mounted, detach, what_is_missing};
pub use passthrough::Passthrough;
