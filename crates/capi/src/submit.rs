//! Requests of callers that must not block: the exported functions.
//!
//! Each request has an owner of its own, in whose name a thread of the library waits. So any thread releases what it
//! got, and a cancellation ends the wait.
//!
//! ```text
//!   program                     request                thread of the library
//!   -------                     -------                ---------------------
//!   submit ------------------>  waiting  <------------ waits for the range, in the name of the request's owner
//!                                  |                        |
//!   cancel: ended  <---------------+----------------> granted: calls back, or writes to the eventfd
//!                                  |
//!   release: ended <---------------'
//! ```
//!
//! A request has one state, under its mutex, so a cancellation and a grant that meet have an order.

use crate::answer::{Answer, Refused, answer, ensure};
use crate::handle::{Handle, Range, mode};
use crate::holds::{Asked, Token};
use crate::memory::place;
use crate::owned::Holding;
use crate::{pool, sanitizer};
use libc::{EALREADY, EBADF, EINPROGRESS, EINVAL, c_int, c_void};
use prim::atomic::Ordering;
use prim::sync::Mutex;
use spanlock::range::{Owner, OwnerId};
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::{mem, ptr};

/// A submitted request, which is never used for another one. Zero is none.
pub type RequestId = u64;

/// Called once, when a submitted request is granted: with what was given to `spanlock_range_lock_submit`, and the token
/// by which any thread releases the range.
///
/// It runs on a thread of the library, on a stack of 256 KiB, and may call every function of the library. It must not
/// throw or jump out.
pub type GrantCallback = Option<unsafe extern "C" fn(argument: *mut c_void, token: Token)>;

/// How a caller learns of a grant.
enum Notify {
    Call(unsafe extern "C" fn(*mut c_void, Token), Argument),
    Count(Eventfd),
}

/// A copy of the caller's descriptor.
struct Eventfd(ManuallyDrop<File>);

impl Drop for Eventfd {
    /// By the system call itself, since `close` is a point where the caller's thread may be cancelled.
    fn drop(&mut self) {
        // SAFETY: nothing uses it later.
        let file = unsafe { ManuallyDrop::take(&mut self.0) };
        // SAFETY: the descriptor is nobody else's.
        unsafe { libc::syscall(libc::SYS_close, file.into_raw_fd()) };
    }
}

/// What a callback gets.
struct Argument(*mut c_void);

// SAFETY: the library only passes it on, and the header says on which thread the callback runs.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}

/// Where a request stands.
enum State {
    Waiting,
    Granted(Holding),
    /// Cancelled or released.
    Ended,
}

pub(crate) struct Request {
    pub(crate) id: RequestId,
    /// Before the lock, since what is held is dropped first.
    state: Mutex<State>,
    lock: Arc<Handle>,
    /// Who asks. Nobody else asks in its name.
    owner: Owner,
    /// `None`: an empty range.
    asked: Option<Asked>,
    notify: Notify,
}

impl Request {
    /// Waits for the range, and tells the program. What a thread of the library does.
    pub(crate) fn serve(&self) {
        // SAFETY: the holding goes into the state, and is dropped before the lock, of which the request has a share.
        let by = unsafe { self.lock.lasting() }.by(&self.owner);
        let granted = match self.asked {
            Some(asked) => by.lock(asked.bounds(), asked.mode),
            None => Ok(by.nothing()),
        };
        let Ok(holding) = granted else {
            return; // It was cancelled.
        };
        let mut state = self.state.lock();
        if matches!(*state, State::Waiting) {
            *state = State::Granted(holding);
            drop(state);
            self.notify();
        }
    }

    /// Whether it was cancelled or released.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(*self.state.lock(), State::Ended)
    }

    fn notify(&self) {
        match &self.notify {
            Notify::Call(callback, argument) => sanitizer::heeding(|| {
                sanitizer::acquired(&*self.lock);
                // SAFETY: the caller of `submit` has promised that the callback may be called with the argument.
                unsafe { callback(argument.0, Token::of_request(self.id)) };
            }),
            // It fails if the count is full: then the caller has been told often enough.
            Notify::Count(eventfd) => drop((&mut &*eventfd.0).write(&1_u64.to_ne_bytes())),
        }
    }
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
        let pool = pool::get();
        handle.has_submitted.store(true, Ordering::Relaxed);
        // SAFETY: it came from `Arc::into_raw`, and lives.
        unsafe { Arc::increment_strong_count(lock.cast_const()) };
        // SAFETY: the share counted just above.
        let lock = unsafe { Arc::from_raw(lock.cast_const()) };
        let fresh = Arc::new(Request {
            id: pool::fresh_id(),
            state: Mutex::new(State::Waiting),
            lock,
            owner: Owner::new(),
            asked: span.map(|span| Asked { span, mode }),
            notify,
        });
        *id = fresh.id; // Before the callback can run.
        pool.serve(fresh).inspect_err(|_| *id = 0)
    })
}

