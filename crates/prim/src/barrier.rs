//! An asymmetric store-load fence, for two threads of which one runs often and the other seldom.
//!
//! ```text
//!   frequent thread                      rare thread
//!   ---------------                      -----------
//!   A := 1                               B := 1
//!   light(): holds back the compiler     heavy(): interrupts each processor that runs the process
//!   load B                               load A
//! ```
//!
//! At least one of the two threads observes the other's store, as if both had called `fence(SeqCst)`. The light side
//! costs next to nothing, and the heavy side microseconds.
//!
//! On Linux the heavy side is the system call `membarrier`, for which a process registers first ([`prepare`]). Until it
//! is registered, and on other platforms, both sides are fences. `barrier/light.rs` has the protocol by which the light
//! side becomes cheap, and by which it becomes a fence again if the kernel withdraws the call.

#[cfg(all(target_os = "linux", not(miri)))]
use membarrier as system;
#[cfg(not(all(target_os = "linux", not(miri))))]
use symmetric as system;

/// Makes [`light`] cheap, where the platform can. A thread calls it before its first `light`. The first call in a
/// process may wait tens of milliseconds; later calls do not wait.
pub fn prepare() {
    system::prepare();
}

/// Makes both sides fences for good, without a system call: for a process that a sandbox would kill for the call. It
/// has no effect once a thread has called [`prepare`].
pub fn forgo() {
    system::forgo();
}

/// The light side: it orders earlier stores before later loads, towards a thread that calls [`heavy`].
#[inline]
pub fn light() {
    system::light();
}

/// The heavy side: microseconds, or a plain fence while [`light`] is one.
pub fn heavy() {
    system::heavy();
}

#[cfg(all(target_os = "linux", not(miri)))]
mod light;

/// Linux's `membarrier`.
#[cfg(all(target_os = "linux", not(miri)))]
mod membarrier {
    use super::light::{Kernel, Light};
    use crate::atomic::AtomicU32;
    use crate::clock::{Duration, Instant};
    use crate::errno::keeping;
    use crate::futex::{self, Woken};

    static LIGHT: Light<Linux> = Light::new(Linux);

    pub(super) fn prepare() {
        LIGHT.prepare();
    }

    pub(super) fn forgo() {
        LIGHT.forgo();
    }

    #[inline]
    pub(super) fn light() {
        LIGHT.light();
    }

    pub(super) fn heavy() {
        LIGHT.heavy();
    }

    #[derive(Debug)]
    pub(super) struct Linux;

    /// A time after which all processors observe what one has stored. They take less than a microsecond.
    const LONG: Duration = Duration::from_millis(10);

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier takes numbers and no pointers.
        keeping(|| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 })
    }

    impl Kernel for Linux {
        fn register(&self) -> bool {
            membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
        }

        fn expedite(&self) -> bool {
            membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        }

        fn settle(&self) {
            // Not `std::thread::sleep`, which is a point where a C program's thread may be cancelled.
            let (nobodys, until) = (AtomicU32::new(0), Instant::now() + LONG);
            while futex::wait(&nobodys, 0, Some(until)) != Woken::TimedOut {}
        }
    }
}

/// Both sides fence.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod symmetric {
    use crate::atomic::{Ordering, fence};

    pub(super) fn prepare() {}

    pub(super) fn forgo() {}

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
    use crate::atomic::{AtomicU32, Ordering};
    use std::hint;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    /// Lets threads go on together: within nanoseconds, or a store has left its store buffer before the other thread
    /// loads.
    struct Start {
        threads: u32,
        came: AtomicU32,
    }

    impl Start {
        fn new(threads: u32) -> Self {
            let came = AtomicU32::new(0);
            Self { threads, came }
        }

        fn wait(&self, round: u32) {
            self.came.fetch_add(1, Ordering::AcqRel);
            let all = self.threads * round;
            for load in 1.. {
                if self.came.load(Ordering::Acquire) >= all {
                    break;
                }
                if load % 1000 == 0 {
                    thread::yield_now();
                }
                hint::spin_loop();
            }
        }
    }

    /// Takes about so many nanoseconds.
    fn delay(turns: u32) {
        for turn in 0..turns {
            hint::black_box(turn);
        }
    }

    /// What one side sees of the other in each round. It delays its store by up to so many nanoseconds.
    fn side(
        rounds: u32,
        start: &Start,
        delays: u32,
        own: &AtomicU32,
        fence: impl Fn(u32),
        other: &AtomicU32,
    ) -> Vec<u32> {
        let step = |round| {
            start.wait(round);
            delay(round % delays);
            own.store(round, Ordering::Relaxed);
            fence(round);
            other.load(Ordering::Relaxed)
        };
        (1..=rounds).map(step).collect()
    }

    /// Store, fence, load on both sides, in each round. One test at a time: side by side the threads hardly meet.
    fn one_of_two_sees_the_other(
        rounds: u32,
        start: &Start,
        light: impl Fn(u32) + Send,
        heavy: impl Fn(u32),
    ) {
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (mine, theirs) = (&AtomicU32::new(0), &AtomicU32::new(0));
        thread::scope(|scope| {
            let other = scope.spawn(move || side(rounds, start, 61, theirs, light, mine));
            let seen = side(rounds, start, 67, mine, heavy, theirs);
            let seen_by_other = other.join().unwrap();
            for (round, (by_me, by_other)) in (1..=rounds).zip(seen.into_iter().zip(seen_by_other))
            {
                assert!(by_me == round || by_other == round, "round {round}");
            }
        });
    }

    #[test]
    fn the_halves_make_a_fence() {
        prepare();
        one_of_two_sees_the_other(20_000, &Start::new(2), |_| light(), |_| heavy());
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    mod by_the_kernel {
        use super::super::{light::Light, membarrier::Linux};
        use super::*;

        /// The kernel takes back what it granted.
        #[test]
        fn a_kernel_that_refuses_is_done_without() {
            let shared = &Light::new(Linux);
            shared.prepare();
            let refused = |_| {
                crate::atomic::fence(Ordering::SeqCst);
                shared.withdraw();
            };
            one_of_two_sees_the_other(20_000, &Start::new(2), |_| shared.light(), refused);
        }

        /// While others use it. (Nothing here shows on x86 that the load of the heavy side has to be a
        /// read-modify-write: a fence before a plain load does as well there. The model in `spanlock-loom` shows it.)
        #[test]
        fn the_kernel_may_be_asked_at_any_time() {
            let rounds = 5_000;
            let each: &Vec<_> = &(0..=rounds).map(|_| Light::new(Linux)).collect();
            let of = |round: u32| &each[usize::try_from(round).unwrap()];
            of(0).prepare(); // From here on it answers at once.
            let start = &Start::new(3);
            thread::scope(|scope| {
                scope.spawn(|| {
                    for round in 1..=rounds {
                        start.wait(round);
                        delay(round % 131);
                        of(round).prepare();
                    }
                });
                let (light, heavy) = (|round| of(round).light(), |round| of(round).heavy());
                one_of_two_sees_the_other(rounds, start, light, heavy);
            });
        }
    }
}
