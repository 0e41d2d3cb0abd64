//! How ranges of an area are given out, over any range lock and any kind of mapping.
//!
//! For authors of other areas. [`AliasArea`](crate::blob::AliasArea) is a [`Space`] whose [`Window`] calls `mmap`. A
//! simulated machine and the models have windows of their own.
//!
//! ```text
//!             place 0        place 1        place 2        place 3
//!   area  |-------------|--------------|--------------|--------------|
//!              held           held      ^ next place     held by
//!                                       |                another
//!                          the cursor picks the first place to try; then come the others, in order and around
//! ```
//!
//! An alias begins at a multiple of its length, rounded up to a power of two: at one of so many *places*. So a request
//! can try every place that it may have, exactly once, and no free place remains unseen between two places. The cost
//! is addresses, of which there are plenty: an alias may occupy nearly twice its length.
//!
//! A request tries places and never waits. The cursor is a word that all threads advance, as in LeanStore. So requests
//! begin at different places, and hardly ever try one that is held.
//!
//! # Steps
//! - **blob-hide-first**: an alias is hidden before its range is released. The next holder of the range shows
//!   its own extents there. To hide later would hide those.
//! - **blob-keep-lost**: if an alias cannot be hidden, its range is never released. The addresses are lost to the area,
//!   but nobody finds foreign memory in a range of its own.
//!
//! The lock orders the two holders: a later holder sees what an earlier one did. The cursor orders nothing.

use crate::blob::Error;
use prim::atomic::{AtomicUsize, Ordering};
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::{LockGuard, RangeLock, RangeMutex, WriteGuard};
use std::fmt;
use std::mem;
use std::ops::Range;

/// Gives out ranges of positions: a range lock, as an area uses it.
///
/// # Safety
/// While an object that [`try_take`](Self::try_take) returned has not been dropped, no overlapping range is given out;
/// so never, if it was leaked. A later holder of a range sees all that an earlier one did.
pub unsafe trait Ranges {
    /// Holds a range until dropped.
    type Held<'a>
    where
        Self: 'a;

    /// Takes a range, which is not empty, if all of it is free. Does not wait.
    fn try_take(&self, range: Range<u64>) -> Option<Self::Held<'_>>;
}

/// Ranges by the tries of a typed lock.
macro_rules! by_try {
    ($Lock:ident over $Raw:ident: $Guard:ident by $try_lock:ident) => {
        // SAFETY: a range lock grants overlapping exclusive ranges one after the other, each after the release of the
        // one before. A guard that is leaked leaves its range locked.
        unsafe impl<L: $Raw> Ranges for $Lock<L> {
            type Held<'a>
                = $Guard<'a, L>
            where
                Self: 'a;

            #[inline]
            fn try_take(&self, range: Range<u64>) -> Option<$Guard<'_, L>> {
                self.$try_lock(range)
            }
        }
    };
}

by_try!(RangeLock over RawRangeLock: WriteGuard by try_write);
by_try!(RangeMutex over RawRangeMutex: LockGuard by try_lock);

/// A part of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its first byte's position in the pool.
    pub offset: usize,
    /// Its length.
    pub bytes: usize,
}

/// Shows pieces of a pool at positions of an area.
pub trait Window {
    /// The length of the area.
    fn bytes(&self) -> usize;

    /// Shows pieces one after the other, from position `at`. After an error, some of them may be shown.
    ///
    /// # Errors
    /// When the platform refuses.
    ///
    /// # Safety
    /// The caller holds as many positions as the pieces have bytes, alone. They are within the area, and there are no
    /// references to what they show.
    unsafe fn show(&self, at: usize, pieces: impl Iterator<Item = Piece>) -> Result<(), Error>;

    /// Shows nothing any more in so many bytes from position `at`.
    ///
    /// # Errors
    /// When the platform refuses; then some of them may still be shown.
    ///
    /// # Safety
    /// As for [`show`](Self::show).
    unsafe fn hide(&self, at: usize, bytes: usize) -> Result<(), Error>;
}

/// An area whose ranges are given out by `R` and shown by `W`.
///
/// Makes no system call and no allocation of its own. A request costs an atomic addition and a try of the lock for each
/// place, and then what the window costs.
pub struct Space<R, W> {
    ranges: R,
    window: W,
    /// Where requests begin to try.
    cursor: AtomicUsize,
}

