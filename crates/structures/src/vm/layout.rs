//! The addresses of a space, and the limits on what may be mapped.

use crate::vm::kind::PAGE;

/// Which addresses there are, and where areas go that may go anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The first address that may be mapped.
    pub lowest: u64,
    /// The first address after the last.
    pub end: u64,
    /// Areas that may go anywhere go below this address, as high as possible.
    pub mmap_top: u64,
    /// If there is no room below `mmap_top`, they go above this address, as low as possible.
    pub mmap_bottom: u64,
    /// Where the heap of `brk` begins.
    pub heap: u64,
    /// Bytes that stay free below an area that grows down.
    pub guard: u64,
}

impl Layout {
    /// 47 bits of addresses, as for processes on x86-64 with four levels of page tables.
    pub const BITS_47: Self = Self::of_bits(47);

    /// 57 bits of addresses with five levels of page tables, half of which are the kernel's. Areas go above 47 bits
    /// only if a hint asks for it, as in Linux.
    pub const BITS_57: Self = Self {
        end: (1 << 56) - PAGE,
        ..Self::BITS_47
    };

    const fn of_bits(bits: u32) -> Self {
        let end = (1 << bits) - PAGE;
        Self {
            lowest: 16 * PAGE,
            end,
            // Linux leaves room for the stack: at least 128 MiB and a gap.
            mmap_top: end - (128 << 20) - 256 * PAGE,
            mmap_bottom: (end / 3).next_multiple_of(PAGE),
            heap: 0x5555_5555_5000,
            guard: 256 * PAGE,
        }
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self::BITS_47
    }
}

/// How much may be mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Areas (`vm.max_map_count`).
    pub areas: u64,
    /// Pages (`RLIMIT_AS`).
    pub pages: u64,
    /// Pages that are private, writable and no stack (`RLIMIT_DATA`).
    pub data: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            areas: 65_530,
            pages: u64::MAX,
            data: u64::MAX,
        }
    }
}

/// Pages mapped, by kind, as Linux counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pages {
    /// All (`VmSize`).
    pub total: u64,
    /// Private, writable and no stack (`VmData`).
    pub data: u64,
    /// Executable, not writable and no stack (`VmExe` and `VmLib`).
    pub code: u64,
    /// Stacks (`VmStk`).
    pub stack: u64,
}

impl Pages {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            data: self.data + other.data,
            code: self.code + other.code,
            stack: self.stack + other.stack,
        }
    }
}
