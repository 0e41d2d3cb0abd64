//! A reader-writer lock, inside a structure of the program's, and what a thread holds of such locks.
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
//!
//! The lock is that of Rust, whose releases need a token. A release of C names the lock alone. So each thread keeps the
//! tokens of the locks that it holds, and finds there what it may release. Most hold one lock at a time, or release the
//! last first, and so the search ends at once.

use crate::answer::{Answer, Refused, ensure};
use crate::copies::Copy;
use crate::handle::given_up;
use crate::local;
use libc::{EBUSY, EDEADLK, EINVAL, EPERM};
use lock_api::{RawRwLock, RawRwLockTimed};
use prim::atomic::{AtomicU64, Ordering};
use prim::clock::Instant;
use spanlock::range::raw::Wait;
use spanlock::rw::{Bravo, FutexRwLock, ReadersFirst, WritersFirst};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Readers give way to writers that wait. A thread that reads must not read the same lock again.
pub const SPANLOCK_RWLOCK_WRITERS: u32 = 0;

/// Readers do not wait for writers that wait. A thread that reads may read the same lock again, and readers that never
/// pause may keep writers out.
pub const SPANLOCK_RWLOCK_READERS: u32 = 1;

/// The kinds, as the fourth word has them.
const WRITERS: u64 = SPANLOCK_RWLOCK_WRITERS as u64;
const READERS: u64 = SPANLOCK_RWLOCK_READERS as u64;

type Writers = Bravo<FutexRwLock<WritersFirst>>;
type Readers = Bravo<FutexRwLock<ReadersFirst>>;
type ReadToken = <Writers as RawRwLock>::SharedGuard;
type WriteToken = <Writers as RawRwLock>::ExclusiveGuard;

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

/// Acquires a lock as a reader; `None` if that takes longer than it may.
#[inline(always)] // The common kind is a part of the exported functions.
fn read<L: RawRwLockTimed<Instant = Instant>>(raw: &L, wait: Wait) -> Option<L::SharedGuard> {
    match wait {
        Wait::Forever => Some(raw.lock_shared()),
        Wait::Never => raw.try_lock_shared(),
        Wait::Until(deadline) => raw.try_lock_shared_until(deadline),
    }
}

/// Acquires a lock as the writer; `None` if that takes longer than it may.
#[inline(always)] // As above.
fn write<L: RawRwLockTimed<Instant = Instant>>(raw: &L, wait: Wait) -> Option<L::ExclusiveGuard> {
    match wait {
        Wait::Forever => Some(raw.lock_exclusive()),
        Wait::Never => raw.try_lock_exclusive(),
        Wait::Until(deadline) => raw.try_lock_exclusive_until(deadline),
    }
}

/// What a thread holds of reader-writer locks.
pub(crate) struct Locks {
    reads: Tokens<ReadToken>,
    writes: Tokens<WriteToken>,
}

/// The tokens of the locks that a thread holds in one mode.
struct Tokens<T> {
    /// One of them. Most threads hold one at a time, and find it without following a pointer.
    first: Option<(NonNull<RwLock>, T)>,
    /// The others, the last acquired last.
    more: Vec<(NonNull<RwLock>, T)>,
}

impl Locks {
    /// Nothing held.
    pub(crate) const fn new() -> Self {
        Self {
            reads: Tokens::new(),
            writes: Tokens::new(),
        }
    }

    /// Whether the thread holds none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// Frees the memory of tables in which nothing is held.
    pub(crate) fn clear(&mut self) {
        self.reads.more = Vec::new();
        self.writes.more = Vec::new();
    }
}

