//! The memory of a space, counted by the allocator.

use spanlock_structures::vm::{Access, AddressSpace, Mapping, PAGE, Placement, Protection};
use spanlock_testkit::exact::Exact;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes that are allocated.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the other allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { Exact.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { Exact.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

/// One test, since others would allocate at the same time.
#[test]
fn an_area_takes_at_most_192_bytes_and_a_dropped_space_none() {
    const AREAS: u64 = 20_000;
    let area = |space: &AddressSpace, number: u64| {
        let at = Placement::Fixed(0x1000_0000 + 2 * number * PAGE);
        space
            .mmap(at, PAGE, Mapping::anonymous(Protection::READ))
            .unwrap()
    };
    // This thread's own records, and whatever else is made once.
    let warm = AddressSpace::new();
    area(&warm, 0);
    drop(warm);
    let before = bytes();
    let space = AddressSpace::new();
    let empty = bytes();
    for number in 0..AREAS {
        area(&space, number);
    }
    let of_areas = (bytes() - empty) as u64;
    assert!(
        of_areas <= 192 * AREAS,
        "{} bytes an area",
        of_areas / AREAS
    );
    // What is unmapped is freed, but for a few batches.
    space.munmap(0, space.layout().end).unwrap();
    for number in 0..200 {
        area(&space, number);
        space.munmap(0x1000_0000, 1000 * PAGE).unwrap();
    }
    assert!(
        bytes() - empty <= 192 * 200,
        "{} bytes remain",
        bytes() - empty
    );
    drop(space);
    assert_eq!(bytes(), before);
    println!("{} bytes an area", of_areas / AREAS);
    pages_take_eight_bytes_in_tables();
}

fn pages_take_eight_bytes_in_tables() {
    /// Next to each other, in tables of 512.
    const PAGES: u64 = 32 * 512;
    let space = AddressSpace::new();
    let at = Placement::Fixed(0x1000_0000);
    let what = Mapping::anonymous(Protection::READ);
    let arena = space.mmap(at, PAGES * PAGE, what).unwrap();
    let mapped = bytes();
    for page in 0..PAGES {
        space.fault(arena + page * PAGE, Access::Read).unwrap();
    }
    let of_pages = (bytes() - mapped) as u64;
    println!("{:.1} bytes a page", of_pages as f64 / PAGES as f64);
    assert!(of_pages <= 10 * PAGES, "{of_pages} bytes");
}
