//! The bytes of each structure. `docs/store-format.md` describes them; numbers are little-endian.

pub(crate) mod bytes;
pub(crate) mod entry;
pub(crate) mod page;
pub(crate) mod slot;
pub(crate) mod superblock;
pub(crate) mod tree;

use crate::store::error::{Error, Result};

/// Bytes of a page, the unit of allocation, of copying, and of checksums of data.
pub const PAGE: usize = 4096;

/// [`PAGE`] as a position.
pub(crate) const PAGE_BYTES: u64 = PAGE as u64;

/// The version of the format that stores have once they were opened. A store of version 1 becomes one of this version
/// when it is opened; any other is refused.
pub const FORMAT_VERSION: u32 = 2;

/// A page of zeros, not on the stack.
pub(crate) fn zeros() -> Box<[u8; PAGE]> {
    let bytes = vec![0; PAGE].into_boxed_slice();
    bytes.try_into().expect("a page")
}

/// The number of a page of the store. Zero is the superblock, so it also stands for "none".
pub(crate) type Block = u32;

/// Stores have fewer pages: an item of the index has 31 bits for them.
pub(crate) const MAX_BLOCKS: u64 = 1 << 31;

/// The pages of a new store of that many bytes.
pub(crate) fn blocks_of(bytes: u64) -> Result<u64> {
    let blocks = bytes / PAGE_BYTES;
    match blocks < MAX_BLOCKS {
        true => Ok(blocks),
        false => Err(Error::Invalid("a store has fewer than 2^31 pages of 4 KiB")),
    }
}

/// Where a page begins.
pub(crate) fn offset(block: Block) -> u64 {
    u64::from(block) * PAGE_BYTES
}

/// A page of data: its place and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Item {
    /// Zero for a hole.
    pub(crate) block: Block,
    /// CRC32C of the page.
    pub(crate) sum: u32,
}

impl Item {
    /// A page that was never written, or cut off: it reads as zeros.
    pub(crate) const HOLE: Self = Self { block: 0, sum: 0 };

    pub(crate) fn is_hole(self) -> bool {
        self.block == 0
    }
}

/// A page of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPage {
    pub(crate) block: Block,
    /// No two pages of logs ever have the same, not even the same page at different times.
    pub(crate) generation: u64,
}
