//! Where memory lies decides which words share a line, and which memory is used again decides what a late store hits. The
//! host's allocator decides differently each time; this one starts everything on a line, and what a run frees it uses
//! again by itself, the last first.

use crate::world::ByAddress;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ptr;

/// A global allocator for programs that want the same run every time: install it with `#[global_allocator]`, or build
/// another on it.
///
/// What a run allocates begins on a line, and on a fresh one wherever the host puts it. What it frees it gets again when
/// it asks for as much. The rest of the program gets what C's allocator gives: for that an allocation costs a look at a
/// thread's variable more.
#[derive(Debug)]
pub struct OnLines;

/// What a run has of the host's memory.
#[derive(Default)]
struct Heap {
    /// By address: blocks that are its own, and whether they are in use.
    blocks: ByAddress<(Block, bool)>,
    /// Addresses of those that are free.
    free: HashMap<Block, Vec<*mut u8>>,
}

/// Blocks that are alike can stand for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Block {
    lines: usize,
    align: usize,
}

thread_local! {
    /// That of the run which this host thread executes; null if it executes none, and while the heap itself allocates.
    static HEAP: Cell<*mut Heap> = const { Cell::new(ptr::null_mut()) };
}

/// While it lives, allocations of this host thread are the run's.
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
        // SAFETY: from `begin`, and no longer in use: `with_heap` uses it while it runs, which runs nothing of this.
        let heap = unsafe { Box::from_raw(self.0) };
        for block in heap.free.into_values().flatten() {
            // SAFETY: `host::aligned` gave it, and its user gave it back.
            unsafe { host::free(block) };
        }
    }
}

/// Calls `f` with the run's heap, if there is one; what `f` allocates itself is the host's.
fn with_heap<R>(f: impl FnOnce(&mut Heap) -> R) -> Option<R> {
    let at = HEAP.replace(ptr::null_mut());
    // SAFETY: it lives until `InARun` goes, and nobody else has it until it is put back.
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

    /// Keeps a block to be used again; `false` if it is not the run's.
    fn give_back(&mut self, at: *mut u8) -> bool {
        let Some((block, is_used)) = self.blocks.get_mut(&at.addr()) else {
            return false;
        };
        if !std::mem::replace(is_used, false) {
            // As C's allocator does: nothing that goes on now can be relied upon.
            // No memory is asked for.
            let _ = io::stderr().write_all(b"a run frees a block twice\n");
            std::process::abort();
        }
        crate::world::forget_lines(at.addr(), block.lines * LINE);
        self.free.entry(*block).or_default().push(at);
        true
    }
}

const LINE: usize = 64;

// SAFETY: C's allocator does it all. Its `free` takes whatever its other functions gave,
// so that it does not matter which of them it was. A block that a run uses again is one that its user gave back, and
// fits as the first did: what a run allocates is given back by its host thread, or when the run is over.
unsafe impl GlobalAlloc for OnLines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        with_heap(|heap| heap.take(layout)).unwrap_or_else(|| {
            if is_plain(layout) {
                // SAFETY: any size will do.
                unsafe { libc::malloc(layout.size()) }.cast()
            } else {
                host::aligned(layout.size(), layout.align())
            }
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout) && HEAP.get().is_null() {
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

    unsafe fn dealloc(&self, at: *mut u8, _layout: Layout) {
        if with_heap(|heap| heap.give_back(at)) != Some(true) {
            // SAFETY: the caller's promise: one of these functions gave it, and it was not freed.
            unsafe { host::free(at) };
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if is_plain(wanted) && HEAP.get().is_null() {
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

/// Whether `malloc`, `calloc` and `realloc` align such an allocation as is wanted.
fn is_plain(layout: Layout) -> bool {
    // They need not align what is smaller than its alignment.
    layout.align() <= host::PLAIN.min(layout.size())
}

/// C's functions for memory that is aligned, and `free`.
#[cfg(not(windows))]
mod host {
    use std::ptr;

    /// The largest alignment that `malloc` and the like give.
    pub(super) const PLAIN: usize = align_of::<libc::max_align_t>();

    pub(super) fn aligned(size: usize, align: usize) -> *mut u8 {
        let mut at = ptr::null_mut();
        let align = align.max(size_of::<usize>());
        // SAFETY: a power of two, and a multiple of a pointer's size.
        let error = unsafe { libc::posix_memalign(&raw mut at, align, size) };
        if error == 0 {
            at.cast()
        } else {
            ptr::null_mut()
        }
    }

    /// # Safety
    /// C's allocator gave it, by whichever function, and it was not freed.
    pub(super) unsafe fn free(at: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { libc::free(at.cast()) };
    }
}

/// Windows frees what is aligned by a function of its own, so that all memory is of this kind.
#[cfg(windows)]
mod host {
    /// `malloc` and the like are not used.
    pub(super) const PLAIN: usize = 0;

    pub(super) fn aligned(size: usize, align: usize) -> *mut u8 {
        // SAFETY: a power of two.
        unsafe { libc::aligned_malloc(size, align) }.cast()
    }

    /// # Safety
    /// `aligned` gave it, and it was not freed.
    pub(super) unsafe fn free(at: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { libc::aligned_free(at.cast()) };
    }
}
