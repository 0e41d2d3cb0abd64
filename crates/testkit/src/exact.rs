//! An allocator that gives what it is asked for, and no more.
//!
//! The allocators that people use give more: most align every block to 16 bytes. Code that needs an alignment which it
//! does not ask for works with them, and corrupts memory with others. With this one it fails at once.
//!
//! ```text
//!   block of the system, aligned to 2a:   | a bytes, unused | what was asked for, aligned to a |
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

/// Aligns each block as the layout says, and to no larger power of two. Install it with `#[global_allocator]`.
#[derive(Debug)]
pub struct Exact;

/// The block of the system's allocator, and where in it the one is that was asked for.
fn around(layout: Layout) -> Option<(Layout, usize)> {
    if cfg!(miri) {
        // Miri is as strict itself, and does not let a block be freed by a pointer to a part of it.
        return Some((layout, 0));
    }
    let offset = layout.align();
    let bytes = layout.size().checked_add(offset)?;
    let block = Layout::from_size_align(bytes, offset.checked_mul(2)?);
    block.ok().map(|block| (block, offset))
}

/// What was asked for, in such a block.
fn within(layout: Layout, allocate: impl FnOnce(Layout) -> *mut u8) -> *mut u8 {
    let Some((block, offset)) = around(layout) else {
        return ptr::null_mut();
    };
    let start = allocate(block);
    if start.is_null() {
        return start;
    }
    start.wrapping_add(offset)
}

// SAFETY: what is returned is the end of a block of the system's allocator, as large as asked for. The block is aligned
// to twice the offset, so its end is aligned to the offset.
unsafe impl GlobalAlloc for Exact {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the block has a size, since no alignment is zero.
        within(layout, |block| unsafe { System.alloc(block) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        within(layout, |block| unsafe { System.alloc_zeroed(block) })
    }

    unsafe fn dealloc(&self, what: *mut u8, layout: Layout) {
        let (block, offset) = around(layout).expect("there is no block that large");
        // SAFETY: it is in such a block, by the caller's promise.
        unsafe { System.dealloc(what.wrapping_sub(offset), block) };
    }
}

#[cfg(test)]
mod tests {
    use super::Exact;
    use std::alloc::{GlobalAlloc, Layout};

    #[test]
    fn blocks_are_aligned_as_asked_for_and_no_better() {
        for digits in 0..13 {
            let (align, size) = (1 << digits, 3 << digits);
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: the layout has a size.
            let block = unsafe { Exact.alloc(layout) };
            assert_eq!(block.addr() % (2 * align), align);
            // SAFETY: the block has so many bytes.
            unsafe { block.write_bytes(1, size) };
            // SAFETY: it comes from this allocator, with that layout, and that size is smaller than the largest.
            let more = unsafe { Exact.realloc(block, layout, 2 * size) };
            assert_eq!(more.addr() % (2 * align), align);
            // SAFETY: at least three bytes were written, and moved with the block.
            assert_eq!(unsafe { more.cast::<[u8; 3]>().read() }, [1; 3]);
            let layout = Layout::from_size_align(2 * size, align).unwrap();
            // SAFETY: it has that layout now.
            unsafe { Exact.dealloc(more, layout) };
        }
    }

    #[test]
    fn a_block_larger_than_the_address_space_is_not_there() {
        let layout = Layout::from_size_align(isize::MAX as usize - 7, 8).unwrap();
        // SAFETY: the layout has a size.
        assert!(unsafe { Exact.alloc(layout) }.is_null());
    }
}
