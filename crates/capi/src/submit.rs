//! Requests of callers that must not block: a thread of the library waits for them, and holds what they get.
//!
//! A range belongs to the thread that acquired it. So each request has a thread, from the moment it waits until its
//! range is released:
//!
//! ```text
//!   program                     request                thread of the library
//!   -------                     -------                ---------------------
//!   submit ------------------>  waiting  <------------ waits for the range
//!                                  |                        |
//!   cancel: ended  <---------------+----------------> granted: calls back, or writes to the eventfd
//!                                                           |
//!   release: ended ---------------------------------> releases the range
//! ```
//!
//! A request has one state, under its mutex, so a cancellation and a grant that meet have an order. A thread that waits
//! for a range cannot be interrupted. It waits in slices, each as long as all before, and looks at the state in
//! between: so a request that is cancelled gives up its place in the lock's queue after as long as it has waited, at
//! the latest.
//!
//! In a forked child the threads are gone. The child begins with no requests, and knows none of its parent's.

use crate::answer::{Answer, Refused, answer, ensure, place};
use crate::handle::{Handle, Range, mode};
use crate::holds::Token;
use crate::sanitizer;
use libc::{EAGAIN, EALREADY, EBADF, EINPROGRESS, EINVAL, c_int, c_void};
use prim::atomic::{AtomicPtr, AtomicU64, Ordering};
use prim::clock::{Duration, Instant};
use prim::thread::ForkHook;
use spanlock::range::Span;
use spanlock::range::raw::{Mode, Wait};
use spanlock::range::slots;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{mem, ptr, thread};

/// A submitted request, which is never used for another one. Zero is none.
pub type RequestId = u64;

/// Called once, when a submitted request is granted: with what was given to `spanlock_range_lock_submit`, and the token
/// by which any thread releases the range.
///
/// It runs on a thread of the library. It may call every function of the library, but must not wait for long: the
/// release of its own range waits for its return. It must not throw or jump out.
pub type GrantCallback = Option<unsafe extern "C" fn(argument: *mut c_void, token: Token)>;

/// How a caller learns of a grant.
enum Notify {
    Call(unsafe extern "C" fn(*mut c_void, Token), Argument),
    /// A copy of the caller's descriptor.
    Count(File),
}

/// What a callback gets.
struct Argument(*mut c_void);

// SAFETY: the library only passes it on, and the header says on which thread the callback runs.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}

/// Where a request stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Granted(Mode),
    /// Cancelled or released.
    Ended,
}

struct Request {
    id: RequestId,
    lock: Arc<Handle>,
    span: Option<Span>,
    mode: Mode,
    notify: Notify,
    standing: Mutex<Standing>,
    changed: Condvar,
}

struct Standing {
    state: State,
    /// The thread of the library, as listings name it, once it has begun.
    thread: Option<u32>,
}

