//! What an area is: protection, flags, and where its content comes from.

use std::fmt;
use std::ops::BitOr;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// What may be done with the pages of an area.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Protection(u8);

impl Protection {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Read.
    pub const READ: Self = Self(1);
    /// Write.
    pub const WRITE: Self = Self(2);
    /// Execute.
    pub const EXECUTE: Self = Self(4);
    /// Read and write.
    pub const READ_WRITE: Self = Self(3);
    /// All three.
    pub const ALL: Self = Self(7);

    /// The protection with these bits of `PROT_READ` (1), `PROT_WRITE` (2) and `PROT_EXEC` (4); `None` if there are
    /// other bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits <= Self::ALL.0 {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// The bits of `PROT_READ` (1), `PROT_WRITE` (2) and `PROT_EXEC` (4).
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `other` is allowed.
    #[must_use]
    pub const fn allows(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Protection {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |bit: Self, letter| if self.allows(bit) { letter } else { '-' };
        let (r, w, x) = (
            letter(Self::READ, 'r'),
            letter(Self::WRITE, 'w'),
            letter(Self::EXECUTE, 'x'),
        );
        write!(f, "{r}{w}{x}")
    }
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How a page is accessed when a fault occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// By a load.
    Read,
    /// By a store.
    Write,
    /// By the fetch of an instruction.
    Execute,
}

impl Access {
    /// The protection that allows it.
    #[must_use]
    pub const fn needs(self) -> Protection {
        match self {
            Self::Read => Protection::READ,
            Self::Write => Protection::WRITE,
            Self::Execute => Protection::EXECUTE,
        }
    }
}

/// What else distinguishes areas. Areas with different flags are never merged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u16);

impl Flags {
    /// Writes stay in this address space (`MAP_PRIVATE`). No flag at all.
    pub const PRIVATE: Self = Self(0);
    /// Writes reach the file, or all who share the memory (`MAP_SHARED`).
    pub const SHARED: Self = Self(1);
    /// No memory is reserved (`MAP_NORESERVE`).
    pub const NO_RESERVE: Self = Self(2);
    /// Counted as a stack, and not as data.
    pub const STACK: Self = Self(4);
    /// A fault just below the area extends it (`MAP_GROWSDOWN`). Other areas keep a guard gap below it.
    pub const GROWS_DOWN: Self = Self(8);
    /// Pages stay in memory (`MAP_LOCKED`).
    pub const LOCKED: Self = Self(16);
    /// Huge pages are welcome (`MADV_HUGEPAGE`).
    pub const HUGE: Self = Self(32);
    /// No huge pages (`MADV_NOHUGEPAGE`).
    pub const NO_HUGE: Self = Self(64);
    /// Not in core dumps (`MADV_DONTDUMP`).
    pub const NO_DUMP: Self = Self(128);
    /// Not inherited by children (`MADV_DONTFORK`).
    pub const NO_FORK: Self = Self(256);

    /// The flags that `madvise` sets and clears.
    pub(crate) const ADVICE: Self = Self(32 | 64 | 128 | 256);

    /// Memory is reserved for it (`ac` in the kernel's `VmFlags`). The space sets it for private areas that are, or
    /// were, writable, and takes it from those that stop being so before their first page is written.
    pub const RESERVED: Self = Self(512);

    const NAMES: [(Self, &'static str); 10] = [
        (Self::SHARED, "SHARED"),
        (Self::NO_RESERVE, "NO_RESERVE"),
        (Self::STACK, "STACK"),
        (Self::GROWS_DOWN, "GROWS_DOWN"),
        (Self::LOCKED, "LOCKED"),
        (Self::HUGE, "HUGE"),
        (Self::NO_HUGE, "NO_HUGE"),
        (Self::NO_DUMP, "NO_DUMP"),
        (Self::NO_FORK, "NO_FORK"),
        (Self::RESERVED, "RESERVED"),
    ];

    /// Whether all of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = Self::NAMES.iter().filter(|(flag, _)| self.contains(*flag));
        f.write_str(named.next().map_or("PRIVATE", |(_, name)| name))?;
        named.try_for_each(|(_, name)| write!(f, " | {name}"))
    }
}

/// Where the content of an area comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Zeros.
    Anonymous,
    /// A file.
    File {
        /// The file, by a number of the user's. Not zero.
        file: u64,
        /// The place of the area's first byte in the file: a multiple of the page size.
        offset: u64,
    },
}

/// What to map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// What may be done with the pages.
    pub protection: Protection,
    /// What `mprotect` may ever allow. A shared mapping of a file that was opened to read lacks
    /// [`WRITE`](Protection::WRITE).
    pub most: Protection,
    /// The rest.
    pub flags: Flags,
    /// The content.
    pub source: Source,
}

impl Mapping {
    /// Private zeros.
    #[must_use]
    pub const fn anonymous(protection: Protection) -> Self {
        Self {
            protection,
            most: Protection::ALL,
            flags: Flags::PRIVATE,
            source: Source::Anonymous,
        }
    }

    /// A private mapping of a file.
    #[must_use]
    pub const fn file(protection: Protection, file: u64, offset: u64) -> Self {
        let source = Source::File { file, offset };
        Self {
            source,
            ..Self::anonymous(protection)
        }
    }
}

/// Where to map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// In the highest free range that is long enough.
    Anywhere,
    /// At this address, if it is free there; otherwise anywhere.
    Hint(u64),
    /// At this address, in place of what is there (`MAP_FIXED`).
    Fixed(u64),
    /// At this address, provided that it is free (`MAP_FIXED_NOREPLACE`).
    FixedNoReplace(u64),
}

/// Where `mremap` may put an area that it cannot extend in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relocation {
    /// Nowhere.
    Stay,
    /// Anywhere (`MREMAP_MAYMOVE`).
    May,
    /// To this address, in place of what is there (`MREMAP_MAYMOVE | MREMAP_FIXED`).
    To(u64),
}

/// An area: a range of addresses whose pages are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Area {
    /// The first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// What may be done with its pages.
    pub protection: Protection,
    /// What `mprotect` may ever allow.
    pub most: Protection,
    /// What else distinguishes it.
    pub flags: Flags,
    /// Where its content comes from; the offset is that of `start`.
    pub source: Source,
    /// Which private pages it may share with other areas; zero before its first private page. Areas whose numbers
    /// differ, and neither of which is zero, are not merged: Linux calls it the area's `anon_vma`.
    pub family: u32,
}

impl Area {
    /// Whether the address is in it.
    #[must_use]
    pub const fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// Bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no area is empty")]
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// In the words of `/proc/PID/maps`, without the columns of device and name, which are the user's.
impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = if self.flags.contains(Flags::SHARED) {
            's'
        } else {
            'p'
        };
        let (offset, file) = match self.source {
            Source::Anonymous => (0, 0),
            Source::File { file, offset } => (offset, file),
        };
        let Self {
            start,
            end,
            protection,
            ..
        } = self;
        write!(
            f,
            "{start:08x}-{end:08x} {protection}{shared} {offset:08x} {file}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn flags_are_shown_by_their_names() {
        let some = Flags::SHARED | Flags::NO_FORK;
        assert_eq!(
            format!("{some:?} {:?}", Flags::default()),
            "SHARED | NO_FORK PRIVATE"
        );
    }
}
