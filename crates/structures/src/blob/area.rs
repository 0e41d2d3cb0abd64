//! The area, and the guards of its aliases.

use crate::blob::raw::{Ranges, Shown, Space};
use crate::blob::sys::{self, Addresses};
use crate::blob::{Error, Extent, Pool};
use spanlock::range::RangeLock;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::{fmt, slice};

/// Addresses at which extents of one pool are shown as contiguous slices.
///
/// `R` gives out the ranges of the area: any typed range lock, over positions that are bytes from the area's start. It
/// is only ever tried. The default is [`RangeLock`].
///
/// # Cost
/// An alias costs a try and a release of the lock, a system call for each extent, two more, and a fault for each few
/// pages that are read. The system calls of all threads take one lock of the kernel's. An [`AliasCache`] saves all of
/// this when the same BLOB is read again.
///
/// The area takes addresses, not memory. Each alias takes as many addresses as it has bytes, from a multiple of the
/// next power of two on. The kernel limits how many mappings a process has (`vm.max_map_count`), and each extent of
/// a live alias is one.
///
/// # Fairness, blocking
/// Nothing blocks, except that the kernel serialises changes of mappings. If there is no place, the request is refused.
///
/// [`AliasCache`]: crate::blob::AliasCache
pub struct AliasArea<R = RangeLock> {
    space: Space<R, Addresses>,
    pool: Pool,
}

impl AliasArea {
    /// An area of so many bytes for aliases of a pool's extents.
    ///
    /// # Errors
    /// [`Error::Misaligned`], [`Error::Forked`], and [`Error::System`] if there are not so many addresses.
    pub fn new(pool: &Pool, bytes: usize) -> Result<Self, Error> {
        Self::with_lock(pool, bytes, RangeLock::new())
    }
}

impl<R: Ranges> AliasArea<R> {
    /// The same, with a lock that gives out its ranges.
    ///
    /// # Errors
    /// As [`new`](AliasArea::new).
    pub fn with_lock(pool: &Pool, bytes: usize, lock: R) -> Result<Self, Error> {
        let addresses = Addresses::new(pool.memory().clone(), sys::in_pages(bytes)?)?;
        let space = Space::new(lock, addresses);
        let pool = pool.clone();
        Ok(Self { space, pool })
    }

    /// The lock that gives out ranges.
    pub fn lock(&self) -> &R {
        self.space.ranges()
    }

    /// Shows extents one after the other, as one slice. It lives as long as the guard.
    ///
    /// An extent may be in several aliases at a time, and several times in one. No extents are an empty slice.
    ///
    /// # Errors
    /// [`Error::ForeignExtent`], [`Error::TooLong`], [`Error::AreaFull`], [`Error::Forked`], and [`Error::System`] if
    /// the kernel does not map an extent, as it has a limit.
    pub fn map<'a>(&'a self, extents: &'a [Extent]) -> Result<AliasGuard<'a, R>, Error> {
        self.guard(extents.iter())
    }

    /// As [`map`](Self::map), of extents that lie in different places, such as those of two BLOBs.
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn map_scattered<'a>(&'a self, extents: &[&'a Extent]) -> Result<AliasGuard<'a, R>, Error> {
        self.guard(extents.iter().copied())
    }

    fn guard<'a>(
        &'a self,
        extents: impl Iterator<Item = &'a Extent> + Clone,
    ) -> Result<AliasGuard<'a, R>, Error> {
        let shown = self.show(extents)?;
        let start = self.address(&shown);
        Ok(AliasGuard::new(start, shown.bytes(), Held::Own(shown)))
    }

    /// Shows extents, which must not be dropped while the result is read.
    pub(crate) fn show<'e>(
        &self,
        extents: impl Iterator<Item = &'e Extent> + Clone,
    ) -> Result<Shown<'_, R, Addresses>, Error> {
        self.check(extents.clone())?;
        self.space.take(extents.map(Extent::piece))
    }

    /// Whether these extents can be shown.
    pub(crate) fn check<'e>(
        &self,
        mut extents: impl Iterator<Item = &'e Extent>,
    ) -> Result<(), Error> {
        let memory = self.pool.memory();
        memory.check()?;
        if extents.all(|extent| extent.is_of(memory)) {
            Ok(())
        } else {
            Err(Error::ForeignExtent)
        }
    }

    /// Where something is shown.
    pub(crate) fn address(&self, shown: &Shown<'_, R, Addresses>) -> NonNull<u8> {
        self.space.window().address(shown.at())
    }
}

impl<R> fmt::Debug for AliasArea<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AliasArea")
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// Extents shown as one slice: an alias. It derefs to their bytes. Dropping it hides them, unless it came from a cache.
///
/// ```compile_fail,E0505
/// # use spanlock_structures::blob::{AliasArea, Pool};
/// # let pool = Pool::new(4 * Pool::page()).unwrap();
/// # let area = AliasArea::new(&pool, 4 * Pool::page()).unwrap();
/// let blob = [pool.allocate(Pool::page()).unwrap().seal()];
/// let alias = area.map(&blob).unwrap();
/// let bytes = &alias[..];
/// drop(alias); // The alias does not outlive its guard.
/// assert_eq!(bytes[0], 0);
/// ```
/// ```compile_fail,E0277
/// # use spanlock_structures::blob::{AliasArea, Pool};
/// # let pool = Pool::new(4 * Pool::page()).unwrap();
/// # let area = AliasArea::new(&pool, 4 * Pool::page()).unwrap();
/// let alias = area.map(&[]).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(alias)); // A range is released by the thread that took it.
/// });
/// ```
#[must_use = "the alias ends when the guard is dropped"]
pub struct AliasGuard<'a, R: Ranges + 'a = RangeLock> {
    start: NonNull<u8>,
    bytes: usize,
    _held: Held<'a, R>,
    /// A reference can be shared with other threads, and the guard stays on its own.
    lent: PhantomData<(&'a [Extent], *const ())>,
}

/// What keeps an alias alive.
pub(crate) enum Held<'a, R: Ranges + 'a> {
    /// It is hidden with its guard.
    Own(Shown<'a, R, Addresses>),
    /// It is a cache's, which does not hide it while there are such.
    Cached { _user: Rc<()> },
}

impl<'a, R: Ranges> AliasGuard<'a, R> {
    /// The guard of what is shown at an address. It has been borrowed for `'a`, as have its extents.
    pub(crate) fn new(start: NonNull<u8>, bytes: usize, held: Held<'a, R>) -> Self {
        // A cached alias may have other bytes than when it was last read.
        sys::settle();
        Self {
            start,
            bytes,
            _held: held,
            lent: PhantomData,
        }
    }
}

impl<R: Ranges> Deref for AliasGuard<'_, R> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are shown there, readable, until the guard is dropped. They do not change: the guard
        // borrows the extents, so nobody has or gets a draft of them.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl<R: Ranges> AsRef<[u8]> for AliasGuard<'_, R> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<R: Ranges> fmt::Debug for AliasGuard<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut guard = f.debug_struct("AliasGuard");
        guard
            .field("start", &self.start)
            .field("bytes", &self.bytes)
            .finish()
    }
}
