//! The keeper of `fcntl` locks: all locks, and the requests that wait for some.
//!
//! ```text
//!   server threads --- requests, with their replies ---> Keeping, under a mutex: locks, and waiting requests in the
//!                                                          ^                     order in which they came
//!   the keeper's thread --- every now and then ------------'
//! ```
//!
//! The server's thread that reads a request also serves it, so no other thread has to wake for that. A request that
//! waits takes no thread of the server. When something is released, all that wait are tried again, by the thread that
//! released it. A request that would wait for itself, by way of others, is refused as a deadlock.
//!
//! A signal ends a wait. The kernel says so by a message that `fuser` answers by itself, with "not implemented". So
//! while requests wait, the keeper's thread looks whether signals are pending for the threads that wait.

use crate::locks::{Holder, Lock, Locks};
use fuser::{Errno, FileHandle, LockOwner, ReplyEmpty, ReplyLock};
use spanlock::range::Span;
use spanlock::range::raw::Mode;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the keeper looks for signals, if requests wait: a look costs some microseconds for each of them.
const LOOK: Duration = Duration::from_millis(10);

/// What a lock request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// To know at once.
    None,
    /// To wait, in the thread with this number.
    Wait(u32),
}

pub(crate) enum Request {
    Set {
        file: u64,
        lock: Lock,
        patience: Patience,
        reply: ReplyEmpty,
    },
    Clear {
        file: u64,
        owner: u64,
        span: Span,
        reply: ReplyEmpty,
    },
    /// Who is in the way of a lock?
    Test {
        file: u64,
        lock: Lock,
        reply: ReplyLock,
    },
    /// The open file is closed for good.
    Closed {
        file: u64,
        handle: u64,
        reply: ReplyEmpty,
    },
}

/// Dropping it ends the keeper; requests that wait are then refused.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    keeping: Mutex<Keeping>,
    /// Locks that are held, and requests that wait.
    busy: AtomicUsize,
    /// Told when a request waits, and when the keeper ends.
    news: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Keeping> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the keeper's thread does.
    fn watch(&self) {
        let mut keeping = self.lock();
        while !keeping.ends {
            keeping = if keeping.waiting.is_empty() {
                let woken = self.news.wait(keeping);
                woken.unwrap_or_else(PoisonError::into_inner)
            } else {
                let woken = self.news.wait_timeout(keeping, LOOK);
                let (mut keeping, waited) = woken.unwrap_or_else(PoisonError::into_inner);
                if waited.timed_out() {
                    keeping.look_for_signals();
                    keeping.count(&self.busy);
                }
                keeping
            };
        }
        for waiting in keeping.waiting.drain(..) {
            waiting.reply.error(Errno::EINTR);
        }
    }
}

