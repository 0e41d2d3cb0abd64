//! Tasks that wait for a reader-writer lock.
//!
//! A lock here sleeps in the kernel, and its releases know nothing of tasks. So tasks wait beside it, in a list of
//! their own, and each release looks whether there are any:
//!
//! ```text
//!   task                                        thread or task that releases
//!   ----                                        ----------------------------
//!   try: the lock is taken                      release the lock
//!   listed := 1, with its waker, under a mutex  light fence              (task-released)
//!   heavy fence              (task-listed)      listed?
//!   try again: taken                              yes: wake the first of the list
//!     yes: return Pending
//! ```
//!
//! To wake a reader is to wake all readers of the list, since they read together.
//!
//! One of the two fences is first. Either the release sees that a task is listed, or the second try sees the release.
//!
//! A task that is woken tries again when it is polled, and that may be never. So it has a turn of a millisecond, as the
//! tasks of range locks have: then the next one is woken. While a woken task has not been polled, releases wake no
//! other: the timer does. A woken task that is dropped wakes the next.
//!
//! A try that fails may have been in the way of another for a moment: a reader is counted before it finds a writer, and
//! a writer comes before it finds a reader. No release follows. So a thread whose try has failed looks for tasks as if
//! it had released, and so does a task that has tried in vain again and again while nobody holds the lock.
//!
//! # Edges
//!
//! - **task-listed** / **task-released**: the two fences.
//! - **failed-looks**: a thread whose try has failed looks for tasks.
//! - **task-tries-again**: a task whose second try has failed tries again while nobody holds the lock. What was in its
//!   way may be the try of another task, which fails as well because of it, and looks for nobody. After some tries it
//!   wakes the first task, as a release does: so whoever is dropped or never polled, another one tries.
//! - **woken-turn-ends**: the timer wakes the next task.
//! - **woken-passes-on**: a woken task that is dropped does so, and a reader that gets in wakes all readers.
//! - **read-passes-on**: a task that is to write, and finds the lock read, wakes all readers: they sleep behind it, and
//!   each release would wake it alone. That mends two tries that were in each other's way as well, and each of which
//!   still sees the other: a writer's is in the way of a reader's then, and wakes it.

mod list;

use self::list::{Ended, Tasks};
use super::sending::{ForeignRelease, SendGuards, SentToken};
use crate::range::mode::Mode;
use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use prim::atomic::{Ordering, fence};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// How often a poll tries while nobody holds the lock. (Once in models: each try multiplies their schedules.)
const TRIES: u32 = prim::sized(3, 1) as u32;

/// A lock that threads and tasks may wait for. Its guards may be sent to other threads, as those of [`SendGuards`].
///
/// ```
/// use lock_api::RwLock;
/// use spanlock::rw::{AwaitRwLock, Bravo, ForTasks, FutexRwLock};
///
/// static CONFIG: RwLock<ForTasks<Bravo<FutexRwLock>>, u32> = RwLock::new(5);
///
/// async fn serve() -> u32 {
///     let config = CONFIG.read_async().await;
///     *config
/// }
/// # fn is_send(_: impl Send) {}
/// # is_send(serve());
/// ```
///
/// # When not to use it
/// Where only threads wait. And where readers come without end: a task that waits to write holds nobody back, also no
/// task that came to read after it, so it may wait for long. [`RangeLocked`](crate::range::RangeLocked) with one
/// element has one fair queue for threads and tasks.
///
/// # Cost
/// Those of the lock inside, and a look at a word for each release. A task that waits pays a fence that interrupts the
/// other processors of the process, some microseconds.
///
/// # Fairness
/// Threads: that of the lock inside. Tasks are woken one after another, in the order in which they came to wait, but
/// all readers with the first of them: they read together. Who comes just then may be faster.
///
/// There are no upgradable readers, also where the lock inside has them, as `Bravo<FutexRwLock>` does. [`SendGuards`]
/// has those of its lock.
#[derive(Debug)]
pub struct ForTasks<L> {
    lock: SendGuards<L>,
    tasks: Tasks,
}

impl<L> ForTasks<L> {
    prim::const_fn! {
        /// A lock for tasks, too.
        #[must_use]
        pub const fn new(lock: L) -> Self {
            Self {
                lock: SendGuards::new(lock),
                tasks: Tasks::new(),
            }
        }
    }
}

