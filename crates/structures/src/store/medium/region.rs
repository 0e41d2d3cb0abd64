//! Bytes in memory that threads copy from and to.

use std::io;
use std::ptr::NonNull;

/// A part of the address space. It does not own the memory.
#[derive(Debug)]
pub(super) struct Region {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the region is plain bytes, which `new`'s contract lets all threads use; `read` and `write` state what
// their callers owe to each other.
unsafe impl Send for Region {}

// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// # Safety
    /// All of it is readable and writable for as long as the region lives, and nothing else uses it. If it is
    /// read-only, nobody calls `write`.
    pub(super) unsafe fn new(begin: NonNull<u8>, bytes: usize) -> Self {
        Self { begin, bytes }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where a range begins.
    pub(super) fn range(&self, at: u64, bytes: usize) -> io::Result<*mut u8> {
        let end = at.checked_add(bytes as u64).ok_or_else(beyond_the_end)?;
        if end > self.bytes as u64 {
            return Err(beyond_the_end());
        }
        let at = usize::try_from(at).map_err(|_| beyond_the_end())?;
        // SAFETY: the range is within the region, by the check above.
        Ok(unsafe { self.begin.as_ptr().add(at) })
    }

    /// Copies from the region. No thread writes the range meanwhile: that is the store's duty.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let from = self.range(at, into.len())?;
        // SAFETY: both have that many bytes. They do not overlap, because nothing else uses the region's memory.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) };
        Ok(())
    }

    /// Copies to the region. No thread reads or writes the range meanwhile: that is the store's duty.
    pub(super) fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let to = self.range(at, from.len())?;
        // SAFETY: as in `read`.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }
}

/// The error of a range beyond the end.
pub(super) fn beyond_the_end() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the medium")
}