impl Keeper {
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let watched = Arc::clone(&shared);
        let thread = thread::Builder::new().name("keeper".to_owned());
        Ok(Self {
            shared,
            thread: Some(thread.spawn(move || watched.watch())?),
        })
    }

    /// Whether no locks are held and none are waited for. A thread that has got a lock, or given it back, sees that.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.busy.load(Ordering::Acquire) == 0
    }

    /// Replies now, or when what the request waits for is there.
    pub(crate) fn serve(&self, request: Request) {
        let Shared { busy, news, .. } = &*self.shared;
        let mut keeping = self.shared.lock();
        let none_waited = keeping.waiting.is_empty();
        keeping.serve(request, busy);
        keeping.count(busy);
        if none_waited && !keeping.waiting.is_empty() {
            news.notify_one();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.news.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

/// A request that waits.
struct Waiting {
    file: u64,
    lock: Lock,
    /// The thread that waits.
    thread: u32,
    /// Whether a signal was pending at the last look.
    signalled: bool,
    reply: ReplyEmpty,
}

#[derive(Default)]
struct Keeping {
    locks: Locks,
    waiting: Vec<Waiting>,
    ends: bool,
}

impl Keeping {
    /// Before each reply: who gets it knows that it has a lock.
    fn count(&self, busy: &AtomicUsize) {
        busy.store(self.locks.count() + self.waiting.len(), Ordering::Release);
    }

    fn serve(&mut self, request: Request, busy: &AtomicUsize) {
        match request {
            Request::Set {
                file,
                lock,
                patience,
                reply,
            } => {
                if self.locks.set(file, lock) {
                    self.count(busy);
                    reply.ok();
                    // A lock for readers may replace one for a writer.
                    self.try_again(file, busy);
                } else {
                    self.refuse_or_wait(file, lock, patience, reply);
                }
            }
            Request::Clear {
                file,
                owner,
                span,
                reply,
            } => {
                let cleared = self.locks.clear(file, owner, span);
                self.count(busy);
                reply.ok();
                if cleared {
                    self.try_again(file, busy);
                }
            }
            Request::Test { file, lock, reply } => match self.locks.in_the_way(file, &lock).first()
            {
                Some(found) => reply.locked(
                    found.span.start(),
                    found.span.last(),
                    kind_of(found.mode),
                    found.holder.pid,
                ),
                None => reply.locked(lock.span.start(), lock.span.last(), libc::F_UNLCK, 0),
            },
            Request::Closed {
                file,
                handle,
                reply,
            } => {
                let cleared = self.locks.clear_handle(file, handle);
                self.count(busy);
                reply.ok();
                if cleared {
                    self.try_again(file, busy);
                }
            }
        }
    }

    fn refuse_or_wait(&mut self, file: u64, lock: Lock, patience: Patience, reply: ReplyEmpty) {
        match patience {
            Patience::None => reply.error(Errno::EAGAIN),
            Patience::Wait(_) if self.would_wait_for_itself(file, &lock) => {
                reply.error(Errno::EDEADLK);
            }
            Patience::Wait(thread) => self.waiting.push(Waiting {
                file,
                lock,
                thread,
                signalled: false,
                reply,
            }),
        }
    }

    /// Whether an owner in the way waits, directly or not, for what this lock's owner has.
    fn would_wait_for_itself(&self, file: u64, lock: &Lock) -> bool {
        let owners_before = |file, lock| {
            let found = self.locks.in_the_way(file, lock);
            found.into_iter().map(|found| found.holder.owner)
        };
        let mut seen: Vec<u64> = owners_before(file, lock).collect();
        let mut next = 0;
        while let Some(&owner) = seen.get(next) {
            if owner == lock.holder.owner {
                return true;
            }
            next += 1;
            let its = self.waiting.iter();
            for waiting in its.filter(|waiting| waiting.lock.holder.owner == owner) {
                for before in owners_before(waiting.file, &waiting.lock) {
                    if !seen.contains(&before) {
                        seen.push(before);
                    }
                }
            }
        }
        false
    }

    fn try_again(&mut self, file: u64, busy: &AtomicUsize) {
        let mut index = 0;
        while let Some(waiting) = self.waiting.get(index) {
            if waiting.file == file && self.locks.set(file, waiting.lock) {
                let granted = self.waiting.remove(index);
                self.count(busy);
                granted.reply.ok();
                // It may have replaced a lock of its owner, and so have made room for one that came before.
                index = 0;
            } else {
                index += 1;
            }
        }
    }

    /// A signal that is pending at two looks one after the other is one that the waiting thread alone can take.
    fn look_for_signals(&mut self) {
        let mut index = 0;
        while let Some(waiting) = self.waiting.get_mut(index) {
            let before = waiting.signalled;
            waiting.signalled = is_signalled(waiting.thread);
            if before && waiting.signalled {
                self.waiting.remove(index).reply.error(Errno::EINTR);
            } else {
                index += 1;
            }
        }
    }
}

/// Whether a signal is pending for a thread that it does not block. A thread that is gone is signalled, too.
fn is_signalled(thread: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{thread}/status")) else {
        return true;
    };
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
            .unwrap_or(0)
    };
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") != 0
}

/// The kernel's number of a lock's kind.
fn kind_of(mode: Mode) -> i32 {
    match mode {
        Mode::Shared => libc::F_RDLCK,
        Mode::Exclusive => libc::F_WRLCK,
    }
}

/// What a lock request of the kernel asks for. `last` belongs to the range.
pub(crate) struct Asked {
    pub(crate) holder: Holder,
    pub(crate) start: u64,
    pub(crate) last: u64,
    pub(crate) kind: i32,
}

impl Asked {
    /// The lock, or `None` to unlock.
    ///
    /// # Errors
    /// When the range is reversed, or the kind is none.
    pub(crate) fn parse(&self) -> Result<(Span, Option<Lock>), Errno> {
        let span = Span::new(self.start..=self.last);
        let span = span.ok().flatten().ok_or(Errno::EINVAL)?;
        let mode = match self.kind {
            libc::F_RDLCK => Mode::Shared,
            libc::F_WRLCK => Mode::Exclusive,
            libc::F_UNLCK => return Ok((span, None)),
            _ => return Err(Errno::EINVAL),
        };
        let holder = self.holder;
        Ok((span, Some(Lock { span, mode, holder })))
    }
}

/// What a lock request of the kernel asks for.
pub(crate) fn asked(
    handle: FileHandle,
    owner: LockOwner,
    (start, last): (u64, u64),
    kind: i32,
    pid: u32,
) -> Asked {
    let holder = Holder {
        owner: owner.0,
        handle: handle.0,
        pid,
    };
    Asked {
        holder,
        start,
        last,
        kind,
    }
}
