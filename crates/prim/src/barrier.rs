//! An asymmetric store-load fence: the frequent side executes [`light`], which costs next to nothing, the rare side
//! [`heavy`], which interrupts every processor that runs this process.
//!
//! Of a thread that stores, calls `light` and loads, and one that stores, calls `heavy` and loads, at least one sees
//! the other's store, as if both had called `fence(SeqCst)`.

#[cfg(all(target_os = "linux", not(miri)))]
use membarrier as system;
#[cfg(not(all(target_os = "linux", not(miri))))]
use symmetric as system;

/// Makes [`light`] cheap, where the platform can. To be called from time to time by threads that use it.
pub fn prepare() {
    system::prepare();
}

/// The cheap half.
#[inline]
pub fn light() {
    system::light();
}

/// The dear half: microseconds.
pub fn heavy() {
    system::heavy();
}

/// Linux's `membarrier`.
#[cfg(all(target_os = "linux", not(miri)))]
mod membarrier {
    use crate::atomic::{AtomicU8, AtomicU32, Ordering, fence};
    use crate::clock::{Duration, Instant};
    use crate::errno::keeping;
    use crate::futex::{self, Woken};
    use core::sync::atomic::compiler_fence;

    /// What `light` is at the moment.
    static LIGHT: AtomicU8 = AtomicU8::new(FENCE);

    /// The kernel was not asked, or refused: then the other half is a fence as well.
    const FENCE: u8 = 0;
    /// The kernel fences for those who call `light`.
    const NOTHING: u8 = 1;
    /// It did, and refuses now: a sandbox may have been set up since.
    const FENCE_AGAIN: u8 = 2;

    /// In that time what a processor has stored is seen by all. They take less than a microsecond.
    const LONG: Duration = Duration::from_millis(10);

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier takes numbers only.
        keeping(|| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 })
    }

    fn register() -> bool {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    fn expedite() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }

    pub(super) fn prepare() {
        if LIGHT.load(Ordering::Relaxed) == FENCE && register() {
            LIGHT.store(NOTHING, Ordering::Relaxed);
            // Who finds `FENCE` after its own fence is seen by all who found `NOTHING`.
            fence(Ordering::SeqCst);
        }
    }

    #[inline]
    pub(super) fn light() {
        // What the caller has stored it stores before it looks here, lest it look, be held up for long, and store then.
        compiler_fence(Ordering::SeqCst);
        // Acquire: what the caller looks at next it looks at later.
        if LIGHT.load(Ordering::Acquire) == NOTHING {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    pub(super) fn heavy() {
        fence(Ordering::SeqCst);
        // A child of `fork` may have to register anew.
        if !(expedite() || register() && expedite()) {
            refused();
        }
    }

    #[cold]
    pub(super) fn refused() {
        if LIGHT.load(Ordering::Relaxed) == FENCE {
            return; // Both halves are fences.
        }
        LIGHT.store(FENCE_AGAIN, Ordering::SeqCst);
        // Not `std::thread::sleep`: where that is called a C program's thread may be cancelled.
        let (nobodys, until) = (AtomicU32::new(0), Instant::now() + LONG);
        while futex::wait(&nobodys, 0, Some(until)) != Woken::TimedOut {}
        LIGHT.store(FENCE, Ordering::Relaxed);
    }
}

/// Both sides fence.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod symmetric {
    use crate::atomic::{Ordering, fence};

    pub(super) fn prepare() {}

    #[inline]
    pub(super) fn light() {
        fence(Ordering::SeqCst);
    }

    pub(super) fn heavy() {
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::{heavy, light, prepare};
    use crate::atomic::{AtomicU32, Ordering::Relaxed};
    use std::sync::Barrier;

    /// Store, fence, look on both sides, many times.
    fn one_of_two_sees_the_other(heavy: fn()) {
        prepare();
        let rounds = 2_000;
        let (mine, theirs) = (&AtomicU32::new(0), &AtomicU32::new(0));
        let start = &Barrier::new(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let step = |round| {
                    start.wait();
                    theirs.store(round, Relaxed);
                    light();
                    mine.load(Relaxed)
                };
                (1..=rounds).map(step).collect::<Vec<_>>()
            });
            let step = |round| {
                start.wait();
                mine.store(round, Relaxed);
                heavy();
                theirs.load(Relaxed)
            };
            let seen: Vec<_> = (1..=rounds).map(step).collect();
            let seen_by_other = other.join().unwrap();
            for (at, (by_me, by_other)) in seen.into_iter().zip(seen_by_other).enumerate() {
                let round = u32::try_from(at + 1).unwrap();
                assert!(by_me == round || by_other == round);
            }
        });
    }

    #[test]
    fn the_halves_make_a_fence() {
        one_of_two_sees_the_other(heavy);
    }

    /// The kernel takes back what it granted.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_kernel_that_refuses_is_done_without() {
        one_of_two_sees_the_other(|| {
            crate::atomic::fence(crate::atomic::Ordering::SeqCst);
            super::membarrier::refused();
        });
    }
}
