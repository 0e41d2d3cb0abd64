//! The world of range locks, and their scenarios by subject. Each slot of the world is a cell whose accesses loom
//! checks.
//!
//! Spins, where a model has any, are of one round. A wait with a deadline sleeps for one turn of the other threads.

mod downgrade;
mod exclusion;
mod figure_one;
mod giving_up;
mod giving_way;
mod many;
mod owners;
mod tasks;
mod waiting;

pub use downgrade::*;
pub use exclusion::*;
pub use figure_one::*;
pub use giving_up::*;
pub use giving_way::*;
pub use many::*;
pub use owners::*;
pub use tasks::*;
pub use waiting::*;

pub use crate::{Crew, World as _};
use prim::cell::UnsafeCell;
use prim::clock::{Duration, Instant};
use spanlock::range::Span;
use spanlock::range::inspect::Snapshot;
use spanlock::range::raw::{
    Ask, AskBy, Asked, Mode, RawOwned, RawOwnedMutex, RawRangeLock, RawRangeMutex, Wait,
};
use spanlock::range::{Owner, RangeLock, RangeMutex, Refusal};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::task::{Poll, Waker};

/// A range lock that threads share.
pub trait Exclusive: RawRangeMutex + Send + Sync + 'static {}
impl<L: RawRangeMutex + Send + Sync + 'static> Exclusive for L {}

/// A range lock with readers that threads share.
pub trait Shared: RawRangeLock + Exclusive {}
impl<L: RawRangeLock + Exclusive> Shared for L {}

/// Slots under a lock. A range of positions protects the slots of the same numbers.
pub struct World<L> {
    lock: L,
    slots: Vec<UnsafeCell<u64>>,
}

// SAFETY: threads reach the slots under the lock alone. The models check that the lock suffices for that.
unsafe impl<L: Sync> Sync for World<L> {}
// SAFETY: the slots are numbers, which any thread may own and drop.
unsafe impl<L: Send> Send for World<L> {}

/// A held range.
pub struct Hold<'a, L: RawRangeMutex> {
    world: &'a World<L>,
    range: Range<u64>,
    mode: Mode,
    token: Option<L::Token>,
}

/// What one thread of a model does.
pub type Act<L> = Box<dyn FnOnce(&Arc<World<L>>)>;

/// Does as `f` does.
pub fn act<L>(f: impl FnOnce(&Arc<World<L>>) + 'static) -> Act<L> {
    Box::new(f)
}

/// Writes a range and releases it.
pub fn write<L: Exclusive>(range: Range<u64>) -> Act<L> {
    act(|world| world.write(range).done())
}

/// Reads a range and releases it.
pub fn read<L: Shared>(range: Range<u64>) -> Act<L> {
    act(|world| world.read(range).done())
}

/// Writes a range and reads it, without a release in between.
pub fn write_and_read<L: Shared>(range: Range<u64>) -> Act<L> {
    act(|world| {
        let mine = world.write(range);
        mine.touch();
        mine.downgrade().done();
    })
}

/// Writes each position of a range, one after another.
pub fn write_each<L: Exclusive>(range: Range<u64>) -> Act<L> {
    act(|world| range.for_each(|at| world.write(at..at + 1).done()))
}

/// Writes a range if that takes no waiting.
pub fn try_write<L: Exclusive>(range: Range<u64>) -> Act<L> {
    act(|world| {
        world
            .write_within(range, Wait::Never)
            .map_or((), Hold::done)
    })
}

/// Reads a range if that takes no waiting.
pub fn try_read<L: Shared>(range: Range<u64>) -> Act<L> {
    act(|world| world.read_within(range, Wait::Never).map_or((), Hold::done))
}

/// Writes a range, or gives up.
pub fn write_soon<L: Exclusive>(range: Range<u64>) -> Act<L> {
    act(|world| world.write_within(range, soon()).map_or((), Hold::done))
}

/// Reads a range, or gives up.
pub fn read_soon<L: Shared>(range: Range<u64>) -> Act<L> {
    act(|world| world.read_within(range, soon()).map_or((), Hold::done))
}

/// Writes several ranges that it locks in one call.
pub fn write_many<L: Exclusive>(ranges: &'static [Range<u64>]) -> Act<L> {
    act(|world| {
        let lock = RangeMutex::from_raw(Lent(&world.lock));
        let _guards = lock.lock_many(ranges.iter().cloned());
        world.touch(ranges, Mode::Exclusive);
    })
}

