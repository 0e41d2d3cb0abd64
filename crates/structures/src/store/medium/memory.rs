//! A store in plain memory.

use super::region::Region;
use super::{Durable, Medium};
use std::io;
use std::ptr::NonNull;

/// A medium in memory, which is gone when it is dropped: for tests, and to measure without a device.
#[derive(Debug)]
pub struct Memory {
    region: Region,
    /// What the region is a part of.
    _owned: Owned,
}

#[derive(Debug)]
struct Owned(NonNull<[u8]>);

// SAFETY: it owns plain bytes.
unsafe impl Send for Owned {}

// SAFETY: as above; nothing can be done with a shared reference.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box in `Memory::new`, and is turned back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Memory {
    /// So many zero bytes.
    ///
    /// # Panics
    /// When that is more than the address space.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).expect("no larger than the address space");
        Self::from(vec![0; bytes])
    }
}

impl From<Vec<u8>> for Memory {
    fn from(bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        let owned = Box::into_raw(bytes.into_boxed_slice());
        let owned = NonNull::new(owned).expect("a box is not null");
        // SAFETY: the memory lives as long as `_owned`, and only the region uses it.
        let region = unsafe { Region::new(owned.cast(), length) };
        let _owned = Owned(owned);
        Self { region, _owned }
    }
}

impl Medium for Memory {
    fn size(&self) -> u64 {
        self.region.bytes() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.region.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.region.write(at, from)
    }

    fn flush(&self, _at: u64, _bytes: u64) {}

    fn fence(&self) {}

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn durable(&self) -> Durable {
        Durable::AtSync
    }
}
