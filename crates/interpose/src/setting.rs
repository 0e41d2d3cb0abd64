//! What the environment asks for; what happens when the library is loaded, and in the child after a fork.

use crate::lock::Errno;
use crate::{local, stats};
use spanlock::rw::visible;
use spanlock::rw::{Bias, Policy, Tuning};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the environment says, once anybody has asked: maybe before any constructor has run.
static SETTING: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = u8::MAX;

/// How locks are biased, and whether they are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting(u8);

#[inline]
pub(crate) fn get() -> Setting {
    // Relaxed: who finds it unknown finds out.
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
        // No lock has a bias before the setting is known, so nobody has prepared.
        prim::barrier::forgo();
    }
    // Only one of the threads that find out at the same time complains.
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
    /// Beside one of these.
    const COUNTS: u8 = 4;

    /// What the locks that can be asked for are called.
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

    /// Whether a reader that took the slow path considers a bias, or is counted.
    #[inline]
    pub(crate) fn is_considered(self) -> bool {
        match self.0 {
            Self::ADAPTIVE => local::is_considered(),
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
    fn tuning(&self) -> Tuning {
        let bias = match self.0 & !Self::COUNTS {
            Self::ADAPTIVE => Bias::Adaptive,
            Self::EAGER => Bias::Eager,
            _ => Bias::Off,
        };
        Tuning {
            bias,
            ..Tuning::STANDARD
        }
    }
}

/// What `SPANLOCK_MEMBARRIER` can be.
const FENCES: [(&CStr, ()); 1] = [(c"off", ())];

/// A variable of the environment.
struct Variable {
    name: &'static CStr,
    /// `None` if it is not set, or empty.
    value: Option<&'static CStr>,
}

impl Variable {
    fn find(name: &'static CStr) -> Self {
        // SAFETY: the name is a C string. This is when the first lock is used or the library is loaded: hardly ever does
        // anybody change the environment then.
        let value = unsafe { libc::getenv(name.as_ptr()) };
        // SAFETY: not null, so it is a C string in the environment, read before anybody can change that.
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
        // In one piece, and without memory of the allocator's, which may be what uses the lock.
        let pieces = words.map(|word| libc::iovec {
            iov_base: word.as_ptr().cast_mut().cast(),
            iov_len: word.count_bytes(),
        });
        let _errno = Errno::kept();
        // SAFETY: the pieces are live, and only read. If it fails there is nobody to tell.
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
    local::seat(); // Sizes the table, which asks the system for the number of processors.
    prim::thread::after_fork_in_child(after_fork);
    stats::announce();
    // Asks to be told of forks, which allocates: not while a thread waits for a lock.
    let _none_so_far = prim::thread::forks();
}

/// The child has one thread: what others published will never be retracted.
extern "C" fn after_fork() {
    local::after_fork();
    // SAFETY: this is the process's one thread, and publishes in that row.
    unsafe { visible::forget_all_but_at(local::seat()) };
    stats::reset();
}
