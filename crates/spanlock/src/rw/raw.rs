//! From one path for every kind of waiting to the traits of `lock_api`, which have a method for each.

use crate::range::raw::Wait;
use prim::clock::{Duration, Instant};
use std::marker::PhantomData;

/// A part of each guard, and all that some have: it stays on its thread, unless the feature `send_guard` is on.
#[derive(Debug)]
pub struct Stays {
    _marker: Marker,
}

#[cfg(not(feature = "send_guard"))]
type Marker = PhantomData<*const ()>;

#[cfg(feature = "send_guard")]
type Marker = PhantomData<()>;

// SAFETY: there is nothing in it.
unsafe impl Sync for Stays {}

impl Stays {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        let _marker = PhantomData;
        Self { _marker }
    }
}

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

            #[cfg_attr(debug_assertions, track_caller)]
            #[inline]
            fn lock_shared(&self) -> Self::SharedGuard {
                use $crate::range::raw::Wait;
                use $crate::rw::{raw::granted, watch};
                watch::acquire(self, watch::Mode::Read, || granted(self.read(Wait::Forever)))
            }

            #[cfg_attr(debug_assertions, track_caller)]
            #[inline]
            fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
                use $crate::range::raw::Wait;
                use $crate::rw::watch;
                watch::attempt(self, watch::Mode::Read, || self.read(Wait::Never))
            }

            #[inline]
            unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
                use $crate::rw::watch;
                watch::leave(self, watch::Mode::Read);
                self.leave_shared(guard);
            }

            #[cfg_attr(debug_assertions, track_caller)]
            #[inline]
            fn lock_exclusive(&self) -> Self::ExclusiveGuard {
                use $crate::range::raw::Wait;
                use $crate::rw::{raw::granted, watch};
                watch::acquire(self, watch::Mode::Write, || granted(self.write(Wait::Forever)))
            }

            #[cfg_attr(debug_assertions, track_caller)]
            #[inline]
            fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
                use $crate::range::raw::Wait;
                use $crate::rw::watch;
                watch::attempt(self, watch::Mode::Write, || self.write(Wait::Never))
            }

            #[inline]
            unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
                use $crate::rw::watch;
                watch::leave(self, watch::Mode::Write);
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

            #[cfg_attr(debug_assertions, track_caller)]
            fn try_lock_shared_for(&self, timeout: Self::Duration) -> Option<Self::SharedGuard> {
                use $crate::range::raw::Wait;
                use $crate::rw::watch;
                watch::attempt(self, watch::Mode::Read, || self.read(Wait::at_most(timeout)))
            }

            #[cfg_attr(debug_assertions, track_caller)]
            fn try_lock_shared_until(&self, deadline: Self::Instant) -> Option<Self::SharedGuard> {
                use $crate::range::raw::Wait;
                use $crate::rw::watch;
                watch::attempt(self, watch::Mode::Read, || self.read(Wait::Until(deadline)))
            }

            #[cfg_attr(debug_assertions, track_caller)]
            fn try_lock_exclusive_for(&self, timeout: Self::Duration) -> Option<Self::ExclusiveGuard> {
                use $crate::range::raw::Wait;
                use $crate::rw::watch;
                watch::attempt(self, watch::Mode::Write, || self.write(Wait::at_most(timeout)))
            }

            #[cfg_attr(debug_assertions, track_caller)]
            fn try_lock_exclusive_until(&self, deadline: Self::Instant) -> Option<Self::ExclusiveGuard> {
                use $crate::range::raw::Wait;
                use $crate::rw::watch;
                watch::attempt(self, watch::Mode::Write, || self.write(Wait::Until(deadline)))
            }
        }
    };
}
pub(crate) use raw_rwlock;
