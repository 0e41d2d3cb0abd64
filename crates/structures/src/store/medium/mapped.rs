//! A mapped file or device.

use super::region::Region;
use super::{Durable, Medium};
use crate::store::error::{Error, Result};
use crate::store::format::blocks_of;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::ptr::{self, NonNull};

/// A file or a device, mapped into memory and locked against other processes.
///
/// On persistent memory with a file system that supports `MAP_SYNC`, writes are durable at a fence. Otherwise they go
/// to the kernel's page cache: they survive the end of the process, and are durable after a sync; on tmpfs never.
///
/// An input or output error of the device, or a file that another program truncates, raises `SIGBUS` in the thread that
/// reads the page, because the kernel has no other way to report it. `spanlock store check` reads with system calls
/// first, so that it reports the error instead.
#[derive(Debug)]
pub struct Mapped {
    region: Region,
    file: Locked,
    durable: Durable,
    writable: Writable,
}

/// A file that is locked against other stores, and is free as soon as this is dropped.
///
/// To close it is not enough: a child of this process has a copy of the descriptor until it runs another program, and
/// with it the lock.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // If that fails, the lock goes with the last copy.
        let _ = self.0.unlock();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writable {
    Yes,
    No,
}

impl Mapped {
    /// Opens a file or device for a store.
    ///
    /// # Errors
    /// [`Error::Busy`] when a store in it is open; an error of the kernel otherwise.
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        taken(file.try_lock())?;
        Self::map(Locked(file), Writable::Yes)
    }

    /// Opens it to look at it only.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).open(path)?;
        taken(file.try_lock_shared())?;
        Self::map(Locked(file), Writable::No)
    }

    /// Makes a file of that size, all zeros, for [`make`](crate::store::make). Its space is reserved, so that the
    /// file system cannot be full when a page of it is first written.
    ///
    /// # Errors
    /// When the file exists, there is no space for it, or no store has that many pages.
    pub fn create(path: &Path, bytes: u64) -> Result<Self> {
        blocks_of(bytes)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        let reserved = reserve(&file, bytes).and_then(|()| {
            taken(file.try_lock())?;
            Self::map(Locked(file), Writable::Yes)
        });
        if reserved.is_err() {
            // The file is this function's own. If it cannot be removed either, the first error says more.
            let _ = std::fs::remove_file(path);
        }
        reserved
    }

    fn map(file: Locked, writable: Writable) -> Result<Self> {
        if file.0.metadata()?.is_dir() {
            return Err(Error::IsDirectory);
        }
        let bytes = (&file.0).seek(SeekFrom::End(0))?;
        let length = usize::try_from(bytes).map_err(|_| Error::TooLarge)?;
        if length == 0 {
            return Err(Error::NotAStore("it is empty"));
        }
        let protection = match writable {
            Writable::Yes => ProtFlags::READ | ProtFlags::WRITE,
            Writable::No => ProtFlags::READ,
        };
        let map = |flags| {
            // SAFETY: a new mapping, at an address that the kernel chooses.
            unsafe { mmap(ptr::null_mut(), length, protection, flags, &file.0, 0) }
        };
        let (begin, durable) = match map(MapFlags::SHARED_VALIDATE | MapFlags::SYNC) {
            Ok(begin) if flush::is_possible() => (begin, Durable::AtFence),
            Ok(begin) => (begin, Durable::AtSync),
            Err(_) => {
                let begin = map(MapFlags::SHARED).map_err(io::Error::from)?;
                (begin, without_map_sync(&file.0)?)
            }
        };
        let begin = NonNull::new(begin.cast::<u8>()).expect("the kernel maps nothing at zero");
        // SAFETY: the mapping lives until `drop`, and the file is locked against other stores. What programs that
        // ignore the lock write is detected by checksums.
        let region = unsafe { Region::new(begin, length) };
        Ok(Self {
            region,
            file,
            durable,
            writable,
        })
    }

    /// Reads every page by system calls, which report what a device cannot read.
    ///
    /// # Errors
    /// The first error, with its place.
    pub fn read_through(&self) -> Result<()> {
        use std::os::unix::fs::FileExt;
        let mut buffer = vec![0; 1 << 20];
        let mut at = 0;
        while at < self.size() {
            let part = usize::try_from(self.size() - at)
                .map_or(buffer.len(), |rest| rest.min(buffer.len()));
            self.file
                .0
                .read_exact_at(&mut buffer[..part], at)
                .map_err(|error| io::Error::new(error.kind(), format!("at byte {at}: {error}")))?;
            at += part as u64;
        }
        Ok(())
    }
}