/// Reads several ranges that it locks in one call.
pub fn read_many<L: Shared>(ranges: &'static [Range<u64>]) -> Act<L> {
    act(|world| {
        let lock = RangeLock::from_raw(Lent(&world.lock));
        let _guards = lock.read_many(ranges.iter().cloned());
        world.touch(ranges, Mode::Shared);
    })
}

/// Checks that a range is not to be had.
pub fn is_refused<L: Exclusive>(range: Range<u64>) -> Act<L> {
    act(|world| assert!(world.write_within(range, Wait::Never).is_none()))
}

/// A deadline that a thread can reach.
#[must_use]
pub fn soon() -> Wait {
    Wait::Until(Instant::now() + Duration::from_micros(3))
}

fn span(range: &Range<u64>) -> Span {
    Span::of(range.clone()).unwrap()
}

impl<L: RawRangeMutex> World<L> {
    /// Eight slots.
    pub fn new(lock: L) -> Arc<Self> {
        let slots = (0..8).map(UnsafeCell::new).collect();
        Arc::new(Self { lock, slots })
    }

    fn hold(&self, range: Range<u64>, mode: Mode, token: Option<L::Token>) -> Option<Hold<'_, L>> {
        Some(Hold {
            world: self,
            range,
            mode,
            token: Some(token?),
        })
    }

    /// Locks a range exclusively; waits as long as it takes.
    pub fn write(&self, range: Range<u64>) -> Hold<'_, L> {
        self.write_within(range, Wait::Forever).unwrap()
    }

    /// Locks a range exclusively, if `wait` allows to wait that long.
    pub fn write_within(&self, range: Range<u64>, wait: Wait) -> Option<Hold<'_, L>> {
        let token = self.lock.lock_exclusive(Ask::new(span(&range), wait));
        self.hold(range, Mode::Exclusive, token)
    }

    fn touch(&self, ranges: &[Range<u64>], mode: Mode) {
        for at in ranges.iter().cloned().flatten() {
            let slot = &self.slots[usize::try_from(at).unwrap()];
            match mode {
                // SAFETY: the slot is held shared; loom checks.
                Mode::Shared => _ = slot.with(|slot| unsafe { *slot }),
                // SAFETY: the slot is held exclusively; loom checks.
                Mode::Exclusive => slot.with_mut(|slot| unsafe { *slot += 1 }),
            }
        }
    }

    /// The lock, for what only locks of its kind do.
    pub fn lock(&self) -> &L {
        &self.lock
    }

    /// The holders and the waiting requests.
    pub fn snapshot(&self) -> Snapshot {
        self.lock.snapshot().unwrap()
    }

    /// Waits until so many requests are asleep.
    pub fn until_asleep(&self, count: usize) {
        while self.snapshot().waiters.len() < count {
            // Loom's own, which does not count as a spin: what is to be explored has yet to begin.
            prim::loom::thread::yield_now();
        }
    }

    /// Checks that nothing is held, and that no request has left anything behind.
    ///
    /// # Panics
    /// When a range is held.
    pub fn is_free(&self) {
        assert!(self.write_within(0..8, Wait::Never).is_some());
    }
}

impl<L: RawRangeLock> World<L> {
    /// Locks a range shared; waits as long as it takes.
    pub fn read(&self, range: Range<u64>) -> Hold<'_, L> {
        self.read_within(range, Wait::Forever).unwrap()
    }

    /// Locks a range shared, if `wait` allows to wait that long.
    pub fn read_within(&self, range: Range<u64>, wait: Wait) -> Option<Hold<'_, L>> {
        let token = self.lock.lock_shared(Ask::new(span(&range), wait));
        self.hold(range, Mode::Shared, token)
    }
}

impl<L: Exclusive> crate::World for World<L> {
    type Act = Act<L>;
}

impl<L: Exclusive> World<L> {
    /// Starts a thread for each act, releases the holds, and joins the threads.
    pub fn release_beside<const H: usize, const N: usize>(
        self: &Arc<Self>,
        holds: [Hold<'_, L>; H],
        acts: [Act<L>; N],
    ) {
        let crew = self.start(acts);
        holds.into_iter().for_each(Hold::done);
        crew.join();
    }

    /// Holds a range exclusively while the acts begin.
    pub fn behind_a_writer<const N: usize>(self: &Arc<Self>, range: Range<u64>, acts: [Act<L>; N]) {
        self.release_beside([self.write(range)], acts);
    }
}

impl<L: Shared> World<L> {
    /// Holds a range shared while the acts begin.
    pub fn behind_a_reader<const N: usize>(self: &Arc<Self>, range: Range<u64>, acts: [Act<L>; N]) {
        self.release_beside([self.read(range)], acts);
    }

