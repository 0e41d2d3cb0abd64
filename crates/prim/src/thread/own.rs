//! The library's own threads.

use std::ffi::CStr;

/// Starts a thread of the library's own, which runs `run` and is not joined; `false` if the system gives none. If `run`
/// panics, the thread ends. Its stack has `stack` bytes, or the default size if the program's thread-locals leave no
/// room there.
///
/// All signals are blocked on it, where the platform has signals: a program's handlers run on the program's threads.
///
/// On Linux it is `pthread_create` that starts it. `std::thread` asks the dynamic loader for a function the first time,
/// and waits for the loader's lock, which a thread in `dlopen` holds while it runs constructors. One of them may wait
/// for what the caller has locked.
pub fn start_own(name: &'static CStr, stack: usize, run: impl FnOnce() + Send + 'static) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        linux::start(name, stack, Box::new(run))
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let name = name.to_string_lossy().into_owned();
        let builder = std::thread::Builder::new().name(name).stack_size(stack);
        builder.spawn(run).is_ok()
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use super::CStr;
    use crate::contain;
    use core::mem;
    use core::ptr;
    use libc::{c_void, pthread_attr_t, pthread_t};

    /// What a new thread is given.
    struct Start {
        name: &'static CStr,
        run: Box<dyn FnOnce() + Send>,
    }

    extern "C" fn begin(start: *mut c_void) -> *mut c_void {
        // SAFETY: `start` has made it from a box, and passes it to one thread.
        let Start { name, run } = *unsafe { Box::from_raw(start.cast::<Start>()) };
        // SAFETY: it has no preconditions.
        let here = unsafe { libc::pthread_self() };
        // SAFETY: the thread runs, and the name is a C string. If it is too long, the thread has none.
        unsafe { libc::pthread_setname_np(here, name.as_ptr()) };
        contain(run);
        ptr::null_mut()
    }

    pub(super) fn start(name: &'static CStr, stack: usize, run: Box<dyn FnOnce() + Send>) -> bool {
        let start = Box::into_raw(Box::new(Start { name, run })).cast::<c_void>();
        let mut attributes = mem::MaybeUninit::<pthread_attr_t>::uninit();
        // SAFETY: it initialises them.
        unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
        // SAFETY: initialised just above. If the size is refused, the default stays.
        unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack) };
        let started = with_signals_blocked(|| {
            let mut sizes = [attributes.as_ptr(), ptr::null()].into_iter();
            // SAFETY: null, or initialised above.
            sizes.any(|attributes| unsafe { create(attributes, start) })
        });
        // SAFETY: initialised above, and not used later.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        if !started {
            // SAFETY: made above, and no thread has got it.
            drop(unsafe { Box::from_raw(start.cast::<Start>()) });
        }
        started
    }

    /// Creates a detached thread, which runs `begin`.
    ///
    /// # Safety
    /// The attributes are null or initialised; `start` is a box of `Start`, which is the thread's if this is `true`.
    unsafe fn create(attributes: *const pthread_attr_t, start: *mut c_void) -> bool {
        let mut thread: pthread_t = 0;
        // SAFETY: the caller's promises; `thread` is live.
        let error = unsafe { libc::pthread_create(&raw mut thread, attributes, begin, start) };
        if error == 0 {
            // SAFETY: it was created just above, and is not joined.
            unsafe { libc::pthread_detach(thread) };
        }
        error == 0
    }

    /// Calls `f` with all signals blocked on the running thread. A thread that `f` starts inherits that.
    fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
        // SAFETY: a signal set is plain data, and zeros are a valid value.
        let mut all: libc::sigset_t = unsafe { mem::zeroed() };
        let mut before = all;
        // SAFETY: the set is live.
        unsafe { libc::sigfillset(&raw mut all) };
        // SAFETY: both sets are live.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
        let result = f();
        // SAFETY: the set is live, and the third argument may be null.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
        result
    }
}

#[cfg(test)]
mod tests {
    use super::start_own;
    use std::sync::mpsc;

    #[test]
    fn a_thread_of_the_library_runs_and_may_panic() {
        let (send, receive) = mpsc::channel::<()>();
        assert!(start_own(c"spanlock-test", 1 << 18, move || {
            let _dropped_by_the_panic = send;
            std::panic::resume_unwind(Box::new(5));
        }));
        assert_eq!(receive.recv(), Err(mpsc::RecvError));
    }
}
