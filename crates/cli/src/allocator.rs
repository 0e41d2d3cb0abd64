//! C's allocator, which can count; what a simulated run allocates begins on lines.
//!
//! It counts where memory is measured and nowhere else. Elsewhere an allocation costs one load more, of a flag
//! that nobody writes.

#[cfg(feature = "sim")]
use spanlock_bench::sim::OnLines as Heap;
#[cfg(not(feature = "sim"))]
use std::alloc::System as Heap;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The allocator of this program.
pub(crate) struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// On cache lines of its own: no neighbour's writes disturb threads that only load the flag.
#[repr(align(128))]
struct Count {
    is_on: AtomicBool,
    allocated: AtomicI64,
}

static COUNT: Count = Count {
    is_on: AtomicBool::new(false),
    allocated: AtomicI64::new(0),
};

/// Counts from now on.
pub(crate) fn begin() {
    COUNT.is_on.store(true, Ordering::Relaxed);
}

/// Counts while this works, and not afterwards.
pub(crate) fn counting<R>(work: impl FnOnce() -> R) -> R {
    begin();
    let result = work();
    COUNT.is_on.store(false, Ordering::Relaxed);
    result
}

/// Bytes allocated since [`begin`], less those freed.
pub(crate) fn allocated() -> i64 {
    COUNT.allocated.load(Ordering::Relaxed)
}

#[inline]
fn count(more: usize, less: usize) {
    // Relaxed: the thread that reads the count is the one that allocates, or has joined those that did.
    if COUNT.is_on.load(Ordering::Relaxed) {
        // Layouts are never larger than `isize::MAX`.
        COUNT
            .allocated
            .fetch_add(more as i64 - less as i64, Ordering::Relaxed);
    }
}

// SAFETY: the other allocator does it all.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's layout is not empty, which is all that the other allocator asks for.
        unsafe { Heap.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's layout is not empty, which is all that the other allocator asks for.
        unsafe { Heap.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the other allocator made `at`, with this layout, and the caller gives it up.
        unsafe { Heap.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the other allocator made `at`, with this layout, and the caller's new size is valid for it.
        unsafe { Heap.realloc(at, layout, size) }
    }
}
