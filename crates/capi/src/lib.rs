//! Spanlock for C and C++: the functions that `include/spanlock.h` declares. `docs/c.md` is the users' document. For
//! Linux on 64-bit machines; elsewhere there is nothing here.
//!
//! ```text
//!   program       exports                                  tables                       spanlock
//!   -------       -------                                  ------                       --------
//!   range lock    range_lock, range_lock_many -----------> thread_ranges -------------> range::RangeLock
//!                 range_lock_holders -------------------------------------------------> range::inspect
//!                 range_lock_submit ----> request -------> requests ------------------> range::Holding
//!   owner         owner, owner_holding -.
//!   key lock      key_lock_holding -----'-> ranged ------> those of owner_handle -----> range::Holding
//!                 key_lock -----------------------------------------------------------> range::keys
//!   rwlock        rwlock ---------------> rwlock_state --> thread_rwlocks ------------> rw::Bravo
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`exports`] | the exported functions, a file for each section of the header |
//! | `tables` | what threads, owners and requests hold, by token |
//! | `range_handle`, `key_handle`, `owner_handle`, `request`, `rwlock_state` | what programs point to or number |
//! | `ranged` | what owners do with locks, one over positions or one over keys |
//! | `answer` | errno values, and how a panic becomes one |
//! | `copies` | tells a lock of another copy of the library |
//! | `memory` | what the pointers of a caller lead to |
//! | `sanitizer` | what the thread sanitizer is told |
//! | `time` | deadlines on the clocks of C |

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod answer;
mod copies;
pub mod exports;
mod key_handle;
mod memory;
mod owner_handle;
mod range_handle;
mod ranged;
mod request;
mod rwlock_state;
mod sanitizer;
mod tables;
mod time;
