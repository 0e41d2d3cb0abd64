//! The calls, with what Linux (x86-64, 6.18) answers.

pub(crate) use libc::{EACCES, EEXIST, EFAULT, EINVAL, ENOMEM, EOVERFLOW, EPERM};
use spanlock_structures::vm::PAGE;

/// The kernel that the table is of: its first two numbers.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) const KERNEL: (u32, u32) = (6, 18);

/// Success.
pub(crate) const OK: i32 = 0;

/// Where the pages of this test are: far from what programs map by themselves.
const BASE: u64 = 0x1000_0000_0000;

/// The pages that are compared.
pub(crate) const WINDOW: u64 = 64;

pub(crate) const fn at(page: u64) -> u64 {
    BASE + page * PAGE
}

/// An address.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Address {
    /// This one.
    At(u64),
    /// So many bytes before the first that no program may map.
    BeforeEnd(u64),
    /// So many bytes behind that.
    BehindEnd(u64),
}

impl Address {
    pub(crate) fn get(self) -> u64 {
        let end = super::layout().end;
        match self {
            Self::At(address) => address,
            Self::BeforeEnd(bytes) => end - bytes,
            Self::BehindEnd(bytes) => end + bytes,
        }
    }
}

use Address::{At, BeforeEnd, BehindEnd};

const fn page(number: u64) -> Address {
    At(at(number))
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Anywhere,
    Hint(Address),
    Fixed(Address),
    NoReplace(Address),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    Anonymous,
    /// A private mapping of a file from this byte on.
    Private(u64),
    /// A shared mapping of a file that was opened to read.
    SharedToRead(u64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum To {
    Here,
    Anywhere,
    Fixed(Address),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    Mmap(Place, u64, u8, What),
    Munmap(Address, u64),
    Mprotect(Address, u64, u8),
    Dontneed(Address, u64),
    Mremap(Address, u64, u64, To),
    Load(Address),
    Store(Address),
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) call: Call,
    pub(crate) errno: i32,
}

/// A limit that is in force during the call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// `RLIMIT_AS`.
    Pages,
    /// `RLIMIT_DATA`.
    Data,
}

/// What is mapped before each call:
///
/// ```text
///   page   0 1 2 3   4   5 6   7     8 ...
///          rw--p     -   r--p  r--s  -
/// ```
pub(crate) const SETUP: &[Call] = &[
    Call::Mmap(Place::NoReplace(page(0)), 4 * PAGE, 3, What::Anonymous),
    Call::Mmap(Place::NoReplace(page(5)), 2 * PAGE, 1, What::Anonymous),
    Call::Mmap(Place::NoReplace(page(7)), PAGE, 1, What::SharedToRead(0)),
];

/// Pages of the setup, and those that are private and writable.
pub(crate) const MAPPED: u64 = 7;
pub(crate) const DATA: u64 = 4;

/// Calls by name, and what each returns.
macro_rules! cases {
    ($($name:literal: $Call:ident($($of:expr),*) => $errno:expr;)+) => {
        &[$(case($name, Call::$Call($($of),*), $errno)),+]
    };
}

const fn case(name: &'static str, call: Call, errno: i32) -> Case {
    Case { name, call, errno }
}

const HUGE: u64 = 1 << 62;
const MAX: u64 = u64::MAX;

