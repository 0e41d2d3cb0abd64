//! What the environment asks for, and what happens when the library is loaded and in the child after a fork.

use crate::errno::Errno;
use crate::{local, next, stats};
use spanlock::rw::pthread::table;
use spanlock::rw::{Bias, Policy};
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU8, Ordering};

/// What the environment says, once a thread has read it. That may be before any constructor has run.
static SETTING: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = u8::MAX;

/// Which lock is asked for, and whether acquisitions are counted. One byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting(u8);

#[inline]
pub(crate) fn get() -> Setting {
    // Relaxed: a thread that finds it unknown reads the environment itself.
    let known = SETTING.load(Ordering::Relaxed);
    Setting(if known == UNKNOWN { find() } else { known })
}

/// Whether locks are counted, once that is known.
#[inline]
pub(crate) fn counts() -> bool {
    Setting(SETTING.load(Ordering::Relaxed)).counts()
}

#[cold] // Once.
fn find() -> u8 {
    let lock = Variable::find(c"SPANLOCK_LOCK");
    let membarrier = Variable::find(c"SPANLOCK_MEMBARRIER");
    let mut setting = lock.meaning(&Setting::NAMES).unwrap_or(Setting::ADAPTIVE);
    if let Some(to) = Variable::find(c"SPANLOCK_STATS").value {
        stats::keep(to);
        setting |= Setting::COUNTS;
    }
    if membarrier.meaning(&FENCES).is_some() {
        // No lock has a bias before the setting is known, so no thread has prepared the barrier.
        prim::barrier::forgo();
    }
    // Several threads may read the environment at the same time; one of them complains.
    if SETTING.swap(setting, Ordering::Relaxed) == UNKNOWN {
        lock.complain_unless_known(&Setting::NAMES, c"bravo, bravo-eager, futex or glibc");
        membarrier.complain_unless_known(&FENCES, c"off");
    }
    setting
}

impl Setting {
    const ADAPTIVE: u8 = 0;
    const OFF: u8 = 1;
    const EAGER: u8 = 2;
    /// The underlying lock alone.
    const UNBIASED: u8 = 8;
    /// Acquisitions are counted. It may be set beside any of the others.
    const COUNTS: u8 = 4;

    /// The names of the locks that can be asked for.
    const NAMES: [(&CStr, u8); 4] = [
        (c"bravo", Self::ADAPTIVE),
        (c"bravo-eager", Self::EAGER),
        (c"futex", Self::UNBIASED),
        (c"glibc", Self::OFF),
    ];

    #[inline]
    pub(crate) fn counts(self) -> bool {
        self.0 & Self::COUNTS != 0
    }

    /// Draws whether this slow read may set the bias, or is to be noted for statistics.
    #[inline]
    pub(crate) fn draw_slow_read(self) -> bool {
        match self.0 {
            Self::ADAPTIVE => local::draw_this_read(),
            Self::UNBIASED => false,
            _ => true,
        }
    }

    #[inline]
    pub(crate) fn is_off(self) -> bool {
        self.0 & Self::OFF != 0
    }
}

impl Policy for Setting {
    const INIT: Self = Self(Self::ADAPTIVE);

    #[inline]
    fn bias(&self) -> Bias {
        match self.0 & !Self::COUNTS {
            Self::ADAPTIVE => Bias::STANDARD,
            Self::EAGER => Bias::EAGER,
            _ => Bias::Off,
        }
    }
}

/// The values of `SPANLOCK_MEMBARRIER`.
const FENCES: [(&CStr, ()); 1] = [(c"off", ())];

unsafe extern "C" {
    /// glibc's: as `getenv`, and null where the program has more rights than who runs it.
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// A variable of the environment.
struct Variable {
    name: &'static CStr,
    /// `None` if it is not set, or empty.
    value: Option<&'static CStr>,
}

impl Variable {
    fn find(name: &'static CStr) -> Self {
        // Who runs a program that has more rights than himself has no say in where it writes.
        // SAFETY: the name is a C string. This runs when the library is loaded, or when an earlier constructor uses a
        // lock. A thread that changed the environment at that time would be a race; programs start theirs later.
        let value = unsafe { secure_getenv(name.as_ptr()) };
        // SAFETY: it is not null, so it is a C string in the environment, which is not changed yet, as above.
        let value = (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) });
        Self {
            name,
            value: value.filter(|value| !value.is_empty()),
        }
    }

    /// What its value stands for.
    fn meaning<T: Copy>(&self, values: &[(&CStr, T)]) -> Option<T> {
        let named = values.iter().find(|(name, _)| Some(*name) == self.value);
        named.map(|&(_, meaning)| meaning)
    }

    /// Writes a line to the standard error if it has a value that stands for nothing.
    fn complain_unless_known<T: Copy>(&self, values: &[(&CStr, T)], expected: &CStr) {
        let Some(value) = self.value.filter(|_| self.meaning(values).is_none()) else {
            return;
        };
        let words = [
            c"libspanlock_pthread.so: ",
            self.name,
            c" is ",
            value,
            c", not ",
            expected,
            c"; it is ignored\n",
        ];
        // In one piece, and without allocation: the allocator may be what uses the lock.
        let pieces = words.map(|word| libc::iovec {
            iov_base: word.as_ptr().cast_mut().cast(),
            iov_len: word.count_bytes(),
        });
        let _errno = Errno::kept();
        let _uncancelled = prim::thread::Uncancelled::new();
        // SAFETY: the pieces are live and are only read. A failure cannot be reported anywhere.
        unsafe {
            libc::writev(
                libc::STDERR_FILENO,
                pieces.as_ptr(),
                pieces.len() as libc::c_int,
            )
        };
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    get();
    next::find_all();
    local::row(); // It sizes the table, and for that asks the system for the number of processors.
    prim::thread::after_fork_in_child(after_fork);
    stats::announce();
    // Registers for forks, which allocates, and so must not happen while a thread waits for a lock.
    let _none_so_far = prim::thread::forks();
}

/// The child has one thread. The publications of others are cleared, because no thread will retract them.
extern "C" fn after_fork() {
    local::after_fork();
    // SAFETY: this thread is the only one of the process, and it publishes in that row alone.
    unsafe { table::forget_all_but_at(local::row()) };
    stats::reset();
}