    /// Holds a range exclusively while the acts begin; shares it, and releases it.
    pub fn behind_a_downgrade<const N: usize>(
        self: &Arc<Self>,
        range: Range<u64>,
        acts: [Act<L>; N],
    ) {
        let mine = self.write(range);
        let crew = self.start(acts);
        mine.touch();
        mine.downgrade().done();
        crew.join();
    }
}

impl<L: RawRangeMutex> Hold<'_, L> {
    /// Reads every slot of the range. Changes each, too, if the range is held exclusively.
    pub fn touch(&self) {
        let range = std::slice::from_ref(&self.range);
        self.world.touch(range, self.mode);
    }

    /// Touches and releases.
    pub fn done(self) {
        self.touch();
    }
}

impl<L: RawRangeLock> Hold<'_, L> {
    /// Shares the range from now on.
    #[must_use]
    pub fn downgrade(mut self) -> Self {
        let token = self.token.take().unwrap();
        self.mode = Mode::Shared;
        // SAFETY: the token is this lock's, and exclusive until now.
        self.token = Some(unsafe { self.world.lock.downgrade(token) });
        self
    }
}

impl<L: RawRangeMutex> Drop for Hold<'_, L> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token is this lock's, and no other hold has it.
            unsafe { self.world.lock.unlock(token) };
        }
    }
}

/// A lock elsewhere, as the typed locks want to own one.
pub struct Lent<P>(P);

// SAFETY: the lock promises what the trait asks, and each call is forwarded to it.
unsafe impl<P: Deref<Target: RawRangeMutex>> RawRangeMutex for Lent<P> {
    type Token = <P::Target as RawRangeMutex>::Token;

    fn lock_exclusive(&self, ask: Ask<'_, Self::Token>) -> Option<Self::Token> {
        self.0.lock_exclusive(ask)
    }

    unsafe fn unlock(&self, token: Self::Token) {
        // SAFETY: the caller promises what the lock asks: this function passes its own conditions on.
        unsafe { self.0.unlock(token) };
    }

    fn granule(&self, span: Span) -> Span {
        self.0.granule(span)
    }

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        self.0.is_taken(span, mode)
    }
}

// SAFETY: the lock promises what the trait asks, and each call is forwarded to it.
unsafe impl<P: Deref<Target: RawRangeLock>> RawRangeLock for Lent<P> {
    fn lock_shared(&self, ask: Ask<'_, Self::Token>) -> Option<Self::Token> {
        self.0.lock_shared(ask)
    }

    unsafe fn downgrade(&self, token: Self::Token) -> Self::Token {
        // SAFETY: the caller promises what the lock asks: this function passes its own conditions on.
        unsafe { self.0.downgrade(token) }
    }
}

// SAFETY: the lock promises what the trait asks, and each call is forwarded to it.
unsafe impl<P: Deref<Target: RawOwnedMutex>> RawOwnedMutex for Lent<P> {
    fn lock_by(&self, ask: AskBy<'_, Self::Token>) -> Result<Self::Token, Refusal> {
        self.0.lock_by(ask)
    }

    fn poll_by(
        &self,
        ask: AskBy<'_, Self::Token>,
        asked: &mut Asked,
        waker: &Waker,
    ) -> Poll<Result<Self::Token, Refusal>> {
        self.0.poll_by(ask, asked, waker)
    }

    fn forget_by(&self, owner: &Owner, mode: Mode, asked: &mut Asked) {
        self.0.forget_by(owner, mode, asked);
    }

    unsafe fn unlock_by(&self, token: Self::Token) {
        // SAFETY: the caller promises what the lock asks: this function passes its own conditions on.
        unsafe { self.0.unlock_by(token) };
    }
}

// SAFETY: the lock promises what the trait asks, and each call is forwarded to it.
unsafe impl<P: Deref<Target: RawOwned>> RawOwned for Lent<P> {
    unsafe fn share_by(&self, token: &Self::Token) {
        // SAFETY: the caller promises what the lock asks: this function passes its own conditions on.
        unsafe { self.0.share_by(token) };
    }
}
