//! Submitted requests by their numbers, and the threads of the library, which wait for them.
//!
//! A request that waits has a thread to itself: it might wait for ever for the thread of another. Its thread is free
//! for others once the request is granted.
//!
//! In a forked child the threads are gone. The child begins with no requests, and knows none of its parent's.

use crate::answer::{Answer, Refused};
use crate::exports::range_lock_submit::RequestId;
use crate::request::Request;
use crate::sanitizer;
use libc::EAGAIN;
use prim::atomic::{AtomicPtr, AtomicU64, Ordering};
use prim::clock::Duration;
use prim::sync::Mutex;
use prim::thread::{self, ForkHook};
use std::collections::{BTreeMap, VecDeque};
use std::ptr;
use std::sync::{Arc, Condvar, PoisonError};

/// How long a thread of the library stays when it has nothing to do.
const IDLE: Duration = Duration::from_secs(2);

/// The threads of the library, and the requests that wait or hold something.
pub(crate) struct Pool {
    /// The identifiers of this process are larger.
    first: RequestId,
    work: Mutex<Work>,
    arrived: Condvar,
}

#[derive(Default)]
struct Work {
    /// Not a hash map, which would ask the system for random numbers: that is a point where a thread may be cancelled.
    requests: BTreeMap<RequestId, Arc<Request>>,
    queue: VecDeque<Arc<Request>>,
    idle: usize,
}

/// The identifier of the last request.
static LAST: AtomicU64 = AtomicU64::new(0);

/// An identifier for a request.
pub(crate) fn fresh_id() -> RequestId {
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The pool of this process; null before the first request, and in a forked child.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// Runs in a forked child. The pool of its parent stays where it is: a thread may have been in the middle of it.
extern "C" fn after_fork() {
    POOL.store(ptr::null_mut(), Ordering::Relaxed);
}

/// The pool, if a request was submitted in this process.
pub(crate) fn known() -> Option<&'static Pool> {
    // Acquire: pairs with the Release in `get`. SAFETY: pools live for ever.
    unsafe { POOL.load(Ordering::Acquire).as_ref() }
}

/// The pool.
pub(crate) fn get() -> &'static Pool {
    static FORK: ForkHook = ForkHook::new(after_fork);
    FORK.register();
    if let Some(pool) = known() {
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
    /// Whether a request of that number was submitted in this process.
    pub(crate) fn had(&self, id: RequestId) -> bool {
        (self.first + 1..=LAST.load(Ordering::Relaxed)).contains(&id)
    }

    /// A request that waits or holds something.
    pub(crate) fn find(&self, id: RequestId) -> Option<Arc<Request>> {
        self.work.lock().requests.get(&id).cloned()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Request>> {
        self.work.lock().requests.values().cloned().collect()
    }

    /// Forgets a request that has ended.
    pub(crate) fn forget(&self, id: RequestId) {
        self.work.lock().requests.remove(&id);
    }

    /// Has a thread wait for a request. EAGAIN, if there is none and the system gives no more.
    pub(crate) fn serve(&'static self, request: Arc<Request>) -> Answer {
        let mut work = self.work.lock();
        work.requests.insert(request.id, Arc::clone(&request));
        if work.idle <= work.queue.len() {
            if !self.begin_thread() {
                work.requests.remove(&request.id);
                return Err(Refused::by(EAGAIN));
            }
            work.idle += 1; // It will look at the queue.
        }
        work.queue.push_back(request);
        drop(work);
        self.arrived.notify_one();
        Ok(())
    }

    fn begin_thread(&'static self) -> bool {
        thread::start_own(c"spanlock-submit", STACK, || {
            sanitizer::ignoring(|| self.run());
        })
    }

    /// What a thread of the library does: it has been counted as idle.
    fn run(&self) {
        let mut work = self.work.lock();
        loop {
            if let Some(request) = work.queue.pop_front() {
                work.idle -= 1;
                drop(work);
                request.serve();
                let has_ended = request.has_ended();
                work = self.work.lock();
                if has_ended {
                    work.requests.remove(&request.id);
                }
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
