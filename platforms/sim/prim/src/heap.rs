//! An allocator that makes runs repeatable.
//!
//! Addresses decide which words share a cache line. The reuse of memory decides which object a late store hits. The
//! host's allocator decides both differently each time. This allocator starts each allocation of a run on a new line,
//! and a run reuses the memory it freed, the block freed last first.

use crate::world::ByAddress;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ptr;

/// A global allocator for programs that need the same run every time. Install it with `#[global_allocator]`, or build
/// another allocator on it.
///
/// Each allocation of a run begins on a fresh cache line. A run gets the memory that it freed again when it asks for
/// the same size. The rest of the program gets memory from C's allocator, at the additional cost of one thread-local
/// read for each allocation.
#[derive(Debug)]
pub struct OnLines;

/// The host memory of a run.
#[derive(Default)]
struct Heap {
    /// The run's blocks by address, and whether each is in use.
    blocks: ByAddress<(Block, bool)>,
    /// The addresses of the free blocks.
    free: HashMap<Block, Vec<*mut u8>>,
}

/// The shape of a block. Blocks of equal shape can replace each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Block {
    lines: usize,
    align: usize,
}

thread_local! {
    /// The heap of the run that this host thread executes. Null outside a run, and while the heap itself allocates.
    static HEAP: Cell<*mut Heap> = const { Cell::new(ptr::null_mut()) };
}

/// While it lives, allocations of this host thread belong to the run.
pub(crate) struct InARun(*mut Heap);

impl InARun {
    pub(crate) fn begin() -> Self {
        let heap = Box::into_raw(Box::default());
        HEAP.set(heap);
        Self(heap)
    }
}

impl Drop for InARun {
    fn drop(&mut self) {
        HEAP.set(ptr::null_mut());
        // SAFETY: the pointer comes from `Box::into_raw` in `begin`. No `with_heap` is active, because its closures
        // drop no `InARun`.
        let heap = unsafe { Box::from_raw(self.0) };
        for block in heap.free.into_values().flatten() {
            // SAFETY: `host::aligned` returned the block, and the run has freed it.
            unsafe { host::free(block) };
        }
    }
}

/// Calls `f` with the run's heap, if there is a run. Memory that `f` itself allocates comes from the host.
fn with_heap<R>(f: impl FnOnce(&mut Heap) -> R) -> Option<R> {
    let at = HEAP.replace(ptr::null_mut());
    // SAFETY: the heap lives until `InARun` is dropped. `HEAP` is null until the pointer is put back below, so there is
    // no second reference.
    let result = unsafe { at.as_mut() }.map(f);
    HEAP.set(at);
    result
}

impl Heap {
    fn take(&mut self, layout: Layout) -> *mut u8 {
        let block = Block {
            lines: layout.size().div_ceil(LINE),
            align: layout.align().max(LINE),
        };
        let again = self.free.get_mut(&block).and_then(Vec::pop);
        let at = again.unwrap_or_else(|| host::aligned(block.lines * LINE, block.align));
        if !at.is_null() {
            self.blocks.insert(at.addr(), (block, true));
        }
        at
    }

    /// Keeps a freed block for reuse; `false` if the block does not belong to the run.
    fn give_back(&mut self, at: *mut u8) -> bool {
        let Some((block, is_used)) = self.blocks.get_mut(&at.addr()) else {
            return false;
        };
        if !std::mem::replace(is_used, false) {
            // The heap is corrupt, so the process ends, as with C's allocator. Writing this message allocates nothing.
            let _ = io::stderr().write_all(b"a run frees a block twice\n");
            std::process::abort();
        }
        crate::world::forget_lines(at.addr(), block.lines * LINE);
        self.free.entry(*block).or_default().push(at);
        true
    }
}

const LINE: usize = 64;

