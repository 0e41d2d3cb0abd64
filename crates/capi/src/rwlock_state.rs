//! A reader-writer lock, inside a structure of the program's.
//!
//! ```text
//!   word   0      1       2      3        4      5 to 7
//!         +------+-------+------+--------+------+----------+
//!         | copy | futex | bias | writer | kind | reserved |
//!         |      | lock  |      |        |      |          |
//!         +------+-------+------+--------+------+----------+
//! ```
//!
//! All zero, as the static initialiser leaves it, is a free lock that no copy of the library has used yet. The protocol
//! is that of [`AnonymousUnlock`]: a release does not say which acquisition it ends.

use crate::answer::{Answer, Refused, ensure};
use crate::copies::Copy;
use crate::handle::given_up;
use crate::local;
use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM};
use prim::atomic::{AtomicU64, Ordering};
use spanlock::range::raw::Wait;
use spanlock::rw::pthread::table::ReaderRow;
use spanlock::rw::pthread::{AnonymousUnlock, BiasState};
use spanlock::rw::{Bias, FutexRwLock, Preference, ReadersFirst, Standard, WritersFirst};

/// Of how many slow reads one reads the clock, to learn whether a bias would pay. A power of two.
const SAMPLED: u32 = 32;

/// Readers give way to writers that wait. A thread that reads must not read the same lock again.
pub const SPANLOCK_RWLOCK_WRITERS: u32 = 0;

/// Readers do not wait for writers that wait. A thread that reads may read the same lock again, and readers that never
/// pause may keep writers out.
pub const SPANLOCK_RWLOCK_READERS: u32 = 1;

/// A reader-writer lock.
#[repr(C)]
pub struct RwLock {
    copy: Copy,
    under: FutexRwLock<ReadersFirst>,
    bias: BiasState,
    /// The number of the thread that writes, or zero.
    writer: AtomicU64,
    kind: AtomicU64,
    _reserved: [AtomicU64; 3],
}

/// The bytes of a lock in the header.
pub const SPANLOCK_RWLOCK_SIZE: usize = 64;

/// The alignment of a lock in the header.
pub const SPANLOCK_RWLOCK_ALIGN: usize = 8;

const _: () = assert!(size_of::<RwLock>() == SPANLOCK_RWLOCK_SIZE);
const _: () = assert!(align_of::<RwLock>() == SPANLOCK_RWLOCK_ALIGN);
const _: () = assert!(std::mem::offset_of!(RwLock, kind) == 32);

/// The running thread's row in the table of visible readers.
#[inline(always)]
fn row() -> ReaderRow {
    // SAFETY: it is used at once: all callers pass it to functions that do not keep it.
    unsafe { ReaderRow::here() }
}

impl RwLock {
    /// A free lock.
    pub(crate) fn new(kind: u32) -> Answer<Self> {
        ensure(
            matches!(kind, SPANLOCK_RWLOCK_WRITERS | SPANLOCK_RWLOCK_READERS),
            EINVAL,
        )?;
        Ok(Self {
            copy: Copy::this(),
            under: FutexRwLock::new(),
            bias: BiasState::new(Bias::Adaptive),
            writer: AtomicU64::new(0),
            kind: AtomicU64::new(kind.into()),
            _reserved: [const { AtomicU64::new(0) }; 3],
        })
    }