impl<L: ForeignRelease> ForTasks<L> {
    /// The lock that threads wait for.
    pub(super) fn inside(&self) -> &SendGuards<L> {
        &self.lock
    }

    /// How somebody holds it, or is about to find out that his try has failed. Who asks has failed himself.
    fn taken(&self) -> Option<Mode> {
        // Pairs with itself. It is for locks of the program's, in which the tries of two writers may be in each other's
        // way: the one whose fence is second does not find the other's. No lock of this library has such tries, so no
        // model can tell.
        fence(Ordering::SeqCst);
        if self.lock.is_locked_exclusive() {
            return Some(Mode::Exclusive);
        }
        self.lock.is_locked().then_some(Mode::Shared)
    }

    /// Tries to acquire that one.
    pub(super) fn tried<G>(&self, attempt: impl FnOnce(&SendGuards<L>) -> Option<G>) -> Option<G> {
        self.tasks.tried(attempt(&self.lock))
    }
}

impl<L: Default> Default for ForTasks<L> {
    fn default() -> Self {
        Self::new(L::default())
    }
}

// SAFETY: the lock inside excludes, and any thread may release it.
unsafe impl<L: ForeignRelease> RawRwLock for ForTasks<L> {
    const INIT: Self = prim::initial!(Self {
        lock: SendGuards::INIT,
        tasks: Tasks::new(),
    });

    type SharedGuard = SentToken<L::SharedGuard>;
    type ExclusiveGuard = SentToken<L::ExclusiveGuard>;

    #[inline]
    fn lock_shared(&self) -> Self::SharedGuard {
        self.lock.lock_shared()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        let acquired = self.lock.try_lock_shared();
        self.tasks.tried(acquired)
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock_shared(guard) };
        self.tasks.released();
    }

    #[inline]
    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        self.lock.lock_exclusive()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        let acquired = self.lock.try_lock_exclusive();
        self.tasks.tried(acquired)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock_exclusive(guard) };
        self.tasks.released();
    }

    fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.lock.is_locked_exclusive()
    }
}

// SAFETY: the timed forms acquire as those of the lock inside do.
unsafe impl<L: ForeignRelease + RawRwLockTimed> RawRwLockTimed for ForTasks<L> {
    type Duration = L::Duration;
    type Instant = L::Instant;

    fn try_lock_shared_for(&self, timeout: L::Duration) -> Option<Self::SharedGuard> {
        let acquired = self.lock.try_lock_shared_for(timeout);
        self.tasks.tried(acquired)
    }

    fn try_lock_shared_until(&self, deadline: L::Instant) -> Option<Self::SharedGuard> {
        let acquired = self.lock.try_lock_shared_until(deadline);
        self.tasks.tried(acquired)
    }

    fn try_lock_exclusive_for(&self, timeout: L::Duration) -> Option<Self::ExclusiveGuard> {
        let acquired = self.lock.try_lock_exclusive_for(timeout);
        self.tasks.tried(acquired)
    }

    fn try_lock_exclusive_until(&self, deadline: L::Instant) -> Option<Self::ExclusiveGuard> {
        let acquired = self.lock.try_lock_exclusive_until(deadline);
        self.tasks.tried(acquired)
    }
}

// SAFETY: as the lock inside.
unsafe impl<L: ForeignRelease + RawRwLockDowngrade> RawRwLockDowngrade for ForTasks<L> {
    unsafe fn downgrade(&self, guard: Self::ExclusiveGuard) -> Self::SharedGuard {
        // SAFETY: the caller's promise.
        let shared = unsafe { self.lock.downgrade(guard) };
        self.tasks.released();
        shared
    }
}

/// How tasks wait for a lock that holds a value: one of `lock_api`, over [`ForTasks`].
pub trait AwaitRwLock<L: ForeignRelease, T: ?Sized> {
    /// Reads, beside other readers, when it is awaited.
    fn read_async(&self) -> ReadAsync<'_, L, T>;

    /// Writes, alone, when it is awaited.
    fn write_async(&self) -> WriteAsync<'_, L, T>;
}

