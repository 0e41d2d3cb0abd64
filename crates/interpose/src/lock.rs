//! A `pthread_rwlock_t` with a bias in it.
//!
//! The lock is glibc's and stays usable by glibc alone, as by a process without this library that shares it: such
//! locks are not touched. glibc's initialisers, static and not, and zero-filled memory mean "no bias".
//!
//! A writer that meets no bias goes for glibc's lock, and gives it back if it meets one then. One that meets a bias waits
//! for the fast readers first, as `spanlock::rw::BiasState` has it: so readers who come meanwhile get in by glibc's
//! lock, and one who reads twice never waits for a writer that waits for it. For the kind for which glibc itself lets
//! readers wait for waiting writers it is the other way round: glibc's lock first, and never waiting for it unannounced.

use crate::setting::{self, Setting};
use crate::{local, next, stats};
use libc::{EBUSY, EINVAL, ETIMEDOUT, c_int, clockid_t, timespec};
use spanlock::range::raw::Wait;
use spanlock::rw::{BiasState, Entry};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// glibc's layout on 64-bit machines: `sysdeps/nptl/bits/struct_rwlock.h`.
#[repr(C)]
pub(crate) struct Lock {
    _readers_to_writers_futex: [AtomicU32; 4],
    /// In `__pad3` and `__pad4`, which glibc zeroes and never looks at.
    bias: BiasState,
    _cur_writer: AtomicI32,
    shared: AtomicI32,
    _elision: [AtomicU8; 8],
    _pad2: [AtomicU32; 2],
    kind: AtomicU32,
    _end: AtomicU32,
}

const _: () = assert!(size_of::<Lock>() == size_of::<libc::pthread_rwlock_t>());
const _: () = assert!(align_of::<Lock>() <= align_of::<libc::pthread_rwlock_t>());
const _: () = assert!(std::mem::offset_of!(Lock, bias) == 16);
const _: () = assert!(std::mem::offset_of!(Lock, shared) == 28);
const _: () = assert!(std::mem::offset_of!(Lock, kind) == 48);

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
const NONRECURSIVE: u32 = 2;