impl<T> Tokens<T> {
    const fn new() -> Self {
        Self {
            first: None,
            more: Vec::new(),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.first.is_none() && self.more.is_empty()
    }

    #[inline]
    fn note(&mut self, lock: &RwLock, token: T) {
        let held = (NonNull::from(lock), token);
        if self.first.is_none() {
            self.first = Some(held);
        } else {
            self.note_more(held);
        }
    }

    #[cold] // The thread holds several.
    fn note_more(&mut self, held: (NonNull<RwLock>, T)) {
        local::free_at_exit();
        self.more.push(held);
    }

    /// Takes away a token of a lock. EPERM, if the thread has none.
    #[inline]
    fn forget(&mut self, lock: &RwLock) -> Answer<T> {
        if self.more.is_empty()
            && let Some((_, token)) = self.first.take_if(|first| is(first.0, lock))
        {
            return Ok(token);
        }
        self.forget_more(lock)
    }

    #[cold] // As above.
    fn forget_more(&mut self, lock: &RwLock) -> Answer<T> {
        let at = self.more.iter().rposition(|held| is(held.0, lock));
        let held = match at {
            Some(at) => Some(self.more.remove(at)),
            None => self.first.take_if(|first| is(first.0, lock)),
        };
        held.map(|held| held.1).ok_or(Refused(EPERM))
    }

    #[cold] // The thread holds something already.
    fn holds(&self, lock: &RwLock) -> bool {
        self.first
            .iter()
            .chain(&self.more)
            .any(|held| is(held.0, lock))
    }
}

#[inline]
fn is(held: NonNull<RwLock>, lock: &RwLock) -> bool {
    held == NonNull::from(lock)
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
            _ => return Err(Refused(EINVAL)),
        };
        Ok(Self {
            copy: Copy::this(),
            raw,
            kind: AtomicU64::new(kind.into()),
            _reserved: [const { AtomicU64::new(0) }; 4],
        })
    }

    /// Nothing, if the lock is this copy's from now on.
    #[inline(always)]
    fn enter(&self) -> Answer {
        if self.copy.is_this() {
            Ok(())
        } else {
            self.claim()
        }
    }

    #[cold] // The first use of a lock with a static initialiser.
    fn claim(&self) -> Answer {
        let kind = self.kind.load(Ordering::Relaxed);
        ensure(matches!(kind, WRITERS | READERS), EINVAL)?;
        self.copy.claim()
    }

    /// The lock, if it is of the kind that most are.
    #[inline(always)]
    fn writers(&self) -> Option<&Writers> {
        // SAFETY: a lock of this kind is this field from birth.
        (self.kind.load(Ordering::Relaxed) == WRITERS).then(|| unsafe { &*self.raw.writers })
    }

    /// The lock, if it is of the other kind.
    #[inline]
    fn readers(&self) -> &Readers {
        // SAFETY: a lock of this kind is this field from birth.
        unsafe { &self.raw.readers }
    }

    /// Acquires the lock as a reader.
    #[inline(always)]
    pub(crate) fn read(&self, wait: Wait) -> Answer {
        self.enter()?;
        // SAFETY: this is a part of a function that C calls, and nothing below uses it.
        let Locks { reads, writes } = unsafe { &mut local::held().locks };
        if wait != Wait::Never && !writes.is_empty() {
            ensure(!writes.holds(self), EDEADLK)?;
        }
        let token = match self.writers() {
            Some(raw) => read(raw, wait),
            None => self.read_of_readers(wait),
        };
        let token = token.ok_or_else(|| given_up(wait))?;
        reads.note(self, token);
        Ok(())
    }

    #[inline(never)] // So that the path of the other kind is short.
    fn read_of_readers(&self, wait: Wait) -> Option<ReadToken> {
        read(self.readers(), wait)
    }

    /// Acquires the lock as the writer.
    #[inline(always)]
    pub(crate) fn write(&self, wait: Wait) -> Answer {
        self.enter()?;
        // SAFETY: this is a part of a function that C calls, and nothing below uses it.
        let locks = unsafe { &mut local::held().locks };
        if wait != Wait::Never && !locks.is_empty() {
            let waits_for_itself = locks.writes.holds(self) || locks.reads.holds(self);
            ensure(!waits_for_itself, EDEADLK)?;
        }
        let token = match self.writers() {
            Some(raw) => write(raw, wait),
            None => self.write_of_readers(wait),
        };
        let token = token.ok_or_else(|| given_up(wait))?;
        locks.writes.note(self, token);
        Ok(())
    }

    #[inline(never)] // As above.
    fn write_of_readers(&self, wait: Wait) -> Option<WriteToken> {
        write(self.readers(), wait)
    }

    /// A reader leaves. EPERM, if the thread does not read this lock.
    #[inline(always)]
    pub(crate) fn leave_shared(&self) -> Answer {
        // SAFETY: this is a part of a function that C calls, and nothing else here uses it.
        let token = unsafe { local::held() }.locks.reads.forget(self);
        let token = token.or_else(|refused| self.enter().and(Err(refused)))?; // What it holds is of this copy.
        match self.writers() {
            // SAFETY: this lock has returned it to the running thread.
            Some(raw) => unsafe { raw.unlock_shared(token) },
            // SAFETY: as above.
            None => unsafe { self.readers().unlock_shared(token) },
        }
        Ok(())
    }

    /// The writer leaves. EPERM, if that is not the running thread.
    #[inline(always)]
    pub(crate) fn leave_exclusive(&self) -> Answer {
        // SAFETY: this is a part of a function that C calls, and nothing else here uses it.
        let token = unsafe { local::held() }.locks.writes.forget(self);
        let token = token.or_else(|refused| self.enter().and(Err(refused)))?; // What it holds is of this copy.
        match self.writers() {
            // SAFETY: this lock has returned it to the running thread.
            Some(raw) => unsafe { raw.unlock_exclusive(token) },
            // SAFETY: as above.
            None => unsafe { self.readers().unlock_exclusive(token) },
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
        it.enter()?;
        let is_held = it
            .writers()
            .map_or_else(|| it.readers().is_locked(), RawRwLock::is_locked);
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
