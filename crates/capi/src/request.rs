//! A submitted request, which waits for a caller that must not block.
//!
//! Each request has an owner of its own, in whose name a thread of the library waits. So any thread releases what it
//! got, and a cancellation ends the wait.
//!
//! ```text
//!   program                     request                thread of the library
//!   -------                     -------                ---------------------
//!   submit ------------------>  waiting  <------------ waits for the range, in the name of the request's owner
//!                                  |                        |
//!   cancel: ended  <---------------+----------------> granted: calls back, or writes to the descriptor
//!                                  |
//!   release: ended <---------------'
//! ```
//!
//! A request has one state, under its mutex, so a cancellation and a grant that meet have an order.

use crate::answer::{Answer, Refused, ensure};
use crate::exports::range_lock_submit::RequestId;
use crate::exports::types::{Asked, Token};
use crate::owner_handle::Held;
use crate::range_handle::RangeHandle;
use crate::sanitizer;
use crate::tables::requests;
use libc::{EALREADY, EBADF, EINPROGRESS, EINVAL, EMFILE, c_int, c_void};
use prim::atomic::Ordering;
use prim::sync::Mutex;
use spanlock::range::{Owner, OwnerId};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::{mem, ptr};

/// How a caller learns of a grant.
pub(crate) enum Notify {
    Call(unsafe extern "C" fn(*mut c_void, Token), Argument),
    /// The descriptor gets the request's number.
    Name(Descriptor),
    /// The descriptor gets a one.
    Count(Descriptor),
}

/// A copy of the caller's descriptor.
pub(crate) struct Descriptor(ManuallyDrop<File>);

impl Descriptor {
    /// `EBADF`: there is none, or it is not for writing. `EMFILE`: the process has as many as it may.
    fn copy(descriptor: c_int) -> Answer<Self> {
        // SAFETY: it takes a descriptor, open or not.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        let is_for_writing = flags >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
        ensure(is_for_writing, EBADF)?;
        // SAFETY: it takes a descriptor, open or not, and a number.
        let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        ensure(copy >= 0, EMFILE)?;
        // SAFETY: a fresh descriptor, which nobody else closes.
        let copy = unsafe { OwnedFd::from_raw_fd(copy) };
        Ok(Self(ManuallyDrop::new(copy.into())))
    }

    /// Writes a number. Nobody can be told if that fails.
    fn write(&self, number: u64) -> io::Result<usize> {
        (&mut &*self.0).write(&number.to_ne_bytes())
    }

    /// Whether it adds up what is written to it, as an eventfd does. Nothing is added, so this never blocks. By the
    /// system call itself, since `write` is a point where the caller's thread may be cancelled.
    fn adds_up(&self) -> bool {
        let nothing = 0_u64.to_ne_bytes();
        let (descriptor, bytes) = (self.0.as_raw_fd(), nothing.as_ptr());
        // SAFETY: so many bytes are live.
        unsafe { libc::syscall(libc::SYS_write, descriptor, bytes, nothing.len()) == 8 }
    }

    /// Sleeps until there is room, or the reader is gone.
    fn await_room(&self) {
        let mut poll = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: one entry, which is live.
        unsafe { libc::poll(&raw mut poll, 1, -1) };
    }
}

impl Drop for Descriptor {
    /// By the system call itself, since `close` is a point where the caller's thread may be cancelled.
    fn drop(&mut self) {
        // SAFETY: nothing uses it later.
        let file = unsafe { ManuallyDrop::take(&mut self.0) };
        // SAFETY: the descriptor is nobody else's.
        unsafe { libc::syscall(libc::SYS_close, file.into_raw_fd()) };
    }
}

/// What a callback gets.
pub(crate) struct Argument(pub(crate) *mut c_void);

// SAFETY: the library only passes it on, and the header says on which thread the callback runs.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}

/// Where a request stands.
enum State {
    Waiting,
    Granted(Held<RangeHandle>),
    /// Cancelled or released.
    Ended,
}

