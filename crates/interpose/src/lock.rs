//! A `pthread_rwlock_t`: ours, or glibc's.
//!
//! A lock that is ours has its state in the words where glibc would have its own:
//!
//! ```text
//!   byte   0          8          16       24      28      32       40        48     52
//!         +----------+----------+--------+-------+-------+--------+---------+------+-----+
//!   glibc | readers, | futexes  | pad3,  | cur_  | shared| elision| pad2    | kind |     |
//!         | writers  |          | pad4   | writer|       |        |         |      |     |
//!         +----------+----------+--------+-------+-------+--------+---------+------+-----+
//!   ours  | futex    |          | bias   |       | shared|        | writing | kind |     |
//!         | lock     |          |        |       |       |        | thread  |      |     |
//!         +----------+----------+--------+-------+-------+--------+---------+------+-----+
//! ```
//!
//! All zero, as glibc's initialisers leave it, means free to both. There is no table of locks beside it.
//!
//! Some locks are left to glibc: those that processes share, because the other process may not have this library, and
//! all locks if the environment asks for that. It never changes in a lock's life.
//!
//! The protocol is that of [`AnonymousUnlock`]. Locks of the kind `PREFER_WRITER_NONRECURSIVE` prefer writers, as they
//! do in glibc. With the other kinds a thread that reads may read again while a writer waits for it.

use crate::errno::Errno;
use crate::setting::{self, Setting};
use crate::stats::{self, Counts};
use crate::{local, next};
use libc::{
    EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, c_int, clockid_t, pthread_rwlock_t, timespec,
};
use spanlock::range::raw::Wait;
use spanlock::rw::pthread::{AnonymousUnlock, BiasState};
use spanlock::rw::{FutexRwLock, Preference, ReadersFirst, Standard, WritersFirst};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A `pthread_rwlock_t` in glibc's layout on 64-bit machines (`sysdeps/nptl/bits/struct_rwlock.h`).
#[repr(C)]
pub(crate) struct Lock {
    /// Where glibc has `__readers` and `__writers`.
    under: FutexRwLock<ReadersFirst>,
    _futexes: [AtomicU32; 2],
    /// Where glibc has `__pad3` and `__pad4`, which it zeroes and never reads. So this can be read before it is known
    /// whether the lock is glibc's.
    bias: BiasState,
    _writer: AtomicU32,
    shared: AtomicI32,
    _elision: [AtomicU8; 8],
    /// The thread that writes, so that its next request can be answered with `EDEADLK`. Where glibc has `__pad2`,
    /// because its own field for this has 4 bytes only.
    writer: AtomicU64,
    kind: AtomicU32,
    _end: AtomicU32,
}

const _: () = assert!(size_of::<Lock>() == size_of::<pthread_rwlock_t>());
const _: () = assert!(align_of::<Lock>() <= align_of::<pthread_rwlock_t>());
const _: () = assert!(std::mem::offset_of!(Lock, bias) == 16);
const _: () = assert!(std::mem::offset_of!(Lock, shared) == 28);
const _: () = assert!(std::mem::offset_of!(Lock, writer) == 40);
const _: () = assert!(std::mem::offset_of!(Lock, kind) == 48);

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
const NONRECURSIVE: u32 = 2;

impl Lock {
    /// Whether the lock is glibc's. Such a lock never has a bias.
    #[inline(always)]
    fn is_glibcs(&self, setting: Setting) -> bool {
        setting.is_off() || self.shared.load(Ordering::Relaxed) != 0
    }

    /// The lock as glibc's functions take it. They may write to it: all fields are atomic.
    #[inline(always)]
    pub(crate) fn glibcs(&self) -> *mut pthread_rwlock_t {
        ptr::from_ref(self).cast_mut().cast()
    }

