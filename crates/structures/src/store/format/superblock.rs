//! The superblock: two copies, of which the valid one with the higher update is in force.

use super::bytes::{checksum, put, u32_at, u64_at};
use super::{FORMAT_VERSION, MAX_BLOCKS, PAGE_BYTES};
use crate::store::error::{Error, Result};

/// Bytes of a copy that have a meaning.
pub(crate) const SUPERBLOCK: usize = 128;

/// Where the copies are.
pub(crate) const COPIES: [u64; 2] = [0, PAGE_BYTES];

/// A version that can be read. It has one log for each file.
const FIRST: u32 = 1;

const MAGIC: &[u8; 16] = b"spanlock store\r\n";

/// The first page of the inode slots.
pub(crate) const TABLE: u64 = 2;

/// Inode slots of a page.
pub(crate) const SLOTS_OF_A_PAGE: u64 = PAGE_BYTES / super::slot::SLOT as u64;

/// A copy of the superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The version of the format: [`FIRST`], or [`FORMAT_VERSION`].
    pub(crate) version: u32,
    /// A random number, which all checksums cover: nothing of another store is taken for this one's.
    pub(crate) id: u64,
    pub(crate) blocks: u64,
    pub(crate) inodes: u64,
    /// Counts the writes of a superblock.
    pub(crate) update: u64,
    /// Counts the openings for writing.
    pub(crate) epoch: u32,
    /// All that was written in this epoch or before is durable and was checked. It equals the epoch while the store is
    /// closed properly.
    pub(crate) good: u32,
    /// Whether all openings after the epoch `good` were on media that are durable at a fence.
    pub(crate) ordered: bool,
    /// Seconds between 1970 and the making of the store.
    pub(crate) made: i64,
}

impl Superblock {
    /// The first page for logs and data.
    pub(crate) fn data_start(&self) -> u64 {
        TABLE + self.inodes.div_ceil(SLOTS_OF_A_PAGE)
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.good == self.epoch
    }

    pub(crate) fn bytes(&self) -> [u8; SUPERBLOCK] {
        let mut bytes = [0; SUPERBLOCK];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 16, &self.version.to_le_bytes());
        put(&mut bytes, 24, &self.id.to_le_bytes());
        put(&mut bytes, 32, &self.blocks.to_le_bytes());
        put(&mut bytes, 40, &self.inodes.to_le_bytes());
        put(&mut bytes, 48, &self.update.to_le_bytes());
        put(&mut bytes, 56, &self.epoch.to_le_bytes());
        put(&mut bytes, 60, &self.good.to_le_bytes());
        put(&mut bytes, 64, &[u8::from(self.ordered)]);
        put(&mut bytes, 72, &self.made.to_le_bytes());
        let sum = checksum(&[], &bytes[..SUPERBLOCK - 4]);
        put(&mut bytes, SUPERBLOCK - 4, &sum.to_le_bytes());
        bytes
    }

    /// Reads one copy.
    ///
    /// # Errors
    /// When it is none of a version that is known, or does not match its checksum, or is nonsense.
    pub(crate) fn parse(bytes: &[u8; SUPERBLOCK]) -> Result<Self> {
        if bytes[..16] != MAGIC[..] {
            return Err(Error::NotAStore("it does not begin as one"));
        }
        let version = u32_at(bytes, 16);
        let known = FIRST..=FORMAT_VERSION;
        if checksum(&[], &bytes[..SUPERBLOCK - 4]) != u32_at(bytes, SUPERBLOCK - 4) {
            // A later version may well have its checksum elsewhere.
            return Err(if known.contains(&version) {
                Error::Corrupt("a superblock does not match its checksum".to_owned())
            } else {
                Error::Version(version)
            });
        }
        if !known.contains(&version) {
            return Err(Error::Version(version));
        }
        let parsed = Self {
            version,
            id: u64_at(bytes, 24),
            blocks: u64_at(bytes, 32),
            inodes: u64_at(bytes, 40),
            update: u64_at(bytes, 48),
            epoch: u32_at(bytes, 56),
            good: u32_at(bytes, 60),
            ordered: bytes[64] == 1,
            made: i64::from_le_bytes(bytes[72..80].try_into().expect("eight bytes")),
        };
        let fits = parsed.blocks < MAX_BLOCKS
            && parsed.inodes < parsed.blocks * SLOTS_OF_A_PAGE
            && parsed.data_start() < parsed.blocks
            && parsed.good <= parsed.epoch
            // No store counts so far: there is always a next number.
            && parsed.epoch <= u32::MAX / 2
            && parsed.update <= u64::MAX / 2;
        fits.then_some(parsed).ok_or_else(|| {
            Error::Corrupt("the superblock's numbers do not fit together".to_owned())
        })
    }
}
