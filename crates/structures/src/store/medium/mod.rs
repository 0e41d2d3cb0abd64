//! Where a store is: a mapped file or device, plain memory, or the simulated medium of the crash tests.

mod mapped;
mod memory;
mod region;
mod simulated;

pub use mapped::Mapped;
pub use memory::Memory;
pub use simulated::{Event, Simulated};

use std::io;
use std::sync::Arc;

/// When stores become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// At the fence that follows their flush: persistent memory that is mapped as such.
    AtFence,
    /// At the next sync. Before that, the kernel may write any of them at any time, in any order.
    AtSync,
    /// Never: a loss of power takes everything, as of a file on tmpfs. Any other crash leaves all stores.
    Never,
}

impl Durable {
    /// Whether a crash that leaves a store leaves all that was fenced before it.
    pub(crate) fn keeps_order(self) -> bool {
        self != Self::AtSync
    }
}

/// A medium: bytes that can be read and written at any position, by many threads at a time.
///
/// The store never writes a byte while another thread reads or writes it.
pub trait Medium: Send + Sync {
    /// Bytes.
    fn size(&self) -> u64;

    /// Copies what begins at `at`.
    ///
    /// # Errors
    /// When that is beyond the end, or cannot be read.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes at `at`. The bytes are visible at once, and not yet durable.
    ///
    /// # Errors
    /// When that is beyond the end, or the medium is read-only.
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()>;

    /// Begins to make the cache lines of a range durable. The next [`fence`](Self::fence) of this thread waits for it.
    /// Does nothing on other media than those that are durable at a fence.
    fn flush(&self, at: u64, bytes: u64);

    /// Waits until what this thread has flushed is durable. Does nothing on other media than those that are durable
    /// at a fence.
    fn fence(&self);

    /// Makes everything durable that was written before the call.
    ///
    /// # Errors
    /// When some of it may be lost. What is lost is not known, so a second call proves nothing.
    fn sync(&self) -> io::Result<()>;

    /// When writes become durable.
    fn durable(&self) -> Durable;
}

/// A medium through a pointer is the medium.
macro_rules! through_a_pointer {
    ($($pointer:ty),+) => {$(
        impl<M: Medium + ?Sized> Medium for $pointer {
            fn size(&self) -> u64 {
                (**self).size()
            }

            fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
                (**self).read(at, into)
            }

            fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
                (**self).write(at, from)
            }

            fn flush(&self, at: u64, bytes: u64) {
                (**self).flush(at, bytes);
            }

            fn fence(&self) {
                (**self).fence();
            }

            fn sync(&self) -> io::Result<()> {
                (**self).sync()
            }

            fn durable(&self) -> Durable {
                (**self).durable()
            }
        }
    )+};
}

through_a_pointer!(&M, Arc<M>, Box<M>);
