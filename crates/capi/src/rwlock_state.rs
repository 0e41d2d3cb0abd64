//! A reader-writer lock, inside a structure of the program's.
//!
//! ```text
//!   word   0      1       2      3      4 to 7
//!         +------+-------+------+------+----------+
//!         | copy | bias and     | kind | reserved |
//!         |      | futex lock   |      |          |
//!         +------+--------------+------+----------+
//! ```
//!
//! All zero, as the static initialiser leaves it, is a free lock that no copy of the library has used yet.

use crate::answer::{Answer, Refused, ensure, given_up};
use crate::copies::Copy;
use crate::exports::rwlock::{SPANLOCK_RWLOCK_READERS, SPANLOCK_RWLOCK_WRITERS};
use crate::tables::thread;
use crate::tables::thread_rwlocks::{Locks, Name, Noted, Tokens};
use libc::{EBUSY, EDEADLK, EINVAL, EPERM};
use lock_api::{RawRwLock, RawRwLockTimed};
use prim::atomic::{AtomicU64, Ordering};
use prim::clock::Instant;
use spanlock::range::raw::Wait;
use spanlock::rw::{Bravo, FutexRwLock, ReadersFirst, WritersFirst};
use std::mem::ManuallyDrop;

/// The kinds, as the fourth word has them.
const WRITERS: u64 = SPANLOCK_RWLOCK_WRITERS as u64;
const READERS: u64 = SPANLOCK_RWLOCK_READERS as u64;

pub(crate) type Writers = Bravo<FutexRwLock<WritersFirst>>;
pub(crate) type Readers = Bravo<FutexRwLock<ReadersFirst>>;
pub(crate) type ReadToken = <Writers as RawRwLock>::SharedGuard;
pub(crate) type WriteToken = <Writers as RawRwLock>::ExclusiveGuard;

/// A reader-writer lock.
#[repr(C)]
pub struct RwLock {
    copy: Copy,
    raw: Raw,
    kind: AtomicU64,
    _reserved: [AtomicU64; 4],
}

/// Either lock, by the kind, which never changes.
#[repr(C)]
union Raw {
    writers: ManuallyDrop<Writers>,
    readers: ManuallyDrop<Readers>,
}

/// The bytes of a lock in the header.
pub const SPANLOCK_RWLOCK_SIZE: usize = 64;

/// The alignment of a lock in the header.
pub const SPANLOCK_RWLOCK_ALIGN: usize = 8;

const _: () = assert!(size_of::<RwLock>() == SPANLOCK_RWLOCK_SIZE);
const _: () = assert!(align_of::<RwLock>() == SPANLOCK_RWLOCK_ALIGN);
const _: () = assert!(std::mem::offset_of!(RwLock, kind) == 24); // As the initialisers in the header have it.

/// A lock of either kind.
pub(crate) trait Kind:
    RawRwLockTimed<Instant = Instant, SharedGuard = ReadToken, ExclusiveGuard = WriteToken>
{
}

impl Kind for Writers {}
impl Kind for Readers {}

/// How a lock is held.
pub(crate) trait Mode {
    type Token: 'static;

    /// Where a thread keeps its tokens.
    fn tokens(locks: &mut Locks) -> &mut Tokens<Self::Token>;

    /// Whether a thread that holds these may wait for itself.
    fn is_to_be_checked(locks: &Locks) -> bool;

    /// Whether a thread that holds these would wait for itself.
    fn waits_for_itself(locks: &Locks, lock: &RwLock) -> bool;

    /// Acquires a lock; `None` if that takes longer than it may.
    fn acquire<L: Kind>(raw: &L, wait: Wait) -> Option<Self::Token>;

    /// Releases a lock.
    ///
    /// # Safety
    /// The lock has returned the token to the running thread.
    unsafe fn release<L: Kind>(raw: &L, token: Self::Token);
}

/// With other readers.
pub(crate) enum Read {}

/// Alone.
pub(crate) enum Write {}

// Inlined always: for the common kind they are a part of the exported functions.
impl Mode for Read {
    type Token = ReadToken;

    #[inline(always)]
    fn tokens(locks: &mut Locks) -> &mut Tokens<ReadToken> {
        &mut locks.reads
    }

    #[inline(always)]
    fn is_to_be_checked(locks: &Locks) -> bool {
        !locks.writes.is_empty()
    }

