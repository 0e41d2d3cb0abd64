//! What a thread remembers of one lock: that the fast path was closed when it last looked.
//!
//! A lock that is mostly written has no bias, and a look at its word is wasted. On a contended lock it fetches a cache
//! line that the next atomic operation takes away again. So a thread keeps a *hint*: the address of one lock, and for
//! how many more acquisitions it goes by the underlying lock there without a look. A thread that has a hint notices a
//! new bias at most [`LOOK`] acquisitions late.
//!
//! ```text
//!                     a look finds neither a bias nor one that is kept
//!            +---------------------------------------------------------------+
//!            |                                                               v
//!      +-----------+                                               +---------------------+   each acquisition
//!      |  no hint  |                                               | hint, n left        | --+ takes one
//!      +-----------+                                               +---------------------+ <-+
//!            ^                                                               |
//!            +---------------------------------------------------------------+
//!                none left, or a look at another lock finds no bias
//! ```

use super::account::LOOK;
use super::table::LockAddress;
use std::cell::Cell;

/// The lock that the running thread acquires without a look, and how often until it looks again.
#[derive(Debug)]
struct Hint {
    of: Cell<Option<LockAddress>>,
    left: Cell<u32>,
}

prim::local! {
    static HINT: Hint = Hint { of: Cell::new(None), left: Cell::new(0) };
}

/// Takes one of the acquisitions of that lock that the running thread makes without a look; `false` if there is none,
/// so that this acquisition looks.
#[inline(always)]
pub(super) fn spend(lock: LockAddress) -> bool {
    HINT.with(|hint| {
        let left = hint.left.get();
        let is_left = left > 0 && hint.of.get() == Some(lock);
        if is_left {
            hint.left.set(left - 1);
        }
        is_left
    })
}

/// Lets the running thread make its next [`LOOK`] acquisitions of that lock without a look.
#[inline]
pub(super) fn set(lock: LockAddress) {
    HINT.with(|hint| {
        hint.left.set(LOOK as u32);
        hint.of.set(Some(lock));
    });
}

/// Draws one of many at random. Random, because every eighth, say, would fall in step with a program that uses its
/// locks one after another.
#[derive(Debug, Default)]
pub struct Sampler(
    /// The state of a linear congruential generator. Zero is a state like any other.
    Cell<u32>,
);

impl Sampler {
    /// A sampler, all zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    /// Draws: true for one call in `many`, on the average; `many` is a power of two up to 2^16.
    #[inline(always)] // A few instructions on a slow path that is nearly as fast as the fast one.
    pub fn draw_one_in(&self, many: u32) -> bool {
        // The constants are those of *Numerical Recipes*. The upper bits are random enough.
        let next = self.0.get().wrapping_mul(1_664_525);
        let next = next.wrapping_add(1_013_904_223);
        self.0.set(next);
        (next >> 16).is_multiple_of(many)
    }
}

prim::local! {
    static SAMPLES: Sampler = Sampler::new();
}

/// Draws from the running thread's sampler: true for one call in `many`, on the average.
#[inline]
pub(super) fn draw_one_in(many: u32) -> bool {
    SAMPLES.with(|samples| samples.draw_one_in(many))
}