    #[inline(always)]
    fn parts<P: Preference>(&self) -> AnonymousUnlock<'_, P, Standard> {
        AnonymousUnlock {
            bias: &self.bias,
            under: self.under.preferring(),
            policy: Standard,
        }
    }

    /// The parts as the fast paths need them, which do not depend on the kind.
    #[inline(always)]
    fn any(&self) -> AnonymousUnlock<'_, ReadersFirst, Standard> {
        self.parts()
    }

    #[inline]
    fn gives_way(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == u64::from(SPANLOCK_RWLOCK_WRITERS)
    }

    /// Nothing, if the lock is this copy's from now on.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Answer {
        if self.copy.is_this() {
            Ok(())
        } else {
            self.copy.claim()
        }
    }

    /// Acquires the lock as a reader.
    #[inline(always)]
    pub(crate) fn read(&self, wait: Wait) -> Answer {
        self.enter()?;
        // SAFETY: all readers leave by `leave_shared`, or what stands for it, and the row is the running thread's.
        if !unsafe { self.any().read_fast(row) } {
            self.read_otherwise(wait)?;
        }
        local::with(|local| local.reads.set(local.reads.get() + 1));
        Ok(())
    }

    #[inline(never)] // Inlined, it would make the fast path save registers.
    fn read_otherwise(&self, wait: Wait) -> Answer {
        let any = self.any();
        // SAFETY: as in `read`.
        if any.is_open() && unsafe { any.read_by_any_grade(row) } {
            if picks_this_read() {
                any.maybe_free();
            }
            return Ok(());
        }
        let picked = picks_this_read();
        let timed = (wait == Wait::Forever && picked).then(prim::clock::nanoseconds);
        // A try or a timed read loads the state first: a program that polls would keep writers out.
        let enters = wait == Wait::Forever
            && if self.gives_way() {
                self.parts::<WritersFirst>().read_at_once()
            } else {
                any.read_at_once()
            };
        if !enters {
            self.read_contended(wait)?;
        }
        let latency = timed
            .filter(|_| enters)
            .map(|start| prim::clock::nanoseconds() - start);
        if picked || any.is_left_kept() {
            // SAFETY: this thread has just entered by the underlying lock, and has not left.
            unsafe { any.maybe_set_bias(latency) };
            // SAFETY: it is still inside, and the rest is as in `read`.
            unsafe { any.move_to_table(row) };
        }
        Ok(())
    }

    #[cold] // Another thread is in the way, or it is a try or a timed read.
    fn read_contended(&self, wait: Wait) -> Answer {
        ensure(!self.under.is_full(), EAGAIN)?;
        self.ensure_no_deadlock(wait)?;
        let entered = if self.gives_way() {
            self.parts::<WritersFirst>().read_slowly(wait)
        } else {
            self.any().read_slowly(wait)
        };
        if entered { Ok(()) } else { Err(given_up(wait)) }
    }

    /// EDEADLK, if the thread would wait for itself to write.
    fn ensure_no_deadlock(&self, wait: Wait) -> Answer {
        ensure(wait == Wait::Never || !self.is_written_here(), EDEADLK)
    }

    /// Whether the running thread writes. Relaxed: it finds what it stored itself, or another number.
    #[inline]
    fn is_written_here(&self) -> bool {
        let number = local::with(|local| local.known_number());
        number != 0 && self.writer.load(Ordering::Relaxed) == u64::from(number)
    }

    /// Acquires the lock as the writer.
    #[inline(always)]
    pub(crate) fn write(&self, wait: Wait) -> Answer {
        self.enter()?;
        if !self.any().write_at_once() {
            self.write_contended(wait)?;
        }
        let number = local::with(local::Local::number);
        self.writer.store(number.into(), Ordering::Relaxed);
        Ok(())
    }

    #[cold] // There is a bias, or another thread is inside.
    fn write_contended(&self, wait: Wait) -> Answer {
        self.ensure_no_deadlock(wait)?;
        let entered = if self.gives_way() {
            self.parts::<WritersFirst>().write_contended(wait)
        } else {
            self.any().write_contended(wait)
        };
        if entered { Ok(()) } else { Err(given_up(wait)) }
    }

    /// A reader leaves. EPERM, if the thread reads no lock at all, or nobody reads this one.
    #[inline(always)]
    pub(crate) fn leave_shared(&self) -> Answer {
        self.enter()?;
        let reads = local::with(|local| local.reads.get());
        let reads = reads.checked_sub(1).ok_or(Refused(EPERM))?;
        let any = self.any();
        // SAFETY: the row is the running thread's, and the program's caller is a reader, and leaves once. (If it is
        // none, and others read, this takes a hold of theirs away: so the header forbids it.)
        let left = any.is_biased() && unsafe { any.leave_fast(row) };
        if !left {
            self.leave_otherwise()?;
        }
        local::with(|local| local.reads.set(reads));
        Ok(())
    }

    #[inline(never)] // Inlined, it would make the fast path save registers.
    fn leave_otherwise(&self) -> Answer {
        let any = self.any();
        // SAFETY: as in `leave_shared`.
        let left = !any.is_biased() && unsafe { any.leave_slowly() };
        // SAFETY: as there.
        ensure(left || unsafe { any.leave_shared(row) }, EPERM)
    }

    /// The writer leaves. EPERM, if that is not the running thread.
    #[inline(always)]
    pub(crate) fn leave_exclusive(&self) -> Answer {
        self.enter()?;
        ensure(self.is_written_here(), EPERM)?;
        self.writer.store(0, Ordering::Relaxed);
        // SAFETY: the running thread is the writer, as the lock says.
        let left = unsafe { self.any().leave_exclusive() };
        debug_assert!(left, "the writer is not inside");
        Ok(())
    }

    /// The lock's life ends. EBUSY, if it is held.
    pub(crate) fn end(&self) -> Answer {
        self.enter()?;
        let is_held = lock_api::RawRwLock::is_locked(&self.under) || self.bias.is_read();
        ensure(!is_held, EBUSY)?;
        // SAFETY: nobody is inside, and the caller promises that no other thread uses the lock.
        unsafe { self.bias.reset() };
        self.copy.end();
        Ok(())
    }
}

/// Whether this slow read is one that reads the clock.
#[inline]
fn picks_this_read() -> bool {
    local::with(|local| local.sampler.picks_one_in(SAMPLED))
}
