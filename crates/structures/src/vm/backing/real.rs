//! Real mappings: what is mapped in the space is mapped in this process, at the same addresses.

use super::Backing;
use crate::vm::error::VmError;
use crate::vm::kind::{Access, Area, Flags, PAGE, Protection, Source};
use crate::vm::layout::Layout;
use prim::sync::Mutex;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// Maps real memory of this process. The addresses of the space are the process's own, within a range that is set aside
/// for the space.
///
/// Shared memory without a file is a `memfd`; files are registered by their descriptors. Faults populate the page
/// before it is accessed (`MADV_POPULATE_*`, Linux 5.14), so accesses need not fault at all.
///
/// # When not to use it
/// - Something else in the process maps memory into the same range: nothing in Rust or C does so by itself, where the
///   range is far below the addresses that the kernel gives out, but nothing prevents it either.
/// - The areas have advice ([`AddressSpace::madvise`](crate::vm::AddressSpace::madvise)) or grow down: advice does not
///   reach the kernel, and areas that grow down are refused with `EOPNOTSUPP`.
///
/// # Cost
/// A system call for each operation of the space. The kernel has a lock of its own for all of the process's mappings.
///
/// # Panics
/// An unmapping panics if the kernel refuses it, which it does if the process has too many mappings.
#[derive(Debug)]
pub struct RealMappings {
    range: Range<u64>,
    files: Mutex<BTreeMap<u64, OwnedFd>>,
}

impl RealMappings {
    /// Sets a range of the process's addresses aside, in which nothing is mapped.
    ///
    /// # Errors
    /// Something is mapped there, or the kernel does not allow mappings there.
    pub fn new(range: Range<u64>) -> io::Result<Self> {
        let length = range.end.saturating_sub(range.start);
        let probe = map_memory(
            range.start,
            length,
            0,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        probe.map_err(io::Error::from_raw_os_error)?;
        unmap_memory(range.start, length);
        let files = Mutex::new(BTreeMap::new());
        Ok(Self { range, files })
    }

    /// A layout for a space in that range, with the heap in its middle.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let Range { start, end } = self.range;
        let middle = (start + (end - start) / 2).next_multiple_of(PAGE);
        Layout {
            lowest: start,
            end,
            mmap_top: end,
            mmap_bottom: start,
            heap: middle,
            ..Layout::BITS_47
        }
    }

    /// Registers a file, and returns the number by which a [`Source`] names it.
    pub fn register(&self, file: OwnedFd) -> u64 {
        let mut files = self.files.lock();
        let number = files
            .range(..1 << 63)
            .next_back()
            .map_or(1, |(last, _)| last + 1);
        files.insert(number, file);
        number
    }

    /// The descriptor of a file; for shared memory, made on demand.
    fn descriptor(&self, file: u64) -> Result<i32, VmError> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(&file) {
            return Ok(file.as_raw_fd());
        }
        if file < 1 << 63 {
            return Err(VmError::Backing(libc::EBADF));
        }
        // SAFETY: the name is a string, and the call has no other pointer.
        let memory = unsafe { libc::memfd_create(c"spanlock-vm".as_ptr(), libc::MFD_CLOEXEC) };
        if memory < 0 {
            return Err(refusal());
        }
        // SAFETY: the call above has opened it for us.
        let memory = unsafe { OwnedFd::from_raw_fd(memory) };
        // SAFETY: a call without pointers. The memory is as long as any offset, and has no pages.
        if unsafe { libc::ftruncate(memory.as_raw_fd(), 1 << 47) } < 0 {
            return Err(refusal());
        }
        Ok(files.entry(file).or_insert(memory).as_raw_fd())
    }
}

/// The error of the last call.
fn refusal() -> VmError {
    VmError::Backing(
        io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EINVAL),
    )
}

