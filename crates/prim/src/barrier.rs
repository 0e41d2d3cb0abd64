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

    static LIGHT: Light = Light::new();

    pub(super) fn prepare() {
        LIGHT.prepare();
    }

    #[inline]
    pub(super) fn light() {
        LIGHT.light();
    }

    pub(super) fn heavy() {
        LIGHT.heavy();
    }

    /// What `light` is at the moment. From one of these to the next, and back never.
    #[derive(Debug)]
    pub(super) struct Light(AtomicU8);

    /// A fence: the kernel was not asked.
    const UNASKED: u8 = 0;
    /// A fence: the kernel is being asked, or was when this process was forked, or refused.
    const ASKED: u8 = 1;
    /// Nothing: the kernel fences for those who call `light`.
    const NOTHING: u8 = 2;
    /// A fence, since a moment: the kernel refuses now. A sandbox may have been set up.
    const WITHDRAWN: u8 = 3;
    /// A fence.
    const REFUSED: u8 = 4;

    /// In that time what a processor has stored is seen by all. They take less than a microsecond.
    const LONG: Duration = Duration::from_millis(10);

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier takes numbers only.
        keeping(|| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 })
    }

    /// Takes tens of milliseconds where there are other threads.
    fn register() -> bool {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    fn expedite() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }

    impl Light {
        pub(super) const fn new() -> Self {
            Self(AtomicU8::new(UNASKED))
        }

        pub(super) fn prepare(&self) {
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.0.load(Ordering::Relaxed) == UNASKED
                && self
                    .0
                    .compare_exchange(UNASKED, ASKED, success, failure)
                    .is_ok()
                && register()
            {
                // Acquire and Release, and a read-modify-write: see `heavy`.
                self.0.swap(NOTHING, Ordering::AcqRel);
            }
        }

        #[inline]
        pub(super) fn light(&self) {
            // What the caller has stored it stores before it looks here, lest it look, be held up for long, and store then.
            compiler_fence(Ordering::SeqCst);
            // Acquire: what the caller looks at next it looks at later.
            if self.0.load(Ordering::Acquire) == NOTHING {
                compiler_fence(Ordering::SeqCst);
            } else {
                fence(Ordering::SeqCst);
            }
        }

        pub(super) fn heavy(&self) {
            fence(Ordering::SeqCst);
            // The look beforehand leaves those who call `light` their copies of the line.
            let mut seen = self.0.load(Ordering::Acquire);
            if seen < NOTHING {
                // Who calls `light` and fences is settled with the fence above. Who finds `NOTHING` finds what was put there
                // after this, by one that acquired what this releases: so it sees what the caller has stored. All that
                // happens to the word in between are read-modify-writes.
                seen = self.0.fetch_or(0, Ordering::AcqRel);
            }
            match seen {
                // A child of `fork` may have to register anew.
                NOTHING if expedite() || register() && expedite() => {}
                NOTHING | WITHDRAWN => self.withdraw(),
                _ => {}
            }
        }

        #[cold]
        pub(super) fn withdraw(&self) {
            if self.0.fetch_max(WITHDRAWN, Ordering::SeqCst) == REFUSED {
                return;
            }
            // Not `std::thread::sleep`: where that is called a C program's thread may be cancelled.
            let (nobodys, until) = (AtomicU32::new(0), Instant::now() + LONG);
            while futex::wait(&nobodys, 0, Some(until)) != Woken::TimedOut {}
            self.0.fetch_max(REFUSED, Ordering::Relaxed);
        }
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

    const ROUNDS: usize = 2_000;

    /// Store, fence, look on both sides, many times.
    fn one_of_two_sees_the_other(light: impl Fn() + Send, heavy: impl Fn()) {
        let rounds = u32::try_from(ROUNDS).unwrap();
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
        prepare();
        one_of_two_sees_the_other(light, heavy);
    }

    /// The kernel takes back what it granted.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_kernel_that_refuses_is_done_without() {
        let light = &super::membarrier::Light::new();
        light.prepare();
        one_of_two_sees_the_other(
            || light.light(),
            || {
                crate::atomic::fence(crate::atomic::Ordering::SeqCst);
                light.withdraw();
            },
        );
    }

    /// Others use it meanwhile.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn the_kernel_may_be_asked_at_any_time() {
        use super::membarrier::Light;
        use std::sync::atomic::AtomicUsize;

        let lights: &Vec<Light> = &(0..ROUNDS).map(|_| Light::new()).collect();
        let (lighter, heavier) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
        let next = |count: &AtomicUsize| &lights[count.fetch_add(1, Relaxed)];
        std::thread::scope(|scope| {
            // About where the others are.
            scope.spawn(|| {
                for (at, light) in lights.iter().enumerate() {
                    while heavier.load(Relaxed) < at {
                        std::thread::yield_now();
                    }
                    light.prepare();
                }
            });
            one_of_two_sees_the_other(|| next(lighter).light(), || next(heavier).heavy());
        });
    }
}
