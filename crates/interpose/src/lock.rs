//! A `pthread_rwlock_t` that is ours.
//!
//! Its state is in the words where glibc has its own, and means nothing to glibc; all zero, as glibc's initialisers leave
//! it, means free. Locks that processes share are glibc's and not touched, for the other process may not have this library;
//! and so is every lock where the environment asks for that. Which it is never changes in a lock's life.
//!
//! The protocol is [`Tokenless`]'s. With the kind for which glibc lets readers wait for waiting writers we do as well;
//! with the others a thread that reads may read again while a writer waits for it.

use crate::setting::{self, Setting};
use crate::{local, next, stats};
use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, c_int, clockid_t, timespec};
use spanlock::range::raw::Wait;
use spanlock::rw::{
    BiasState, FutexRwLock, Preference, ReadersFirst, Standard, Tokenless, WritersFirst,
};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// glibc's layout on 64-bit machines: `sysdeps/nptl/bits/struct_rwlock.h`.
#[repr(C)]
pub(crate) struct Lock {
    /// Where glibc keeps `__readers` and `__writers`.
    under: FutexRwLock<ReadersFirst>,
    _futexes: [AtomicU32; 2],
    /// In `__pad3` and `__pad4`, which glibc zeroes and never looks at: it is looked at before it is known whose the lock is.
    bias: BiasState,
    _writer: AtomicU32,
    shared: AtomicI32,
    _elision: [AtomicU8; 8],
    /// The thread that writes, to tell it that it would wait for itself. In `__pad2`, for glibc has 4 bytes for that.
    writer: AtomicU64,
    kind: AtomicU32,
    _end: AtomicU32,
}

const _: () = assert!(size_of::<Lock>() == size_of::<libc::pthread_rwlock_t>());
const _: () = assert!(align_of::<Lock>() <= align_of::<libc::pthread_rwlock_t>());
const _: () = assert!(std::mem::offset_of!(Lock, bias) == 16);
const _: () = assert!(std::mem::offset_of!(Lock, shared) == 28);
const _: () = assert!(std::mem::offset_of!(Lock, writer) == 40);
const _: () = assert!(std::mem::offset_of!(Lock, kind) == 48);

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
const NONRECURSIVE: u32 = 2;

impl Lock {
    /// Whether it is glibc's. Nobody sets a bias on such a lock.
    #[inline(always)]
    fn is_foreign(&self, setting: Setting) -> bool {
        setting.is_off() || self.shared.load(Ordering::Relaxed) != 0
    }

    #[inline(always)] // So that it ends in a jump.
    fn read_foreign(&self, setting: Setting, acquire: impl Fn() -> c_int) -> c_int {
        if !setting.counts() {
            return acquire();
        }
        let (answer, nanoseconds) = stats::timed(|| next::tryrdlock(self), acquire);
        if answer == 0 {
            stats::of(self).slow_read(nanoseconds);
        }
        answer
    }

    #[inline(always)]
    fn write_foreign(&self, setting: Setting, acquire: impl Fn() -> c_int) -> c_int {
        if !setting.counts() {
            return acquire();
        }
        let (answer, nanoseconds) = stats::timed(|| next::trywrlock(self), acquire);
        if answer == 0 {
            stats::of(self).write(nanoseconds);
        }
        answer
    }

    /// Whether readers wait for waiting writers.
    #[inline(always)]
    fn gives_way(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == NONRECURSIVE
    }

