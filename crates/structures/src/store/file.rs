//! Open files.

use crate::store::error::Result;
use crate::store::format::PAGE;
use crate::store::format::entry::MAX_ITEMS;
use crate::store::inode::Inode;
use crate::store::medium::{Mapped, Medium};
use crate::store::open::Shared;
use crate::store::room::with_room;
use crate::store::tree::{Ino, Stat};
use spanlock::range::raw::RawRangeLock;
use spanlock::range::slots::RawSlots;
use std::fmt;
use std::sync::Arc;

/// An open file. It behaves as `std::os::unix::fs::FileExt` does, for many threads at a time.
///
/// Cloning it is cheap. The file exists as long as it has a name, or is open.
///
/// # Atomicity
/// A `read_at` or `write_at` is one step to the others: no reader sees a part of a write, in this process. After a
/// crash a write of up to 499 pages has happened as a whole or not at all; a larger one in parts of that size. After a
/// loss of power, where the medium is durable at a sync, each page by itself.
///
/// # Blocking
/// While another thread holds a part of the same range (in whole pages, when it writes), and while a log is rewritten,
/// for a sync.
pub struct File<M: Medium = Mapped, L: RawRangeLock = RawSlots> {
    pub(crate) shared: Arc<Shared<M, L>>,
    pub(crate) inode: Arc<Inode<L>>,
}

impl<M: Medium, L: RawRangeLock> File<M, L> {
    /// The number of its inode.
    #[must_use]
    pub fn ino(&self) -> Ino {
        self.inode.ino()
    }

    /// Reads into the buffer what begins at `at`. Returns the number of bytes, which is smaller than the buffer only at
    /// the end of the file.
    ///
    /// # Errors
    /// [`Error::Corrupt`](super::Error::Corrupt) when a page does not match its checksum;
    /// [`Error::Io`](super::Error::Io) when the medium cannot be read.
    pub fn read_at(&self, into: &mut [u8], at: u64) -> Result<usize> {
        self.inode.read_at(&self.shared.core, into, at)
    }

    /// Writes all of `data` at `at`, and extends the file if it ends before. Returns the number of bytes.
    ///
    /// # Errors
    /// [`Error::NoSpace`](super::Error::NoSpace), [`Error::TooLarge`](super::Error::TooLarge),
    /// [`Error::Poisoned`](super::Error::Poisoned); [`Error::Corrupt`](super::Error::Corrupt) when the rest of a page
    /// is damaged that is written in part. A write of more than 499 pages that fails may have happened in part.
    pub fn write_at(&self, data: &[u8], at: u64) -> Result<usize> {
        self.shared.core.check()?;
        with_room(&self.shared, || {
            self.inode.write_at(&self.shared.core, data, at)
        })?;
        self.done()?;
        Ok(data.len())
    }

    /// Writes all of `data` at the end of the file. Returns where that was. Appends do not overlap each other.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn append(&self, data: &[u8]) -> Result<u64> {
        self.shared.core.check()?;
        let append = || self.inode.append(&self.shared.core, data);
        // A larger one may have happened in part.
        let at = match data.len() < (MAX_ITEMS - 1) * PAGE {
            true => with_room(&self.shared, append)?,
            false => append()?,
        };
        self.done()?;
        Ok(at)
    }

    /// Cuts the file off, or extends it by a hole.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at). In a full store it succeeds as long as a reserve lasts.
    pub fn truncate(&self, size: u64) -> Result<()> {
        self.shared.core.check()?;
        with_room(&self.shared, || {
            self.inode.truncate(&self.shared.core, size)
        })?;
        self.done()
    }

    /// Makes everything durable that was written before.
    ///
    /// # Errors
    /// When that fails. Then some of it may be lost, and the store takes no more writes.
    pub fn sync(&self) -> Result<()> {
        self.shared.core.sync()
    }

    /// What is known of it.
    ///
    /// # Errors
    /// Never, so far.
    pub fn stat(&self) -> Result<Stat> {
        Ok(self.shared.stat_open(&self.inode, self.ino()))
    }

    /// The end of a change, outside all locks of the file.
    fn done(&self) -> Result<()> {
        self.inode.clean(&self.shared.core)?;
        self.shared.core.finish()
    }
}

impl<M: Medium, L: RawRangeLock> Clone for File<M, L> {
    fn clone(&self) -> Self {
        self.shared.open_again(self.ino());
        Self {
            shared: Arc::clone(&self.shared),
            inode: Arc::clone(&self.inode),
        }
    }
}

impl<M: Medium, L: RawRangeLock> Drop for File<M, L> {
    fn drop(&mut self) {
        self.shared.close_one(self.ino());
    }
}

impl<M: Medium, L: RawRangeLock> fmt::Debug for File<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("ino", &self.ino())
            .finish_non_exhaustive()
    }
}
