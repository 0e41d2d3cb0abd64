//! A page table in memory: which pages are there, and what may be done with them.

use super::Backing;
use crate::vm::error::VmError;
use crate::vm::kind::{Access, Area, PAGE, Protection};
use prim::atomic::{AtomicPtr, Ordering};
use std::ops::Range;
use std::ptr;

/// Levels of tables.
const DEPTH: u32 = 5;

/// Bits of an address that select an entry of a table.
const BITS: u32 = prim::sized(9, 1) as u32;

/// Entries of a table.
const ENTRIES: usize = 1 << BITS;

/// A page is there.
const PRESENT: usize = 8;

/// It was written.
const WRITTEN: usize = 16;

/// A page table in memory. It has no pages, only entries: whether a page is there, with which protection, and whether
/// it was written. It suits simulations, and users who keep the pages themselves.
///
/// # Cost
/// Eight bytes for each page in tables of 4 KiB, which are made when the first of their 512 pages is populated, and
/// freed when all their addresses are unmapped together. Populating takes a walk of five loads and one
/// compare-exchange.
#[derive(Debug)]
pub struct PageTable {
    root: Table,
}

/// A table. At the lowest level the entries are numbers, and null for a page that is not there. At the others they
/// point to tables.
#[derive(Debug)]
struct Table {
    entries: [AtomicPtr<Table>; ENTRIES],
}

impl Table {
    fn new() -> Self {
        Self {
            entries: prim::array![AtomicPtr::new(ptr::null_mut()); ENTRIES],
        }
    }

    /// The table that an entry points to.
    fn child(entry: &AtomicPtr<Self>) -> Option<&Self> {
        // Acquire: pairs with the Release in `made`.
        let child = entry.load(Ordering::Acquire);
        // SAFETY: entries above the lowest level point to tables, which live until nobody uses their addresses.
        unsafe { child.as_ref() }
    }

    /// The table that an entry points to, made if there is none.
    fn made(entry: &AtomicPtr<Self>) -> &Self {
        if let Some(child) = Self::child(entry) {
            return child;
        }
        let fresh = Box::into_raw(Box::new(Self::new()));
        // Release: pairs with the Acquire of those who come to the table.
        let made =
            entry.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire);
        let child = made.map_or_else(
            |theirs| {
                // SAFETY: it comes from the Box above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                theirs
            },
            |_| fresh,
        );
        // SAFETY: as in `child`.
        unsafe { &*child }
    }
}

/// The bytes that an entry of a table stands for, at so many levels above the lowest.
const fn reach(level: u32) -> u64 {
    PAGE << (BITS * level)
}

/// The place of an address in a table at this level.
const fn place(address: u64, level: u32) -> usize {
    (address / reach(level)) as usize % ENTRIES
}

impl Default for PageTable {
    fn default() -> Self {
        Self::new()
    }
}

impl PageTable {
    /// A table without pages.
    #[must_use]
    pub fn new() -> Self {
        Self { root: Table::new() }
    }

    /// The protection of the page at this address; `None` if there is no page.
    #[must_use]
    pub fn page(&self, address: u64) -> Option<Protection> {
        let entry = self.entry(address)?.load(Ordering::Relaxed).addr();
        if entry & PRESENT == 0 {
            None
        } else {
            Protection::from_bits((entry & 7) as u8)
        }
    }

    /// Whether there is a page at this address that was written.
    #[must_use]
    pub fn is_written(&self, address: u64) -> bool {
        self.entry(address)
            .is_some_and(|entry| entry.load(Ordering::Relaxed).addr() & WRITTEN != 0)
    }

    /// The number of pages in a range.
    #[must_use]
    pub fn pages(&self, range: Range<u64>) -> u64 {
        let mut pages = 0;
        self.each(range, |entry| {
            pages += u64::from(!entry.load(Ordering::Relaxed).is_null())
        });
        pages
    }

    fn entry(&self, address: u64) -> Option<&AtomicPtr<Table>> {
        let mut table = &self.root;
        for level in (1..DEPTH).rev() {
            table = Table::child(&table.entries[place(address, level)])?;
        }
        Some(&table.entries[place(address, 0)])
    }

    /// Calls `f` with each entry of a page in the range, of which there is a table.
    fn each(&self, range: Range<u64>, mut f: impl FnMut(&AtomicPtr<Table>)) {
        each_of(&self.root, DEPTH - 1, 0, &range, &mut f);
    }
}

