//! Peers in C and C++: only with the feature `cpp-peers`, which needs Debian's packages (see `scripts/cpp-peers`).
//!
//! They are called through a shim, so each operation costs a call that is not inlined, as in a program that is not
//! compiled with the lock.

use super::called::{Called, Calls};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A lock on the other side: a type for it, and how to make one.
macro_rules! peer {
    ($make:ident $peer:ident: $new:ident $free:ident $read:ident $unread:ident $write:ident $unwrite:ident) => {
        unsafe extern "C" {
            fn $new() -> *mut c_void;
            fn $free(lock: *mut c_void);
            fn $read(lock: *mut c_void);
            fn $unread(lock: *mut c_void);
            fn $write(lock: *mut c_void);
            fn $unwrite(lock: *mut c_void);
        }

        pub(crate) struct $peer(NonNull<c_void>);

        pub(crate) fn $make() -> Called<$peer> {
            // SAFETY: has no conditions.
            let lock = unsafe { $new() };
            Called($peer(NonNull::new(lock).expect("it aborts without memory")))
        }

        // SAFETY: the pointer is the lock's only owner, and the lock may be freed by any thread.
        unsafe impl Send for $peer {}
        // SAFETY: threads share a lock by its calls alone, which are for all threads.
        unsafe impl Sync for $peer {}

        impl Drop for $peer {
            fn drop(&mut self) {
                // SAFETY: made by `$new`, and nobody holds it: guards borrow it.
                unsafe { $free(self.0.as_ptr()) };
            }
        }

        impl Calls for $peer {
            peer!(@read_lock $read, read_unlock $unread);
            peer!(@write_lock $write, write_unlock $unwrite);
        }
    };
    (@$lock:ident $acquire:ident, $unlock:ident $release:ident) => {
        #[inline]
        fn $lock(&self) {
            // SAFETY: made by the macro's function.
            unsafe { $acquire(self.0.as_ptr()) };
        }

        #[inline]
        fn $unlock(&self) {
            // SAFETY: made by the macro's function; held by this thread.
            unsafe { $release(self.0.as_ptr()) };
        }
    };
}

peer!(tbb Tbb: spanlock_tbb_new spanlock_tbb_free spanlock_tbb_read_lock spanlock_tbb_read_unlock
    spanlock_tbb_write_lock spanlock_tbb_write_unlock);
peer!(tbb_spin TbbSpin: spanlock_tbb_spin_new spanlock_tbb_spin_free spanlock_tbb_spin_read_lock
    spanlock_tbb_spin_read_unlock spanlock_tbb_spin_write_lock spanlock_tbb_spin_write_unlock);
peer!(absl Absl: spanlock_absl_new spanlock_absl_free spanlock_absl_read_lock spanlock_absl_read_unlock
    spanlock_absl_write_lock spanlock_absl_write_unlock);
peer!(ck_pflock CkPflock: spanlock_ck_pflock_new spanlock_ck_pflock_free spanlock_ck_pflock_read_lock
    spanlock_ck_pflock_read_unlock spanlock_ck_pflock_write_lock spanlock_ck_pflock_write_unlock);

unsafe extern "C" {
    fn spanlock_ck_brlock_new() -> *mut c_void;
    fn spanlock_ck_brlock_free(lock: *mut c_void);
    fn spanlock_ck_brlock_register(lock: *mut c_void) -> *mut c_void;
    fn spanlock_ck_brlock_unregister(lock: *mut c_void, reader: *mut c_void);
    fn spanlock_ck_brlock_read_lock(lock: *mut c_void, reader: *mut c_void);
    fn spanlock_ck_brlock_read_unlock(reader: *mut c_void);
    fn spanlock_ck_brlock_write_lock(lock: *mut c_void);
    fn spanlock_ck_brlock_write_unlock(lock: *mut c_void);
}

/// A lock that lives until the last reader of it has unregistered.
struct BrLock(NonNull<c_void>);

// SAFETY: the pointer is the lock's only owner, and the lock may be freed by any thread.
unsafe impl Send for BrLock {}
// SAFETY: threads share a lock by its calls alone, which are for all threads; each reads by a place of its own.
unsafe impl Sync for BrLock {}

impl Drop for BrLock {
    fn drop(&mut self) {
        // SAFETY: made by `new`; nobody holds it, and no reader is registered: each has a count of this.
        unsafe { spanlock_ck_brlock_free(self.0.as_ptr()) };
    }
}

/// This thread as a reader of a lock.
struct Reader {
    lock: Arc<BrLock>,
    place: *mut c_void,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: registered with this lock.
        unsafe { spanlock_ck_brlock_unregister(self.lock.0.as_ptr(), self.place) };
    }
}

thread_local! {
    static READERS: RefCell<HashMap<u64, Reader>> = RefCell::default();
    /// The last of them that was asked for.
    static LAST: Cell<(u64, *mut c_void)> = const { Cell::new((0, null_mut())) };
}

pub(crate) struct CkBrlock {
    /// Not 0, and of no other lock ever.
    id: u64,
    lock: Arc<BrLock>,
}

pub(crate) fn ck_brlock() -> Called<CkBrlock> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // SAFETY: has no conditions.
    let lock = unsafe { spanlock_ck_brlock_new() };
    Called(CkBrlock {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        lock: Arc::new(BrLock(
            NonNull::new(lock).expect("it aborts without memory"),
        )),
    })
}

impl CkBrlock {
    /// This thread's place as a reader.
    #[inline]
    fn place(&self) -> *mut c_void {
        let (id, place) = LAST.get();
        if id == self.id { place } else { self.look_up() }
    }

    #[cold] // Threads read one lock many times.
    fn look_up(&self) -> *mut c_void {
        let place = READERS.with_borrow_mut(|readers| {
            let reader = readers.entry(self.id).or_insert_with(|| {
                let lock = Arc::clone(&self.lock);
                // SAFETY: made by `new`.
                let place = unsafe { spanlock_ck_brlock_register(lock.0.as_ptr()) };
                Reader { lock, place }
            });
            reader.place
        });
        LAST.set((self.id, place));
        place
    }
}

impl Calls for CkBrlock {
    #[inline]
    fn read_lock(&self) {
        let place = self.place();
        // SAFETY: made by `new`, and registered there.
        unsafe { spanlock_ck_brlock_read_lock(self.lock.0.as_ptr(), place) };
    }

    #[inline]
    fn read_unlock(&self) {
        // SAFETY: held by this thread.
        unsafe { spanlock_ck_brlock_read_unlock(self.place()) };
    }

    #[inline]
    fn write_lock(&self) {
        // SAFETY: made by `new`.
        unsafe { spanlock_ck_brlock_write_lock(self.lock.0.as_ptr()) };
    }

    #[inline]
    fn write_unlock(&self) {
        // SAFETY: made by `new`; held by this thread.
        unsafe { spanlock_ck_brlock_write_unlock(self.lock.0.as_ptr()) };
    }
}
