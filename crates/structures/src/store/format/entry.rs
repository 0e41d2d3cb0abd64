//! Entries of logs. An entry takes one or more slots of a log page. Its checksum is the commit mark.

use super::bytes::{checksum, put, u32_at, u64_at};
use super::page::{ENTRY_SLOT, ENTRY_SLOTS};
use super::{Item, LogPage, PAGE};
use crate::store::tree::Ino;
use smallvec::SmallVec;

/// Bytes before the payload.
const HEAD: usize = 40;

/// The longest payload: what a log page has room for.
pub(crate) const MAX_PAYLOAD: usize = (ENTRY_SLOTS - 1) * ENTRY_SLOT - HEAD;

/// Items that an entry has room for: larger writes are several entries.
pub(crate) const MAX_ITEMS: usize = MAX_PAYLOAD / 8;

/// What an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Pages of a file have new contents, or become holes. `a` is the end of the write in bytes, `b` the first page.
    Write,
    /// A file is cut off or extended. `a` is the size, `b` the page that contains its end, if there is an item for it.
    Truncate,
    /// A further log of the file begins. `a` is its first page, `b` that page's generation.
    Branch,
    /// A change of directories: see `format/tree.rs`.
    Tree(u8),
}

impl What {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Write => 1,
            Self::Truncate => 2,
            Self::Branch => 3,
            Self::Tree(code) => code,
        }
    }

    fn of(code: u8) -> Option<Self> {
        match code {
            0 => None,
            1 => Some(Self::Write),
            2 => Some(Self::Truncate),
            3 => Some(Self::Branch),
            code => Some(Self::Tree(code)),
        }
    }
}

/// An entry, whose payload is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) what: What,
    /// The opening that wrote it.
    pub(crate) epoch: u32,
    /// Counts the entries of the directories' log. In logs of files [`IN_PLACE`](Self::IN_PLACE) or
    /// [`BY_TIME`](Self::BY_TIME).
    pub(crate) number: u32,
    /// Nanoseconds since 1970.
    pub(crate) time: i64,
    pub(crate) a: u64,
    pub(crate) b: u64,
}

impl Head {
    /// The entry counts where it is in its log, and before those that count by time. Version 1 had no others.
    pub(crate) const IN_PLACE: u32 = 0;

    /// Entries of all logs of a file count in the order of their times.
    pub(crate) const BY_TIME: u32 = 1;
}

/// The bytes of an entry that is not marked yet. Most writes fit into one slot.
pub(crate) type Draft = SmallVec<[u8; 2 * ENTRY_SLOT]>;

/// Slots that an entry with such a payload takes.
pub(crate) fn slots(payload: usize) -> usize {
    (HEAD + payload).div_ceil(ENTRY_SLOT)
}

/// An entry without its mark.
pub(crate) fn draft(head: &Head, payload: &[u8]) -> Draft {
    let slots = slots(payload.len());
    let mut bytes = Draft::new();
    bytes.resize(slots * ENTRY_SLOT, 0);
    bytes[4] = head.what.code();
    bytes[5] = u8::try_from(slots).expect("a page has 64 slots");
    let length = u16::try_from(payload.len()).expect("a payload fits into a page");
    put(&mut bytes, 6, &length.to_le_bytes());
    put(&mut bytes, 8, &head.epoch.to_le_bytes());
    put(&mut bytes, 12, &head.number.to_le_bytes());
    put(&mut bytes, 16, &head.time.to_le_bytes());
    put(&mut bytes, 24, &head.a.to_le_bytes());
    put(&mut bytes, 32, &head.b.to_le_bytes());
    put(&mut bytes, HEAD, payload);
    bytes
}

/// Marks an entry as committed in that slot.
pub(crate) fn mark(bytes: &mut [u8], place: &Place) {
    let sum = place.checksum(&bytes[4..]);
    put(bytes, 0, &sum.to_le_bytes());
}

/// Where an entry is: the mark covers it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) store: u64,
    pub(crate) ino: Ino,
    pub(crate) page: LogPage,
    pub(crate) slot: usize,
}

impl Place {
    fn checksum(&self, bytes: &[u8]) -> u32 {
        // [mark] An entry that another log left here has another generation.
        let mut generation = self.page.generation;
        if !prim::intact!("mark") {
            generation = 0;
        }
        // [as-published] P3's mark says nothing of where it stands.
        if !prim::intact!("as-published") {
            generation = 0;
        }
        checksum(&[self.store, self.ino, generation, self.slot as u64], bytes)
    }
}

/// What a slot contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A committed entry, with its payload and the number of its slots.
    Entry(Head, &'a [u8], usize),
    /// Nothing was ever written here.
    Nothing,
    /// An entry that was not committed, or is damaged.
    Remains,
}

/// Reads what begins in a slot of a log page.
pub(crate) fn find<'a>(page: &'a [u8; PAGE], place: &Place) -> Found<'a> {
    let rest = &page[place.slot * ENTRY_SLOT..];
    let (slots, length) = (
        usize::from(rest[5]),
        usize::from(u16::from_le_bytes([rest[6], rest[7]])),
    );
    let fits = place.slot + slots <= ENTRY_SLOTS && slots == self::slots(length);
    if let (true, Some(what)) = (fits, What::of(rest[4])) {
        let bytes = &rest[..slots * ENTRY_SLOT];
        if place.checksum(&bytes[4..]) == u32_at(bytes, 0) {
            let head = Head {
                what,
                epoch: u32_at(bytes, 8),
                number: u32_at(bytes, 12),
                time: u64_at(bytes, 16).cast_signed(),
                a: u64_at(bytes, 24),
                b: u64_at(bytes, 32),
            };
            return Found::Entry(head, &bytes[HEAD..HEAD + length], slots);
        }
    }
    if rest[..ENTRY_SLOT].iter().all(|&byte| byte == 0) {
        Found::Nothing
    } else {
        Found::Remains
    }
}

/// The payload of an entry about pages.
pub(crate) fn payload_of(items: &[Item]) -> SmallVec<[u8; 64]> {
    let mut bytes = SmallVec::new();
    for item in items {
        bytes.extend_from_slice(&item.block.to_le_bytes());
        bytes.extend_from_slice(&item.sum.to_le_bytes());
    }
    bytes
}

/// The pages in the payload of an entry.
pub(crate) fn items(payload: &[u8]) -> impl Iterator<Item = Item> + '_ {
    payload.chunks_exact(8).map(|bytes| Item {
        block: u32_at(bytes, 0),
        sum: u32_at(bytes, 4),
    })
}
