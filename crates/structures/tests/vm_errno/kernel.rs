//! The kernel's answers: each call is made in a process of its own.

use super::table::{self, Call, Limit, Place, To, What};
use super::{Outcome, areas};
use spanlock_structures::vm::PAGE;
use std::ffi::CString;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::{fs, io, ptr};

/// Makes the setup and then the call in a child, and reports.
pub(super) fn made(limit: Option<Limit>, call: &Call) -> Outcome {
    let (mut from, to) = io::pipe().expect("a pipe");
    // SAFETY: the child runs the code below and ends by `_exit`. The C library makes its allocator usable in it.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", io::Error::last_os_error());
    if child == 0 {
        let report = report(limit, call);
        // SAFETY: the text lives until the call is over.
        unsafe { libc::write(to.as_raw_fd(), report.as_ptr().cast(), report.len()) };
        // SAFETY: nothing is left to do, and the parent's handlers must not run twice.
        unsafe { libc::_exit(0) };
    }
    drop(to);
    let mut report = String::new();
    from.read_to_string(&mut report).expect("a report");
    // SAFETY: the child is this process's own.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
    let mut lines = report.lines();
    let errno = lines.next().and_then(|errno| errno.parse().ok());
    Outcome {
        errno: errno.unwrap_or_else(|| panic!("the child reports `{report}`")),
        areas: areas(lines),
    }
}

fn report(limit: Option<Limit>, call: &Call) -> String {
    let files = Files::new();
    unprivileged();
    for call in table::SETUP {
        if let errno @ 1.. = make(&files, call) {
            return format!("setup: {errno}");
        }
    }
    let errno = match limit {
        Some(limit) => limited(limit, || make(&files, call)),
        None => make(&files, call),
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    format!("{errno}\n{maps}")
}

/// A file, and the same opened to read.
struct Files {
    both: i32,
    read: i32,
}

impl Files {
    fn new() -> Self {
        // SAFETY: the name is a string of C.
        let both = unsafe { libc::memfd_create(c"errno".as_ptr(), 0) };
        let path = CString::new(format!("/proc/self/fd/{both}")).expect("no zero in it");
        // SAFETY: the path is a string of C.
        let read = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY) };
        // Pages behind the end of the file can be mapped, but not read.
        // SAFETY: the file is open.
        unsafe { libc::ftruncate(both, 16 * PAGE as i64) };
        Self { both, read }
    }
}

/// Gives up the right to map low addresses, and keeps `/proc/self` readable.
fn unprivileged() {
    const NOBODY: u32 = 65534;
    // SAFETY: the call only changes what this process may do.
    unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) };
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
}

/// Leaves room for 16 pages more while `make` runs.
fn limited(limit: Limit, make: impl Fn() -> i32) -> i32 {
    let (resource, column) = match limit {
        Limit::Pages => (libc::RLIMIT_AS, "VmSize:"),
        Limit::Data => (libc::RLIMIT_DATA, "VmData:"),
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(column));
    let kilobytes: u64 = line
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0);
    let limit = (kilobytes << 10) + 16 * PAGE;
    let set = |limit| {
        let limit = libc::rlimit {
            rlim_cur: limit,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: the limit lives until the call is over.
        unsafe { libc::setrlimit(resource, &raw const limit) };
    };
    set(limit);
    let errno = make();
    set(libc::RLIM_INFINITY);
    errno
}

/// Makes a call.
fn make(files: &Files, call: &Call) -> i32 {
    let number = |name: libc::c_long, arguments: [u64; 6]| {
        let [a, b, c, d, e, f] = arguments;
        // SAFETY: the calls map, unmap and protect pages that nothing but this test uses, or are refused.
        let result = unsafe { libc::syscall(name, a, b, c, d, e, f) };
        if result == -1 {
            io::Error::last_os_error().raw_os_error().unwrap_or(-1)
        } else {
            0
        }
    };
    match *call {
        Call::Mmap(place, length, bits, what) => {
            let (start, fixed) = match place {
                Place::Anywhere => (0, 0),
                Place::Hint(start) => (start.get(), 0),
                Place::Fixed(start) => (start.get(), libc::MAP_FIXED),
                Place::NoReplace(start) => (start.get(), libc::MAP_FIXED_NOREPLACE),
            };
            let (kind, file, offset) = match what {
                What::Anonymous => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
                What::Private(offset) => (libc::MAP_PRIVATE, files.both, offset),
                What::SharedToRead(offset) => (libc::MAP_SHARED, files.read, offset),
            };
            let (flags, file) = ((fixed | kind) as u64, file as u64);
            number(
                libc::SYS_mmap,
                [start, length, u64::from(bits), flags, file, offset],
            )
        }
        Call::Munmap(start, length) => number(libc::SYS_munmap, [start.get(), length, 0, 0, 0, 0]),
        Call::Mprotect(start, length, bits) => number(
            libc::SYS_mprotect,
            [start.get(), length, u64::from(bits), 0, 0, 0],
        ),
        Call::Dontneed(start, length) => number(
            libc::SYS_madvise,
            [start.get(), length, libc::MADV_DONTNEED as u64, 0, 0, 0],
        ),
        Call::Mremap(start, old, new, to) => {
            let (flags, target) = match to {
                To::Here => (0, 0),
                To::Anywhere => (libc::MREMAP_MAYMOVE, 0),
                To::Fixed(target) => (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, target.get()),
            };
            number(
                libc::SYS_mremap,
                [start.get(), old, new, flags as u64, target, 0],
            )
        }
        // The kernel reads or writes the byte, and refuses where the program would get a signal.
        Call::Load(address) => {
            let (_from, to) = io::pipe().expect("a pipe");
            number(
                libc::SYS_write,
                [to.as_raw_fd() as u64, address.get(), 1, 0, 0, 0],
            )
        }
        Call::Store(address) => {
            let (from, to) = io::pipe().expect("a pipe");
            // SAFETY: the byte lives until the call is over.
            unsafe { libc::write(to.as_raw_fd(), [1_u8].as_ptr().cast(), 1) };
            number(
                libc::SYS_read,
                [from.as_raw_fd() as u64, address.get(), 1, 0, 0, 0],
            )
        }
    }
}

/// The first two numbers of the running kernel's version.
pub(super) fn version() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers = release.split(['.', '-', '\n']);
    let mut numbers = numbers.map_while(|number| number.parse().ok());
    let mut next = || numbers.next().unwrap_or_default();
    (next(), next())
}
