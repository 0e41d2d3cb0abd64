//! Spanlock for C and C++: the functions that `include/spanlock.h` declares. `docs/c.md` is the users' document. For
//! Linux on 64-bit machines; elsewhere there is nothing here.
//!
//! ```text
//!   program       this library                                                   spanlock
//!   -------       ------------                                                   --------
//!   range lock    range_lock --> answer (panics become errno values)
//!                     |--------> local (what the thread holds, by token) ------> range::RangeLock
//!                     '--------> submit (threads that wait for the caller) ----> range::RangeLock
//!   rwlock        rwlock ------> answer
//!                     '--------> local (what the thread holds, by lock) -------> rw::Bravo
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `answer` | errno values, and how a panic becomes one |
//! | `copies` | tells a lock of another copy of the library |
//! | `handle` | a range lock, as its functions use it |
//! | `holds` | the ranges that a thread holds, by token |
//! | `local` | what the library keeps for each thread |
//! | `range_lock` | the exported functions of range locks |
//! | `rwlock` | the exported functions of reader-writer locks |
//! | `rwlock_state` | a reader-writer lock |
//! | `sanitizer` | what the thread sanitizer is told |
//! | `submit` | requests that wait on a thread of the library |
//! | `time` | deadlines on the clocks of C |
//! | `version` | the exported functions that say the version |

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod answer;
mod copies;
mod handle;
mod holds;
mod local;
pub mod range_lock;
pub mod rwlock;
mod rwlock_state;
mod sanitizer;
pub mod submit;
mod time;
pub mod version;
