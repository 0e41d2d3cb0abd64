//! What is asked of a lock by nobody in particular.

use super::super::{Place, RangeLock, RangeMutex};
use super::{Lock, LockBy, TryLock};
use crate::range::keys::{Compare, Key, KeyRangeLock, OverKeys};
use crate::range::owner::Owner;
use crate::range::raw::{Mode, RawOwned, RawOwnedMutex, Wait};
use prim::clock::Duration;
use prim::sync::Arc;
use std::ops::RangeBounds;

#[inline]
#[track_caller]
fn ask<P: Place>(lock: P, range: impl RangeBounds<P::Key>, mode: Mode, wait: Wait) -> LockBy<P> {
    LockBy::new(lock, Owner::anonymous(), range, mode, wait)
}

/// Methods for tasks, of one mode: on a reference, on an `Arc`, and each with a limit of time.
macro_rules! for_tasks {
    (
        $position:ty, $mode:ident;
        $(#[$documented:meta])*
        $lock:ident, $try_lock_for:ident; $lock_owned:ident, $try_lock_owned_for:ident
    ) => {
        $(#[$documented])*
        #[inline]
        #[track_caller]
        pub fn $lock(&self, range: impl RangeBounds<$position>) -> Lock<&Self> {
            Lock(ask(self, range, Mode::$mode, Wait::Forever))
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), but `None` after `timeout`.")]
        ///
        /// # Panics
        /// When the range is reversed.
        #[track_caller]
        pub fn $try_lock_for(&self, range: impl RangeBounds<$position>, timeout: Duration) -> TryLock<&Self> {
            TryLock(ask(self, range, Mode::$mode, Wait::at_most(timeout)))
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), where what is held keeps the lock.")]
        ///
        /// # Panics
        /// When the range is reversed.
        #[track_caller]
        pub fn $lock_owned(self: &Arc<Self>, range: impl RangeBounds<$position>) -> Lock<Arc<Self>> {
            Lock(ask(Arc::clone(self), range, Mode::$mode, Wait::Forever))
        }

        #[doc = concat!("As [`", stringify!($lock_owned), "`](Self::", stringify!($lock_owned), "), but `None` after `timeout`.")]
        ///
        /// # Panics
        /// When the range is reversed.
        #[track_caller]
        pub fn $try_lock_owned_for(
            self: &Arc<Self>,
            range: impl RangeBounds<$position>,
            timeout: Duration,
        ) -> TryLock<Arc<Self>> {
            TryLock(ask(Arc::clone(self), range, Mode::$mode, Wait::at_most(timeout)))
        }
    };
}

impl<L: RawOwned> RangeLock<L> {
    for_tasks! {
        u64, Shared;
        /// As [`read`](Self::read), for a task: a future, which waits without blocking a thread. What is held may be
        /// sent to other threads.
        ///
        /// ```
        /// use spanlock::range::RangeLock;
        ///
        /// static FILE: RangeLock = RangeLock::new();
        ///
        /// async fn serve() {
        ///     let head = FILE.read_async(0..4096).await;
        ///     // Reads, and awaits what it likes.
        ///     drop(head);
        /// }
        /// # fn is_send(_: impl Send) {}
        /// # is_send(serve());
        /// ```
        ///
        /// A guard of a thread is not sent, so a task that keeps one while it awaits cannot be spawned where tasks go
        /// from thread to thread:
        ///
        /// ```compile_fail,E0277
        /// # use spanlock::range::RangeLock;
        /// # static FILE: RangeLock = RangeLock::new();
        /// fn spawn(task: impl Future<Output = ()> + Send) {}
        ///
        /// spawn(async {
        ///     let head = FILE.read(0..4096);
        ///     std::future::ready(()).await;
        ///     drop(head);
        /// });
        /// ```
        ///
        /// # Panics
        /// When the range is reversed.
        read_async, try_read_async_for; read_owned_async, try_read_owned_async_for
    }

    for_tasks! {
        u64, Exclusive;
        /// As [`write`](Self::write), for a task: see [`read_async`](Self::read_async).
        ///
        /// # Panics
        /// When the range is reversed.
        write_async, try_write_async_for; write_owned_async, try_write_owned_async_for
    }
}

impl<L: RawOwnedMutex> RangeMutex<L> {
    for_tasks! {
        u64, Exclusive;
        /// As [`lock`](Self::lock), for a task: a future, which waits without blocking a thread. What is held may be
        /// sent to other threads.
        ///
        /// # Panics
        /// When the range is reversed.
        lock_async, try_lock_async_for; lock_owned_async, try_lock_owned_async_for
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> KeyRangeLock<K, C, L> {
    for_tasks! {
        K, Shared;
        /// As [`read`](Self::read), for a task: a future, which waits without blocking a thread. What is held may be
        /// sent to other threads.
        ///
        /// # Panics
        /// When the range is reversed, or a comparison panics.
        read_async, try_read_async_for; read_owned_async, try_read_owned_async_for
    }

    for_tasks! {
        K, Exclusive;
        /// As [`write`](Self::write), for a task: see [`read_async`](Self::read_async).
        ///
        /// # Panics
        /// When the range is reversed, or a comparison panics.
        write_async, try_write_async_for; write_owned_async, try_write_owned_async_for
    }
}
