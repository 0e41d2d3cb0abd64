//! The exported functions. They have no symbol versions, so they satisfy references to any version.

use crate::lock::{Endless, Lock, Try, Until};
use crate::next;
use libc::{CLOCK_REALTIME, c_int, c_void, clockid_t, pthread_rwlock_t, timespec};

/// Exports functions.
macro_rules! export {
    ($($name:ident ($lock:ident $(, $argument:ident: $type:ty)*) $body:block)*) => {
        $(
            /// The function of that name in `pthread.h`.
            ///
            /// # Safety
            /// That of the function in `pthread.h`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($lock: *mut pthread_rwlock_t $(, $argument: $type)*) -> c_int {
                // SAFETY: the program passes a pointer to a live `pthread_rwlock_t`, as `pthread.h` asks. `Lock` has
                // its size, and all its fields are atomic, or are written by `pthread_rwlock_init` alone.
                let $lock = unsafe { &*$lock.cast::<Lock>() };
                $body
            }
        )*
    };
}

/// Exports functions under the older names, to which programs refer that were linked long ago.
macro_rules! alias {
    ($($older:ident = $name:ident ($($argument:ident: $type:ty),*);)*) => {
        $(
            /// The function of that name without underscores.
            ///
            /// # Safety
            /// That of the function in `pthread.h`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $older($($argument: $type),*) -> c_int {
                // SAFETY: the two names stand for one function, and the caller keeps its contract.
                unsafe { $name($($argument),*) }
            }
        )*
    };
}

alias! {
    __pthread_rwlock_init = pthread_rwlock_init(lock: *mut pthread_rwlock_t, attributes: *const c_void);
    __pthread_rwlock_destroy = pthread_rwlock_destroy(lock: *mut pthread_rwlock_t);
    __pthread_rwlock_rdlock = pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t);
    __pthread_rwlock_tryrdlock = pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t);
    __pthread_rwlock_wrlock = pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t);
    __pthread_rwlock_trywrlock = pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t);
    __pthread_rwlock_unlock = pthread_rwlock_unlock(lock: *mut pthread_rwlock_t);
}

/// Exports the four functions that acquire in one mode: to wait, to try, and to wait until a time on either clock.
macro_rules! export_mode {
    ($mode:ident: $lock:ident = $next_lock:ident, $try_lock:ident = $next_try:ident,
     $timed_lock:ident = $next_timed:ident, $clock_lock:ident = $next_clock:ident) => {
        export! {
            $lock (lock) {
                lock.$mode(Endless, || next::$next_lock(lock.glibcs()))
            }

            $try_lock (lock) {
                lock.$mode(Try, || next::$next_try(lock.glibcs()))
            }

            $timed_lock (lock, until: *const timespec) {
                match read_until(CLOCK_REALTIME, until) {
                    Ok(patience) => lock.$mode(patience, || next::$next_timed(lock.glibcs(), until)),
                    Err(refused) => refused,
                }
            }

            $clock_lock (lock, clock: clockid_t, until: *const timespec) {
                match read_until(clock, until) {
                    Ok(patience) => lock.$mode(patience, || next::$next_clock(lock.glibcs(), clock, until)),
                    Err(refused) => refused,
                }
            }
        }
    };
}

export_mode! {
    read: pthread_rwlock_rdlock = rdlock, pthread_rwlock_tryrdlock = tryrdlock,
    pthread_rwlock_timedrdlock = timedrdlock, pthread_rwlock_clockrdlock = clockrdlock
}

export_mode! {
    write: pthread_rwlock_wrlock = wrlock, pthread_rwlock_trywrlock = trywrlock,
    pthread_rwlock_timedwrlock = timedwrlock, pthread_rwlock_clockwrlock = clockwrlock
}

export! {
    pthread_rwlock_unlock (lock) {
        lock.unlock()
    }

    pthread_rwlock_init (lock, attributes: *const c_void) {
        lock.begin();
        next::init(lock.glibcs(), attributes)
    }

    pthread_rwlock_destroy (lock) {
        lock.end();
        next::destroy(lock.glibcs())
    }
}

fn read_until(clock: clockid_t, until: *const timespec) -> Result<Until, c_int> {
    // SAFETY: the program passes a pointer to a live `timespec`, as `pthread.h` asks, or null: to glibc no time.
    let time = unsafe { until.as_ref() }.copied();
    Until::new(clock, time)
}