    fn counts(&self) -> &'static Counts {
        stats::of(ptr::from_ref(self).addr())
    }

    /// Acquires a lock that is glibc's by glibc's function `acquire`. If acquisitions are counted, tries by `attempt`
    /// first, to learn whether the thread waits.
    #[inline(always)] // So that it ends in a jump.
    fn acquire_glibcs(
        &self,
        setting: Setting,
        acquire: impl Fn() -> c_int,
        attempt: impl Fn(*mut pthread_rwlock_t) -> c_int,
        count: impl Fn(&Counts, u64),
    ) -> c_int {
        if !setting.counts() {
            return acquire();
        }
        let (answer, nanoseconds) = stats::timed(|| attempt(self.glibcs()), acquire);
        if answer == 0 {
            count(self.counts(), nanoseconds);
        }
        answer
    }

    /// Whether readers give way to waiting writers.
    #[inline(always)]
    fn gives_way(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == NONRECURSIVE
    }

    #[inline(always)]
    fn parts<P: Preference, Q>(&self, policy: Q) -> AnonymousUnlock<'_, P, Q> {
        AnonymousUnlock {
            bias: &self.bias,
            under: self.under.preferring(),
            policy,
        }
    }

    /// The parts as the fast path needs them, which does not depend on the kind or the setting.
    #[inline(always)]
    fn fast_parts(&self) -> AnonymousUnlock<'_, ReadersFirst, Standard> {
        self.parts(Standard)
    }

    /// Acquires the lock as a reader. `glibcs` is the function of glibc that the program called.
    #[inline(always)]
    pub(crate) fn read<P: Patience>(&self, patience: P, glibcs: impl Fn() -> c_int) -> c_int {
        if self.read_fast() {
            return 0;
        }
        self.read_otherwise(patience, glibcs)
    }

    #[inline(always)] // It is all that the fast path is.
    fn read_fast(&self) -> bool {
        // SAFETY: a lock with a bias is ours, and all its readers leave by `unlock`, which calls `leave_shared` or what
        // stands for it. `local::row` is the running thread's row.
        let entered = unsafe { self.fast_parts().read_fast(local::row) };
        if entered && setting::counts() {
            self.count_fast_read();
        }
        entered
    }

    /// Enters by the table, where the bias is not free yet.
    fn read_by_any_grade(&self, setting: Setting) -> bool {
        let parts = self.fast_parts();
        // SAFETY: as in `read_fast`.
        let entered = unsafe { parts.read_by_any_grade(local::row) };
        if entered && local::draw_this_read() {
            parts.free_if_old();
        }
        if entered && setting.counts() {
            self.count_fast_read();
        }
        entered
    }

    #[inline(never)] // Inlined, it would make the fast path save registers.
    fn read_otherwise<P: Patience>(&self, patience: P, glibcs: impl Fn() -> c_int) -> c_int {
        let setting = setting::get();
        if self.is_glibcs(setting) {
            return self.acquire_glibcs(setting, glibcs, next::tryrdlock, Counts::slow_read);
        }
        if self.fast_parts().is_open() && self.read_by_any_grade(setting) {
            return 0;
        }
        // A try or a timed read loads the state first, in `read_contended`: a program that polls would keep writers
        // out.
        let timed = (P::IS_ENDLESS && setting.draw_slow_read()).then(prim::clock::nanoseconds);
        let enters = P::IS_ENDLESS
            && if self.gives_way() {
                self.parts::<WritersFirst, _>(setting).read_at_once()
            } else {
                self.parts::<ReadersFirst, _>(setting).read_at_once()
            };
        if !enters {
            return self.read_contended(&patience, setting);
        }
        if let Some(start) = timed {
            let latency = prim::clock::nanoseconds() - start;
            self.note_slow_read(setting, Some(latency), None);
        } else if self.fast_parts().is_left_kept() {
            self.note_slow_read(setting, None, None);
        }
        0
    }

    #[cold] // With statistics.
    fn count_fast_read(&self) {
        self.counts().fast_read();
    }

    /// The thread has entered by the underlying lock, in `latency` nanoseconds if that is known; `waited` is when it
    /// began to wait, if it did and if that is counted.
    #[cold] // One slow read in many, and one after each revocation; with a setting other than the usual one, each.
    fn note_slow_read(&self, setting: Setting, latency: Option<u64>, waited: Option<Instant>) {
        let parts = self.parts::<ReadersFirst, _>(setting);
        // SAFETY: this thread has just entered by the underlying lock, and has not left.
        unsafe { parts.maybe_set_bias(latency) };
        // SAFETY: this thread has entered and has not left, and the row is its own; readers leave as `read_fast` says.
        unsafe { parts.move_to_table(local::row) };
        if setting.counts() {
            self.counts().slow_read(waited.map_or(0, stats::since));
        }
    }

    #[cold] // Another thread is in the way, or it is a try or a timed read.
    fn read_contended(&self, patience: &dyn Deadline, setting: Setting) -> c_int {
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
            return given_up(wait);
        }
        // Without its latency: here tries alone are timed.
        if setting.draw_slow_read() || self.fast_parts().is_left_kept() {
            self.note_slow_read(setting, None, waited);
        }
        0
    }

    /// How long to wait; `EDEADLK` if the thread would wait for itself.
    fn waiting(&self, patience: &dyn Deadline) -> Result<Wait, c_int> {
        let wait = patience.wait();
        if wait != Wait::Never && self.writer.load(Ordering::Relaxed) == local::thread() {
            return Err(EDEADLK);
        }
        Ok(wait)
    }

    /// Acquires the lock as a writer. `glibcs` is the function of glibc that the program called.
    #[inline(always)]
    pub(crate) fn write(&self, patience: impl Patience, glibcs: impl Fn() -> c_int) -> c_int {
        let setting = setting::get();
        if self.is_glibcs(setting) {
            return self.acquire_glibcs(setting, glibcs, next::trywrlock, Counts::write);
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
        self.counts().write(0);
    }

    #[cold] // There is a bias, or another thread is inside.
    fn write_contended(&self, patience: &dyn Deadline, setting: Setting) -> c_int {
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
            return given_up(wait);
        }
        self.writer.store(local::thread(), Ordering::Relaxed);
        if let Some(waited) = waited {
            self.counts().write(stats::since(waited));
        }
        0
    }

    /// Ends a reader's hold or the writer's; `EPERM` if there is neither.
    #[inline(always)]
    pub(crate) fn unlock(&self) -> c_int {
        let parts = self.fast_parts();
        // While the bias is set no writer is inside, and the lock is not glibc's.
        if !parts.is_biased() {
            return self.unlock_unbiased();
        }
        // SAFETY: the row is the running thread's. The bias is set, so the program's caller is a reader, and leaves
        // once; a program that unlocks what nobody holds finds no hold.
        if unsafe { parts.leave_fast(local::row) } {
            return 0;
        }
        self.unlock_otherwise()
    }

    #[inline(never)] // Inlined, it would make the fast path save registers.
    fn unlock_unbiased(&self) -> c_int {
        if self.is_glibcs(setting::get()) {
            return next::unlock(self.glibcs());
        }
        // SAFETY: this takes a reader's hold only while no writer is inside. Then the program's caller is a reader, and
        // leaves once; a program that unlocks what nobody holds finds no hold.
        if unsafe { self.fast_parts().leave_slowly() } {
            return 0;
        }
        self.unlock_otherwise()
    }

    #[inline(never)] // Inlined, it would make the fast path save registers.
    fn unlock_otherwise(&self) -> c_int {
        let parts = self.parts::<ReadersFirst, _>(setting::get());
        // A writer that only checks the lock has not said who it is. Without that question, a reader that takes itself
        // for the writer for a moment would make the lock forget who writes next, and that thread's next request would
        // wait for itself in place of `EDEADLK`.
        if parts.is_writers() && self.writer.load(Ordering::Relaxed) != 0 {
            self.writer.store(0, Ordering::Relaxed);
            // SAFETY: `is_writers` says that the caller, which is inside, is the writer.
            if unsafe { parts.leave_exclusive() } {
                return 0;
            }
        }
        // SAFETY: the row is the running thread's. The caller is not the writer, so it is a reader, or nobody reads.
        if unsafe { parts.leave_shared(local::row) } {
            0
        } else {
            EPERM
        }
    }

    /// The lock begins its life. Its memory may hold anything. So may the table, which a reader that sets the bias
    /// checks.
    pub(crate) fn begin(&self) {
        // SAFETY: this is `pthread_rwlock_init`, whose caller promises that no other thread uses the lock.
        unsafe { self.bias.begin() };
    }

    /// The lock ends its life. Without a bias (a lock that processes share has none) the table does not hold its
    /// address, and is not scanned.
    pub(crate) fn end(&self) {
        if self.bias.is_open() {
            // SAFETY: this is `pthread_rwlock_destroy`, whose caller promises that no other thread uses the lock.
            unsafe { self.bias.reset() };
        }
    }
}

