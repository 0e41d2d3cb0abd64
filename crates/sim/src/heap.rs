//! Where memory lies decides which words share a line. The host's allocator decides differently each time; this one
//! starts everything on a line.

use std::alloc::{GlobalAlloc, Layout, System};

/// A global allocator for programs that want the same run every time: install it with `#[global_allocator]`.
#[derive(Debug)]
pub struct OnLines;

fn on_lines(layout: Layout) -> Layout {
    const LINE: usize = 64;
    layout.align_to(LINE).unwrap_or(layout)
}

// SAFETY: the system's allocator does it all; a layout is changed to the same one each time.
unsafe impl GlobalAlloc for OnLines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise; a larger alignment asks for more.
        unsafe { System.alloc(on_lines(layout)) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; it was allocated with this layout.
        unsafe { System.dealloc(at, on_lines(layout)) }
    }
}
