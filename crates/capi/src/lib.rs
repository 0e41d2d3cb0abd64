//! Spanlock for C and C++: the functions that `include/spanlock.h` declares. `docs/c.md` is the users' document. For
//! Linux on 64-bit machines; elsewhere there is nothing here.
//!
//! ```text
//!   program       this library                                                   spanlock
//!   -------       ------------                                                   --------
//!   range lock    range_lock --> answer (panics become errno values)
//!                 many
//!                     '--------> local (what the thread holds, by token) ------> range::RangeLock
//!   owner         owner -------> answer
//!                 holding
//!                     '--------> owned (what the owner holds, by token) -------> range::Holding
//!   request       submit ------> pool (threads that wait for the caller) ------> range::Holding
//!   rwlock        rwlock ------> answer
//!                     '--------> local (what the thread holds, by lock) -------> rw::Bravo
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `answer` | errno values, and how a panic becomes one |
//! | `copies` | tells a lock of another copy of the library |
//! | `handle` | a range lock, as its functions use it |
//! | `holding` | the exported functions of what an owner holds |
//! | `holds` | the ranges that a thread holds, by token |
//! | `local` | what the library keeps for each thread |
//! | `many` | the exported functions for several ranges |
//! | `memory` | what the pointers of a caller lead to |
//! | `owned` | an owner, and what it holds, by token |
//! | `owner` | the exported functions of owners |
//! | `pool` | the threads that wait for submitted requests |
//! | `range_lock` | the exported functions of range locks |
//! | `rwlock` | the exported functions of reader-writer locks |
//! | `rwlock_holds` | the reader-writer locks that a thread holds |
//! | `rwlock_state` | a reader-writer lock |
//! | `sanitizer` | what the thread sanitizer is told |
//! | `submit` | requests that wait on a thread of the library: the exported functions |
//! | `time` | deadlines on the clocks of C |
//! | `version` | the exported functions that say the version |

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod answer;
mod copies;
mod handle;
pub mod holding;
mod holds;
mod local;
pub mod many;
mod memory;
mod owned;
pub mod owner;
mod pool;
pub mod range_lock;
pub mod rwlock;
mod rwlock_holds;
mod rwlock_state;
mod sanitizer;
pub mod submit;
mod time;
pub mod version;
