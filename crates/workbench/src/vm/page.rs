//! Pages that cost what a page costs.

use prim::cost;
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::ops::Range;
use structures::vm::{Access, Area, Backing, PAGE, PageTable, Protection, VmError};

/// Cycles that zeroing a page takes on a simulated machine. An assumption: a store of 32 bytes in every cycle.
const ZEROING: u64 = PAGE / 32;

/// A page table, and a page that is zeroed for each fault: the work that a kernel does while it holds the lock.
#[derive(Debug, Default)]
pub struct Zeroed(PageTable);

#[repr(align(4096))]
struct Page(UnsafeCell<[u8; PAGE as usize]>);

std::thread_local! {
    static FRESH: Page = const { Page(UnsafeCell::new([0; PAGE as usize])) };
}

/// Zeroes a page of this thread.
fn zero() {
    FRESH.with(|page| {
        // SAFETY: no reference to this thread's page is kept anywhere.
        unsafe { page.0.get().write_bytes(0, 1) };
        black_box(page);
    });
    cost::work(ZEROING);
}

impl Backing for Zeroed {
    fn map(&self, area: &Area) -> Result<(), VmError> {
        self.0.map(area)
    }

    fn populate(&self, page: u64, area: &Area, access: Access) -> Result<(), VmError> {
        self.0.populate(page, area, access)?;
        zero();
        Ok(())
    }

    fn protect(&self, range: Range<u64>, protection: Protection) -> Result<(), VmError> {
        self.0.protect(range, protection)
    }

    fn unmap(&self, range: Range<u64>) {
        self.0.unmap(range);
    }

    fn discard(&self, range: Range<u64>) {
        self.0.discard(range);
    }

    fn relocate(&self, range: Range<u64>, area: &Area) -> Result<(), VmError> {
        self.0.relocate(range, area)
    }
}