    fn waits_for_itself(locks: &Locks, lock: &RwLock) -> bool {
        locks.writes.holds(lock)
    }

    #[inline(always)]
    fn acquire<L: Kind>(raw: &L, wait: Wait) -> Option<ReadToken> {
        match wait {
            Wait::Forever => Some(raw.lock_shared()),
            Wait::Never => raw.try_lock_shared(),
            Wait::Until(deadline) => raw.try_lock_shared_until(deadline),
        }
    }

    #[inline(always)]
    unsafe fn release<L: Kind>(raw: &L, token: ReadToken) {
        // SAFETY: the caller's promise.
        unsafe { raw.unlock_shared(token) };
    }
}

impl Mode for Write {
    type Token = WriteToken;

    #[inline(always)]
    fn tokens(locks: &mut Locks) -> &mut Tokens<WriteToken> {
        &mut locks.writes
    }

    #[inline(always)]
    fn is_to_be_checked(locks: &Locks) -> bool {
        !locks.is_empty()
    }

    fn waits_for_itself(locks: &Locks, lock: &RwLock) -> bool {
        locks.writes.holds(lock) || locks.reads.holds(lock)
    }

    #[inline(always)]
    fn acquire<L: Kind>(raw: &L, wait: Wait) -> Option<WriteToken> {
        match wait {
            Wait::Forever => Some(raw.lock_exclusive()),
            Wait::Never => raw.try_lock_exclusive(),
            Wait::Until(deadline) => raw.try_lock_exclusive_until(deadline),
        }
    }

    #[inline(always)]
    unsafe fn release<L: Kind>(raw: &L, token: WriteToken) {
        // SAFETY: the caller's promise.
        unsafe { raw.unlock_exclusive(token) };
    }
}

