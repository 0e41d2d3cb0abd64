//! The exported functions, without versions: they satisfy references to any.

use crate::lock::{Endless, Lock, Try, Until};
use crate::next;
use libc::{CLOCK_REALTIME, c_int, c_void, clockid_t, pthread_rwlock_t, timespec};

/// Exports functions.
macro_rules! export {
    ($($name:ident ($lock:ident $(, $argument:ident: $type:ty)*) $body:block)*) => {
        $(
            /// As the function of that name in `pthread.h`.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($lock: *mut pthread_rwlock_t $(, $argument: $type)*) -> c_int {
                // SAFETY: the caller's: it points to a lock, of which all is atomic or written by `init` alone.
                let $lock = unsafe { &*$lock.cast::<Lock>() };
                $body
            }
        )*
    };
}

/// Exports functions under the names that programs have which were linked long ago.
macro_rules! alias {
    ($($older:ident = $name:ident ($($argument:ident: $type:ty),*);)*) => {
        $(
            /// As without underscores.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $older($($argument: $type),*) -> c_int {
                // SAFETY: the caller's.
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

export! {
    pthread_rwlock_rdlock (lock) {
        lock.read(Endless, || next::rdlock(lock))
    }

    pthread_rwlock_tryrdlock (lock) {
        lock.read(Try, || next::tryrdlock(lock))
    }

    pthread_rwlock_timedrdlock (lock, until: *const timespec) {
        match read_until(CLOCK_REALTIME, until) {
            Ok(patience) => lock.read(patience, || next::timedrdlock(lock, until)),
            Err(refused) => refused,
        }
    }

    pthread_rwlock_clockrdlock (lock, clock: clockid_t, until: *const timespec) {
        match read_until(clock, until) {
            Ok(patience) => lock.read(patience, || next::clockrdlock(lock, clock, until)),
            Err(refused) => refused,
        }
    }

    pthread_rwlock_wrlock (lock) {
        lock.write(Endless, || next::wrlock(lock))
    }

    pthread_rwlock_trywrlock (lock) {
        lock.write(Try, || next::trywrlock(lock))
    }

    pthread_rwlock_timedwrlock (lock, until: *const timespec) {
        match read_until(CLOCK_REALTIME, until) {
            Ok(patience) => lock.write(patience, || next::timedwrlock(lock, until)),
            Err(refused) => refused,
        }
    }

    pthread_rwlock_clockwrlock (lock, clock: clockid_t, until: *const timespec) {
        match read_until(clock, until) {
            Ok(patience) => lock.write(patience, || next::clockwrlock(lock, clock, until)),
            Err(refused) => refused,
        }
    }

    pthread_rwlock_unlock (lock) {
        lock.unlock()
    }

    pthread_rwlock_init (lock, attributes: *const c_void) {
        lock.begin();
        next::init(lock, attributes)
    }

    pthread_rwlock_destroy (lock) {
        lock.end();
        next::destroy(lock)
    }
}

fn read_until(clock: clockid_t, until: *const timespec) -> Result<Until, c_int> {
    // SAFETY: our caller's caller promises that it points to a time.
    Until::new(clock, unsafe { *until })
}