/// Calls `f` with the entries of this table, whose first address is `base`, and of those below.
fn each_of(
    table: &Table,
    level: u32,
    base: u64,
    range: &Range<u64>,
    f: &mut impl FnMut(&AtomicPtr<Table>),
) {
    for (at, entry) in table
        .entries
        .iter()
        .enumerate()
        .take(last_place(level, base, range))
        .skip(first_place(level, base, range))
    {
        let start = base + at as u64 * reach(level);
        if level == 0 {
            f(entry);
        } else if let Some(child) = Table::child(entry) {
            each_of(child, level - 1, start, range, f);
        }
    }
}

/// The place of the first entry that the range needs.
fn first_place(level: u32, base: u64, range: &Range<u64>) -> usize {
    (range.start.saturating_sub(base) / reach(level)) as usize
}

/// The place after the last.
fn last_place(level: u32, base: u64, range: &Range<u64>) -> usize {
    let places = range.end.saturating_sub(base).div_ceil(reach(level));
    places.min(ENTRIES as u64) as usize
}

/// Drops the pages of the range, and the tables of which it has all addresses. Their users hold some of those, so there
/// are none.
fn drop_pages(table: &Table, level: u32, base: u64, range: &Range<u64>) {
    for at in first_place(level, base, range)..last_place(level, base, range) {
        let (entry, start) = (&table.entries[at], base + at as u64 * reach(level));
        if level == 0 {
            entry.store(ptr::null_mut(), Ordering::Relaxed);
        } else if level == 1 && range.start <= start && start + reach(level) <= range.end {
            let child = entry.load(Ordering::Acquire);
            entry.store(ptr::null_mut(), Ordering::Relaxed);
            if !child.is_null() {
                // SAFETY: a table of the lowest level, from a Box. The caller holds all its addresses exclusively.
                drop(unsafe { Box::from_raw(child) });
            }
        } else if let Some(child) = Table::child(entry) {
            drop_pages(child, level - 1, start, range);
        }
    }
}

impl Backing for PageTable {
    fn map(&self, _area: &Area) -> Result<(), VmError> {
        Ok(())
    }

    fn populate(&self, page: u64, area: &Area, access: Access) -> Result<(), VmError> {
        let mut table = &self.root;
        for level in (1..DEPTH).rev() {
            table = Table::made(&table.entries[place(page, level)]);
        }
        let entry = &table.entries[place(page, 0)];
        let written = if access == Access::Write { WRITTEN } else { 0 };
        let adds = PRESENT | written | usize::from(area.protection.bits());
        // Relaxed: the entry is a number. Its users are ordered by the range lock, or do not care.
        let mut now = entry.load(Ordering::Relaxed);
        while now.addr() & adds != adds {
            let new = ptr::without_provenance_mut(now.addr() | adds);
            match entry.compare_exchange(now, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(found) => now = found,
            }
        }
        Ok(())
    }

    fn protect(&self, range: Range<u64>, protection: Protection) -> Result<(), VmError> {
        self.each(range, |entry| {
            let now = entry.load(Ordering::Relaxed).addr();
            if now & PRESENT != 0 {
                let new = now & !7 | usize::from(protection.bits());
                entry.store(ptr::without_provenance_mut(new), Ordering::Relaxed);
            }
        });
        Ok(())
    }

    fn unmap(&self, range: Range<u64>) {
        drop_pages(&self.root, DEPTH - 1, 0, &range);
    }

    fn discard(&self, range: Range<u64>) {
        self.each(range, |entry| {
            entry.store(ptr::null_mut(), Ordering::Relaxed)
        });
    }

    fn relocate(&self, range: Range<u64>, area: &Area) -> Result<(), VmError> {
        let mut pages = Vec::new();
        for page in range.clone().step_by(PAGE as usize) {
            if let Some(entry) = self.entry(page) {
                pages.push((page - range.start, entry.load(Ordering::Relaxed)));
            }
        }
        for (at, value) in pages.into_iter().filter(|(_, value)| !value.is_null()) {
            self.populate(area.start + at, area, Access::Read)?;
            if let Some(entry) = self.entry(area.start + at) {
                entry.store(value, Ordering::Relaxed);
            }
        }
        self.unmap(range);
        Ok(())
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        drop_tables(&self.root, DEPTH - 1);
    }
}

/// Frees the tables below this one.
fn drop_tables(table: &Table, level: u32) {
    for entry in table.entries.iter().filter(|_| level > 0) {
        let child = entry.load(Ordering::Acquire);
        if !child.is_null() {
            // SAFETY: a table from a Box, which nobody uses any more.
            let child = unsafe { Box::from_raw(child) };
            drop_tables(&child, level - 1);
        }
    }
}