impl<R: Ranges, W: Window> Space<R, W> {
    /// An area in which nothing is shown.
    pub fn new(ranges: R, window: W) -> Self {
        Self {
            ranges,
            window,
            cursor: AtomicUsize::new(0),
        }
    }

    /// What shows pieces.
    pub fn window(&self) -> &W {
        &self.window
    }

    /// What gives out ranges.
    pub fn ranges(&self) -> &R {
        &self.ranges
    }

    /// Shows pieces one after the other, in a range of the area. No pieces are an alias without a range.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::AreaFull`], and those of the window.
    pub fn take(
        &self,
        pieces: impl Iterator<Item = Piece> + Clone,
    ) -> Result<Shown<'_, R, W>, Error> {
        let area = self.window.bytes();
        let sum = |sum: usize, piece: Piece| sum.checked_add(piece.bytes);
        // A sum that overflows is longer than any area.
        let bytes = pieces.clone().try_fold(0, sum).unwrap_or(usize::MAX);
        if bytes > area {
            return Err(Error::TooLong { bytes, area });
        }
        let (at, held) = if bytes == 0 {
            (0, None)
        } else {
            let place = self.place(bytes, area).ok_or(Error::AreaFull)?;
            (place.0, Some(place.1))
        };
        // Made before anything is shown: if that fails, dropping it hides what was shown.
        let shown = Shown {
            window: &self.window,
            at,
            bytes,
            held,
        };
        if bytes > 0 {
            let mut room = bytes;
            // An iterator that yields other pieces the second time does not leave the range.
            let within = pieces.take_while(|piece| {
                let rest = room.checked_sub(piece.bytes);
                room = rest.unwrap_or(0);
                rest.is_some()
            });
            // SAFETY: the range is held, alone, and a range that is given out shows nothing: [blob-hide-first] and
            // [blob-keep-lost]. It is within the area.
            unsafe { self.window.show(at, within) }?;
        }
        Ok(shown)
    }

    /// The first place that is free, from the cursor on and around.
    fn place(&self, bytes: usize, area: usize) -> Option<(usize, R::Held<'_>)> {
        // An area has less than half of all addresses, so there is a power of two.
        let stride = bytes.next_power_of_two();
        let places = (area - bytes) / stride + 1;
        // Relaxed: any number is a good one to begin with.
        let first = self.cursor.fetch_add(stride, Ordering::Relaxed) / stride % places;
        let all = (first..places).chain(0..first);
        all.map(|place| place * stride).find_map(|at| {
            let range = at as u64..(at + bytes) as u64;
            Some((at, self.ranges.try_take(range)?))
        })
    }
}

impl<R, W> fmt::Debug for Space<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space").finish_non_exhaustive()
    }
}

/// Pieces that are shown, and the range where they are. Dropping it hides them, and then releases the range.
#[must_use = "the pieces are hidden when it is dropped"]
pub struct Shown<'a, R: Ranges + 'a, W: Window> {
    window: &'a W,
    at: usize,
    bytes: usize,
    /// Dropped, and so released, after [`Drop::drop`]; `None` if there are no bytes.
    held: Option<R::Held<'a>>,
}

impl<R: Ranges, W: Window> Shown<'_, R, W> {
    /// Where the first piece begins.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The length of all pieces.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<R: Ranges, W: Window> Drop for Shown<'_, R, W> {
    fn drop(&mut self) {
        if self.held.is_none() {
            return;
        }
        // [blob-hide-first] The mutant releases the range before.
        if !prim::intact!("blob-hide-first") {
            self.held = None;
        }
        // SAFETY: the range is still held. Who has references to what it shows borrows this.
        let hidden = unsafe { self.window.hide(self.at, self.bytes) };
        // [blob-keep-lost] Whoever got this range would find it in use.
        if hidden.is_err() && prim::intact!("blob-keep-lost") {
            mem::forget(self.held.take());
        }
    }
}

impl<R: Ranges, W: Window> fmt::Debug for Shown<'_, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, bytes, .. } = self;
        let mut shown = f.debug_struct("Shown");
        shown
            .field("at", at)
            .field("bytes", bytes)
            .finish_non_exhaustive()
    }
}