/// Asks for a range without waiting for it. When the request is granted, a thread of the library calls `callback` with
/// `argument` and the token. `request` gets the request's number, by which it can be cancelled, before that.
///
/// Each request that waits has a thread of the library, which sleeps. For a range that may be free, first use
/// `spanlock_range_lock_try_write` and its kin, which are faster by far.
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
        let callback = callback.ok_or(Refused::by(EINVAL))?;
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
        let copy = File::from(unsafe { OwnedFd::from_raw_fd(copy) });
        Ok(Notify::Count(Eventfd(ManuallyDrop::new(copy))))
    };
    // SAFETY: the caller's promise.
    unsafe { submit(lock, range, mode, notify, request) }
}

/// Calls `f` with where a request of this lock stands. EINVAL if there was none of that number; EALREADY if it has
/// ended.
fn with_state<R>(
    handle: &Handle,
    id: RequestId,
    f: impl FnOnce(&Request, &mut State) -> Answer<R>,
) -> Answer<R> {
    let pool = pool::known().filter(|pool| pool.had(id));
    let request = pool.ok_or(Refused::by(EINVAL))?.find(id);
    let request = request.ok_or(Refused::by(EALREADY))?;
    ensure(ptr::eq(&*request.lock, handle), EINVAL)?;
    f(&request, &mut request.state.lock())
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
        with_state(handle, request, |request, state| {
            ensure(matches!(state, State::Waiting), EALREADY)?;
            *state = State::Ended;
            request.owner.cancel();
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
        *token = with_state(handle, request, |request, state| match state {
            State::Waiting => Err(Refused::by(EINPROGRESS)),
            State::Granted(_) => Ok(Token::of_request(request.id)),
            State::Ended => Err(Refused::by(EALREADY)),
        })?;
        Ok(())
    })
}

/// Releases what a submitted request holds.
pub(crate) fn release(handle: &Handle, id: RequestId) -> Answer {
    let released = with_state(handle, id, |_, state| {
        match mem::replace(state, State::Ended) {
            State::Granted(holding) => Ok(holding),
            before => {
                *state = before;
                Err(Refused::by(EINVAL))
            }
        }
    });
    drop(released.map_err(of_token)?);
    if let Some(pool) = pool::known() {
        pool.forget(id);
    }
    Ok(())
}

/// Shares what a submitted request holds.
pub(crate) fn downgrade(handle: &Handle, id: RequestId) -> Answer {
    let shared = with_state(handle, id, |_, state| match state {
        State::Granted(holding) => {
            holding.downgrade();
            Ok(())
        }
        State::Waiting | State::Ended => Err(Refused::by(EINVAL)),
    });
    shared.map_err(of_token)
}

/// The error of a token whose request is none, or has ended: as for any that was released before.
fn of_token(_: Refused) -> Refused {
    Refused::by(EINVAL)
}

/// What is left of a lock's submitted requests.
pub(crate) enum Submitted {
    /// One waits or holds a range.
    Used,
    /// Those of these owners were cancelled, and are about to give up or to release.
    Leaving(Vec<OwnerId>),
}

/// The submitted requests of a lock that is to be destroyed.
pub(crate) fn leaving(handle: &Handle) -> Submitted {
    let mut owners = Vec::new();
    let Some(pool) = pool::known().filter(|_| handle.has_submitted.load(Ordering::Relaxed)) else {
        return Submitted::Leaving(owners);
    };
    let requests = pool.all();
    for request in requests
        .iter()
        .filter(|request| ptr::eq(&*request.lock, handle))
    {
        if !request.has_ended() {
            return Submitted::Used;
        }
        owners.push(request.owner.id());
    }
    Submitted::Leaving(owners)
}
