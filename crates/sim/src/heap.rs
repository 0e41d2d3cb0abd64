//! Where memory lies decides which words share a line. The host's allocator decides differently each time; this one
//! starts everything on a line.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// A global allocator for programs that want the same run every time: install it with `#[global_allocator]`, or build
/// another on it.
///
/// What a run allocates begins on a line, and on a fresh one wherever the host puts it. The rest of the program gets
/// what C's allocator gives: for that an allocation costs a look at a thread's variable more.
#[derive(Debug)]
pub struct OnLines;

thread_local! {
    /// Whether this host thread executes a run.
    static IN_A_RUN: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, allocations of this host thread begin on lines.
pub(crate) struct InARun(());

impl InARun {
    pub(crate) fn begin() -> Self {
        IN_A_RUN.set(true);
        Self(())
    }
}

impl Drop for InARun {
    fn drop(&mut self) {
        IN_A_RUN.set(false);
    }
}

const LINE: usize = 64;

// SAFETY: C's allocator does it all. Its `free` takes whatever `malloc`, `calloc`, `realloc` and `posix_memalign` gave,
// so that it does not matter which of them it was.
unsafe impl GlobalAlloc for OnLines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IN_A_RUN.get() {
            aligned(layout.size(), layout.align().max(LINE))
        } else if is_plain(layout) {
            // SAFETY: any size will do.
            unsafe { libc::malloc(layout.size()) }.cast()
        } else {
            aligned(layout.size(), layout.align())
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout) && !IN_A_RUN.get() {
            // SAFETY: any size will do.
            return unsafe { libc::calloc(layout.size(), 1) }.cast();
        }
        // SAFETY: the caller's promise.
        let at = unsafe { self.alloc(layout) };
        if !at.is_null() {
            // SAFETY: it is as large as that.
            unsafe { at.write_bytes(0, layout.size()) };
        }
        at
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if IN_A_RUN.get() {
            crate::world::forget_lines(at.addr(), layout.size());
        }
        // SAFETY: the caller's promise: one of these functions gave it, and it was not freed.
        unsafe { libc::free(at.cast()) };
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if is_plain(wanted) && !IN_A_RUN.get() {
            // SAFETY: the caller's promise, as for `dealloc`.
            return unsafe { libc::realloc(at.cast(), size) }.cast();
        }
        // SAFETY: the caller's promise.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both are as large as that, and one is fresh.
            unsafe { moved.copy_from_nonoverlapping(at, layout.size().min(size)) };
            // SAFETY: the caller's promise; nobody uses it any more.
            unsafe { self.dealloc(at, layout) };
        }
        moved
    }
}

/// Whether `malloc` aligns such an allocation as is wanted.
fn is_plain(layout: Layout) -> bool {
    // It need not align what is smaller than its alignment.
    layout.align() <= align_of::<libc::max_align_t>().min(layout.size())
}

fn aligned(size: usize, align: usize) -> *mut u8 {
    let mut at = std::ptr::null_mut();
    let align = align.max(size_of::<usize>());
    // SAFETY: a power of two, and a multiple of a pointer's size.
    let error = unsafe { libc::posix_memalign(&raw mut at, align, size) };
    if error == 0 {
        at.cast()
    } else {
        std::ptr::null_mut()
    }
}
