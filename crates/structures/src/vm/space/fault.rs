//! Page faults.
//!
//! A fault locks its page in shared mode. That holds off all that would change the area's kind or take the page from
//! the area, and nothing else: the area may grow and shrink elsewhere meanwhile.
//!
//! # Edges
//!
//! - **fresh-area**: the first write to a private area gives the area its *family*: that of a neighbour, if they are
//!   alike, so that the two can be merged later. That looks at the neighbours and changes the area, so it locks the
//!   area and a page on each side, exclusively. With the page alone (P1 §5.3, literally) the neighbours change under
//!   the fault's eyes: a kernel built so stops in `find_mergeable_anon_vma`.

use super::AddressSpace;
use super::place::page_of;
use super::refinement::{ChangeRange, FaultRange, StructureRange};
use super::stat::{Operation, Speculation};
use crate::vm::backing::Backing;
use crate::vm::error::VmError;
use crate::vm::index::{Around, Node};
use crate::vm::kind::{Access, Area, Flags, PAGE, Protection};
use crate::vm::plan::{Found, Kind, Range};
use crate::vm::reclaim::searching;
use prim::atomic::Ordering;
use spanlock::range::raw::{Mode, RawRangeLock};

impl<L: RawRangeLock, B: Backing> AddressSpace<L, B> {
    /// Serves a page fault: checks that the area of the address allows the access, and has the backing populate the
    /// page.
    ///
    /// # Errors
    /// [`Unmapped`](VmError::Unmapped) and [`Denied`](VmError::Denied), for which Linux sends `SIGSEGV` with
    /// `SEGV_MAPERR` or `SEGV_ACCERR`; and what the backing refuses with.
    pub fn fault(&self, address: u64, access: Access) -> Result<(), VmError> {
        if address >= self.layout.end {
            return Err(VmError::Unmapped);
        }
        let start = page_of(address);
        let page = Range {
            start,
            end: start + PAGE,
        };
        let wanted = match self.refinement.fault {
            FaultRange::Whole => Range::ALL,
            FaultRange::Page => page,
        };
        let held = self.hold(Operation::Fault, Mode::Shared, wanted);
        // Filled where it stays: to move it from the search would take longer than the search.
        let mut found = None;
        searching(|| {
            let node = self.index.at(start).ok_or(VmError::Unmapped)?;
            let (kind, range) = (admitted(node, access)?, node.range());
            if is_first_write(kind, access) && !prim::intact!("fresh-area") {
                self.found_family(node, &self.index.around(range));
            }
            found = Some(kind.area(range.start, range.end));
            Ok(())
        })?;
        let Some(area) = &found else {
            return Err(VmError::Unmapped);
        };
        let is_fresh =
            access == Access::Write && !area.flags.contains(Flags::SHARED) && area.family == 0;
        if is_fresh && prim::intact!("fresh-area") {
            drop(held);
            let Area { start, end, .. } = *area;
            return self.first_write(page, access, Range { start, end });
        }
        self.backing.populate(start, area, access)
    }

    /// Serves a fault that is the first write to a private area, which was there before.
    fn first_write(&self, page: Range, access: Access, area: Range) -> Result<(), VmError> {
        let mut wanted = match (
            self.refinement.fault,
            self.refinement.change,
            self.refinement.structure,
        ) {
            (FaultRange::Page, ChangeRange::Speculate | ChangeRange::Arguments, _)
            | (FaultRange::Page, _, StructureRange::Partial) => area.widened().hull(page),
            _ => Range::ALL,
        };
        loop {
            let held = self.hold(Operation::Fault, Mode::Exclusive, wanted);
            let found = searching(|| {
                let node = self.index.at(page.start).ok_or(VmError::Unmapped)?;
                let kind = admitted(node, access)?;
                let area = node.range();
                let needs = area.widened();
                if kind.family == 0 {
                    if !wanted.covers(needs) {
                        return Ok(Err(wanted.hull(needs)));
                    }
                    self.found_family(node, &self.index.around(area));
                }
                Ok(Ok(node.kind().area(area.start, area.end)))
            })?;
            match found {
                Ok(area) => return self.backing.populate(page.start, &area, access),
                Err(more) => {
                    drop(held);
                    self.count(Operation::Fault, Speculation::Widened);
                    wanted = more;
                }
            }
        }
    }

    /// Gives a fresh area its family. The area and a page on each side are held.
    fn found_family(&self, node: &Node, around: &Around<'_>) {
        let kind = node.kind();
        let Range { start, end } = node.range();
        // As Linux does: the next area first.
        let akin = |area: &&Found| {
            (area.range.start == end || area.range.end == start) && kind.is_akin_to(area.kind)
        };
        let family = around.areas.iter().rev().find(akin).map_or_else(
            // Relaxed: numbers that differ are all that counts.
            || self.families.fetch_add(1, Ordering::Relaxed),
            |neighbour| neighbour.kind.family,
        );
        // SAFETY: [fresh-area] the caller holds all of the area exclusively.
        unsafe { node.set_kind(Kind { family, ..kind }) };
    }
}

/// What the area is, if it allows the access. As on x86, whatever may be accessed at all may be read.
fn admitted(node: &Node, access: Access) -> Result<Kind, VmError> {
    let kind = node.kind();
    let allows = match access {
        Access::Read => kind.protection != Protection::NONE,
        Access::Write | Access::Execute => kind.protection.allows(access.needs()),
    };
    if allows {
        Ok(kind)
    } else {
        Err(VmError::Denied)
    }
}

fn is_first_write(kind: Kind, access: Access) -> bool {
    access == Access::Write && kind.is_private() && kind.family == 0
}
