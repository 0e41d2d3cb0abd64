//! What the models share: a backing without pages, and a space of a few pages.

use prim::thread::{self, JoinHandle};
use spanlock_structures_loom::vm::{
    Access, AddressSpace, Area, Backing, Layout, Limits, Mapping, PAGE, Placement, Protection,
    Refinement, VmError,
};
use spanlock_testkit_loom::holders::Holders;
use std::ops::Range;
use std::sync::Arc;

pub const RW: Protection = Protection::READ_WRITE;
pub const NONE: Protection = Protection::NONE;
pub const READ: Protection = Protection::READ;

/// No pages.
pub struct Nothing;

impl Backing for Nothing {
    fn map(&self, _: &Area) -> Result<(), VmError> {
        Ok(())
    }

    fn populate(&self, _: u64, _: &Area, _: Access) -> Result<(), VmError> {
        Ok(())
    }

    fn protect(&self, _: Range<u64>, _: Protection) -> Result<(), VmError> {
        Ok(())
    }

    fn unmap(&self, _: Range<u64>) {}

    fn discard(&self, _: Range<u64>) {}

    fn relocate(&self, _: Range<u64>, _: &Area) -> Result<(), VmError> {
        Ok(())
    }
}

pub type Space = AddressSpace<Holders, Nothing>;

/// Pages 1 to 20, with the heap at page 16.
const LAYOUT: Layout = Layout {
    lowest: PAGE,
    end: 20 * PAGE,
    mmap_top: 12 * PAGE,
    mmap_bottom: PAGE,
    heap: 16 * PAGE,
    guard: 0,
};

/// A space with these areas: first page, page after the last, protection.
pub fn space(
    areas: &[(u64, u64, Protection)],
    refinement: Refinement,
    limits: Limits,
) -> Arc<Space> {
    let builder = AddressSpace::builder()
        .layout(LAYOUT)
        .refinement(refinement)
        .limits(limits);
    let space = builder.build(Holders::new(), Nothing);
    for &(first, end, protection) in areas {
        let what = Mapping::anonymous(protection);
        space
            .mmap(Placement::Fixed(first * PAGE), (end - first) * PAGE, what)
            .expect("it is free");
    }
    Arc::new(space)
}

/// The same, refined and without limits.
pub fn refined(areas: &[(u64, u64, Protection)]) -> Arc<Space> {
    space(areas, Refinement::REFINED, Limits::default())
}

/// Runs `f` in a thread of its own.
pub fn spawn<R: 'static>(
    space: &Arc<Space>,
    f: impl FnOnce(&Space) -> R + 'static,
) -> JoinHandle<R> {
    let space = Arc::clone(space);
    thread::spawn(move || f(&space))
}

pub fn protect(space: &Space, first: u64, end: u64, protection: Protection) -> Result<(), VmError> {
    space.mprotect(first * PAGE, (end - first) * PAGE, protection)
}

pub fn unmap(space: &Space, first: u64, end: u64) -> Result<(), VmError> {
    space.munmap(first * PAGE, (end - first) * PAGE)
}

pub fn fault(space: &Space, page: u64, access: Access) -> Result<(), VmError> {
    space.fault(page * PAGE, access)
}

pub fn map(space: &Space, first: u64, end: u64, protection: Protection) -> Result<u64, VmError> {
    space.mmap(
        Placement::Fixed(first * PAGE),
        (end - first) * PAGE,
        Mapping::anonymous(protection),
    )
}

/// The areas: first page, page after the last, protection.
pub fn areas(space: &Space) -> Vec<(u64, u64, Protection)> {
    let maps = space.maps().into_iter();
    maps.map(|area| (area.start / PAGE, area.end / PAGE, area.protection))
        .collect()
}
