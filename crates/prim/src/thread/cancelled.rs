//! Cancellation of threads, as C programs know it.

#[cfg(all(target_os = "linux", not(miri)))]
use libc::c_int;

/// While this lives, the thread is not cancelled (`pthread_cancel`), where the platform has that.
///
/// A cancelled thread is unwound at its next *cancellation point*, such as a write to a file. That must not happen
/// within Rust, which catches foreign unwinding and ends the process. So whatever may run on a program's thread and
/// contains such a point runs beside this.
#[derive(Debug)]
#[must_use = "the thread may be cancelled again when it is dropped"]
pub struct Uncancelled {
    #[cfg(all(target_os = "linux", not(miri)))]
    before: c_int,
    /// It stays on its thread.
    _local: core::marker::PhantomData<*const ()>,
}

#[cfg(all(target_os = "linux", not(miri)))]
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

impl Uncancelled {
    /// From now on the thread is not cancelled.
    #[expect(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Self {
        #[cfg(all(target_os = "linux", not(miri)))]
        let before = {
            const DISABLE: c_int = 1; // PTHREAD_CANCEL_DISABLE, in all C libraries of Linux.
            let mut before = 0;
            // SAFETY: `before` is live. It is no cancellation point itself.
            unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
            before
        };
        Self {
            #[cfg(all(target_os = "linux", not(miri)))]
            before,
            _local: core::marker::PhantomData,
        }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            let mut unused = 0;
            // SAFETY: `unused` is live, and the state is what the function said before.
            unsafe { pthread_setcancelstate(self.before, &raw mut unused) };
        }
    }
}