/// A mutex of this module. No user's code runs under one, so a panic under it is a bug of the library, and no reason to
/// fail again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Request {
    /// Acquires the range, unless the request is cancelled meanwhile.
    fn await_grant(&self) -> Option<Option<slots::Token>> {
        let Some(span) = self.span else {
            return Some(None);
        };
        let mut slice = FIRST_SLICE;
        while lock(&self.standing).state == State::Waiting {
            let wait = Wait::Until(Instant::now() + slice);
            if let Some(token) = self.lock.acquire(self.mode, span, wait) {
                return Some(Some(token));
            }
            slice *= 2;
        }
        None
    }

    /// What the thread of the library does.
    fn serve(&self) {
        lock(&self.standing).thread = Some(prim::thread::id());
        let Some(mut token) = self.await_grant() else {
            return;
        };
        let mut standing = lock(&self.standing);
        if standing.state == State::Waiting {
            standing.state = State::Granted(self.mode);
            drop(standing);
            self.notify();
            standing = lock(&self.standing);
        }
        let mut held = self.mode;
        loop {
            match standing.state {
                State::Granted(Mode::Shared) if held == Mode::Exclusive => {
                    held = Mode::Shared;
                    // SAFETY: this thread has acquired it, exclusively, in this lock.
                    token = token.map(|token| unsafe { self.lock.downgrade(token) });
                }
                State::Ended => break,
                State::Granted(_) | State::Waiting => {
                    standing = self
                        .changed
                        .wait(standing)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        drop(standing);
        if let Some(token) = token {
            // SAFETY: this thread has acquired it in this lock.
            unsafe { self.lock.release(token) };
        }
    }

    fn notify(&self) {
        match &self.notify {
            Notify::Call(callback, argument) => sanitizer::heeding(|| {
                sanitizer::acquired(&*self.lock);
                // SAFETY: the caller of `submit` has promised that the callback may be called with the argument.
                unsafe { callback(argument.0, Token::of_request(self.id)) };
            }),
            // It fails if the count is full: then the caller has been told often enough.
            Notify::Count(file) => drop((&mut &*file).write(&1_u64.to_ne_bytes())),
        }
    }
}

/// The first time that a thread waits before it looks whether its request was cancelled.
const FIRST_SLICE: Duration = Duration::from_secs(1);

/// How long a thread of the library stays when it has nothing to do.
const IDLE: Duration = Duration::from_secs(2);

/// The threads of the library, and the requests that they serve or will serve.
struct Pool {
    /// The identifiers of this process are larger.
    first: RequestId,
    work: Mutex<Work>,
    arrived: Condvar,
}

#[derive(Default)]
struct Work {
    requests: HashMap<RequestId, Arc<Request>>,
    queue: VecDeque<Arc<Request>>,
    idle: usize,
}

/// The identifier of the last request.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The pool of this process; null before the first request, and in a forked child.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// Runs in a forked child. The pool of its parent stays where it is: a thread may have been in the middle of it.
extern "C" fn after_fork() {
    POOL.store(ptr::null_mut(), Ordering::Relaxed);
}

/// The pool, if a request was submitted in this process.
fn known_pool() -> Option<&'static Pool> {
    // Acquire: pairs with the Release in `pool`. SAFETY: pools live for ever.
    unsafe { POOL.load(Ordering::Acquire).as_ref() }
}

fn pool() -> &'static Pool {
    static FORK: ForkHook = ForkHook::new(after_fork);
    FORK.register();
    if let Some(pool) = known_pool() {
        return pool;
    }
    let fresh = Box::into_raw(Box::new(Pool {
        first: LAST.load(Ordering::Relaxed),
        work: Mutex::default(),
        arrived: Condvar::new(),
    }));
    match POOL.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: published, so it lives for ever.
        Ok(_) => unsafe { &*fresh },
        Err(theirs) => {
            // SAFETY: made just above, and nobody else knows it.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: pools live for ever.
            unsafe { &*theirs }
        }
    }
}

impl Pool {
    /// Has a thread serve a request. EAGAIN, if there is none and the system gives no more.
    fn serve(&'static self, request: Arc<Request>) -> Answer {
        let mut work = lock(&self.work);
        work.requests.insert(request.id, Arc::clone(&request));
        // A request that waited for the thread of another might wait for ever.
        if work.idle <= work.queue.len() {
            if !with_signals_blocked(|| self.begin_thread()) {
                work.requests.remove(&request.id);
                return Err(Refused(EAGAIN));
            }
            work.idle += 1; // It will look at the queue.
        }
        work.queue.push_back(request);
        drop(work);
        self.arrived.notify_one();
        Ok(())
    }

    fn begin_thread(&'static self) -> bool {
        let thread = thread::Builder::new().name("spanlock-submit".to_owned());
        thread
            .stack_size(STACK)
            .spawn(|| sanitizer::ignoring(|| self.run()))
            .is_ok()
    }