    #[inline(always)]
    fn parts<P: Preference, Q>(&self, policy: Q) -> Tokenless<'_, P, Q> {
        Tokenless {
            bias: &self.bias,
            under: self.under.preferring(),
            policy,
        }
    }

    /// What the fast path needs of it, which is the same under every setting.
    #[inline(always)]
    fn fast_parts(&self) -> Tokenless<'_, ReadersFirst, Standard> {
        self.parts(Standard)
    }

    /// As a reader; `foreign` is the function of glibc that was asked for.
    #[inline(always)]
    pub(crate) fn read(&self, patience: impl Patience, foreign: impl Fn() -> c_int) -> c_int {
        if self.read_fast() {
            return 0;
        }
        self.read_otherwise(patience, foreign)
    }

    #[inline(always)] // It is all that the fast path is.
    fn read_fast(&self) -> bool {
        // SAFETY: all readers of a lock that is ours leave by `unlock`, and the seat is the running thread's.
        let entered = unsafe { self.fast_parts().read_fast(local::seat) };
        if entered && setting::counts() {
            self.count_fast_read();
        }
        entered
    }

    #[inline(never)] // The fast path would save registers for it.
    fn read_otherwise(&self, patience: impl Patience, foreign: impl Fn() -> c_int) -> c_int {
        let setting = setting::get();
        if self.is_foreign(setting) {
            return self.read_foreign(setting, foreign);
        }
        // Others look first: a poll would keep writers out.
        let enters = patience.is_endless()
            && if self.gives_way() {
                self.parts::<WritersFirst, _>(setting).read_at_once()
            } else {
                self.parts::<ReadersFirst, _>(setting).read_at_once()
            };
        if !enters {
            return self.read_contended(&patience, setting);
        }
        self.entered_slowly(setting, None);
        0
    }

    #[cold] // With statistics.
    fn count_fast_read(&self) {
        stats::of(self).fast_read();
    }

    /// Inside, after a wait if it has begun one.
    #[inline(always)]
    fn entered_slowly(&self, setting: Setting, waited: Option<Instant>) {
        if setting.is_considered() {
            self.read_considering(setting, waited);
        }
    }

    /// One in many, and all with a setting that is not the usual one.
    #[cold]
    fn read_considering(&self, setting: Setting, waited: Option<Instant>) {
        let parts = self.parts::<ReadersFirst, _>(setting);
        // SAFETY: it has just entered by the underlying lock.
        unsafe { parts.consider_bias() };
        // SAFETY: as above, and as in `read_fast`.
        unsafe { parts.go_over(local::seat) };
        if setting.counts() {
            stats::of(self).slow_read(waited.map_or(0, stats::since));
        }
    }

    #[cold] // Somebody is in the way.
    fn read_contended(&self, patience: &dyn Patience, setting: Setting) -> c_int {
        let _errno = Errno::kept();
        if self.under.is_full() {
            return EAGAIN;
        }
        let wait = match self.waiting(patience) {
            Ok(wait) => wait,
            Err(refused) => return refused,
        };
        let waited = (setting.counts() && wait != Wait::Never).then(Instant::now);
        let entered = if self.gives_way() {
            self.parts::<WritersFirst, _>(setting).read_slowly(wait)
        } else {
            self.parts::<ReadersFirst, _>(setting).read_slowly(wait)
        };
        if !entered {
            return patience.at_an_end();
        }
        self.entered_slowly(setting, waited);
        0
    }

    /// For how long, unless there is no point in it.
    fn waiting(&self, patience: &dyn Patience) -> Result<Wait, c_int> {
        let wait = patience.wait();
        if wait != Wait::Never && self.writer.load(Ordering::Relaxed) == local::thread() {
            return Err(EDEADLK);
        }
        Ok(wait)
    }

    /// As a writer; `foreign` is the function of glibc that was asked for.
    #[inline(always)]
    pub(crate) fn write(&self, patience: impl Patience, foreign: impl Fn() -> c_int) -> c_int {
        let setting = setting::get();
        if self.is_foreign(setting) {
            return self.write_foreign(setting, foreign);
        }
        if !self.parts::<ReadersFirst, _>(setting).write_at_once() {
            return self.write_contended(&patience, setting);
        }
        self.writer.store(local::thread(), Ordering::Relaxed);
        if setting.counts() {
            self.count_write();
        }
        0
    }

    #[cold] // With statistics.
    fn count_write(&self) {
        stats::of(self).write(0);
    }

    #[cold] // A bias, or somebody inside.
    fn write_contended(&self, patience: &dyn Patience, setting: Setting) -> c_int {
        let _errno = Errno::kept();
        let wait = match self.waiting(patience) {
            Ok(wait) => wait,
            Err(refused) => return refused,
        };
        let waited = setting.counts().then(Instant::now);
        let entered = if self.gives_way() {
            self.parts::<WritersFirst, _>(setting).write_contended(wait)
        } else {
            self.parts::<ReadersFirst, _>(setting).write_contended(wait)
        };
        if !entered {
            return patience.at_an_end();
        }
        self.writer.store(local::thread(), Ordering::Relaxed);
        if let Some(waited) = waited {
            stats::of(self).write(stats::since(waited));
        }
        0
    }

    /// Ends a reader's hold or the writer's. `EPERM` if there is neither.
    #[inline(always)]
    pub(crate) fn unlock(&self) -> c_int {
        let parts = self.fast_parts();
        // While a reader may be inside by the fast path no writer is, and the lock is not glibc's.
        if !parts.is_biased() {
            return self.unlock_unbiased();
        }
        // SAFETY: the seat is the running thread's, and C's caller is inside, or errs.
        if unsafe { parts.leave_fast(local::seat) } {
            return 0;
        }
        self.unlock_noticed()
    }

    #[inline(never)] // The fast path would save registers for it.
    fn unlock_unbiased(&self) -> c_int {
        if self.is_foreign(setting::get()) {
            return next::unlock(self);
        }
        // SAFETY: C's caller is inside, or errs.
        if unsafe { self.fast_parts().leave_slowly() } {
            return 0;
        }
        self.unlock_noticed()
    }

    #[inline(never)] // As above.
    fn unlock_noticed(&self) -> c_int {
        let parts = self.parts::<ReadersFirst, _>(setting::get());
        if parts.is_writers() {
            self.writer.store(0, Ordering::Relaxed);
            // SAFETY: so the caller is the writer.
            unsafe { parts.leave_exclusive() };
            return 0;
        }
        // SAFETY: the seat is the running thread's, and it is no writer that leaves.
        if unsafe { parts.leave_shared(local::seat) } {
            0
        } else {
            EPERM
        }
    }

    /// The lock begins its life: nobody else uses it. Its memory may hold anything, and so may the table: who sets a bias
    /// looks.
    pub(crate) fn begin(&self) {
        // SAFETY: as said.
        unsafe { self.bias.begin() };
    }

    /// The lock ends its life: nobody else uses it. Without a bias, as is one that processes share, the table knows
    /// nothing of it, and is not looked through.
    pub(crate) fn end(&self) {
        if self.bias.is_open() {
            // SAFETY: as said.
            unsafe { self.bias.reset() };
        }
    }
}

/// `errno`, which glibc's functions leave alone and system calls do not: put back when dropped.
pub(crate) struct Errno {
    place: *mut c_int,
    value: c_int,
}

impl Errno {
    pub(crate) fn kept() -> Self {
        // SAFETY: it has no preconditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the thread's own.
        let value = unsafe { *place };
        Self { place, value }
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above: the pointer keeps this on its thread.
        unsafe { *self.place = self.value };
    }
}

/// For how long a thread waits.
pub(crate) trait Patience {
    /// Whether it waits until it is inside.
    fn is_endless(&self) -> bool;

    /// For how long, counted from now.
    fn wait(&self) -> Wait;

    /// What it says when it gives up.
    fn at_an_end(&self) -> c_int;
}

/// As long as it takes.
pub(crate) struct Endless;

impl Patience for Endless {
    #[inline(always)]
    fn is_endless(&self) -> bool {
        true
    }

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
    #[inline(always)]
    fn is_endless(&self) -> bool {
        false
    }

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
    #[inline(always)]
    fn is_endless(&self) -> bool {
        false
    }

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