/// A lock, by its kind.
enum Either<'a> {
    Writers(&'a Writers),
    Readers(&'a Readers),
}

/// Notes that the running thread holds one more lock. (What is rare finds the tables of the thread by itself, so that
/// the common paths need not keep where they are.)
#[cold] // It holds several.
#[inline(never)]
fn note_more<M: Mode>(held: Noted<M::Token>) -> Answer {
    // SAFETY: this is a part of a function that C calls, and nothing else here uses it.
    M::tokens(unsafe { &mut thread::held().locks }).note_more(held);
    Ok(())
}

impl RwLock {
    /// A free lock.
    pub(crate) fn new(kind: u32) -> Answer<Self> {
        let raw = match kind {
            SPANLOCK_RWLOCK_WRITERS => Raw {
                writers: ManuallyDrop::new(Bravo::new()),
            },
            SPANLOCK_RWLOCK_READERS => Raw {
                readers: ManuallyDrop::new(Bravo::new()),
            },
            _ => return Err(Refused::by(EINVAL)),
        };
        Ok(Self {
            copy: Copy::this(kind.into()),
            raw,
            kind: AtomicU64::new(kind.into()),
            _reserved: [const { AtomicU64::new(0) }; 4],
        })
    }

    /// The lock, which is this copy's from now on.
    fn enter(&self) -> Answer<Either<'_>> {
        if self.copy.check().is_err() {
            self.claim()?; // The first use of a lock with a static initialiser.
        }
        Ok(self.either())
    }

    fn claim(&self) -> Answer {
        let kind = self.kind.load(Ordering::Relaxed);
        ensure(matches!(kind, WRITERS | READERS), EINVAL)?;
        self.copy.claim(kind)
    }

    fn either(&self) -> Either<'_> {
        if self.kind.load(Ordering::Relaxed) == WRITERS {
            Either::Writers(self.writers())
        } else {
            // SAFETY: a lock of this kind is this field from birth.
            Either::Readers(unsafe { &self.raw.readers })
        }
    }

    /// The lock, which is of the kind that most are.
    #[inline(always)]
    fn writers(&self) -> &Writers {
        // SAFETY: a lock of this kind is this field from birth.
        unsafe { &self.raw.writers }
    }

    /// Acquires the lock.
    #[inline(always)]
    pub(crate) fn lock<M: Mode>(&self, wait: Wait) -> Answer {
        if !self.copy.is_this() {
            return self.lock_otherwise::<M>(wait);
        }
        self.lock_by::<M, _>(self.writers(), WRITERS, wait)
    }

    #[cold] // The lock is of the other kind, or was never used.
    #[inline(never)]
    fn lock_otherwise<M: Mode>(&self, wait: Wait) -> Answer {
        match self.enter()? {
            Either::Writers(raw) => self.lock_by::<M, _>(raw, WRITERS, wait),
            Either::Readers(raw) => self.lock_by::<M, _>(raw, READERS, wait),
        }
    }

    #[inline(always)]
    fn lock_by<M: Mode, L: Kind>(&self, raw: &L, kind: u64, wait: Wait) -> Answer {
        // SAFETY: this is a part of a function that C calls, and the borrow ends here.
        if wait != Wait::Never && M::is_to_be_checked(unsafe { &thread::held().locks }) {
            self.check::<M>()?;
        }
        let token = M::acquire(raw, wait).ok_or_else(|| given_up(wait))?;
        // SAFETY: as above.
        let tokens = M::tokens(unsafe { &mut thread::held().locks });
        if let Some(held) = tokens.note((Name::of(self, kind), token)) {
            return note_more::<M>(held);
        }
        Ok(())
    }

    /// EDEADLK, if the running thread would wait for itself.
    #[cold] // It holds something.
    #[inline(never)]
    fn check<M: Mode>(&self) -> Answer {
        // SAFETY: this is a part of a function that C calls, and nothing else here uses it.
        let locks = &unsafe { thread::held() }.locks;
        ensure(!M::waits_for_itself(locks, self), EDEADLK)
    }

    /// Releases the lock. EPERM, if the thread does not hold it in this mode.
    #[inline(always)]
    pub(crate) fn unlock<M: Mode>(&self) -> Answer {
        // SAFETY: this is a part of a function that C calls, and nothing below uses it.
        let tokens = M::tokens(unsafe { &mut thread::held().locks });
        let Some(token) = tokens.forget(Name::of(self, WRITERS)) else {
            return self.unlock_otherwise::<M>();
        };
        // SAFETY: this lock, which is of this kind, has returned it to the running thread.
        unsafe { M::release(self.writers(), token) };
        Ok(())
    }

    #[cold] // The thread holds several locks, or one of the other kind, or not this one.
    #[inline(never)]
    fn unlock_otherwise<M: Mode>(&self) -> Answer {
        // SAFETY: this is a part of a function that C calls, and nothing else here uses it.
        let tokens = M::tokens(unsafe { &mut thread::held().locks });
        let Some(token) = tokens.forget_more(self) else {
            self.enter()?;
            return Err(Refused::by(EPERM));
        };
        match self.either() {
            // SAFETY: this lock has returned it to the running thread.
            Either::Writers(raw) => unsafe { M::release(raw, token) },
            // SAFETY: as above.
            Either::Readers(raw) => unsafe { M::release(raw, token) },
        }
        Ok(())
    }

    /// The lock's life ends. EBUSY, if it is held.
    ///
    /// # Safety
    /// No other thread uses it.
    pub(crate) unsafe fn end(lock: *mut Self) -> Answer {
        // SAFETY: the caller passes a lock.
        let it = unsafe { &mut *lock };
        let is_held = match it.enter()? {
            Either::Writers(raw) => raw.is_locked(),
            Either::Readers(raw) => raw.is_locked(),
        };
        ensure(!is_held, EBUSY)?;
        let raw = &mut it.raw;
        if it.kind.load(Ordering::Relaxed) == READERS {
            // SAFETY: a lock of this kind is this field from birth.
            let readers = unsafe { &mut raw.readers };
            // SAFETY: it is dropped once: `enter` refuses it later.
            unsafe { ManuallyDrop::drop(readers) };
        } else {
            // SAFETY: as above.
            let writers = unsafe { &mut raw.writers };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(writers) };
        }
        it.copy.end();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{RwLock, SPANLOCK_RWLOCK_READERS, SPANLOCK_RWLOCK_WRITERS};

    /// The words of a fresh lock behind the first.
    fn words(kind: u32) -> [u64; 7] {
        let lock = RwLock::new(kind).expect("a kind");
        // SAFETY: it has eight words, each with a value.
        let words: [u64; 8] = unsafe { std::mem::transmute(lock) };
        let [_, words @ ..] = words;
        words
    }

    #[test]
    fn a_fresh_lock_is_what_the_static_initialisers_say() {
        assert_eq!(words(SPANLOCK_RWLOCK_WRITERS), [0; 7]);
        assert_eq!(words(SPANLOCK_RWLOCK_READERS), [0, 0, 1, 0, 0, 0, 0]);
    }
}