// SAFETY: all memory comes from C's allocator, whose `free` accepts memory from any of its functions. A block that a
// run reuses was freed before and has the same shape. The blocks of a run are freed by its host thread or at the end of
// the run, so two threads never use one heap.
unsafe impl GlobalAlloc for OnLines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        with_heap(|heap| heap.take(layout)).unwrap_or_else(|| {
            if is_plain(layout) {
                // SAFETY: `malloc` accepts any size.
                unsafe { libc::malloc(layout.size()) }.cast()
            } else {
                host::aligned(layout.size(), layout.align())
            }
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout) && HEAP.get().is_null() {
            // SAFETY: `calloc` accepts any size.
            return unsafe { libc::calloc(layout.size(), 1) }.cast();
        }
        // SAFETY: the caller promises a layout of a size other than zero, which is all that `alloc` requires.
        let at = unsafe { self.alloc(layout) };
        if !at.is_null() {
            // SAFETY: `alloc` returned at least `layout.size()` bytes, which nobody else has.
            unsafe { at.write_bytes(0, layout.size()) };
        }
        at
    }

    unsafe fn dealloc(&self, at: *mut u8, _layout: Layout) {
        if with_heap(|heap| heap.give_back(at)) != Some(true) {
            // SAFETY: the caller promises that this allocator returned the block and that it was not freed. No run
            // keeps it for reuse, and all memory comes from C's allocator.
            unsafe { host::free(at) };
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `size`, rounded up to the alignment, does not overflow an `isize`.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if is_plain(wanted) && HEAP.get().is_null() {
            // SAFETY: the caller promises that this allocator returned the block and that it was not freed. All memory
            // comes from C's allocator, whose `realloc` accepts it.
            return unsafe { libc::realloc(at.cast(), size) }.cast();
        }
        // SAFETY: the caller promises a new size other than zero.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both blocks have at least that many bytes. The new one is fresh, so they do not overlap.
            unsafe { moved.copy_from_nonoverlapping(at, layout.size().min(size)) };
            // SAFETY: the caller gives up the old block by calling `realloc`, and promises that `layout` describes it.
            unsafe { self.dealloc(at, layout) };
        }
        moved
    }
}

/// Whether `malloc`, `calloc` and `realloc` give such an allocation the alignment it needs.
fn is_plain(layout: Layout) -> bool {
    // They may align an allocation that is smaller than its alignment less strictly.
    layout.align() <= host::PLAIN.min(layout.size())
}

/// C's functions for aligned memory, and `free`.
#[cfg(not(windows))]
mod host {
    use std::ptr;

    /// The largest alignment that `malloc` guarantees.
    pub(super) const PLAIN: usize = align_of::<libc::max_align_t>();

    pub(super) fn aligned(size: usize, align: usize) -> *mut u8 {
        let mut at = ptr::null_mut();
        let align = align.max(size_of::<usize>());
        // SAFETY: `at` is live for the result. The alignment is a power of two and a multiple of a pointer's size.
        let error = unsafe { libc::posix_memalign(&raw mut at, align, size) };
        if error == 0 {
            at.cast()
        } else {
            ptr::null_mut()
        }
    }

    /// # Safety
    /// One of C's allocation functions returned the block, and it was not freed.
    pub(super) unsafe fn free(at: *mut u8) {
        // SAFETY: the caller promises what C's `free` requires.
        unsafe { libc::free(at.cast()) };
    }
}

/// Windows has a separate function to free aligned memory. So here all memory is aligned memory.
#[cfg(windows)]
mod host {
    /// Zero: `malloc` is never used.
    pub(super) const PLAIN: usize = 0;

    pub(super) fn aligned(size: usize, align: usize) -> *mut u8 {
        // SAFETY: the alignment is a power of two.
        unsafe { libc::aligned_malloc(size, align) }.cast()
    }

    /// # Safety
    /// `aligned` returned the block, and it was not freed.
    pub(super) unsafe fn free(at: *mut u8) {
        // SAFETY: the caller promises what `aligned_free` requires.
        unsafe { libc::aligned_free(at.cast()) };
    }
}
