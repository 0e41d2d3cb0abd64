//! glibc's functions: the next ones after ours.

use crate::lock::Lock;
use libc::{c_char, c_int, c_void, clockid_t, timespec};
use std::ffi::CStr;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One of them, looked up when first called, be that before any constructor has run.
#[repr(C)] // `open` reads the first.
pub(crate) struct Next {
    found: AtomicPtr<c_void>,
    name: &'static CStr,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            found: AtomicPtr::new(ptr::null_mut()),
            name,
        }
    }

    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        // Relaxed: code is there before its address is.
        let found = self.found.load(Ordering::Relaxed);
        if found.is_null() { self.find() } else { found }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr().cast::<c_char>()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Declares functions of glibc.
macro_rules! next {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*);)*) => {
        $(
            /// glibc's. A glibc too old to have it cannot have called us for it: then `EINVAL`.
            #[inline]
            pub(crate) fn $name($($argument: $type),*) -> c_int {
                static NEXT: Next = Next::new($symbol);
                let address = NEXT.address();
                if address.is_null() {
                    return libc::EINVAL;
                }
                // SAFETY: glibc's function of that name has that signature.
                let next: unsafe extern "C" fn($($type),*) -> c_int = unsafe { transmute(address) };
                // SAFETY: the arguments are those that our caller gave for this very function.
                unsafe { next($($argument),*) }
            }
        )*
    };
}

next! {
    rdlock = c"pthread_rwlock_rdlock" (lock: &Lock);
    tryrdlock = c"pthread_rwlock_tryrdlock" (lock: &Lock);
    timedrdlock = c"pthread_rwlock_timedrdlock" (lock: &Lock, until: *const timespec);
    clockrdlock = c"pthread_rwlock_clockrdlock" (lock: &Lock, clock: clockid_t, until: *const timespec);
    wrlock = c"pthread_rwlock_wrlock" (lock: &Lock);
    trywrlock = c"pthread_rwlock_trywrlock" (lock: &Lock);
    timedwrlock = c"pthread_rwlock_timedwrlock" (lock: &Lock, until: *const timespec);
    clockwrlock = c"pthread_rwlock_clockwrlock" (lock: &Lock, clock: clockid_t, until: *const timespec);
    unlock = c"pthread_rwlock_unlock" (lock: &Lock);
    init = c"pthread_rwlock_init" (lock: &Lock, attributes: *const c_void);
    destroy = c"pthread_rwlock_destroy" (lock: &Lock);
}