/// The answer to a thread that has waited for that long and gives up.
fn given_up(wait: Wait) -> c_int {
    match wait {
        Wait::Never => EBUSY,
        Wait::Until(_) => ETIMEDOUT,
        Wait::Forever => unreachable!("a wait without end ends with a grant"),
    }
}

/// For how long a thread waits, known when the program is compiled as far as the fast path needs it.
pub(crate) trait Patience: Deadline {
    /// Whether it waits until it is inside.
    const IS_ENDLESS: bool = false;
}

/// For how long a thread waits.
pub(crate) trait Deadline {
    /// For how long, counted from now.
    fn wait(&self) -> Wait;
}

/// As long as it takes.
pub(crate) struct Endless;

impl Patience for Endless {
    const IS_ENDLESS: bool = true;
}

impl Deadline for Endless {
    fn wait(&self) -> Wait {
        Wait::Forever
    }
}

/// Not at all.
pub(crate) struct Try;

impl Patience for Try {}

impl Deadline for Try {
    fn wait(&self) -> Wait {
        Wait::Never
    }
}

/// Until a time on a clock; without one, as long as it takes.
#[derive(Clone, Copy)]
pub(crate) struct Until(Option<(clockid_t, timespec)>);

impl Until {
    /// `EINVAL` for what glibc rejects, whether or not the thread has to wait.
    pub(crate) fn new(clock: clockid_t, time: Option<timespec>) -> Result<Self, c_int> {
        let Some(time) = time else {
            return Ok(Self(None));
        };
        let known = matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC);
        let valid = (0..1_000_000_000).contains(&time.tv_nsec);
        if known && valid {
            Ok(Self(Some((clock, time))))
        } else {
            Err(EINVAL)
        }
    }
}

impl Patience for Until {}

impl Deadline for Until {
    /// If the clock is set while the thread waits, the wait does not follow it.
    fn wait(&self) -> Wait {
        let Some((clock, time)) = self.0 else {
            return Wait::Forever;
        };
        let mut now = timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `now` is live, and `new` admits only clocks that exist.
        unsafe { libc::clock_gettime(clock, &raw mut now) };
        let nanoseconds =
            |time: timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        let left = (nanoseconds(time) - nanoseconds(now)).max(0);
        let left = u64::try_from(left).map_or(Duration::MAX, Duration::from_nanos);
        Instant::now()
            .checked_add(left)
            .map_or(Wait::Forever, Wait::Until)
    }
}
