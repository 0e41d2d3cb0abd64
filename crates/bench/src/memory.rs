//! How much memory a lock and its holders take, as the allocator counts it (P3 §VI-B2 asks for the like).
//!
//! One thread, which has locked nothing in its life, makes a lock, holds so many ranges at once and releases them. What
//! the program has allocated is counted at each step, so what a library keeps for a thread counts for its first holder.
//! What a library keeps once for the process does not count: another thread has used such a lock before, and lives on.
//! Then it holds as many parts of a second lock one after the other, far from each other: what that allocates is what a
//! lock keeps for parts that were ever touched. For all that to be the same each time, every measurement needs a
//! process of its own.
//!
//! The ranges are single positions with gaps between them, in a resource of [`RESOURCE`]'s size: what a lock allocates
//! for a resource as a whole (`bitmap`) counts as the idle lock's, and so does the vector of bytes that the crate
//! `range-lock` owns.

use crate::peers::AnyLock;
use spanlock_records::record::{Bytes, Memory};
use spanlock_records::trial::setting::Resource;
use spanlock_workbench::batch::MAX_HOLD;
use std::sync::Barrier;
use std::thread;

/// The resource: as many positions as the largest number of holders needs.
pub const RESOURCE: Resource = Resource {
    units: 2 * MAX_HOLD as u64,
    grain: 1,
};

/// The bytes allocated now, by all of the program.
pub type Allocated<'a> = &'a (dyn Fn() -> Bytes + Sync);

/// Meets the other thread when dropped, also by a panic.
struct Meets<'a>(&'a Barrier);

impl Drop for Meets<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Makes a lock and holds so many ranges of it, while another thread lives that has used one. The record is yet without
/// the lock's name.
pub fn run(
    make: impl Fn() -> Box<dyn AnyLock> + Sync,
    hold: usize,
    allocated: Allocated<'_>,
) -> Memory {
    beside_a_user(&make, || count(&make, hold, allocated))
}

/// Counts while another thread lives that has used such a lock.
pub(crate) fn beside_a_user<R>(
    make: impl Fn() -> Box<dyn AnyLock> + Sync,
    count: impl FnOnce() -> R,
) -> R {
    let (used, over) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _over = Meets(&over); // dropped last
            let _used = Meets(&used);
            drop(make().write(0..1));
        });
        used.wait();
        let _over = Meets(&over);
        count()
    })
}

/// How much more a lock takes here than users' own: it lies on lines of its own.
pub(crate) fn padding(lock: &dyn AnyLock) -> Bytes {
    let [bytes, _] = lock.bytes();
    (size_of_val(lock) - bytes) as Bytes
}

fn count(make: impl Fn() -> Box<dyn AnyLock>, hold: usize, allocated: Allocated<'_>) -> Memory {
    let before = allocated();
    let lock = make();
    let idle = allocated() - before - padding(&*lock);
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
    let [_, guard] = lock.bytes();
    Memory {
        hold,
        idle_bytes: Some(idle),
        held_bytes: Some(held),
        guard_bytes: Some(guard as Bytes),
        kept_bytes: Some(kept),
        touched_bytes: Some(touched),
        ..Memory::default()
    }
}
