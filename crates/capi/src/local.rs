//! What the library keeps for each thread.
//!
//! It has no Rust destructor: a thread-specific key frees what a thread no longer needs, because a program may use locks
//! in destructors of its own. Those of other keys may run later than this one, so it runs again, as often as POSIX
//! promises, while the thread holds something.

use crate::holds::Holds;
use libc::{c_void, pthread_key_t};
use prim::atomic::{AtomicU64, Ordering};
use spanlock::rw::pthread::Sampler;
use std::cell::Cell;
use std::ptr;

/// What the library keeps for the running thread.
pub(crate) struct Local {
    /// Its number, which no other thread of the process ever has; zero until it has one.
    number: Cell<u32>,
    /// How many reader-writer locks it reads, counting one as often as it reads it.
    pub(crate) reads: Cell<u32>,
    /// Picks slow reads.
    pub(crate) sampler: Sampler,
    holds: Cell<*mut Holds>,
    /// The last ticket of a table that was freed.
    ticket: Cell<u64>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            number: Cell::new(0),
            reads: Cell::new(0),
            sampler: Sampler::new(),
            holds: Cell::new(ptr::null_mut()),
            ticket: Cell::new(0),
        }
    };
}

/// Calls `f` with what the library keeps for the running thread.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(f)
}

impl Local {
    /// The thread's number.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        let number = self.number.get();
        if number == 0 {
            self.take_number()
        } else {
            number
        }
    }

    /// The thread's number, or zero if it has none yet.
    #[inline]
    pub(crate) fn known_number(&self) -> u32 {
        self.number.get()
    }

    #[cold] // Once for each thread.
    fn take_number(&self) -> u32 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let number = u32::try_from(number).expect("a process has fewer than 2^32 threads");
        self.number.set(number);
        number
    }

    /// What the thread holds, if it ever held a range.
    #[inline]
    pub(crate) fn known_holds(&self) -> *mut Holds {
        self.holds.get()
    }

    /// What the thread holds.
    #[inline]
    pub(crate) fn holds(&self) -> *mut Holds {
        let holds = self.holds.get();
        if holds.is_null() {
            self.make_holds()
        } else {
            holds
        }
    }

    #[cold] // Once for each thread.
    fn make_holds(&self) -> *mut Holds {
        let holds = Box::into_raw(Box::new(Holds::new(self.number(), self.ticket.get())));
        self.holds.set(holds);
        // If this fails, the memory is not freed when the thread exits, and nothing else changes.
        if let Some(key) = key() {
            // SAFETY: a published key is never deleted.
            unsafe { libc::pthread_setspecific(key, holds.cast::<c_void>()) };
        }
        holds
    }
}

/// The key whose destructor frees what threads held.
fn key() -> Option<pthread_key_t> {
    /// One more than the key; zero until there is one.
    static KEY: AtomicU64 = AtomicU64::new(0);
    let known = KEY.load(Ordering::Relaxed);
    if known != 0 {
        return Some((known - 1) as pthread_key_t);
    }
    let mut fresh: pthread_key_t = 0;
    // SAFETY: `fresh` is live during the call, and the destructor may run on any thread.
    if unsafe { libc::pthread_key_create(&raw mut fresh, Some(on_exit)) } != 0 {
        return None;
    }
    let published = KEY.compare_exchange(
        0,
        u64::from(fresh) + 1,
        Ordering::Relaxed,
        Ordering::Relaxed,
    );
    Some(match published {
        Ok(_) => fresh,
        Err(theirs) => {
            // SAFETY: the key was made just above, and no other thread knows it.
            unsafe { libc::pthread_key_delete(fresh) };
            (theirs - 1) as pthread_key_t
        }
    })
}

/// Frees what a thread that exits no longer needs. While it holds ranges, a destructor of the program may yet release
/// them: then this runs again. What is held after the last time stays locked.
unsafe extern "C" fn on_exit(holds: *mut c_void) {
    let holds = holds.cast::<Holds>();
    // SAFETY: the value of the key is the thread's, which `make_holds` made and which is freed below alone.
    if unsafe { &*holds }.is_empty() {
        // SAFETY: it came from `Box::into_raw`, and the thread does not refer to it any more after this.
        let holds = unsafe { Box::from_raw(holds) };
        with(|local| {
            local.holds.set(ptr::null_mut());
            local.ticket.set(holds.ticket());
        });
    } else if let Some(key) = key() {
        // SAFETY: a published key is never deleted.
        unsafe { libc::pthread_setspecific(key, holds.cast::<c_void>()) };
    }
}