    /// What a thread of the library does: it has been counted as idle.
    fn run(&self) {
        let mut work = lock(&self.work);
        loop {
            if let Some(request) = work.queue.pop_front() {
                work.idle -= 1;
                drop(work);
                request.serve();
                work = lock(&self.work);
                work.requests.remove(&request.id);
                work.idle += 1;
                continue;
            }
            let (back, waited) = self
                .arrived
                .wait_timeout(work, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            work = back;
            if waited.timed_out() && work.queue.is_empty() {
                work.idle -= 1;
                return;
            }
        }
    }
}

/// The stack of a thread of the library, on which the program's callbacks run.
const STACK: usize = 256 * 1024;

/// Calls `f` with all signals blocked, which a thread that it starts inherits: the program's handlers run on the
/// program's threads.
fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: a signal set is plain data, and zeros are a valid value.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    let mut before = all;
    // SAFETY: the set is live.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: both sets are live.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    let result = f();
    // SAFETY: the set is live, and the third argument may be null.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    result
}

/// Submits a request.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
unsafe fn submit(
    lock: *mut Handle,
    range: Range,
    mode_number: u32,
    notify: impl FnOnce() -> Answer<Notify>,
    request: *mut RequestId,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let id = unsafe { place(request) }?;
        *id = 0;
        // SAFETY: the caller's promise.
        let handle = unsafe { Handle::at(lock) }?;
        let span = range.span()?;
        let mode = mode(mode_number)?;
        let notify = notify()?;
        let pool = pool();
        handle.has_submitted.store(true, Ordering::Relaxed);
        // SAFETY: it came from `Arc::into_raw`, and lives.
        unsafe { Arc::increment_strong_count(lock.cast_const()) };
        // SAFETY: the share counted just above.
        let lock = unsafe { Arc::from_raw(lock.cast_const()) };
        let fresh = Arc::new(Request {
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            lock,
            span,
            mode,
            notify,
            standing: Mutex::new(Standing {
                state: State::Waiting,
                thread: None,
            }),
            changed: Condvar::new(),
        });
        *id = fresh.id; // Before the callback can run.
        pool.serve(fresh).inspect_err(|_| *id = 0)
    })
}

/// Asks for a range without waiting for it. When the request is granted, a thread of the library calls `callback` with
/// `argument` and the token. `request` gets the request's number, by which it can be cancelled, before that.
///
/// Each request that waits or holds a range has a thread of the library, which sleeps. For a range that may be free,
/// first use `spanlock_range_lock_try_write` and its kin, which are faster by far.
///
/// EINVAL: a null pointer, other than `argument`; an unknown mode; a reversed range. EAGAIN: the system gives no more
/// threads.
///
/// # Safety
/// The pointers are null or valid; the lock lives; the callback may be called on any thread.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_submit(
    lock: *mut Handle,
    range: Range,
    mode: u32,
    callback: GrantCallback,
    argument: *mut c_void,
    request: *mut RequestId,
) -> c_int {
    let notify = || {
        let callback = callback.ok_or(Refused(EINVAL))?;
        Ok(Notify::Call(callback, Argument(argument)))
    };
    // SAFETY: the caller's promise.
    unsafe { submit(lock, range, mode, notify, request) }
}

/// As `spanlock_range_lock_submit`, but adds one to the eventfd `descriptor` when the request is granted. The token is
/// then to be had by `spanlock_range_lock_take`. The descriptor may be closed at any time, and may serve many requests.
///
/// EBADF: it is not open.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_submit_eventfd(
    lock: *mut Handle,
    range: Range,
    mode: u32,
    descriptor: c_int,
    request: *mut RequestId,
) -> c_int {
    let notify = || {
        // SAFETY: it takes a descriptor, open or not, and a number.
        let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        ensure(copy >= 0, EBADF)?;
        // SAFETY: a fresh descriptor, which nobody else closes.
        Ok(Notify::Count(File::from(unsafe {
            OwnedFd::from_raw_fd(copy)
        })))
    };
    // SAFETY: the caller's promise.
    unsafe { submit(lock, range, mode, notify, request) }
}

