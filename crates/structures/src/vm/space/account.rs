//! The pages mapped, by kind, and the limits on them.
//!
//! # Edges
//!
//! - **reserve**: changes are made by read-modify-writes, because operations in different ranges make them at the same
//!   time. The kernel counts with loads and stores under its one lock; kept under partial ranges, that loses changes.
//! - **limit**: a count is checked against its limit in the same read-modify-write, or two operations could pass the
//!   limit together.

use crate::vm::layout::{Limits, Pages};
use prim::atomic::{AtomicU64, Ordering};

/// The counts.
#[derive(Debug)]
#[repr(align(128))] // Not on a line with what every fault reads.
pub(crate) struct Account {
    total: AtomicU64,
    data: AtomicU64,
    code: AtomicU64,
    stack: AtomicU64,
}

impl Account {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            total: zero(),
            data: zero(),
            code: zero(),
            stack: zero(),
        }
    }

    /// The counts now. They are of one moment if nothing changes meanwhile.
    pub(crate) fn pages(&self) -> Pages {
        // Relaxed, here and below: the counts order nothing.
        Pages {
            total: self.total.load(Ordering::Relaxed),
            data: self.data.load(Ordering::Relaxed),
            code: self.code.load(Ordering::Relaxed),
            stack: self.stack.load(Ordering::Relaxed),
        }
    }

    /// Counts `after` in place of `before`; counts nothing and returns false if that exceeds a limit.
    #[must_use]
    pub(crate) fn exchange(&self, before: Pages, after: Pages, limits: &Limits) -> bool {
        if !add(&self.total, before.total, after.total, limits.pages) {
            return false;
        }
        if !add(&self.data, before.data, after.data, limits.data) {
            add(&self.total, after.total, before.total, u64::MAX);
            return false;
        }
        add(&self.code, before.code, after.code, u64::MAX);
        add(&self.stack, before.stack, after.stack, u64::MAX);
        true
    }
}

/// Adds the difference of `after` and `before`, unless the count would grow beyond the limit.
fn add(count: &AtomicU64, before: u64, after: u64, limit: u64) -> bool {
    if after == before {
        return true;
    }
    let new = |now: u64| now.wrapping_add(after).wrapping_sub(before);
    // [reserve] The mutant counts as the kernel does.
    if !prim::intact!("reserve") {
        count.store(new(count.load(Ordering::Relaxed)), Ordering::Relaxed);
        return true;
    }
    if after < before || limit == u64::MAX {
        count.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        return true;
    }
    // [limit] The mutant checks first, and counts then.
    if !prim::intact!("limit") {
        let fits = new(count.load(Ordering::Relaxed)) <= limit;
        if fits {
            count.fetch_add(after - before, Ordering::Relaxed);
        }
        return fits;
    }
    let fits = |now| Some(new(now)).filter(|&new| new <= limit);
    count
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
        .is_ok()
}