fn pointer(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Maps memory where nothing is mapped.
fn map_memory(
    start: u64,
    length: u64,
    protection: i32,
    flags: i32,
    file: i32,
    offset: u64,
) -> Result<(), i32> {
    let flags = flags | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: the kernel maps only where nothing is mapped, so no memory in use is changed.
    let mapped = unsafe {
        libc::mmap(
            pointer(start),
            length as usize,
            protection,
            flags,
            file,
            offset as i64,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EINVAL));
    }
    if mapped != pointer(start) {
        // A kernel that does not know the flag took the address as a hint.
        unmap_memory(mapped.expose_provenance() as u64, length);
        return Err(libc::EEXIST);
    }
    Ok(())
}

fn unmap_memory(start: u64, length: u64) {
    // SAFETY: the callers unmap what they have mapped, and nobody has references into it.
    let result = unsafe { libc::munmap(pointer(start), length as usize) };
    assert_eq!(
        result,
        0,
        "the kernel refuses to unmap {start:#x}: {}",
        io::Error::last_os_error()
    );
}

fn advise(range: Range<u64>, advice: i32) -> Result<(), VmError> {
    let length = (range.end - range.start) as usize;
    // SAFETY: the range is mapped by this backing; nobody has references into it.
    match unsafe { libc::madvise(pointer(range.start), length, advice) } {
        0 => Ok(()),
        _ => Err(refusal()),
    }
}

impl Backing for RealMappings {
    fn map(&self, area: &Area) -> Result<(), VmError> {
        if area.flags.contains(Flags::GROWS_DOWN) {
            return Err(VmError::Backing(libc::EOPNOTSUPP));
        }
        let share = if area.flags.contains(Flags::SHARED) {
            libc::MAP_SHARED
        } else {
            libc::MAP_PRIVATE
        };
        let reserve = if area.flags.contains(Flags::NO_RESERVE) {
            libc::MAP_NORESERVE
        } else {
            0
        };
        let (kind, file, offset) = match area.source {
            Source::Anonymous => (libc::MAP_ANONYMOUS, -1, 0),
            Source::File { file, offset } => (0, self.descriptor(file)?, offset),
        };
        let protection = i32::from(area.protection.bits());
        map_memory(
            area.start,
            area.len(),
            protection,
            share | reserve | kind,
            file,
            offset,
        )
        .map_err(VmError::Backing)
    }

    fn lengthen(&self, more: &Area) -> Result<(), VmError> {
        let last = pointer(more.start - PAGE);
        let (old, new) = (PAGE as usize, (PAGE + more.len()) as usize);
        // SAFETY: the page before is the last of an area of this backing, and its address remains.
        let lengthened = unsafe { libc::mremap(last, old, new, 0) };
        if lengthened == libc::MAP_FAILED {
            Err(refusal())
        } else {
            Ok(())
        }
    }

    fn populate(&self, page: u64, _area: &Area, access: Access) -> Result<(), VmError> {
        let advice = match access {
            Access::Read | Access::Execute => libc::MADV_POPULATE_READ,
            Access::Write => libc::MADV_POPULATE_WRITE,
        };
        advise(page..page + PAGE, advice)
    }

    fn protect(&self, range: Range<u64>, protection: Protection) -> Result<(), VmError> {
        let length = (range.end - range.start) as usize;
        // SAFETY: the range is mapped by this backing; nobody has references into it.
        match unsafe { libc::mprotect(pointer(range.start), length, i32::from(protection.bits())) }
        {
            0 => Ok(()),
            _ => Err(refusal()),
        }
    }

    fn unmap(&self, range: Range<u64>) {
        unmap_memory(range.start, range.end - range.start);
    }

    fn discard(&self, range: Range<u64>) {
        // It fails for ranges that are not mapped, or locked, and the space has excluded those.
        _ = advise(range, libc::MADV_DONTNEED);
    }

    fn relocate(&self, range: Range<u64>, area: &Area) -> Result<(), VmError> {
        let (old, new) = ((range.end - range.start) as usize, area.len() as usize);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both ranges are mapped by this backing; nobody has references into them.
        let moved =
            unsafe { libc::mremap(pointer(range.start), old, new, flags, pointer(area.start)) };
        if moved == libc::MAP_FAILED {
            Err(refusal())
        } else {
            Ok(())
        }
    }
}

impl Drop for RealMappings {
    fn drop(&mut self) {
        unmap_memory(self.range.start, self.range.end - self.range.start);
    }
}
