//! From one path for every kind of waiting to the traits of `lock_api`, which have a method for each.

use crate::range::raw::Wait;
use prim::clock::{Duration, Instant};

/// What was waited for forever is granted.
#[inline]
pub(crate) fn granted<T>(acquired: Option<T>) -> T {
    acquired.unwrap_or_else(|| never_granted())
}

#[cold] // And without arguments: it is in every acquisition.
fn never_granted() -> ! {
    unreachable!("a wait without end ends with a grant")
}

/// Acquires within a timeout by what acquires until a deadline; forever, if that is later than time can tell.
pub(crate) fn within<T>(
    timeout: Duration,
    until: impl FnOnce(Instant) -> Option<T>,
    forever: impl FnOnce() -> T,
) -> Option<T> {
    match Wait::at_most(timeout).deadline() {
        Some(deadline) => until(deadline),
        None => Some(forever()),
    }
}

/// Implements `lock_api`'s traits for a lock with the methods `new`, `read`, `write` (which take a
/// [`Wait`](crate::range::raw::Wait), and grant if it is forever), `leave_shared`, `leave_exclusive`, `is_locked` and
/// `is_locked_exclusive`; named are the types of what `read` and `write` grant. With `timed`, also the timed traits.
macro_rules! raw_rwlock {
    ([$($generics:tt)*] $lock:ty, $shared:ty, $exclusive:ty) => {
        // SAFETY: argued in the module that says so.
        unsafe impl<$($generics)*> ::lock_api::RawRwLock for $lock {
            const INIT: Self = ::prim::initial!(Self::new());

            type SharedGuard = $shared;
            type ExclusiveGuard = $exclusive;

            #[inline]
            fn lock_shared(&self) -> Self::SharedGuard {
                $crate::rw::raw::granted(self.read($crate::range::raw::Wait::Forever))
            }

            #[inline]
            fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
                self.read($crate::range::raw::Wait::Never)
            }

            #[inline]
            unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
                self.leave_shared(guard);
            }

            #[inline]
            fn lock_exclusive(&self) -> Self::ExclusiveGuard {
                $crate::rw::raw::granted(self.write($crate::range::raw::Wait::Forever))
            }

            #[inline]
            fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
                self.write($crate::range::raw::Wait::Never)
            }

            #[inline]
            unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
                self.leave_exclusive(guard);
            }

            fn is_locked(&self) -> bool {
                self.is_locked()
            }

            fn is_locked_exclusive(&self) -> bool {
                self.is_locked_exclusive()
            }
        }
    };
    (timed [$($generics:tt)*] $lock:ty, $shared:ty, $exclusive:ty) => {
        raw_rwlock!([$($generics)*] $lock, $shared, $exclusive);

        // SAFETY: as above.
        unsafe impl<$($generics)*> ::lock_api::RawRwLockTimed for $lock {
            type Duration = ::prim::clock::Duration;
            type Instant = ::prim::clock::Instant;

            fn try_lock_shared_for(&self, timeout: Self::Duration) -> Option<Self::SharedGuard> {
                self.read($crate::range::raw::Wait::at_most(timeout))
            }

            fn try_lock_shared_until(&self, deadline: Self::Instant) -> Option<Self::SharedGuard> {
                self.read($crate::range::raw::Wait::Until(deadline))
            }

            fn try_lock_exclusive_for(&self, timeout: Self::Duration) -> Option<Self::ExclusiveGuard> {
                self.write($crate::range::raw::Wait::at_most(timeout))
            }

            fn try_lock_exclusive_until(&self, deadline: Self::Instant) -> Option<Self::ExclusiveGuard> {
                self.write($crate::range::raw::Wait::Until(deadline))
            }
        }
    };
}
pub(crate) use raw_rwlock;
