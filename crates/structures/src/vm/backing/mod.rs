//! What backs the areas: the life of a page.

#[cfg(target_os = "linux")]
mod real;
mod table;

use crate::vm::error::VmError;
use crate::vm::kind::{Access, Area, Protection};
#[cfg(target_os = "linux")]
pub use real::RealMappings;
use std::ops::Range;
pub use table::PageTable;

/// What backs the areas of a space.
///
/// ```text
///   map ──> (no page) ──populate──> page ──protect──> page ──discard──> (no page) ──> ...
///                                     └───────────── unmap, relocate ──────────┘
/// ```
///
/// The space calls these functions while it holds the range that they are about: exclusively, except in `populate` and
/// `discard`, which hold it together with others. So calls for ranges that do not overlap come at the same time, and so
/// do several calls of `populate` for one page: all but the first must do nothing. None of them may call the space,
/// which would wait for itself.
pub trait Backing {
    /// Pages of this new area may be populated from now on. Nothing else is in its range.
    ///
    /// # Errors
    /// The mapping is refused. Nothing has changed.
    fn map(&self, area: &Area) -> Result<(), VmError>;

    /// The area before `more`, which is alike, gets longer by it. Nothing else is in its range.
    ///
    /// # Errors
    /// As for [`map`](Self::map), which this is unless it makes a difference.
    fn lengthen(&self, more: &Area) -> Result<(), VmError> {
        self.map(more)
    }

    /// The page at this address is accessed; the area, of which only this page is held, allows that.
    ///
    /// # Errors
    /// The access is refused.
    fn populate(&self, page: u64, area: &Area, access: Access) -> Result<(), VmError>;

    /// The pages of the range get this protection. All of it is mapped.
    ///
    /// # Errors
    /// The protection is refused. Nothing has changed.
    fn protect(&self, range: Range<u64>, protection: Protection) -> Result<(), VmError>;

    /// The range gets free; parts of it may be free already. Its pages are dropped.
    fn unmap(&self, range: Range<u64>);

    /// The pages of the range are dropped. It stays mapped.
    fn discard(&self, range: Range<u64>);

    /// The pages of the range go to `area`, which is as long or longer. It is mapped already, and has no pages; `unmap`
    /// is called for the range afterwards.
    ///
    /// # Errors
    /// The move is refused. Nothing has changed.
    fn relocate(&self, range: Range<u64>, area: &Area) -> Result<(), VmError>;
}
