//! Memory and mappings: all that this module asks of Linux.

use crate::blob::Error;
use crate::blob::raw::{Piece, Window};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::{Errno, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::arch::asm;
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Gives the errors of a system call its name.
fn named<T>(call: &'static str, result: Result<T>) -> std::result::Result<T, Error> {
    let error = |errno: Errno| Error::System {
        call,
        errno: errno.raw_os_error(),
    };
    result.map_err(error)
}

/// The length of a page.
pub(crate) fn page() -> usize {
    rustix::param::page_size()
}

/// Whether so many bytes are pages, one at least.
pub(crate) fn in_pages(bytes: usize) -> std::result::Result<usize, Error> {
    let page = page();
    if bytes > 0 && bytes.is_multiple_of(page) {
        Ok(bytes)
    } else {
        Err(Error::Misaligned { bytes, page })
    }
}

/// Memory may have changed at addresses where the compiler saw no store: that of one page at several addresses.
///
/// Empty assembly may do to memory what any function may. So the compiler moves no access to shared memory across it.
#[inline]
pub(crate) fn settle() {
    // SAFETY: it does nothing.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// Addresses of this process, mapped. Dropping it unmaps them.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: addresses may be used by any thread. What is read and written there is its owner's concern.
unsafe impl Send for Mapping {}

// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// What the kernel is asked for when it reserves addresses: no memory.
const RESERVED: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);

impl Mapping {
    fn of(start: *mut c_void, bytes: usize) -> Self {
        let start = NonNull::new(start.cast())
            .expect("the kernel maps nothing at address 0 unless told to");
        Self { start, bytes }
    }

    /// Anonymous memory, or none.
    fn anonymous(bytes: usize, access: ProtFlags) -> std::result::Result<Self, Error> {
        // SAFETY: the kernel chooses addresses that are not in use.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, RESERVED) };
        Ok(Self::of(named("mmap", start)?, bytes))
    }

    /// A file, readable and writable.
    fn of_file(file: &OwnedFd, bytes: usize) -> std::result::Result<Self, Error> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses addresses that are not in use.
        let start =
            unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) };
        Ok(Self::of(named("mmap", start)?, bytes))
    }

    fn at(&self, offset: usize) -> *mut c_void {
        self.start.as_ptr().wrapping_add(offset).cast()
    }

    /// Advises the kernel how to treat some of the pages in a fork.
    ///
    /// # Safety
    /// The advice is one of forks, and the range is within the mapping.
    unsafe fn advise(
        &self,
        offset: usize,
        bytes: usize,
        advice: Advice,
    ) -> std::result::Result<(), Error> {
        // SAFETY: such an advice changes nothing in this process.
        named("madvise", unsafe {
            rustix::mm::madvise(self.at(offset), bytes, advice)
        })
    }

    /// # Safety
    /// Nobody uses it any more, and this process has mapped it.
    unsafe fn unmap(&self) {
        // If this fails, it remains mapped, and nobody uses it.
        // SAFETY: the caller's.
        _ = unsafe { rustix::mm::munmap(self.at(0), self.bytes) };
    }
}

/// A page that is zero in children of this process.
struct ForkMark(Mapping);

impl ForkMark {
    fn new() -> std::result::Result<Self, Error> {
        let mark = Self(Mapping::anonymous(
            page(),
            ProtFlags::READ | ProtFlags::WRITE,
        )?);
        // SAFETY: the advice is one of forks.
        unsafe { mark.0.advise(0, page(), Advice::LinuxWipeOnFork) }?;
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page lives as long as this, and only this function refers to it.
        unsafe { self.0.start.cast().as_ref() }
    }

    /// Whether this is a child of the process that made it.
    fn is_forked(&self) -> bool {
        // Relaxed: it changes in a fork only.
        self.word().load(Ordering::Relaxed) == 0
    }
}

impl Drop for ForkMark {
    fn drop(&mut self) {
        // SAFETY: children have this page, too.
        unsafe { self.0.unmap() };
    }
}

/// A pool's memory: an anonymous file of fixed size, and where it is mapped.
pub(crate) struct Memory {
    file: OwnedFd,
    mapped: Mapping,
    mark: ForkMark,
}

