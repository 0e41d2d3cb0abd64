//! `libspanlock_pthread.so`: glibc's `pthread_rwlock_*` functions with locks that scale with readers, for `LD_PRELOAD`.
//!
//! A lock is ours, inside glibc's 56 bytes; those that processes share stay glibc's, and each function of theirs ends
//! in glibc's own. `docs/interpose.md` tells users more.
//!
//! | module | what it is |
//! |---|---|
//! | `abi` | the exported functions: shims |
//! | `local` | what a thread keeps |
//! | `lock` | a lock, ours or glibc's |
//! | `next` | glibc's functions |
//! | `open` | `dlopen`, which must not bind libraries past this one |
//! | `setting` | what the environment asks for, the constructor, fork |
//! | `stats` | counts, when asked for |

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod abi;
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
