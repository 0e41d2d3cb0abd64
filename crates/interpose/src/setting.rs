//! What the environment asks for; what happens when the library is loaded, and in the child after a fork.

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
    let mut setting = Setting::named(variable(c"SPANLOCK_LOCK"));
    if let Some(to) = variable(c"SPANLOCK_STATS").filter(|to| !to.is_empty()) {
        stats::keep(to);
        setting |= Setting::COUNTS;
    }
    SETTING.store(setting, Ordering::Relaxed);
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

    /// The lock that is asked for by that name; the default one for no name or one that is not known, as there is
    /// nobody to complain to.
    fn named(name: Option<&CStr>) -> u8 {
        match name.map(CStr::to_bytes) {
            Some(b"glibc") => Self::OFF,
            Some(b"bravo-eager") => Self::EAGER,
            Some(b"futex") => Self::UNBIASED,
            _ => Self::ADAPTIVE,
        }
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

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name is a C string. This is when the first lock is used or the library is loaded: hardly ever does anybody
    // change the environment then.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: not null, so it is a C string in the environment, read before anybody can change that.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    get();
    local::seat(); // Sizes the table, which asks the system for the number of processors.
    prim::thread::after_fork_in_child(after_fork);
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
