//! A concurrent address-space manager: areas of pages, whose lock is a range lock.
//!
//! It is for sandboxes, virtual-machine monitors, emulators and allocators that keep a map of address ranges and change
//! it from many threads. The scheme is that of *Scalable Range Locks for Scalable Address Spaces and Beyond* (Kogan,
//! Dice and Issa, EuroSys 2020, §5), with its races mended, and taken further: insertions and removals of areas run
//! side by side, too.
//!
//! | type | what it is |
//! |---|---|
//! | [`AddressSpace`] | the areas, and the operations of Linux on them |
//! | [`Backing`] | what backs the areas: the life of a page. [`PageTable`] is one in memory; `RealMappings`, on Linux, maps real memory |
//! | [`Refinement`] | how much of the space each operation locks |
//! | [`LockStat`] | waits and speculations |
//!
//! ```text
//!   space/      the operations: lock a range, look, plan, carry out
//!     |    \
//!     |     plan      what an operation does to the areas that it meets: a pure function
//!     v
//!   index/      the areas in two levels of arrays, searched without locks;  reclaim: when removed areas may be freed
//!   backing/    what is behind the pages
//! ```

mod backing;
mod error;
mod index;
mod kind;
mod layout;
mod plan;
mod reclaim;
mod space;

#[cfg(target_os = "linux")]
pub use backing::RealMappings;
pub use backing::{Backing, PageTable};
pub use error::VmError;
pub use kind::{Access, Area, Flags, Mapping, PAGE, Placement, Protection, Relocation, Source};
pub use layout::{Layout, Limits, Pages};
pub use space::stat::{LockStat, Operation, Speculation, Waits};
pub use space::{AddressSpace, Builder, ChangeRange, FaultRange, Refinement, StructureRange};
#[doc(no_inline)]
pub use spanlock::range::raw::RawRangeLock;
