//! Memory in extents, each of which has one owner.

use crate::blob::Error;
use crate::blob::raw::Piece;
use crate::blob::sys::{self, Memory};
use free::Free;
use prim::sync::Mutex;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::{fmt, slice};

mod free;

/// Memory from which extents are allocated.
///
/// The memory is given back to the system when the pool, its areas and its extents have been dropped.
///
/// # Cost
/// A pool allocates all of its memory when it is made. To allocate or to drop an extent takes a mutex and a search
/// through the free extents, from the first one on.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    memory: Arc<Memory>,
    free: Mutex<Free>,
}

impl Pool {
    /// A pool of so many bytes.
    ///
    /// # Errors
    /// [`Error::Misaligned`], and [`Error::System`] if there is not enough memory. The system may also decide to end
    /// processes that take all of it.
    pub fn new(bytes: usize) -> Result<Self, Error> {
        let memory = Arc::new(Memory::new(sys::in_pages(bytes)?)?);
        let free = Mutex::new(Free::new(bytes));
        Ok(Self(Arc::new(Inner { memory, free })))
    }

    /// The length of a page, in bytes: all lengths are multiples of it.
    #[must_use]
    pub fn page() -> usize {
        sys::page()
    }

    /// A new extent of so many bytes, to be written. Its content is unspecified: that of earlier extents, or zero.
    ///
    /// # Errors
    /// [`Error::Misaligned`], [`Error::PoolFull`] and [`Error::Forked`].
    pub fn allocate(&self, bytes: usize) -> Result<Draft, Error> {
        sys::in_pages(bytes)?;
        self.0.memory.check()?;
        let offset = self.0.free.lock().take(bytes);
        let offset = offset.ok_or(Error::PoolFull { bytes })?;
        let pool = Arc::clone(&self.0);
        let piece = Piece { offset, bytes };
        Ok(Draft(Owned { pool, piece }))
    }

    /// The memory.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.0.memory
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.memory.bytes();
        f.debug_struct("Pool")
            .field("bytes", &bytes)
            .finish_non_exhaustive()
    }
}

/// A part of the pool that belongs to one owner. Dropping it frees it.
struct Owned {
    pool: Arc<Inner>,
    piece: Piece,
}

impl Owned {
    fn start(&self) -> *mut u8 {
        self.pool.memory.at(self.piece.offset).as_ptr()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is mapped as long as the pool lives, and initialised. Only the owner can write to it, by a
        // mutable reference to this: (1) in the module's documentation.
        unsafe { slice::from_raw_parts(self.start(), self.piece.bytes) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // In a child, the free extents are nobody's.
        if self.pool.memory.check().is_ok() {
            let Piece { offset, bytes } = self.piece;
            self.pool.free.lock().give(offset, bytes);
        }
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.piece.fmt(f)
    }
}

/// An extent that is being written. Its owner alone has access to its bytes, and nothing shows them elsewhere.
#[derive(Debug)]
pub struct Draft(Owned);

impl Draft {
    /// The extent, whose bytes no longer change, and which can be aliased.
    #[must_use = "an extent that is dropped is free again"]
    pub fn seal(self) -> Extent {
        Extent(self.0)
    }
}

impl Deref for Draft {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for Draft {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `Owned::bytes`. There is no alias: those are of extents, and whoever has one borrows it.
        unsafe { slice::from_raw_parts_mut(self.0.start(), self.0.piece.bytes) }
    }
}

/// An extent whose bytes do not change. Dropping it frees its part of the pool.
///
/// It can be read where it is, and be part of aliases. It has one owner; to share it, share a reference.
///
/// ```compile_fail,E0505
/// # use spanlock_structures::blob::{AliasArea, Pool};
/// # let pool = Pool::new(4 * Pool::page()).unwrap();
/// # let area = AliasArea::new(&pool, 4 * Pool::page()).unwrap();
/// let blob = vec![pool.allocate(Pool::page()).unwrap().seal()];
/// let alias = area.map(&blob).unwrap();
/// drop(blob); // An alias of it is in use.
/// drop(alias);
/// ```
/// ```compile_fail,E0594
/// # use spanlock_structures::blob::Pool;
/// # let pool = Pool::new(4 * Pool::page()).unwrap();
/// let mut extent = pool.allocate(Pool::page()).unwrap().seal();
/// extent[0] = 1; // It can no longer be written.
/// ```
#[derive(Debug)]
pub struct Extent(Owned);

impl Extent {
    /// The same bytes, to be written again.
    #[must_use = "a draft that is dropped is free again"]
    pub fn reopen(self) -> Draft {
        // The compiler must not move reads of an earlier alias behind the writes that follow.
        sys::settle();
        Draft(self.0)
    }

    /// Where it is in the pool.
    pub(crate) fn piece(&self) -> Piece {
        self.0.piece
    }

    /// Whether it is of the pool with this memory.
    pub(crate) fn is_of(&self, memory: &Arc<Memory>) -> bool {
        Arc::ptr_eq(&self.0.pool.memory, memory)
    }
}

impl Deref for Extent {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Extents go to other threads, and several read one.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<(Pool, Draft, Extent)>();
};
