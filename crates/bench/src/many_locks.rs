//! What many locks take of memory that each of several threads uses once (P3 §VI-B2 asks for the like of one lock).
//!
//! A program that locks the parts of many objects has more locks than it uses at a time. What a lock keeps for a thread
//! that came by once is paid for each pair of a lock and a thread, for as long as both live.
//!
//! Threads take turns. Each uses a lock of its own first, so that what it keeps for itself is counted apart; then it
//! uses every lock once and lives on. When all are done they end, and in the end the locks are dropped. What the
//! program has allocated is counted at each step; for that to be the same each time, every measurement needs a process
//! of its own. What a library keeps once for the process does not count: another thread has used such a lock before.

use crate::memory::{Allocated, beside_a_user, padding};
use crate::peers::AnyLock;
use spanlock_records::record::{Bytes, ManyLocks};
use spanlock_records::trial::setting::Resource;
use std::sync::{Barrier, Mutex};
use std::thread;

/// The number of locks by default.
pub const LOCKS: usize = 100_000;

/// The most locks.
pub const MAX_LOCKS: usize = 1 << 20;

/// The most threads.
pub const MAX_THREADS: usize = 64;

/// The resource of each lock: a thread has a position of its own in it.
pub const RESOURCE: Resource = Resource {
    units: MAX_THREADS as u64,
    grain: 1,
};

/// How many locks so many threads use.
#[derive(Debug, Clone, Copy)]
pub struct Many {
    /// From 1 to [`MAX_LOCKS`].
    pub locks: usize,
    /// From 1 to [`MAX_THREADS`].
    pub threads: usize,
}

/// Has each of so many threads use each of so many locks once. The record is yet without the lock's name.
///
/// # Panics
/// When one of the numbers is zero or too large.
pub fn run(
    make: impl Fn() -> Box<dyn AnyLock> + Sync,
    many: Many,
    allocated: Allocated<'_>,
) -> ManyLocks {
    let Many { locks, threads } = many;
    assert!((1..=MAX_LOCKS).contains(&locks) && (1..=MAX_THREADS).contains(&threads));
    beside_a_user(&make, || count(&make, locks, threads, allocated))
}

fn count(
    make: impl Fn() -> Box<dyn AnyLock> + Sync,
    locks: usize,
    threads: usize,
    allocated: Allocated<'_>,
) -> ManyLocks {
    // What each thread allocated for itself, and for all locks. Nothing of this is allocated while it is counted.
    let counted: Vec<_> = (0..threads).map(|_| Mutex::new([0; 2])).collect();
    let (turn, over) = (Barrier::new(2), Barrier::new(threads + 1));
    let work = |thread: usize, locks: &[Box<dyn AnyLock>]| {
        let position = thread as u64;
        let use_once = |lock: &dyn AnyLock| drop(lock.write(position..position + 1));
        let own = make();
        let fresh = allocated();
        use_once(&*own);
        let warm = allocated();
        locks.iter().for_each(|lock| use_once(&**lock));
        *counted[thread].lock().expect("nobody panics") = [warm - fresh, allocated() - warm];
        turn.wait();
        over.wait();
    };
    // Users need no list of their locks, nor lines for each.
    let mut all = Vec::with_capacity(locks);
    let before = allocated();
    all.extend((0..locks).map(|_| make()));
    let idle = allocated();
    let padding = all.iter().map(|lock| padding(&**lock)).sum::<Bytes>();
    thread::scope(|scope| {
        let spawn = |thread| {
            let (work, all) = (&work, &all);
            let handle = scope.spawn(move || work(thread, all));
            turn.wait();
            handle
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        over.wait();
        // The end of the scope would not wait for what threads do when they exit.
        for handle in handles {
            handle.join().expect("nobody panics");
        }
    });
    let kept = allocated();
    all.clear();
    let sum = |which: usize| {
        let each = counted
            .iter()
            .map(|one| one.lock().expect("nobody panics")[which]);
        each.sum()
    };
    ManyLocks {
        locks,
        threads,
        idle_bytes: idle - before - padding,
        thread_bytes: sum(0),
        touched_bytes: sum(1),
        kept_bytes: kept - idle,
        left_bytes: allocated() - before,
        ..ManyLocks::default()
    }
}
