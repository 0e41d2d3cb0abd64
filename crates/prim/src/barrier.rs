//! An asymmetric store-load fence: the frequent side executes [`light`], which costs next to nothing, the rare side
//! [`heavy`], which interrupts every processor that runs this process.
//!
//! Of a thread that stores, calls `light` and loads, and one that stores, calls `heavy` and loads, at least one sees
//! the other's store, as if both had called `fence(SeqCst)`.

#[cfg(all(target_os = "linux", not(miri)))]
use membarrier as system;
#[cfg(not(all(target_os = "linux", not(miri))))]
use symmetric as system;

/// How far a [`heavy`] fence went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Every thread is on one side of it or the other.
    All,
    /// The platform refused: threads may go on as if there had been none. Look again after a while.
    Caller,
}

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
pub fn heavy() -> Reach {
    system::heavy()
}

/// Linux's `membarrier`.
#[cfg(all(target_os = "linux", not(miri)))]
mod membarrier {
    use super::Reach;
    use crate::atomic::{AtomicBool, Ordering, fence};
    use core::sync::atomic::compiler_fence;

    /// Set once the process is registered: from then on `heavy` fences for those who call `light`.
    static REGISTERED: AtomicBool = AtomicBool::new(false);

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier takes numbers only.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn prepare() {
        if !REGISTERED.load(Ordering::Relaxed)
            && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
        {
            REGISTERED.store(true, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn light() {
        if REGISTERED.load(Ordering::Relaxed) {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    pub(super) fn heavy() -> Reach {
        fence(Ordering::SeqCst);
        // Whatever this thread knows of the registration, others may have known of it before they called `light`.
        let expedited = || membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        let registered = || membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        if expedited() || (registered() && expedited()) {
            Reach::All
        } else {
            Reach::Caller
        }
    }
}

/// Both sides fence.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod symmetric {
    use super::Reach;
    use crate::atomic::{Ordering, fence};

    pub(super) fn prepare() {}

    #[inline]
    pub(super) fn light() {
        fence(Ordering::SeqCst);
    }

    pub(super) fn heavy() -> Reach {
        fence(Ordering::SeqCst);
        Reach::All
    }
}

#[cfg(test)]
mod tests {
    use super::{Reach, heavy, light, prepare};
    use crate::atomic::{AtomicU32, Ordering::Relaxed};
    use std::sync::Barrier;

    #[test]
    fn one_of_two_sees_the_other() {
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
                let reach = heavy();
                (theirs.load(Relaxed), reach)
            };
            let seen: Vec<_> = (1..=rounds).map(step).collect();
            let seen_by_other = other.join().unwrap();
            for (at, ((by_me, reach), by_other)) in seen.into_iter().zip(seen_by_other).enumerate()
            {
                let round = u32::try_from(at + 1).unwrap();
                assert!(reach == Reach::Caller || by_me == round || by_other == round);
            }
        });
    }
}