impl Memory {
    /// So many bytes, which are pages. All of them are allocated now, so that no later access lacks memory.
    pub(crate) fn new(bytes: usize) -> std::result::Result<Self, Error> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = named(
            "memfd_create",
            rustix::fs::memfd_create("spanlock-blob", flags),
        )?;
        let space = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64);
        named("fallocate", space)?;
        let mark = ForkMark::new()?;
        let mapped = Mapping::of_file(&file, bytes)?;
        let memory = Self { file, mapped, mark };
        // From now on the file keeps its size, and nobody can write to it or map it writable.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
        named("fcntl", rustix::fs::fcntl_add_seals(&memory.file, seals))?;
        // SAFETY: the advice is one of forks.
        unsafe { memory.mapped.advise(0, bytes, Advice::LinuxDontFork) }?;
        Ok(memory)
    }

    /// Where a byte is.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < self.mapped.bytes);
        // SAFETY: the offset is within the mapping.
        unsafe { self.mapped.start.add(offset) }
    }

    /// The length.
    pub(crate) fn bytes(&self) -> usize {
        self.mapped.bytes
    }

    /// An error if this is a child of the process that made it.
    pub(crate) fn check(&self) -> std::result::Result<(), Error> {
        if self.mark.is_forked() {
            Err(Error::Forked)
        } else {
            Ok(())
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.check().is_ok() {
            // SAFETY: it is this process's, and whoever refers to its bytes keeps it.
            unsafe { self.mapped.unmap() };
        }
    }
}

/// Reserved addresses, at which parts of a pool are shown.
pub(crate) struct Addresses {
    memory: Arc<Memory>,
    reserved: Mapping,
    /// Some of the addresses are somebody else's.
    are_lost: AtomicBool,
}

impl Addresses {
    /// So many bytes, which are pages.
    pub(crate) fn new(memory: Arc<Memory>, bytes: usize) -> std::result::Result<Self, Error> {
        memory.check()?;
        let reserved = Mapping::anonymous(bytes, ProtFlags::empty())?;
        Ok(Self {
            memory,
            reserved,
            are_lost: AtomicBool::new(false),
        })
    }

    /// The address of a position; that of a position behind all others, if there is nothing to see.
    pub(crate) fn address(&self, at: usize) -> NonNull<u8> {
        debug_assert!(at <= self.reserved.bytes);
        // SAFETY: the position is within the mapping, or just behind it.
        unsafe { self.reserved.start.add(at) }
    }
}

impl Window for Addresses {
    fn bytes(&self) -> usize {
        self.reserved.bytes
    }

    unsafe fn show(
        &self,
        at: usize,
        pieces: impl Iterator<Item = Piece>,
    ) -> std::result::Result<(), Error> {
        self.memory.check()?;
        let (access, flags) = (ProtFlags::READ, MapFlags::SHARED | MapFlags::FIXED);
        let mut end = at;
        for Piece { offset, bytes } in pieces {
            debug_assert!(end + bytes <= self.bytes() && offset + bytes <= self.memory.bytes());
            let (here, file) = (self.reserved.at(end), &self.memory.file);
            // SAFETY: the caller holds these addresses, which are reserved, and nobody refers to them.
            let shown =
                unsafe { rustix::mm::mmap(here, bytes, access, flags, file, offset as u64) };
            named("mmap", shown)?;
            end += bytes;
        }
        // SAFETY: the advice is one of forks.
        unsafe { self.reserved.advise(at, end - at, Advice::LinuxDontFork) }
    }

    unsafe fn hide(&self, at: usize, bytes: usize) -> std::result::Result<(), Error> {
        self.memory.check()?;
        let map = |how: MapFlags| {
            let (here, none) = (self.reserved.at(at), ProtFlags::empty());
            // SAFETY: the caller holds these addresses, which are reserved, and nobody refers to them.
            let hidden = unsafe { rustix::mm::mmap_anonymous(here, bytes, none, RESERVED | how) };
            hidden.map(drop)
        };
        // Mapped anew rather than unmapped: an address that is in no mapping could be given to anybody.
        match map(MapFlags::FIXED) {
            Err(Errno::NOMEM) => {
                // At the limit of mappings the kernel refuses to replace any, before it removes any. It does not refuse
                // to remove some. If another thread gets one of these addresses in between, they remain that thread's.
                // SAFETY: as above.
                let removed = unsafe { rustix::mm::munmap(self.reserved.at(at), bytes) };
                let hidden = removed.and_then(|()| map(MapFlags::FIXED_NOREPLACE));
                if hidden.is_err() {
                    // Relaxed: whoever drops the area has waited for this thread.
                    self.are_lost.store(true, Ordering::Relaxed);
                }
                named("mmap", hidden)
            }
            hidden => named("mmap", hidden),
        }
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        if self.memory.check().is_ok() && !*self.are_lost.get_mut() {
            // SAFETY: they are this process's, and guards borrow the area.
            unsafe { self.reserved.unmap() };
        }
    }
}
