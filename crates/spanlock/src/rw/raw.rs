//! From one path for every kind of waiting to the traits of `lock_api`, which have a method for each.

use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A token with nothing in it, and a part of all others. It stays on its thread; see
/// [`SendGuards`](super::SendGuards).
#[derive(Debug)]
pub struct ThreadBound {
    _marker: PhantomData<dyn StaysOnItsThreadUseSendGuardsOrForTasks>,
}

/// What the compiler names where a guard would leave its thread, or live over an `.await`. The guards of a lock in
/// [`SendGuards`](super::SendGuards) may be sent, and those of one in [`ForTasks`](super::ForTasks) as well.
trait StaysOnItsThreadUseSendGuardsOrForTasks: UnwindSafe + RefUnwindSafe + Unpin {}

// SAFETY: it has no data that threads could share.
unsafe impl Sync for ThreadBound {}

impl ThreadBound {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        let _marker = PhantomData;
        Self { _marker }
    }
}

/// A token in which a lock keeps something until the release. It stays on its thread as [`ThreadBound`] does.
#[derive(Debug)]
pub struct Token<T>(T, ThreadBound);

impl<T> Token<T> {
    #[inline(always)]
    pub(crate) const fn new(what: T) -> Self {
        Self(what, ThreadBound::new())
    }

    #[inline(always)]
    pub(crate) fn what(self) -> T {
        self.0
    }
}

/// The result of an acquisition that may wait for ever, which is always granted.
#[inline]
pub(crate) fn granted<T>(acquired: Option<T>) -> T {
    acquired.unwrap_or_else(|| never_granted())
}

#[cold] // Without arguments, because it is part of every acquisition.
fn never_granted() -> ! {
    unreachable!("a wait without end ends with a grant")
}

/// Implements `lock_api`'s traits for a lock with the methods `new`, `read`, `write` (which take a
/// [`Wait`](crate::wait::Wait) and grant if that is forever), `leave_shared`, `leave_exclusive`, `is_locked` and
/// `is_locked_exclusive`. The two types are those of the tokens of `read` and `write`. With `timed`, also implements
/// the timed traits.
///
/// The caller of the macro states why the lock excludes: see "SAFETY (of the traits)" above each call.
macro_rules! raw_rwlock {
    ([$($generics:tt)*] $lock:ty, $shared:ty, $exclusive:ty) => {
        // SAFETY: stated by the caller of this macro, above the call.
        unsafe impl<$($generics)*> ::lock_api::RawRwLock for $lock {
            const INIT: Self = ::prim::initial!(Self::new());

            type SharedGuard = $shared;
            type ExclusiveGuard = $exclusive;

            raw_rwlock! { @methods of Read ($shared):
                lock_shared, try_lock_shared, unlock_shared by read, leave_shared }

            raw_rwlock! { @methods of Write ($exclusive):
                lock_exclusive, try_lock_exclusive, unlock_exclusive by write, leave_exclusive }

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

        // SAFETY: the timed forms acquire by the same methods as the untimed ones, or not at all.
        unsafe impl<$($generics)*> ::lock_api::RawRwLockTimed for $lock {
            type Duration = ::prim::clock::Duration;
            type Instant = ::prim::clock::Instant;

            raw_rwlock! { @timed methods of Read ($shared):
                try_lock_shared_for, try_lock_shared_until by read }

            raw_rwlock! { @timed methods of Write ($exclusive):
                try_lock_exclusive_for, try_lock_exclusive_until by write }
        }
    };
    (@methods of $mode:ident ($guard:ty):
        $lock:ident, $try_lock:ident, $unlock:ident by $enter:ident, $leave:ident) => {
        #[track_caller]
        #[inline]
        fn $lock(&self) -> $guard {
            use $crate::rw::{raw::granted, watch};
            use $crate::wait::Wait;
            watch::acquire(self, watch::Mode::$mode, || granted(self.$enter(Wait::Forever)))
        }

        #[track_caller]
        #[inline]
        fn $try_lock(&self) -> Option<$guard> {
            use $crate::rw::watch;
            use $crate::wait::Wait;
            watch::attempt(self, watch::Mode::$mode, || self.$enter(Wait::Never))
        }

        #[inline]
        unsafe fn $unlock(&self, guard: $guard) {
            use $crate::rw::watch;
            watch::leave(self, watch::Mode::$mode);
            self.$leave(guard);
        }
    };
    (@timed methods of $mode:ident ($guard:ty):
        $lock_for:ident, $lock_until:ident by $enter:ident) => {
        #[track_caller]
        fn $lock_for(&self, timeout: Self::Duration) -> Option<$guard> {
            use $crate::rw::watch;
            use $crate::wait::Wait;
            watch::attempt(self, watch::Mode::$mode, || self.$enter(Wait::at_most(timeout)))
        }

        #[track_caller]
        fn $lock_until(&self, deadline: Self::Instant) -> Option<$guard> {
            use $crate::rw::watch;
            use $crate::wait::Wait;
            watch::attempt(self, watch::Mode::$mode, || self.$enter(Wait::Until(deadline)))
        }
    };
}
pub(crate) use raw_rwlock;
