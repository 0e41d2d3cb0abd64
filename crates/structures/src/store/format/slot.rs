//! Inode slots: where the log of an inode begins. A slot has two halves, of which the valid one with the higher update
//! is in force, if it is of the inode's generation.

use super::bytes::{checksum, put, u32_at, u64_at};
use super::superblock::TABLE;
use super::{LogPage, PAGE_BYTES};
use crate::store::tree::Ino;

/// Bytes of a slot.
pub(crate) const SLOT: usize = 64;

/// Bytes of a half.
pub(crate) const HALF: usize = 32;

/// Where a slot begins.
pub(crate) fn place(ino: Ino) -> u64 {
    TABLE * PAGE_BYTES + ino * SLOT as u64
}

/// A half of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Half {
    /// The generation of the inode that the log belongs to.
    pub(crate) inode: u64,
    /// The first page of its log.
    pub(crate) head: LogPage,
    /// Counts the writes of the slot, from 1. Its parity says which half this is.
    pub(crate) update: u32,
}

impl Half {
    pub(crate) fn bytes(&self, store: u64, ino: Ino) -> [u8; HALF] {
        let mut bytes = [0; HALF];
        put(&mut bytes, 4, &self.head.block.to_le_bytes());
        put(&mut bytes, 8, &self.inode.to_le_bytes());
        put(&mut bytes, 16, &self.head.generation.to_le_bytes());
        put(&mut bytes, 24, &self.update.to_le_bytes());
        let sum = checksum(&[store, ino], &bytes[4..]);
        put(&mut bytes, 0, &sum.to_le_bytes());
        bytes
    }

    /// Where it belongs.
    pub(crate) fn place(&self, ino: Ino) -> u64 {
        place(ino) + u64::from(self.update % 2) * HALF as u64
    }

    fn parse(bytes: &[u8], store: u64, ino: Ino) -> Option<Self> {
        // No inode counts so far: there is always a next number.
        let counts = u32_at(bytes, 24) <= u32::MAX / 2;
        let valid = counts && checksum(&[store, ino], &bytes[4..]) == u32_at(bytes, 0);
        valid.then(|| Self {
            inode: u64_at(bytes, 8),
            head: LogPage {
                block: u32_at(bytes, 4),
                generation: u64_at(bytes, 16),
            },
            update: u32_at(bytes, 24),
        })
    }
}

/// What a slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The valid halves.
    halves: [Option<Half>; 2],
    /// Which halves are neither zero nor valid.
    damaged: [bool; 2],
}

impl Slot {
    /// The half in force for an inode of that generation. `None` if its log has not begun: an older half belongs to an
    /// inode that had the number before.
    pub(crate) fn half(&self, generation: u64) -> Option<Half> {
        // [inode-generation]
        let is_ours = |half: &Half| half.inode == generation || !prim::intact!("inode-generation");
        let ours = self.halves.into_iter().flatten().filter(is_ours);
        ours.max_by_key(|half| half.update)
    }

    /// Whether a half is neither zero nor valid.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged != [false; 2]
    }

    /// Where the halves begin that are neither zero nor valid.
    pub(crate) fn damaged_halves(&self, ino: Ino) -> impl Iterator<Item = u64> + use<> {
        let begins = [0, HALF as u64].map(|at| place(ino) + at);
        let halves = begins.into_iter().zip(self.damaged);
        halves.filter_map(|(begin, damaged)| damaged.then_some(begin))
    }
}

/// Reads a slot.
pub(crate) fn parse(bytes: &[u8; SLOT], store: u64, ino: Ino) -> Slot {
    let parts = [&bytes[..HALF], &bytes[HALF..]];
    let halves = parts.map(|part| Half::parse(part, store, ino));
    let is_zero = |part: &[u8]| part.iter().all(|&byte| byte == 0);
    let damaged = [0, 1].map(|half| halves[half].is_none() && !is_zero(parts[half]));
    Slot { halves, damaged }
}