impl<L: ForeignRelease, T: ?Sized> AwaitRwLock<L, T> for RwLock<ForTasks<L>, T> {
    fn read_async(&self) -> ReadAsync<'_, L, T> {
        ReadAsync(Request::new(self))
    }

    fn write_async(&self) -> WriteAsync<'_, L, T> {
        WriteAsync(Request::new(self))
    }
}

/// A request, from poll to poll: plain data.
struct Request<'a, L: ForeignRelease, T: ?Sized> {
    lock: &'a RwLock<ForTasks<L>, T>,
    /// Its name in the list, once it is there.
    name: Option<u64>,
}

impl<'a, L: ForeignRelease, T: ?Sized> Request<'a, L, T> {
    fn new(lock: &'a RwLock<ForTasks<L>, T>) -> Self {
        Self { lock, name: None }
    }

    fn raw(&self) -> &'a ForTasks<L> {
        // SAFETY: nothing is released by it but what it has acquired by itself.
        unsafe { self.lock.raw() }
    }

    fn poll<G>(
        &mut self,
        why: Ended,
        waker: &Waker,
        try_lock: impl Fn(&SendGuards<L>) -> Option<G>,
    ) -> Poll<G> {
        // By the lock inside: a task that fails does not look for others, which would fail as it does.
        let raw = self.raw();
        let mut guard = try_lock(&raw.lock);
        if guard.is_none() {
            let reads = matches!(why, Ended::Reads);
            raw.tasks.list(&mut self.name, reads, waker);
            // A release may have come before it was listed. Somebody may be in the way who does not hold the lock, and
            // does not release it [task-tries-again].
            for _ in 0..TRIES {
                guard = try_lock(&raw.lock);
                if guard.is_some() || raw.taken().is_some() {
                    break;
                }
            }
        }
        match guard {
            Some(guard) => {
                self.end(why);
                Poll::Ready(guard)
            }
            None => {
                match raw.taken() {
                    // [task-tries-again] The first of those that wait does, in another poll. This task may be dropped
                    // before that, or never polled.
                    None if prim::intact!("task-tries-again") => raw.tasks.wake(),
                    // [read-passes-on]
                    Some(Mode::Shared)
                        if matches!(why, Ended::Writes) && prim::intact!("read-passes-on") =>
                    {
                        raw.tasks.wake_readers();
                    }
                    _ => {}
                }
                Poll::Pending
            }
        }
    }

    fn end(&mut self, why: Ended) {
        if let Some(name) = self.name.take() {
            self.raw().tasks.unlist(name, why);
        }
    }
}

impl<L: ForeignRelease, T: ?Sized> Drop for Request<'_, L, T> {
    fn drop(&mut self) {
        self.end(Ended::Dropped);
    }
}

/// A future that is ready when the lock is held: see [`AwaitRwLock`].
macro_rules! futures {
    ($($(#[$documented:meta])* $Async:ident of $Guard:ident by $why:ident, $try_lock:ident, $make:ident;)+) => {$(
        $(#[$documented])*
        ///
        /// Dropping it ends the wait, and leaves nothing behind. Its output may be sent to other threads.
        #[must_use = "futures do nothing until they are polled"]
        pub struct $Async<'a, L: ForeignRelease, T: ?Sized>(Request<'a, L, T>);

        impl<'a, L: ForeignRelease, T: ?Sized> Future for $Async<'a, L, T> {
            type Output = $Guard<'a, ForTasks<L>, T>;

            fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                let lock = self.0.lock;
                let polled = self.0.poll(Ended::$why, context.waker(), SendGuards::$try_lock);
                // SAFETY: the lock has just granted it, and no guard was made of it.
                polled.map(|token| unsafe { lock.$make(token) })
            }
        }

        impl<L: ForeignRelease, T: ?Sized> fmt::Debug for $Async<'_, L, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($Async))
            }
        }
    )+};
}

futures! {
    /// Reads a lock when it is awaited: from [`AwaitRwLock::read_async`].
    ReadAsync of RwLockReadGuard by Reads, try_lock_shared, make_read_guard_unchecked;
    /// Writes a lock when it is awaited: from [`AwaitRwLock::write_async`].
    WriteAsync of RwLockWriteGuard by Writes, try_lock_exclusive, make_write_guard_unchecked;
}
