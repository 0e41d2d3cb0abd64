//! One lock for each processor, as Linux's `brlock`: a reader takes one of them, a writer all.
//!
//! ```text
//!   parts:    [ lock 0 ]  [ lock 1 ]  [ lock 2 ]  [ lock 3 ]     each on cache lines of its own
//!   reader on processor 2:             ^ reads
//!   writer:    1. writes   2. writes   3. writes   4. writes     in this order, so that writers do not deadlock
//! ```

use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use prim::clock::{Duration, Instant};
use prim::thread;
use spanlock::range::raw::Wait;
use std::mem;

/// A lock on two cache lines of its own, which processors fetch together.
#[derive(Debug)]
#[repr(align(128))]
struct Part<L> {
    raw: L,
}

/// `PARTS` locks: a reader takes the one of the processor that it runs on, and a writer takes all, in order.
///
/// - **Size**: 128 bytes for each part, if the underlying lock is no larger. There should be at least as many parts as
///   processors; with fewer, processors share.
/// - **Cost**: a read asks on which processor it runs, and reads one underlying lock. A write writes `PARTS` of them.
/// - **Fairness**: the underlying lock's in each part. A writer that waits for one part holds the parts before it.
/// - **Recursion**: a thread that reads again, on another processor, may wait for a writer that waits for it.
/// - **Downgrade**: where the underlying lock has it. One part is downgraded, and the others are released.
/// - **Not for** small structures, nor where writes matter. `Bravo` reads as fast in a fraction of the
///   space.
///
/// Source: Linux's `brlock` (removed in 3.11), as Dice and Kogan compare BRAVO with it (ATC 2019, section 5). The
/// underlying lock is a parameter.
#[derive(Debug)]
pub struct PerCpu<L, const PARTS: usize> {
    parts: [Part<L>; PARTS],
}

/// Proof of one read acquisition of a [`PerCpu`].
#[derive(Debug)]
pub struct PartToken<G> {
    part: usize,
    guard: G,
}

impl<L: RawRwLock, const PARTS: usize> PerCpu<L, PARTS> {
    prim::const_fn! {
        /// A lock that nobody holds.
        #[must_use]
        pub const fn new() -> Self {
            const { assert!(PARTS > 0, "a lock of no parts") };
            Self {
                parts: [const { Part { raw: L::INIT } }; PARTS],
            }
        }
    }

    /// A lock whose parts are made by `make`.
    #[must_use]
    pub fn from_parts(mut make: impl FnMut() -> L) -> Self {
        const { assert!(PARTS > 0, "a lock of no parts") };
        Self {
            parts: std::array::from_fn(|_| Part { raw: make() }),
        }
    }

    #[inline]
    fn read(
        &self,
        lock: impl FnOnce(&L) -> Option<L::SharedGuard>,
    ) -> Option<PartToken<L::SharedGuard>> {
        let part = thread::cpu() % PARTS;
        let guard = lock(&self.parts[part].raw)?;
        Some(PartToken { part, guard })
    }

    fn write(
        &self,
        lock: impl Fn(&L) -> Option<L::ExclusiveGuard>,
    ) -> Option<[L::ExclusiveGuard; PARTS]> {
        let mut first = First {
            lock: self,
            guards: none(),
        };
        for (part, guard) in self.parts.iter().zip(&mut first.guards) {
            *guard = Some(lock(&part.raw)?);
        }
        Some(mem::replace(&mut first.guards, none()).map(granted))
    }

    /// Releases the first parts, as many as there are guards.
    fn leave(&self, guards: impl IntoIterator<Item = L::ExclusiveGuard>) {
        for (part, guard) in self.parts.iter().zip(guards) {
            // SAFETY: the guards are in the order of their parts, so this one is that part's.
            unsafe { part.raw.unlock_exclusive(guard) };
        }
    }
}

/// The first parts, locked by a writer. If it is dropped, because a later part was refused or panicked, they are
/// released.
struct First<'a, L: RawRwLock, const PARTS: usize> {
    lock: &'a PerCpu<L, PARTS>,
    guards: [Option<L::ExclusiveGuard>; PARTS],
}

