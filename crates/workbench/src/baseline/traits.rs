//! The traits of `lock_api` for locks that have one path for every kind of waiting.

/// Implements `lock_api`'s traits, also the timed ones, for a lock with the methods `new`, `read` and `write` (which
/// take a [`Wait`](spanlock::range::raw::Wait) and grant if that is for ever), `leave_shared`, `leave_exclusive`,
/// `is_locked` and `is_locked_exclusive`. The type is that of what `read` and `write` return.
///
/// The caller of the macro states why the lock excludes: see "SAFETY (of the traits)" above each call.
macro_rules! raw_rwlock {
    ([$($generics:tt)*] $lock:ty, $token:ty) => {
        // SAFETY: stated by the caller of this macro, above the call.
        unsafe impl<$($generics)*> ::lock_api::RawRwLock for $lock {
            const INIT: Self = ::prim::initial!(Self::new());

            type SharedGuard = $token;
            type ExclusiveGuard = $token;

            raw_rwlock! { @$token: lock_shared, try_lock_shared, unlock_shared by read, leave_shared }
            raw_rwlock! { @$token: lock_exclusive, try_lock_exclusive, unlock_exclusive by write, leave_exclusive }

            fn is_locked(&self) -> bool {
                self.is_locked()
            }

            fn is_locked_exclusive(&self) -> bool {
                self.is_locked_exclusive()
            }
        }

        // SAFETY: the timed forms acquire by the same methods as the untimed ones, or not at all.
        unsafe impl<$($generics)*> ::lock_api::RawRwLockTimed for $lock {
            type Duration = ::prim::clock::Duration;
            type Instant = ::prim::clock::Instant;

            raw_rwlock! { @timed $token: try_lock_shared_for, try_lock_shared_until by read }
            raw_rwlock! { @timed $token: try_lock_exclusive_for, try_lock_exclusive_until by write }
        }
    };
    (@$token:ty: $lock:ident, $try_lock:ident, $unlock:ident by $enter:ident, $leave:ident) => {
        #[inline]
        fn $lock(&self) -> $token {
            let granted = self.$enter(::spanlock::range::raw::Wait::Forever);
            granted.expect("a wait without end ends with a grant")
        }

        #[inline]
        fn $try_lock(&self) -> Option<$token> {
            self.$enter(::spanlock::range::raw::Wait::Never)
        }

        #[inline]
        unsafe fn $unlock(&self, token: $token) {
            self.$leave(token);
        }
    };
    (@timed $token:ty: $lock_for:ident, $lock_until:ident by $enter:ident) => {
        fn $lock_for(&self, timeout: Self::Duration) -> Option<$token> {
            self.$enter(::spanlock::range::raw::Wait::at_most(timeout))
        }

        fn $lock_until(&self, deadline: Self::Instant) -> Option<$token> {
            self.$enter(::spanlock::range::raw::Wait::Until(deadline))
        }
    };
}
pub(super) use raw_rwlock;
