//! The calls, with what Linux (x86-64, 6.18) answers.

use spanlock_vm::PAGE;

pub(crate) const OK: i32 = 0;
pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EFAULT: i32 = 14;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const EOVERFLOW: i32 = 75;

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

const fn case(name: &'static str, call: Call, errno: i32) -> Case {
    Case { name, call, errno }
}

const HUGE: u64 = 1 << 62;
const MAX: u64 = u64::MAX;

pub(crate) const CASES: &[Case] = &[
    // mmap
    case(
        "mmap of nothing",
        Call::Mmap(Place::Anywhere, 0, 3, What::Anonymous),
        EINVAL,
    ),
    case(
        "mmap of a byte",
        Call::Mmap(Place::Fixed(page(4)), 1, 3, What::Anonymous),
        OK,
    ),
    case(
        "mmap of too much",
        Call::Mmap(Place::Anywhere, HUGE, 3, What::Anonymous),
        ENOMEM,
    ),
    case(
        "mmap of everything",
        Call::Mmap(Place::Anywhere, MAX, 3, What::Anonymous),
        ENOMEM,
    ),
    case(
        "mmap where it ends",
        Call::Mmap(Place::Anywhere, MAX - 1, 3, What::Anonymous),
        ENOMEM,
    ),
    case(
        "mmap with a crooked hint",
        Call::Mmap(Place::Hint(At(at(9) + 5)), PAGE, 3, What::Anonymous),
        OK,
    ),
    case(
        "mmap at a crooked place",
        Call::Mmap(Place::Fixed(At(at(9) + 5)), PAGE, 3, What::Anonymous),
        EINVAL,
    ),
    case(
        "the same, not replacing",
        Call::Mmap(Place::NoReplace(At(at(9) + 5)), PAGE, 3, What::Anonymous),
        EINVAL,
    ),
    case(
        "mmap over an area",
        Call::Mmap(Place::Fixed(page(3)), 3 * PAGE, 1, What::Anonymous),
        OK,
    ),
    case(
        "mmap in an area",
        Call::Mmap(Place::Fixed(page(1)), PAGE, 1, What::Anonymous),
        OK,
    ),
    case(
        "mmap beside a like area",
        Call::Mmap(Place::NoReplace(page(4)), PAGE, 3, What::Anonymous),
        OK,
    ),
    case(
        "mmap between areas",
        Call::Mmap(Place::NoReplace(page(4)), PAGE, 1, What::Anonymous),
        OK,
    ),
    case(
        "mmap on an area",
        Call::Mmap(Place::NoReplace(page(3)), PAGE, 3, What::Anonymous),
        EEXIST,
    ),
    case(
        "mmap into an area",
        Call::Mmap(Place::NoReplace(page(4)), 2 * PAGE, 3, What::Anonymous),
        EEXIST,
    ),
    case(
        "mmap at the end",
        Call::Mmap(Place::Fixed(BehindEnd(0)), PAGE, 3, What::Anonymous),
        ENOMEM,
    ),
    case(
        "mmap across the end",
        Call::Mmap(Place::Fixed(BeforeEnd(PAGE)), 2 * PAGE, 3, What::Anonymous),
        ENOMEM,
    ),
    case(
        "mmap at the last address",
        Call::Mmap(Place::Fixed(At(MAX - PAGE + 1)), PAGE, 3, What::Anonymous),
        ENOMEM,
    ),
    case(
        "mmap at null",
        Call::Mmap(Place::Fixed(At(0)), PAGE, 3, What::Anonymous),
        EPERM,
    ),
    case(
        "mmap from a crooked offset",
        Call::Mmap(Place::Fixed(page(9)), PAGE, 1, What::Private(7)),
        EINVAL,
    ),
    case(
        "mmap from an offset",
        Call::Mmap(Place::Fixed(page(9)), 2 * PAGE, 1, What::Private(PAGE)),
        OK,
    ),
    case(
        "mmap beyond offsets",
        Call::Mmap(
            Place::Fixed(page(9)),
            2 * PAGE,
            1,
            What::Private(MAX - PAGE + 1),
        ),
        EOVERFLOW,
    ),
    case(
        "mmap to write what may be read",
        Call::Mmap(Place::Fixed(page(9)), PAGE, 3, What::SharedToRead(0)),
        EACCES,
    ),
    case(
        "mmap of more of the file",
        Call::Mmap(Place::Fixed(page(8)), PAGE, 1, What::SharedToRead(PAGE)),
        OK,
    ),
    // munmap
    case(
        "munmap of a crooked address",
        Call::Munmap(At(at(0) + 1), PAGE),
        EINVAL,
    ),
    case("munmap of nothing", Call::Munmap(page(0), 0), EINVAL),
    case("munmap of a byte", Call::Munmap(page(0), 1), OK),
    case("munmap of the middle", Call::Munmap(page(1), 2 * PAGE), OK),
    case(
        "munmap of what is not mapped",
        Call::Munmap(page(20), PAGE),
        OK,
    ),
    case("munmap of all", Call::Munmap(page(0), 20 * PAGE), OK),
    case("munmap of everything", Call::Munmap(page(0), MAX), EINVAL),
    case(
        "munmap to the end",
        Call::Munmap(BeforeEnd(PAGE), 2 * PAGE),
        EINVAL,
    ),
    case(
        "munmap behind the end",
        Call::Munmap(BehindEnd(PAGE), PAGE),
        EINVAL,
    ),
    // mprotect
    case(
        "mprotect of a crooked address",
        Call::Mprotect(At(at(0) + 1), PAGE, 1),
        EINVAL,
    ),
    case("mprotect of nothing", Call::Mprotect(page(0), 0, 1), OK),
    case(
        "mprotect of nothing, not mapped",
        Call::Mprotect(page(20), 0, 1),
        OK,
    ),
    case("mprotect of a byte", Call::Mprotect(page(1), 1, 1), OK),
    case("mprotect of all", Call::Mprotect(page(0), 4 * PAGE, 0), OK),
    case("mprotect of the end", Call::Mprotect(page(3), PAGE, 1), OK),
    case(
        "mprotect to what it is",
        Call::Mprotect(page(1), PAGE, 3),
        OK,
    ),
    case(
        "mprotect of a hole",
        Call::Mprotect(page(4), PAGE, 1),
        ENOMEM,
    ),
    case(
        "mprotect into a hole",
        Call::Mprotect(page(2), 4 * PAGE, 1),
        ENOMEM,
    ),
    case(
        "mprotect from a hole",
        Call::Mprotect(page(4), 2 * PAGE, 3),
        ENOMEM,
    ),
    case(
        "mprotect of two areas",
        Call::Mprotect(page(5), 3 * PAGE, 0),
        OK,
    ),
    case(
        "mprotect to write what may be read",
        Call::Mprotect(page(7), PAGE, 3),
        EACCES,
    ),
    case(
        "the same behind an area",
        Call::Mprotect(page(5), 3 * PAGE, 3),
        EACCES,
    ),
    case("mprotect to execute", Call::Mprotect(page(7), PAGE, 5), OK),
    case(
        "mprotect of everything",
        Call::Mprotect(page(0), MAX - PAGE, 1),
        ENOMEM,
    ),
    case("mprotect of more", Call::Mprotect(page(0), MAX, 1), ENOMEM),
    case(
        "mprotect behind the end",
        Call::Mprotect(BehindEnd(PAGE), PAGE, 1),
        ENOMEM,
    ),
    // madvise
    case(
        "madvise of a crooked address",
        Call::Dontneed(At(at(0) + 1), PAGE),
        EINVAL,
    ),
    case("madvise of nothing", Call::Dontneed(page(0), 0), OK),
    case("madvise of a byte", Call::Dontneed(page(0), 1), OK),
    case(
        "madvise into a hole",
        Call::Dontneed(page(3), 2 * PAGE),
        ENOMEM,
    ),
    case(
        "madvise of what is not mapped",
        Call::Dontneed(page(20), PAGE),
        ENOMEM,
    ),
    case(
        "madvise of more than there is",
        Call::Dontneed(page(0), MAX),
        EINVAL,
    ),
    case(
        "madvise of everything",
        Call::Dontneed(page(0), MAX - PAGE),
        EINVAL,
    ),
    case(
        "madvise behind the end",
        Call::Dontneed(BehindEnd(PAGE), PAGE),
        ENOMEM,
    ),
    // mremap
    case(
        "mremap of a crooked address",
        Call::Mremap(At(at(0) + 1), PAGE, PAGE, To::Anywhere),
        EINVAL,
    ),
    case(
        "mremap to nothing",
        Call::Mremap(page(0), PAGE, 0, To::Anywhere),
        EINVAL,
    ),
    case(
        "mremap to as much",
        Call::Mremap(page(0), 4 * PAGE, 4 * PAGE, To::Here),
        OK,
    ),
    case(
        "mremap to less",
        Call::Mremap(page(0), 4 * PAGE, 2 * PAGE, To::Here),
        OK,
    ),
    case(
        "mremap to more",
        Call::Mremap(page(0), 4 * PAGE, 5 * PAGE, To::Here),
        OK,
    ),
    case(
        "mremap to too much",
        Call::Mremap(page(0), 4 * PAGE, 6 * PAGE, To::Here),
        ENOMEM,
    ),
    case(
        "mremap of the middle to more",
        Call::Mremap(page(0), 2 * PAGE, 3 * PAGE, To::Here),
        ENOMEM,
    ),
    case(
        "mremap of what is not mapped",
        Call::Mremap(page(20), PAGE, 2 * PAGE, To::Anywhere),
        EFAULT,
    ),
    case(
        "mremap of more than an area",
        Call::Mremap(page(3), 3 * PAGE, 4 * PAGE, To::Anywhere),
        EFAULT,
    ),
    case(
        "mremap elsewhere",
        Call::Mremap(page(0), 2 * PAGE, 3 * PAGE, To::Fixed(page(20))),
        OK,
    ),
    case(
        "mremap elsewhere, less",
        Call::Mremap(page(0), 3 * PAGE, PAGE, To::Fixed(page(20))),
        OK,
    ),
    case(
        "mremap over an area",
        Call::Mremap(page(0), 2 * PAGE, 2 * PAGE, To::Fixed(page(5))),
        OK,
    ),
    case(
        "mremap to a crooked place",
        Call::Mremap(page(0), PAGE, PAGE, To::Fixed(At(at(20) + 1))),
        EINVAL,
    ),
    case(
        "mremap onto itself",
        Call::Mremap(page(0), 2 * PAGE, 2 * PAGE, To::Fixed(page(1))),
        EINVAL,
    ),
    case(
        "mremap behind the end",
        Call::Mremap(page(0), PAGE, PAGE, To::Fixed(BehindEnd(PAGE))),
        EINVAL,
    ),
    case(
        "mremap to everything",
        Call::Mremap(page(0), PAGE, HUGE, To::Fixed(page(20))),
        EINVAL,
    ),
    case(
        "mremap of no private pages",
        Call::Mremap(page(0), 0, PAGE, To::Anywhere),
        EINVAL,
    ),
    // faults
    case("a load", Call::Load(page(5)), OK),
    case(
        "a load where nothing is mapped",
        Call::Load(page(4)),
        EFAULT,
    ),
    case("a load behind the end", Call::Load(BehindEnd(PAGE)), EFAULT),
    case("a store", Call::Store(page(0)), OK),
    case(
        "a store where nothing is mapped",
        Call::Store(page(8)),
        EFAULT,
    ),
    case("a store to what may be read", Call::Store(page(5)), EFAULT),
];

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
