//! `libspanlock_pthread.so`: the `pthread_rwlock_*` functions of glibc with a bias towards readers, for `LD_PRELOAD`.
//!
//! Each lock stays glibc's, and each function ends in glibc's own unless a reader takes the fast path. What that needs
//! is in eight bytes of `pthread_rwlock_t` that glibc leaves alone. `docs/interpose.md` tells users more.
//!
//! | module | what it is |
//! |---|---|
//! | `abi` | the exported functions: shims |
//! | `local` | what a thread keeps |
//! | `lock` | the protocol between the bias and glibc's lock |
//! | `next` | glibc's functions |
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
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod setting;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod stats;
