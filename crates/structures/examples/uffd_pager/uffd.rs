//! What this example needs of userfaultfd.

use std::io::{self, Error};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// A call of `ioctl`: whether it writes its arguments, reads them, or both; and its number.
#[derive(Clone, Copy)]
struct Call(u64, u64);

impl Call {
    const API: Self = Self(3, 0x3f);
    const REGISTER: Self = Self(3, 0x00);
    const WAKE: Self = Self(2, 0x02);
    const COPY: Self = Self(3, 0x03);

    /// The first argument of [`API`](Self::API), and a part of all calls.
    const KEY: u64 = 0xaa;

    /// The call as the kernel wants it, with arguments of so many bytes.
    const fn code(self, bytes: usize) -> u64 {
        let Self(direction, number) = self;
        (direction << 30) | ((bytes as u64) << 16) | (Self::KEY << 8) | number
    }
}

/// Memory whose missing pages are reported.
#[derive(Debug)]
pub struct Memory {
    reports: OwnedFd,
    start: usize,
    pages: usize,
}

/// A page of bytes, aligned as the kernel wants it.
#[repr(align(4096))]
pub struct Page(pub [u8; PAGE]);

impl Memory {
    /// Maps so many pages, none of which is there yet.
    pub fn new(pages: usize) -> io::Result<Self> {
        /// Only faults of the program itself, and not of the kernel on its behalf: so everybody may use it.
        const USER_MODE_ONLY: i32 = 1;
        /// Pages that are missing are reported.
        const MODE_MISSING: u64 = 1;
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
        // SAFETY: the call takes no pointer.
        let reports = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        let reports = i32::try_from(reports).expect("descriptors are small");
        if reports < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let reports = unsafe { OwnedFd::from_raw_fd(reports) };
        let (protection, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), pages * PAGE, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let memory = Self {
            reports,
            start: start.addr(),
            pages,
        };
        memory.control(Call::API, &mut [Call::KEY, 0, 0])?;
        let range = [memory.start as u64, (pages * PAGE) as u64, MODE_MISSING, 0];
        memory.control(Call::REGISTER, &mut { range })?;
        Ok(memory)
    }

    /// The next report: the page that a thread waits for; `None` if there is none now.
    pub fn report(&self) -> io::Result<Option<usize>> {
        const EVENT_PAGEFAULT: u8 = 0x12;
        let mut message = [0_u64; 4];
        let (reports, size) = (self.reports.as_raw_fd(), size_of_val(&message));
        // SAFETY: the message has room for so many bytes.
        let read = unsafe { libc::read(reports, message.as_mut_ptr().cast(), size) };
        if read < 0 {
            let error = Error::last_os_error();
            let is_empty = error.kind() == io::ErrorKind::WouldBlock;
            return if is_empty { Ok(None) } else { Err(error) };
        }
        assert_eq!(
            message[0].to_ne_bytes()[0],
            EVENT_PAGEFAULT,
            "only faults were asked for"
        );
        let address = usize::try_from(message[2]).expect("an address");
        Ok(Some((address - self.start) / PAGE))
    }

    /// The descriptor that becomes readable when there are reports.
    pub fn reports(&self) -> i32 {
        self.reports.as_raw_fd()
    }

    /// Installs a page that is missing. Nobody is woken.
    pub fn install(&self, page: usize, content: &Page) -> io::Result<()> {
        const DONT_WAKE: u64 = 1;
        let source = content.0.as_ptr().addr() as u64;
        let arguments = [self.address(page), source, PAGE as u64, DONT_WAKE, 0];
        self.control(Call::COPY, &mut { arguments })
    }

    /// Wakes those who wait for one of these pages.
    pub fn wake(&self, first: usize, pages: usize) -> io::Result<()> {
        let arguments = [self.address(first), (pages * PAGE) as u64];
        self.control(Call::WAKE, &mut { arguments })
    }

    /// Drops pages: they are missing again.
    pub fn evict(&self, first: usize, pages: usize) -> io::Result<()> {
        let start = std::ptr::without_provenance_mut(self.address(first) as usize);
        // SAFETY: the pages are this memory's. Those who read them afterwards wait for the pager.
        let result = unsafe { libc::madvise(start, pages * PAGE, libc::MADV_DONTNEED) };
        if result == 0 {
            Ok(())
        } else {
            Err(Error::last_os_error())
        }
    }

    /// Reads a byte as a program would: the thread sleeps until its page is there.
    pub fn byte(&self, page: usize, at: usize) -> u8 {
        assert!(page < self.pages && at < PAGE);
        let address = std::ptr::with_exposed_provenance::<u8>(self.address(page) as usize + at);
        // SAFETY: the address is within the mapping, which may be read, and lives as long as this.
        unsafe { address.read_volatile() }
    }

    fn address(&self, page: usize) -> u64 {
        (self.start + page * PAGE) as u64
    }

    fn control(&self, call: Call, arguments: &mut [u64]) -> io::Result<()> {
        let code = call.code(size_of_val(arguments));
        // SAFETY: each call reads and writes as many words as its arguments have.
        let result = unsafe { libc::ioctl(self.reports(), code, arguments.as_mut_ptr()) };
        if result == 0 {
            Ok(())
        } else {
            Err(Error::last_os_error())
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let start = std::ptr::without_provenance_mut(self.start);
        // SAFETY: the mapping is this memory's, and nobody refers to it.
        unsafe { libc::munmap(start, self.pages * PAGE) };
    }
}
