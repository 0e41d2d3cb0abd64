//! Why an operation was refused.

use std::fmt;

/// Why an operation was refused, in Linux's terms. [`errno`](Self::errno) has the number that Linux returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VmError {
    /// An address or an offset is no multiple of the page size. `EINVAL`
    Misaligned,
    /// The range has no pages. `EINVAL`
    Empty,
    /// The range reaches beyond the addresses of the space. `EINVAL`
    BeyondSpace,
    /// The arguments contradict each other. `EINVAL`
    Contradiction,
    /// No free range is as long as that, or the range would end beyond the largest address. `ENOMEM`
    NoRoom,
    /// Some page of the range belongs to no area. The pages before it may have been changed. `ENOMEM`
    Hole,
    /// There would be more areas than the limit allows. `ENOMEM`
    TooManyAreas,
    /// There would be more pages, or more pages of data, than the limit allows. `ENOMEM`
    OverLimit,
    /// The fixed range is not free. `EEXIST`
    Occupied,
    /// The address belongs to no area, or the area ends before the range does. `EFAULT`
    Unmapped,
    /// The area does not allow this access (of a fault). `EFAULT`
    Denied,
    /// The area never allows this protection. `EACCES`
    NotPermitted,
    /// The address is below the lowest that may be mapped. `EPERM`
    TooLow,
    /// The offset of the last page in its file cannot be represented. `EOVERFLOW`
    OffsetOverflow,
    /// The backing refused, with this number.
    Backing(i32),
}

impl VmError {
    /// The number that Linux returns for it (x86-64, and most others).
    #[must_use]
    pub const fn errno(self) -> i32 {
        const EPERM: i32 = 1;
        const ENOMEM: i32 = 12;
        const EACCES: i32 = 13;
        const EFAULT: i32 = 14;
        const EEXIST: i32 = 17;
        const EINVAL: i32 = 22;
        const EOVERFLOW: i32 = 75;
        match self {
            Self::Misaligned | Self::Empty | Self::BeyondSpace | Self::Contradiction => EINVAL,
            Self::NoRoom | Self::Hole | Self::TooManyAreas | Self::OverLimit => ENOMEM,
            Self::Occupied => EEXIST,
            Self::Unmapped | Self::Denied => EFAULT,
            Self::NotPermitted => EACCES,
            Self::TooLow => EPERM,
            Self::OffsetOverflow => EOVERFLOW,
            Self::Backing(errno) => errno,
        }
    }
}

impl fmt::Display for VmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Misaligned => "an address or an offset is no multiple of the page size",
            Self::Empty => "the range has no pages",
            Self::BeyondSpace => "the range reaches beyond the address space",
            Self::Contradiction => "the arguments contradict each other",
            Self::NoRoom => "no free range is long enough",
            Self::Hole => "some page of the range is not mapped",
            Self::TooManyAreas => "too many areas",
            Self::OverLimit => "too many pages",
            Self::Occupied => "the range is not free",
            Self::Unmapped => "the address is not mapped",
            Self::Denied => "the area does not allow this access",
            Self::NotPermitted => "the area never allows this protection",
            Self::TooLow => "the address is too low to be mapped",
            Self::OffsetOverflow => "the offset in the file is too large",
            Self::Backing(errno) => return write!(f, "the backing refused with errno {errno}"),
        })
    }
}

impl std::error::Error for VmError {}