impl Lock {
    /// Whether it may be shared with other processes, which cannot see our readers. Set by `init` alone.
    #[inline]
    fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed) != 0
    }

    /// As a reader; `acquire` is the function of glibc that was asked for.
    #[inline(always)] // So that, without a bias, it ends in a jump to glibc.
    pub(crate) fn read(&self, acquire: impl Fn() -> c_int) -> c_int {
        if self.bias.is_open() {
            return self.read_open(acquire);
        }
        let setting = setting::get();
        if setting.is_off() || setting.is_adaptive() && !local::is_considered() {
            return acquire();
        }
        self.read_considering(&acquire)
    }

    #[inline(never)]
    fn read_open(&self, acquire: impl Fn() -> c_int) -> c_int {
        if self.read_fast() {
            return 0;
        }
        self.read_considering(&acquire)
    }

    #[inline(always)] // It is all that the fast path is.
    fn read_fast(&self) -> bool {
        let setting = setting::get();
        match self.bias.enter_anonymously(local::seat, &setting) {
            Entry::Entered => {
                if setting.counts() {
                    self.count_fast_read();
                }
                true
            }
            Entry::Refused => false,
            Entry::Owing => {
                next::unlock(self);
                false
            }
        }
    }

    #[cold] // With statistics.
    fn count_fast_read(&self) {
        stats::of(self).fast_read();
    }

    #[cold] // One in many, and all with a setting that is not the usual one.
    fn read_considering(&self, acquire: &dyn Fn() -> c_int) -> c_int {
        let setting = setting::get();
        if setting.is_eager() && self.bias.is_clear() && next::tryrdlock(self) == 0 {
            // Biased from birth, as far as memory that is all zero can be.
            self.offer_bias(setting);
            next::unlock(self);
            if self.read_fast() {
                return 0;
            }
        }
        let (answer, nanoseconds) = if setting.counts() {
            stats::timed(|| next::tryrdlock(self), acquire)
        } else {
            (acquire(), 0)
        };
        if answer == 0 {
            self.offer_bias(setting);
            if setting.counts() {
                stats::of(self).slow_read(nanoseconds);
            }
        }
        answer
    }

    /// By a reader that holds glibc's lock.
    fn offer_bias(&self, setting: Setting) {
        if !self.is_shared() {
            self.bias.offer(&setting);
        }
    }

    /// As a writer; `acquire` is the function of glibc that was asked for.
    #[inline]
    pub(crate) fn write(&self, patience: impl Patience, acquire: impl Fn() -> c_int) -> c_int {
        if setting::get().counts() {
            return self.write_counted(&patience, &acquire);
        }
        self.write_plainly(&acquire)
            .unwrap_or_else(|| self.write_contended(&patience, &acquire))
    }

    /// By glibc's lock alone; `None` if that does not do.
    #[inline(always)]
    fn write_plainly(&self, acquire: impl Fn() -> c_int) -> Option<c_int> {
        if !self.bias.is_clear() {
            return None;
        }
        // Where a waiting writer keeps readers out, none may wait that has not arrived.
        let waits_unseen = !self.gives_way();
        let answer = if waits_unseen {
            acquire()
        } else {
            next::trywrlock(self)
        };
        if answer != 0 {
            return waits_unseen.then_some(answer);
        }
        // A slow reader may have set the bias, or a writer arrived, since the first look.
        if self.bias.is_clear() {
            return Some(0);
        }
        next::unlock(self);
        None
    }

    /// Whether readers wait for waiting writers.
    #[inline]
    fn gives_way(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == NONRECURSIVE
    }

    #[cold] // A bias, or somebody inside.
    fn write_contended(&self, patience: &dyn Patience, acquire: &dyn Fn() -> c_int) -> c_int {
        if self.is_shared() {
            return acquire();
        }
        // Who would not wait leaves readers their bias.
        if patience.wait() == Wait::Never && self.bias.is_read() {
            return EBUSY;
        }
        let mut arrival = self.bias.arrive();
        if self.gives_way() {
            let answer = acquire();
            if answer != 0 {
                return answer;
            }
            if !arrival.drain(patience.wait()) {
                next::unlock(self);
                return patience.at_an_end();
            }
        } else {
            if !arrival.drain(patience.wait()) {
                return patience.at_an_end();
            }
            let answer = acquire();
            if answer != 0 {
                return answer;
            }
        }
        arrival.enter(&setting::get());
        0
    }

    #[cold] // With statistics.
    fn write_counted(&self, patience: &dyn Patience, acquire: &dyn Fn() -> c_int) -> c_int {
        let attempt = || {
            self.write_plainly(|| next::trywrlock(self))
                .unwrap_or(EBUSY)
        };
        let (answer, nanoseconds) = stats::timed(attempt, || {
            self.write_plainly(acquire)
                .unwrap_or_else(|| self.write_contended(patience, acquire))
        });
        if answer == 0 {
            stats::of(self).write(nanoseconds);
        }
        answer
    }

    /// Ends a reader's hold or the writer's.
    #[inline]
    pub(crate) fn unlock(&self) -> c_int {
        // SAFETY: no reader here has a token.
        if unsafe { self.bias.leave_anonymously(local::seat) } {
            0
        } else {
            next::unlock(self)
        }
    }

    /// The lock begins or ends its life: nobody else uses it. Its memory may hold anything.
    pub(crate) fn reset(&self) {
        // SAFETY: as said.
        unsafe { self.bias.reset() };
    }

    /// As [`reset`](Self::reset), unless that is for all its processes to say.
    pub(crate) fn reset_unless_shared(&self) {
        if !self.is_shared() {
            self.reset();
        }
    }
}

/// For how long a writer waits.
pub(crate) trait Patience {
    fn wait(&self) -> Wait;

    /// What it says when it gives up.
    fn at_an_end(&self) -> c_int;
}

/// As long as it takes.
pub(crate) struct Endless;

impl Patience for Endless {
    fn wait(&self) -> Wait {
        Wait::Forever
    }

    fn at_an_end(&self) -> c_int {
        unreachable!("a wait without end ends with a grant")
    }
}

/// Not at all.
pub(crate) struct Try;

impl Patience for Try {
    fn wait(&self) -> Wait {
        Wait::Never
    }

    fn at_an_end(&self) -> c_int {
        EBUSY
    }
}

/// Until a time on a clock.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    clock: clockid_t,
    time: timespec,
}

impl Until {
    /// `EINVAL` for what glibc rejects, whether or not anybody has to wait.
    pub(crate) fn new(clock: clockid_t, time: timespec) -> Result<Self, c_int> {
        let known = matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC);
        let valid = (0..1_000_000_000).contains(&time.tv_nsec);
        if known && valid {
            Ok(Self { clock, time })
        } else {
            Err(EINVAL)
        }
    }
}

impl Patience for Until {
    /// A clock that is set meanwhile is not followed.
    fn wait(&self) -> Wait {
        let mut now = timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `now` is live, and the clock is one that exists.
        unsafe { libc::clock_gettime(self.clock, &raw mut now) };
        let nanoseconds =
            |time: timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        let left = (nanoseconds(self.time) - nanoseconds(now)).max(0);
        let left = u64::try_from(left).map_or(Duration::MAX, Duration::from_nanos);
        Instant::now()
            .checked_add(left)
            .map_or(Wait::Forever, Wait::Until)
    }

    fn at_an_end(&self) -> c_int {
        ETIMEDOUT
    }
}