/// Calls `f` with where a request of this lock stands. EINVAL if there was none of that number; EALREADY if it has
/// ended.
fn with_standing<R>(
    handle: &Handle,
    id: RequestId,
    f: impl FnOnce(&Request, &mut Standing) -> Answer<R>,
) -> Answer<R> {
    let pool = known_pool().ok_or(Refused(EINVAL))?;
    ensure(
        (pool.first + 1..=LAST.load(Ordering::Relaxed)).contains(&id),
        EINVAL,
    )?;
    let request = lock(&pool.work).requests.get(&id).cloned();
    let request = request.ok_or(Refused(EALREADY))?;
    ensure(ptr::eq(&*request.lock, handle), EINVAL)?;
    let mut standing = lock(&request.standing);
    f(&request, &mut standing)
}

/// Cancels a request that still waits: its callback has not run and will not run, its eventfd is not written to, and it
/// is over.
///
/// EALREADY: it was granted before, or has ended; then its callback has run, runs or is about to, and the range is to
/// be released by the token. EINVAL: there is no such request of this lock.
///
/// # Safety
/// The pointer is null or valid; the lock lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_cancel(
    lock: *mut Handle,
    request: RequestId,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { Handle::at(lock) }?;
        with_standing(handle, request, |_, standing| {
            ensure(standing.state == State::Waiting, EALREADY)?;
            standing.state = State::Ended;
            Ok(())
        })
    })
}

/// The token of a request that was granted. EINPROGRESS: it still waits. EALREADY: it has ended. EINVAL: there is no
/// such request of this lock.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_take(
    lock: *mut Handle,
    request: RequestId,
    token: *mut Token,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let token = unsafe { place(token) }?;
        *token = Token::NONE;
        // SAFETY: the caller's promise.
        let handle = unsafe { Handle::at(lock) }?;
        *token = with_standing(handle, request, |request, standing| match standing.state {
            State::Waiting => Err(Refused(EINPROGRESS)),
            State::Granted(_) => Ok(Token::of_request(request.id)),
            State::Ended => Err(Refused(EALREADY)),
        })?;
        Ok(())
    })
}

/// What a token of a granted request is told, if it is still one; else EINVAL.
fn change(handle: &Handle, id: RequestId, to: impl FnOnce(Mode) -> State) -> Answer {
    let changed = with_standing(handle, id, |request, standing| {
        let State::Granted(mode) = standing.state else {
            return Err(Refused(EINVAL));
        };
        standing.state = to(mode);
        request.changed.notify_one();
        Ok(())
    });
    changed.map_err(|_| Refused(EINVAL)) // As for any token that was released before.
}

/// Releases what a submitted request holds.
pub(crate) fn release(handle: &Handle, id: RequestId) -> Answer {
    change(handle, id, |_| State::Ended)
}

/// Shares what a submitted request holds.
pub(crate) fn downgrade(handle: &Handle, id: RequestId) -> Answer {
    change(handle, id, |_| State::Granted(Mode::Shared))
}

/// What is left of a lock's submitted requests.
pub(crate) enum Submitted {
    /// One waits or holds a range.
    Used,
    /// These threads of the library are about to give up or to release.
    Leaving(Vec<u32>),
}

/// The submitted requests of a lock that is to be destroyed.
pub(crate) fn leaving(handle: &Handle) -> Submitted {
    let mut threads = Vec::new();
    let Some(pool) = known_pool().filter(|_| handle.has_submitted.load(Ordering::Relaxed)) else {
        return Submitted::Leaving(threads);
    };
    let requests: Vec<_> = lock(&pool.work).requests.values().cloned().collect();
    for request in requests
        .iter()
        .filter(|request| ptr::eq(&*request.lock, handle))
    {
        let standing = lock(&request.standing);
        if standing.state != State::Ended {
            return Submitted::Used;
        }
        threads.extend(standing.thread);
    }
    Submitted::Leaving(threads)
}
