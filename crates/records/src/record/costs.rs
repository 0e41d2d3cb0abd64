//! Lines of measurements that are reported and not compared: memory, uncontended locks, and revocation.

use crate::trial::times::AcquireTimes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a range is held while another thread waits for it.
pub const HOLD: Duration = Duration::from_millis(300);

/// Bytes that were allocated between two moments. Negative if more were freed.
pub type Bytes = i64;

/// How long a request waits among others that never pause: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Among {
    /// The lock's name.
    pub lock: String,
    /// Who waits among whom.
    pub case: String,
    /// How many requests were timed.
    pub requests: u64,
    /// How long they waited in the mean.
    pub mean_ns: f64,
    /// How long they waited.
    pub acquire_ns: AcquireTimes,
    /// What the others were granted.
    pub others_per_sec: f64,
}

/// What tasks, or one thread, get done under a lock: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// The lock's name.
    pub lock: String,
    /// What they do.
    pub load: String,
    /// The threads that run tasks. 0: one thread had the lock to itself.
    pub workers: usize,
    /// The number of this round among equal rounds, from 0.
    pub round: u32,
    /// Acquisitions a second, of all together.
    pub ops_per_sec: f64,
    /// How long tasks waited, if that was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_ns: Option<AcquireTimes>,
    /// How long the threads beside them waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_ns: Option<AcquireTimes>,
}

/// The memory of one lock with so many ranges held: a line of JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The lock's name.
    pub lock: String,
    /// Ranges held at once, by one thread.
    pub hold: usize,
    /// Bytes of a lock that nobody holds, itself included; `None` if nothing was run.
    pub idle_bytes: Option<Bytes>,
    /// Bytes of all holders together, beyond that, without their guards.
    pub held_bytes: Option<Bytes>,
    /// Bytes of one guard.
    pub guard_bytes: Option<Bytes>,
    /// Bytes kept after all were released.
    pub kept_bytes: Option<Bytes>,
    /// Bytes that another lock keeps after as many parts of it were held, one at a time.
    pub touched_bytes: Option<Bytes>,
    /// Why nothing was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// The memory of many locks that each of several threads uses once: a line of JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManyLocks {
    /// The lock's name.
    pub lock: String,
    /// The number of locks.
    pub locks: usize,
    /// The number of threads.
    pub threads: usize,
    /// Bytes of all locks before anybody uses them, themselves included.
    pub idle_bytes: Bytes,
    /// Bytes of all threads for themselves: what each allocates when it uses its first lock.
    pub thread_bytes: Bytes,
    /// Bytes of all pairs of a lock and a thread, while all threads live.
    pub touched_bytes: Bytes,
    /// Bytes that are left of the last two when the threads have ended.
    pub kept_bytes: Bytes,
    /// Bytes that are left of all when the locks have been dropped.
    pub left_bytes: Bytes,
}

/// The memory of one ordered set: a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMemory {
    /// The set's name.
    pub lock: String,
    /// Keys in the set.
    pub keys: u64,
    /// Bytes of the set and all its keys, as they were asked of the allocator.
    pub bytes: Bytes,
}

/// One uncontended round of one range lock in one use: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Uncontended {
    /// The lock's name.
    pub lock: String,
    /// `read` or `write`, by a thread; or what an owner does.
    pub mode: String,
    /// The number of this round among equal rounds, from 0.
    pub round: u32,
    /// Acquisitions, each with a release, in the round.
    pub pairs: u32,
    /// Nanoseconds per acquisition and release, or per conversion and its reverse.
    pub ns_per_pair: f64,
    /// Atomic read-modify-writes per acquisition and release, counted by reading the lock's code.
    pub rmw_by_reading: String,
}

/// One uncontended round of one reader-writer lock: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RwUncontended {
    /// The lock's name.
    pub lock: String,
    /// The number of this round among equal rounds, from 0.
    pub round: u32,
    /// Acquisitions, each with a release, in each mode.
    pub pairs: u32,
    /// Nanoseconds per acquisition for reading and its release.
    pub read_ns: f64,
    /// Nanoseconds per acquisition for writing and its release.
    pub write_ns: f64,
}

/// The cost of revoking a bias, with a table of one size: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revocation {
    /// Threads that have read, each with a row of the table.
    pub rows: usize,
    /// The number of this round among equal rounds, from 0.
    pub round: u32,
    /// Nanoseconds of a fence for all threads, while the others sleep.
    pub fence_ns: f64,
    /// Nanoseconds of a scan that finds no reader.
    pub scan_ns: f64,
}