/// Whether the lock of the file was free.
fn taken(lock: std::result::Result<(), TryLockError>) -> Result<()> {
    lock.map_err(|error| match error {
        TryLockError::WouldBlock => Error::Busy,
        TryLockError::Error(error) => error.into(),
    })
}

/// When stores to the mapping of a file become durable that is not persistent memory.
fn without_map_sync(file: &File) -> Result<Durable> {
    /// The numbers of tmpfs and of ramfs in Linux's `magic.h`.
    const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58F6];
    let system = rustix::fs::fstatfs(file).map_err(io::Error::from)?;
    Ok(match IN_MEMORY.contains(&system.f_type) {
        true => Durable::Never,
        false => Durable::AtSync,
    })
}

/// Gives a file its size and its space.
fn reserve(file: &File, bytes: u64) -> Result<()> {
    file.set_len(bytes)?;
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        // A file system without reservations.
        Err(rustix::io::Errno::OPNOTSUPP) | Ok(()) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let begin = self.region.range(0, 0).expect("the beginning is inside");
        // SAFETY: the mapping is this value's own, and nothing points into it any more. If the call fails, the mapping
        // stays, which harms nothing.
        let _ = unsafe { munmap(begin.cast::<c_void>(), self.region.bytes()) };
    }
}

impl Medium for Mapped {
    fn size(&self) -> u64 {
        self.region.bytes() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.region.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        match self.writable {
            Writable::Yes => self.region.write(at, from),
            Writable::No => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
        }
    }

    fn flush(&self, at: u64, bytes: u64) {
        let Ok(length) = usize::try_from(bytes) else {
            return;
        };
        if self.durable == Durable::AtFence
            && let Ok(begin) = self.region.range(at, length)
        {
            flush::lines(begin, length);
        }
    }

    fn fence(&self) {
        if self.durable == Durable::AtFence {
            flush::fence();
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self.durable {
            Durable::AtFence => {
                flush::fence();
                Ok(())
            }
            // It writes the pages that were changed through the mapping, too.
            Durable::AtSync => self.file.0.sync_data(),
            Durable::Never => Ok(()),
        }
    }

    fn durable(&self) -> Durable {
        self.durable
    }
}

/// Writing cache lines back to persistent memory.
#[cfg(target_arch = "x86_64")]
mod flush {
    use core::arch::asm;
    use core::arch::x86_64::{__cpuid, __cpuid_count, _mm_sfence};

    const LINE: usize = 64;

    /// Whether the processor has `clwb`.
    pub(super) fn is_possible() -> bool {
        let leaves = __cpuid(0).eax;
        leaves >= 7 && __cpuid_count(7, 0).ebx & (1 << 24) != 0
    }

    /// The processor has `clwb`, and the range is mapped.
    pub(super) fn lines(begin: *const u8, bytes: usize) {
        let first = begin.addr() & !(LINE - 1);
        for line in (first..begin.addr() + bytes).step_by(LINE) {
            let line = begin.with_addr(line);
            // SAFETY: the instruction changes no memory, and the line is mapped.
            unsafe {
                asm!("clwb [{line}]", line = in(reg) line, options(nostack, preserves_flags))
            };
        }
    }

    pub(super) fn fence() {
        // SAFETY: every x86-64 processor has it.
        unsafe { _mm_sfence() };
    }
}

/// Elsewhere nothing is written back, and so no mapping counts as durable at a fence.
#[cfg(not(target_arch = "x86_64"))]
mod flush {
    pub(super) fn is_possible() -> bool {
        false
    }

    pub(super) fn lines(_begin: *const u8, _bytes: usize) {}

    pub(super) fn fence() {}
}
