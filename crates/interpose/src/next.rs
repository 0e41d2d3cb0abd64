//! glibc's own functions, which come next after ours in the order of symbol lookup.

use libc::{c_char, c_int, c_void, clockid_t, pthread_rwlock_t, timespec};
use std::ffi::CStr;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One function, looked up when the library is loaded, or when it is called before any constructor has run.
#[repr(C)] // The assembly in `open` reads the first field.
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
        // Relaxed: the code at the address was loaded before this library could find it.
        let found = self.found.load(Ordering::Relaxed);
        if found.is_null() { self.find() } else { found }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: the name is a C string, which `dlsym` only reads.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr().cast::<c_char>()) };
        if found.is_null() {
            // The program is not to take that for an error of its own.
            // SAFETY: the function has no preconditions.
            unsafe { libc::dlerror() };
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Declares functions of glibc.
macro_rules! next {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*);)*) => {
        #[expect(non_upper_case_globals, reason = "they are named as the functions are")]
        mod known {
            use super::Next;
            $(pub(super) static $name: Next = Next::new($symbol);)*
        }

        /// Looks all of them up. `dlsym` takes the loader's lock, and a thread should not wait for that while it holds
        /// a lock of the program's: a thread in `dlopen`, which has the loader's, runs constructors, and one of them
        /// may wait for the program's.
        pub(crate) fn find_all() {
            $(known::$name.address();)*
        }

        $(
            /// glibc's function; `EINVAL` if this glibc is too old to have it. No program for that glibc calls it.
            #[inline]
            pub(crate) fn $name($($argument: $type),*) -> c_int {
                let address = known::$name.address();
                if address.is_null() {
                    return libc::EINVAL;
                }
                // SAFETY: the address is that of glibc's function of that name, which has this signature.
                let next: unsafe extern "C" fn($($type),*) -> c_int = unsafe { transmute(address) };
                // SAFETY: the arguments are those that the program passed for this very function.
                unsafe { next($($argument),*) }
            }
        )*
    };
}

next! {
    rdlock = c"pthread_rwlock_rdlock" (lock: *mut pthread_rwlock_t);
    tryrdlock = c"pthread_rwlock_tryrdlock" (lock: *mut pthread_rwlock_t);
    timedrdlock = c"pthread_rwlock_timedrdlock" (lock: *mut pthread_rwlock_t, until: *const timespec);
    clockrdlock = c"pthread_rwlock_clockrdlock" (lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec);
    wrlock = c"pthread_rwlock_wrlock" (lock: *mut pthread_rwlock_t);
    trywrlock = c"pthread_rwlock_trywrlock" (lock: *mut pthread_rwlock_t);
    timedwrlock = c"pthread_rwlock_timedwrlock" (lock: *mut pthread_rwlock_t, until: *const timespec);
    clockwrlock = c"pthread_rwlock_clockwrlock" (lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec);
    unlock = c"pthread_rwlock_unlock" (lock: *mut pthread_rwlock_t);
    init = c"pthread_rwlock_init" (lock: *mut pthread_rwlock_t, attributes: *const c_void);
    destroy = c"pthread_rwlock_destroy" (lock: *mut pthread_rwlock_t);
}