impl<L: RawRwLock, const PARTS: usize> Drop for First<'_, L, PARTS> {
    fn drop(&mut self) {
        let guards = mem::replace(&mut self.guards, none());
        self.lock.leave(guards.into_iter().flatten());
    }
}

const fn none<G, const PARTS: usize>() -> [Option<G>; PARTS] {
    [const { None }; PARTS]
}

impl<L: RawRwLock, const PARTS: usize> Default for PerCpu<L, PARTS> {
    fn default() -> Self {
        Self::from_parts(|| L::INIT)
    }
}

// SAFETY: a writer holds every part, so the underlying lock excludes it from all others.
unsafe impl<L: RawRwLock, const PARTS: usize> RawRwLock for PerCpu<L, PARTS> {
    const INIT: Self = prim::initial!(Self::new());

    type SharedGuard = PartToken<L::SharedGuard>;
    type ExclusiveGuard = [L::ExclusiveGuard; PARTS];

    #[inline]
    fn lock_shared(&self) -> Self::SharedGuard {
        granted(self.read(|raw| Some(raw.lock_shared())))
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        self.read(L::try_lock_shared)
    }

    #[inline]
    unsafe fn unlock_shared(&self, token: Self::SharedGuard) {
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is that part's.
        unsafe { self.parts[token.part].raw.unlock_shared(token.guard) };
    }

    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        granted(self.write(|raw| Some(raw.lock_exclusive())))
    }

    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        self.write(L::try_lock_exclusive)
    }

    unsafe fn unlock_exclusive(&self, guards: Self::ExclusiveGuard) {
        self.leave(guards);
    }

    fn is_locked(&self) -> bool {
        self.parts.iter().any(|part| part.raw.is_locked())
    }

    fn is_locked_exclusive(&self) -> bool {
        // A writer acquires the last part last.
        self.parts
            .last()
            .is_some_and(|part| part.raw.is_locked_exclusive())
    }
}

// SAFETY: the timed forms acquire the same parts as the untimed ones, or none.
unsafe impl<L, const PARTS: usize> RawRwLockTimed for PerCpu<L, PARTS>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant>,
{
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Self::SharedGuard> {
        self.read(|raw| raw.try_lock_shared_for(timeout))
    }

    fn try_lock_shared_until(&self, deadline: Instant) -> Option<Self::SharedGuard> {
        self.read(|raw| raw.try_lock_shared_until(deadline))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Self::ExclusiveGuard> {
        match Wait::at_most(timeout).deadline() {
            Some(deadline) => self.try_lock_exclusive_until(deadline),
            None => Some(self.lock_exclusive()),
        }
    }

    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<Self::ExclusiveGuard> {
        self.write(|raw| raw.try_lock_exclusive_until(deadline))
    }
}

// SAFETY: the part that is downgraded keeps writers out, because a writer needs every part.
unsafe impl<L: RawRwLockDowngrade, const PARTS: usize> RawRwLockDowngrade for PerCpu<L, PARTS> {
    unsafe fn downgrade(&self, guards: Self::ExclusiveGuard) -> Self::SharedGuard {
        let kept = thread::cpu() % PARTS;
        let mut shared = None;
        for (at, (part, guard)) in self.parts.iter().zip(guards).enumerate() {
            if at == kept {
                // SAFETY: the guards are in the order of their parts, so this one is that part's.
                shared = Some(unsafe { part.raw.downgrade(guard) });
            } else {
                // SAFETY: the guards are in the order of their parts, so this one is that part's.
                unsafe { part.raw.unlock_exclusive(guard) };
            }
        }
        PartToken {
            part: kept,
            guard: granted(shared),
        }
    }
}

/// What a wait without end returns.
#[inline]
fn granted<T>(acquired: Option<T>) -> T {
    acquired.expect("a wait without end ends with a grant")
}
