//! How much memory a lock and its holders take, as the allocator counts it (P3 §VI-B2 asks for the like).
//!
//! One thread, which has locked nothing in its life, makes a lock, holds so many ranges at once and releases them. What
//! the program has allocated is counted at each step, so what a library keeps for a thread counts for its first holder.
//! What it keeps once for the process does not: another thread has used such a lock before, and lives on. Then it holds as many parts of a second lock one after the other, far from each other: what
//! that allocates is what a lock keeps for parts that were ever touched. For all that to be the same each time, every measurement needs a process of its own.
//!
//! The ranges are single positions with gaps between them, in a resource of [`RESOURCE`]'s size: what a lock allocates
//! for a resource as a whole (`bitmap`) counts as the idle lock's, and so does the vector of bytes that the crate
//! `range-lock` owns.

use crate::batch::MAX_HOLD;
use crate::registry::Lock;
use crate::setting::Resource;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::sync::Barrier;
use std::thread;

/// The resource: as many positions as the largest number of holders needs.
pub const RESOURCE: Resource = Resource {
    units: 2 * MAX_HOLD as u64,
    grain: 1,
};

/// Bytes that are allocated at some time and were not before something was done. Negative if some were freed.
pub type Bytes = i64;

/// Tells the bytes allocated now, by all of the program.
pub type Allocated<'a> = &'a dyn Fn() -> Bytes;

/// What a measurement yielded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Of a lock that nobody holds, itself included.
    pub idle: Bytes,
    /// Of all holders together, beyond that; without their guards.
    pub held: Bytes,
    /// Of one guard, on the holder's stack or wherever it keeps it.
    pub guard: Bytes,
    /// Beyond the idle lock's after all were released: kept for later holders.
    pub kept: Bytes,
    /// Of as many parts of another lock, each held alone and released: kept for parts that were touched.
    pub touched: Bytes,
}

/// Meets the other thread when dropped, also by a panic.
struct Meets<'a>(&'a Barrier);

impl Drop for Meets<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Makes a lock and holds so many ranges of it, while another thread lives that has used one.
pub fn run<T: Target>(
    make: impl Fn() -> T + Sync,
    hold: usize,
    allocated: Allocated<'_>,
) -> Outcome {
    let (used, over) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _over = Meets(&over); // dropped last
            let _used = Meets(&used);
            drop(make().write(0..1));
        });
        used.wait();
        let _over = Meets(&over);
        count(&make, hold, allocated)
    })
}

fn count<T: Target>(make: impl Fn() -> T, hold: usize, allocated: Allocated<'_>) -> Outcome {
    let before = allocated();
    // In a box, so that its own size is counted as the rest is.
    let lock = Box::new(make());
    let idle = allocated() - before;
    let mut guards = Vec::with_capacity(hold);
    let empty = allocated();
    for at in 0..hold as u64 {
        guards.push(lock.write(2 * at..2 * at + 1));
    }
    let held = allocated() - empty;
    guards.clear();
    let kept = allocated() - empty;
    let other = make();
    let untouched = allocated();
    for at in 0..hold as u64 {
        let start = at * (RESOURCE.units / hold as u64);
        drop(other.write(start..start + 1));
    }
    let touched = allocated() - untouched;
    Outcome {
        idle,
        held,
        guard: size_of::<T::Write<'_>>() as Bytes,
        kept,
        touched,
    }
}

/// One lock with so many ranges held: a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
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

impl Record {
    /// Measures a lock. What a lock cannot do is not run, and the record says why.
    #[must_use]
    pub fn measure(lock: &Lock, hold: usize, allocated: Allocated<'_>) -> Self {
        let cannot = lock.holds_one_because(RESOURCE).filter(|_| hold > 1);
        let outcome = match cannot {
            Some(_) => None,
            None => Some(lock.measure.memory(lock.values, hold, allocated)),
        };
        Self {
            lock: lock.name.to_owned(),
            hold,
            idle_bytes: outcome.map(|outcome| outcome.idle),
            held_bytes: outcome.map(|outcome| outcome.held),
            guard_bytes: outcome.map(|outcome| outcome.guard),
            kept_bytes: outcome.map(|outcome| outcome.kept),
            touched_bytes: outcome.map(|outcome| outcome.touched),
            skipped: cannot.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, RESOURCE, run};
    use crate::target::{Null, RangeLockCrate};
    use std::cell::Cell;

    /// An allocator's count that grows by one at each look.
    #[test]
    fn what_is_reported_is_what_was_counted() {
        let looks = Cell::new(0);
        let allocated = || {
            looks.set(looks.get() + 10);
            looks.get()
        };
        let outcome = run(|| Null, 3, &allocated);
        let expected = Outcome {
            idle: 10,
            held: 10,
            guard: 0,
            kept: 20,
            touched: 10,
        };
        assert_eq!(outcome, expected);
        assert!(run(|| RangeLockCrate::new(RESOURCE.units), 3, &allocated).guard > 0);
    }
}