pub(crate) const CASES: &[Case] = cases! {
    // mmap
    "mmap of nothing": Mmap(Place::Anywhere, 0, 3, What::Anonymous) => EINVAL;
    "mmap of a byte": Mmap(Place::Fixed(page(4)), 1, 3, What::Anonymous) => OK;
    "mmap of too much": Mmap(Place::Anywhere, HUGE, 3, What::Anonymous) => ENOMEM;
    "mmap of everything": Mmap(Place::Anywhere, MAX, 3, What::Anonymous) => ENOMEM;
    "mmap where it ends": Mmap(Place::Anywhere, MAX - 1, 3, What::Anonymous) => ENOMEM;
    "mmap with a crooked hint": Mmap(Place::Hint(At(at(9) + 5)), PAGE, 3, What::Anonymous) => OK;
    "mmap at a crooked place": Mmap(Place::Fixed(At(at(9) + 5)), PAGE, 3, What::Anonymous) => EINVAL;
    "the same, not replacing": Mmap(Place::NoReplace(At(at(9) + 5)), PAGE, 3, What::Anonymous) => EINVAL;
    "mmap over an area": Mmap(Place::Fixed(page(3)), 3 * PAGE, 1, What::Anonymous) => OK;
    "mmap in an area": Mmap(Place::Fixed(page(1)), PAGE, 1, What::Anonymous) => OK;
    "mmap beside a like area": Mmap(Place::NoReplace(page(4)), PAGE, 3, What::Anonymous) => OK;
    "mmap between areas": Mmap(Place::NoReplace(page(4)), PAGE, 1, What::Anonymous) => OK;
    "mmap on an area": Mmap(Place::NoReplace(page(3)), PAGE, 3, What::Anonymous) => EEXIST;
    "mmap into an area": Mmap(Place::NoReplace(page(4)), 2 * PAGE, 3, What::Anonymous) => EEXIST;
    "mmap at the end": Mmap(Place::Fixed(BehindEnd(0)), PAGE, 3, What::Anonymous) => ENOMEM;
    "mmap across the end": Mmap(Place::Fixed(BeforeEnd(PAGE)), 2 * PAGE, 3, What::Anonymous) => ENOMEM;
    "mmap at the last address": Mmap(Place::Fixed(At(MAX - PAGE + 1)), PAGE, 3, What::Anonymous) => ENOMEM;
    "mmap at null": Mmap(Place::Fixed(At(0)), PAGE, 3, What::Anonymous) => EPERM;
    "mmap from a crooked offset": Mmap(Place::Fixed(page(9)), PAGE, 1, What::Private(7)) => EINVAL;
    "mmap from an offset": Mmap(Place::Fixed(page(9)), 2 * PAGE, 1, What::Private(PAGE)) => OK;
    "mmap beyond offsets": Mmap(Place::Fixed(page(9)), 2 * PAGE, 1, What::Private(MAX - PAGE + 1)) => EOVERFLOW;
    "mmap to write what may be read": Mmap(Place::Fixed(page(9)), PAGE, 3, What::SharedToRead(0)) => EACCES;
    "mmap of more of the file": Mmap(Place::Fixed(page(8)), PAGE, 1, What::SharedToRead(PAGE)) => OK;
    // munmap
    "munmap of a crooked address": Munmap(At(at(0) + 1), PAGE) => EINVAL;
    "munmap of nothing": Munmap(page(0), 0) => EINVAL;
    "munmap of a byte": Munmap(page(0), 1) => OK;
    "munmap of the middle": Munmap(page(1), 2 * PAGE) => OK;
    "munmap of what is not mapped": Munmap(page(20), PAGE) => OK;
    "munmap of all": Munmap(page(0), 20 * PAGE) => OK;
    "munmap of everything": Munmap(page(0), MAX) => EINVAL;
    "munmap to the end": Munmap(BeforeEnd(PAGE), 2 * PAGE) => EINVAL;
    "munmap behind the end": Munmap(BehindEnd(PAGE), PAGE) => EINVAL;
    // mprotect
    "mprotect of a crooked address": Mprotect(At(at(0) + 1), PAGE, 1) => EINVAL;
    "mprotect of nothing": Mprotect(page(0), 0, 1) => OK;
    "mprotect of nothing, not mapped": Mprotect(page(20), 0, 1) => OK;
    "mprotect of a byte": Mprotect(page(1), 1, 1) => OK;
    "mprotect of all": Mprotect(page(0), 4 * PAGE, 0) => OK;
    "mprotect of the end": Mprotect(page(3), PAGE, 1) => OK;
    "mprotect to what it is": Mprotect(page(1), PAGE, 3) => OK;
    "mprotect of a hole": Mprotect(page(4), PAGE, 1) => ENOMEM;
    "mprotect into a hole": Mprotect(page(2), 4 * PAGE, 1) => ENOMEM;
    "mprotect from a hole": Mprotect(page(4), 2 * PAGE, 3) => ENOMEM;
    "mprotect of two areas": Mprotect(page(5), 3 * PAGE, 0) => OK;
    "mprotect to write what may be read": Mprotect(page(7), PAGE, 3) => EACCES;
    "the same behind an area": Mprotect(page(5), 3 * PAGE, 3) => EACCES;
    "mprotect to execute": Mprotect(page(7), PAGE, 5) => OK;
    "mprotect of everything": Mprotect(page(0), MAX - PAGE, 1) => ENOMEM;
    "mprotect of more": Mprotect(page(0), MAX, 1) => ENOMEM;
    "mprotect behind the end": Mprotect(BehindEnd(PAGE), PAGE, 1) => ENOMEM;
    // madvise
    "madvise of a crooked address": Dontneed(At(at(0) + 1), PAGE) => EINVAL;
    "madvise of nothing": Dontneed(page(0), 0) => OK;
    "madvise of a byte": Dontneed(page(0), 1) => OK;
    "madvise into a hole": Dontneed(page(3), 2 * PAGE) => ENOMEM;
    "madvise of what is not mapped": Dontneed(page(20), PAGE) => ENOMEM;
    "madvise of more than there is": Dontneed(page(0), MAX) => EINVAL;
    "madvise of everything": Dontneed(page(0), MAX - PAGE) => EINVAL;
    "madvise behind the end": Dontneed(BehindEnd(PAGE), PAGE) => ENOMEM;
    // mremap
    "mremap of a crooked address": Mremap(At(at(0) + 1), PAGE, PAGE, To::Anywhere) => EINVAL;
    "mremap to nothing": Mremap(page(0), PAGE, 0, To::Anywhere) => EINVAL;
    "mremap to as much": Mremap(page(0), 4 * PAGE, 4 * PAGE, To::Here) => OK;
    "mremap to less": Mremap(page(0), 4 * PAGE, 2 * PAGE, To::Here) => OK;
    "mremap to more": Mremap(page(0), 4 * PAGE, 5 * PAGE, To::Here) => OK;
    "mremap to too much": Mremap(page(0), 4 * PAGE, 6 * PAGE, To::Here) => ENOMEM;
    "mremap of the middle to more": Mremap(page(0), 2 * PAGE, 3 * PAGE, To::Here) => ENOMEM;
    "mremap of what is not mapped": Mremap(page(20), PAGE, 2 * PAGE, To::Anywhere) => EFAULT;
    "mremap of more than an area": Mremap(page(3), 3 * PAGE, 4 * PAGE, To::Anywhere) => EFAULT;
    "mremap elsewhere": Mremap(page(0), 2 * PAGE, 3 * PAGE, To::Fixed(page(20))) => OK;
    "mremap elsewhere, less": Mremap(page(0), 3 * PAGE, PAGE, To::Fixed(page(20))) => OK;
    "mremap over an area": Mremap(page(0), 2 * PAGE, 2 * PAGE, To::Fixed(page(5))) => OK;
    "mremap to a crooked place": Mremap(page(0), PAGE, PAGE, To::Fixed(At(at(20) + 1))) => EINVAL;
    "mremap onto itself": Mremap(page(0), 2 * PAGE, 2 * PAGE, To::Fixed(page(1))) => EINVAL;
    "mremap behind the end": Mremap(page(0), PAGE, PAGE, To::Fixed(BehindEnd(PAGE))) => EINVAL;
    "mremap to everything": Mremap(page(0), PAGE, HUGE, To::Fixed(page(20))) => EINVAL;
    "mremap of no private pages": Mremap(page(0), 0, PAGE, To::Anywhere) => EINVAL;
    // faults
    "a load": Load(page(5)) => OK;
    "a load where nothing is mapped": Load(page(4)) => EFAULT;
    "a load behind the end": Load(BehindEnd(PAGE)) => EFAULT;
    "a store": Store(page(0)) => OK;
    "a store where nothing is mapped": Store(page(8)) => EFAULT;
    "a store to what may be read": Store(page(5)) => EFAULT;
};

