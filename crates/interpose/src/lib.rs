//! `libspanlock_pthread.so`: glibc's `pthread_rwlock_*` functions with locks that scale with readers, for `LD_PRELOAD`.
//!
//! A lock is ours, inside glibc's 56 bytes. A lock that processes share stays glibc's: each function on it ends in a
//! jump to glibc's own. `docs/interpose.md` is the users' document.
//!
//! ```text
//!   program            this library                          glibc
//!   -------            ------------                          -----
//!   pthread_rwlock_*   abi --> lock --- the lock is ours --> spanlock::rw::pthread
//!                                  \-- it is glibc's -----> next --> pthread_rwlock_*
//!   dlopen             open ------ flag cleared -----------> dlopen
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `abi` | the exported functions: shims |
//! | `errno` | kept across system calls |
//! | `local` | what the library keeps for each thread |
//! | `lock` | a lock, ours or glibc's |
//! | `next` | glibc's functions |
//! | `open` | `dlopen`, which must not let a library bypass this one |
//! | `setting` | what the environment asks for, the constructor, fork |
//! | `stats` | counts, if asked for |

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod abi;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod errno;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod local;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod lock;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod next;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod open;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod setting;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod stats;
