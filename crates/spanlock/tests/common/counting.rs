//! An allocator that counts.

use spanlock_testkit::exact::Exact;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Counts, and leaves the work to the other allocator.
pub struct Counting(pub Exact);

thread_local! {
    /// Allocations made by the running thread.
    pub static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that are allocated, by all threads.
pub static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

fn bytes(layout: Layout) -> i64 {
    i64::try_from(layout.size()).expect("no allocation is that large")
}

// SAFETY: the other allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        LIVE_BYTES.fetch_add(bytes(layout), Relaxed);
        // SAFETY: the caller's.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(bytes(layout), Relaxed);
        // SAFETY: the caller's.
        unsafe { self.0.dealloc(block, layout) };
    }
}