pub(crate) const LIMITED: &[(Case, Limit)] = &[
    (
        case(
            "mmap beyond RLIMIT_AS",
            Call::Mmap(Place::Fixed(page(10)), 17 * PAGE, 1, What::Anonymous),
            ENOMEM,
        ),
        Limit::Pages,
    ),
    (
        case(
            "mmap within RLIMIT_AS",
            Call::Mmap(Place::Fixed(page(10)), 16 * PAGE, 1, What::Anonymous),
            OK,
        ),
        Limit::Pages,
    ),
    (
        case(
            "mremap beyond RLIMIT_AS",
            Call::Mremap(page(0), 4 * PAGE, 21 * PAGE, To::Fixed(page(20))),
            ENOMEM,
        ),
        Limit::Pages,
    ),
    (
        case(
            "mmap beyond RLIMIT_DATA",
            Call::Mmap(Place::Fixed(page(10)), 17 * PAGE, 3, What::Anonymous),
            ENOMEM,
        ),
        Limit::Data,
    ),
    (
        case(
            "mmap within RLIMIT_DATA",
            Call::Mmap(Place::Fixed(page(10)), 16 * PAGE, 3, What::Anonymous),
            OK,
        ),
        Limit::Data,
    ),
    (
        case(
            "mmap to read",
            Call::Mmap(Place::Fixed(page(10)), 30 * PAGE, 1, What::Anonymous),
            OK,
        ),
        Limit::Data,
    ),
];
