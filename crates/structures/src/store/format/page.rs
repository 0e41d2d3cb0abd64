//! Log pages: 64 slots of 64 bytes. The first has the header and the link to the next page, the others entries.

use super::bytes::{checksum, put, u32_at, u64_at};
use super::{LogPage, PAGE, offset};
use crate::store::tree::Ino;

/// Bytes of a slot of a log page.
pub(crate) const ENTRY_SLOT: usize = 64;

/// Slots of a log page, the header's included.
pub(crate) const ENTRY_SLOTS: usize = prim::sized(PAGE / ENTRY_SLOT, 3);

/// Where the link is in its page.
const LINK: u64 = 40;

const MAGIC: u32 = u32::from_le_bytes(*b"SLog");

/// Where a slot begins.
pub(crate) fn place(page: LogPage, slot: usize) -> u64 {
    offset(page.block) + (slot * ENTRY_SLOT) as u64
}

/// A log page without entries and without a link.
pub(crate) fn empty(page: LogPage, store: u64, ino: Ino) -> [u8; PAGE] {
    let mut bytes = [0; PAGE];
    put(&mut bytes, 4, &MAGIC.to_le_bytes());
    put(&mut bytes, 8, &ino.to_le_bytes());
    put(&mut bytes, 16, &page.generation.to_le_bytes());
    let sum = checksum(&[store, u64::from(page.block)], &bytes[4..LINK as usize]);
    put(&mut bytes, 0, &sum.to_le_bytes());
    bytes
}

/// Whether this is the header of that page, in the log of that inode.
pub(crate) fn is_header(bytes: &[u8; PAGE], page: LogPage, store: u64, ino: Ino) -> bool {
    let sum = checksum(&[store, u64::from(page.block)], &bytes[4..LINK as usize]);
    sum == u32_at(bytes, 0)
        && u32_at(bytes, 4) == MAGIC
        && u64_at(bytes, 8) == ino
        && u64_at(bytes, 16) == page.generation
}

/// The link from one page to the next, and where it belongs.
pub(crate) fn link(from: LogPage, to: LogPage, store: u64) -> (u64, [u8; 16]) {
    let mut bytes = [0; 16];
    put(&mut bytes, 0, &to.block.to_le_bytes());
    put(&mut bytes, 8, &to.generation.to_le_bytes());
    let sum = link_sum(&bytes, from, store);
    put(&mut bytes, 4, &sum.to_le_bytes());
    (offset(from.block) + LINK, bytes)
}

fn link_sum(bytes: &[u8], from: LogPage, store: u64) -> u32 {
    let to = [u32_at(bytes, 0).into(), u64_at(bytes, 8)];
    checksum(&[store, from.generation, to[0], to[1]], &[])
}

/// What the place of a link says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// The page is the last.
    None,
    /// The next page.
    To(LogPage),
    /// It does not match its checksum.
    Damaged,
}

/// The link of a page.
pub(crate) fn link_of(bytes: &[u8; PAGE], from: LogPage, store: u64) -> Link {
    let link = &bytes[LINK as usize..][..16];
    if link.iter().all(|&byte| byte == 0) {
        return Link::None;
    }
    if link_sum(link, from, store) != u32_at(link, 4) {
        return Link::Damaged;
    }
    Link::To(LogPage {
        block: u32_at(link, 0),
        generation: u64_at(link, 8),
    })
}