pub(crate) struct Request {
    pub(crate) id: RequestId,
    /// Before the lock, since what is held is dropped first.
    state: Mutex<State>,
    lock: Arc<RangeHandle>,
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
            Some(asked) => by.lock(asked.range(), asked.mode),
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
            Notify::Name(pipe) => {
                let is_full = || match pipe.write(self.id) {
                    Err(error) => error.kind() == ErrorKind::WouldBlock,
                    Ok(_) => false,
                };
                // Who has taken and released it meanwhile need not be told.
                while !self.has_ended() && is_full() {
                    pipe.await_room();
                }
            }
            // It fails if the count is full: then the caller has been told often enough.
            Notify::Count(eventfd) => drop(eventfd.write(1)),
        }
    }
}

impl Notify {
    /// Whoever reads a descriptor is told. `EINVAL`: it is neither a pipe or a socket, which keep numbers apart, nor an
    /// eventfd, which adds them up and has no place among files. `EBADF` and `EMFILE` as of [`copy`](Descriptor::copy).
    pub(crate) fn by(descriptor: c_int) -> Answer<Self> {
        let descriptor = Descriptor::copy(descriptor)?;
        let metadata = descriptor.0.metadata();
        let mode = metadata.map_or(libc::S_IFREG, |it| it.mode()) & libc::S_IFMT;
        match mode {
            libc::S_IFIFO | libc::S_IFSOCK => Ok(Self::Name(descriptor)),
            0 if descriptor.adds_up() => Ok(Self::Count(descriptor)),
            _ => Err(Refused::by(EINVAL)),
        }
    }
}

/// Has a thread of the library wait. `id` gets the request's number, before the program is told. EAGAIN: there is no
/// thread, and the system gives no more.
pub(crate) fn submit(
    lock: Arc<RangeHandle>,
    asked: Option<Asked>,
    notify: Notify,
    id: &mut RequestId,
) -> Answer {
    let pool = requests::get();
    lock.has_submitted.store(true, Ordering::Relaxed);
    let fresh = Arc::new(Request {
        id: requests::fresh_id(),
        state: Mutex::new(State::Waiting),
        lock,
        owner: Owner::new(),
        asked,
        notify,
    });
    *id = fresh.id;
    pool.serve(fresh).inspect_err(|_| *id = 0)
}

/// Calls `f` with where a request of this lock stands. EINVAL if there was none of that number; EALREADY if it has
/// ended.
fn with_state<R>(
    handle: &RangeHandle,
    id: RequestId,
    f: impl FnOnce(&Request, &mut State) -> Answer<R>,
) -> Answer<R> {
    let pool = requests::known().filter(|pool| pool.had(id));
    let request = pool.ok_or(Refused::by(EINVAL))?.find(id);
    let request = request.ok_or(Refused::by(EALREADY))?;
    ensure(ptr::eq(&*request.lock, handle), EINVAL)?;
    f(&request, &mut request.state.lock())
}

/// Cancels a request that waits. EALREADY: it was granted before, or has ended.
pub(crate) fn cancel(handle: &RangeHandle, id: RequestId) -> Answer {
    with_state(handle, id, |request, state| {
        ensure(matches!(state, State::Waiting), EALREADY)?;
        *state = State::Ended;
        request.owner.cancel();
        Ok(())
    })
}

/// The token of a request that was granted. EINPROGRESS: it waits. EALREADY: it has ended.
pub(crate) fn token(handle: &RangeHandle, id: RequestId) -> Answer<Token> {
    with_state(handle, id, |request, state| match state {
        State::Waiting => Err(Refused::by(EINPROGRESS)),
        State::Granted(_) => Ok(Token::of_request(request.id)),
        State::Ended => Err(Refused::by(EALREADY)),
    })
}

/// Releases what a submitted request holds.
pub(crate) fn release(handle: &RangeHandle, id: RequestId) -> Answer {
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
    if let Some(pool) = requests::known() {
        pool.forget(id);
    }
    Ok(())
}

/// Shares what a submitted request holds.
pub(crate) fn downgrade(handle: &RangeHandle, id: RequestId) -> Answer {
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
pub(crate) fn leaving(handle: &RangeHandle) -> Submitted {
    let mut owners = Vec::new();
    let Some(pool) = requests::known().filter(|_| handle.has_submitted.load(Ordering::Relaxed))
    else {
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
