//! What an owner asks for: one range or several.

use super::super::by::{OwnerRanges, alone};
use super::super::{By, Holding, Place, SharedPlace};
use super::{LockBy, Until};
use crate::range::many::EMPTY_HANDED_ROUNDS;
use crate::range::owner::Refusal;
use crate::range::raw::{Mode, Wait};
use crate::range::sought::Sought;
use prim::clock::Duration;
use smallvec::{SmallVec, smallvec};
use std::future::Future;
use std::ops::RangeBounds;

impl<P: Place + Clone> By<'_, P> {
    /// As [`write`](Self::write), for a task: a future, which waits without blocking a thread.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn write_async(&self, range: impl RangeBounds<P::Key>) -> LockBy<P> {
        self.asks(range, Mode::Exclusive, Wait::Forever)
    }

    /// As [`write_async`](Self::write_async), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_write_async_for(
        &self,
        range: impl RangeBounds<P::Key>,
        timeout: Duration,
    ) -> LockBy<P> {
        let wait = Wait::at_most(timeout);
        self.asks(range, Mode::Exclusive, wait)
    }

    /// As [`write_many`](Self::write_many), for a task. It does nothing until it is polled.
    ///
    /// In its first three rounds it holds nothing while it waits. In the last it keeps what it has. So its task must be
    /// polled, as one that holds a range. A future that is dropped releases what it has, the last first.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn write_many_async<R: RangeBounds<P::Key>, I: IntoIterator<Item = R>>(
        &self,
        ranges: I,
    ) -> impl Future<Output = Result<Holding<P>, Refusal>> + use<P, R, I> {
        self.many(alone(ranges), Wait::Forever)
    }

    /// As [`write_many_async`](Self::write_many_async), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_write_many_async_for<R: RangeBounds<P::Key>, I: IntoIterator<Item = R>>(
        &self,
        ranges: I,
        timeout: Duration,
    ) -> impl Future<Output = Result<Holding<P>, Refusal>> + use<P, R, I> {
        self.many(alone(ranges), Wait::at_most(timeout))
    }

    #[track_caller]
    pub(in crate::range) fn many<R: RangeBounds<P::Key>, I: IntoIterator<Item = (R, Mode)>>(
        &self,
        ranges: I,
        wait: Wait,
    ) -> impl Future<Output = Result<Holding<P>, Refusal>> + use<P, R, I> {
        let nothing = self.nothing();
        let wanted = OwnerRanges::new(&nothing, ranges).wanted;
        let wanted = wanted.into_iter().map(|(sought, mode)| (0, sought, mode));
        let held = acquire_all(smallvec![nothing], wanted.collect(), Until::new(wait));
        async move { Ok(held.await?.pop().expect("there is one lock")) }
    }
}

impl<P: SharedPlace + Clone> By<'_, P> {
    /// As [`lock`](Self::lock), for a task: a future, which waits without blocking a thread.
    ///
    /// ```
    /// use spanlock::range::{Owner, RangeLock, Refusal, raw::Mode};
    ///
    /// async fn serve(rows: &RangeLock, request: &Owner) -> Result<(), Refusal> {
    ///     let mut held = rows.by(request).lock_async(0..100, Mode::Shared).await?;
    ///     held.convert_async(40..60, Mode::Exclusive).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn lock_async(&self, range: impl RangeBounds<P::Key>, mode: Mode) -> LockBy<P> {
        self.asks(range, mode, Wait::Forever)
    }

    /// As [`lock_async`](Self::lock_async), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_lock_async_for(
        &self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        timeout: Duration,
    ) -> LockBy<P> {
        self.asks(range, mode, Wait::at_most(timeout))
    }

    /// Locks a range with other readers: [`lock_async`](Self::lock_async), shared.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn read_async(&self, range: impl RangeBounds<P::Key>) -> LockBy<P> {
        self.lock_async(range, Mode::Shared)
    }

    /// As [`lock_many`](Self::lock_many), for a task: see [`write_many_async`](Self::write_many_async).
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn lock_many_async<R: RangeBounds<P::Key>, I: IntoIterator<Item = (R, Mode)>>(
        &self,
        ranges: I,
    ) -> impl Future<Output = Result<Holding<P>, Refusal>> + use<P, R, I> {
        self.many(ranges, Wait::Forever)
    }

    /// As [`lock_many_async`](Self::lock_many_async), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_lock_many_async_for<R: RangeBounds<P::Key>, I: IntoIterator<Item = (R, Mode)>>(
        &self,
        ranges: I,
        timeout: Duration,
    ) -> impl Future<Output = Result<Holding<P>, Refusal>> + use<P, R, I> {
        self.many(ranges, Wait::at_most(timeout))
    }
}

/// A range that is wanted of one of several locks, by its number, and how.
pub(in crate::range::holding) type Wanted = (usize, Sought, Mode);

/// What an owner holds of several locks.
pub(in crate::range::holding) type All<P> = SmallVec<[Holding<P>; 1]>;

/// Acquires all of them or none, in the rounds of [`many`](crate::range::many). `nothing` is held of each lock, in the
/// order that all calls agree on, and what is wanted ascends.
pub(in crate::range::holding) async fn acquire_all<P: Place + Clone>(
    nothing: All<P>,
    wanted: Vec<Wanted>,
    until: Until,
) -> Result<All<P>, Refusal> {
    let mut awaited = 0;
    // A model is to come to the last round.
    for _ in 0..prim::sized(EMPTY_HANDED_ROUNDS, 1) {
        let Some((lock, sought, mode)) = wanted.get(awaited).cloned() else {
            break;
        };
        let first = nothing[lock].asks(Some(sought), mode, until).await?;
        let mut held: All<P> = nothing.iter().map(Holding::another).collect();
        held[lock].take(first);
        match try_others(&mut held, &wanted, awaited)? {
            None => return Ok(held),
            Some(taken) => awaited = taken,
        }
    }
    let mut held = nothing;
    for (lock, sought, mode) in wanted {
        let next = held[lock].asks(Some(sought), mode, until).await?;
        held[lock].take(next);
    }
    Ok(held)
}

/// Acquires the other ranges if that takes no waiting; or says which one is taken.
fn try_others<P: Place + Clone>(
    all: &mut All<P>,
    wanted: &[Wanted],
    awaited: usize,
) -> Result<Option<usize>, Refusal> {
    for (at, (lock, sought, mode)) in wanted.iter().enumerate() {
        if at == awaited {
            continue;
        }
        let held = &mut all[*lock];
        let (lock, wait) = (held.lock.clone(), Wait::Never);
        match Holding::acquire_sought(lock, &held.owner, sought, *mode, wait) {
            Ok(next) => held.take(next),
            Err(Refusal::Busy) => return Ok(Some(at)),
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(None)
}

impl<P: Place + Clone> Holding<P> {
    /// A request of its owner, of the same lock.
    pub(super) fn asks(&self, sought: Option<Sought>, mode: Mode, until: Until) -> LockBy<P> {
        LockBy::sought(self.lock.clone(), self.owner.clone(), sought, mode, until)
    }

    /// Of the same lock and owner, of which nothing is held.
    pub(super) fn another(&self) -> Self {
        Self::nothing(self.lock.clone(), self.owner.clone())
    }
}

impl<P: Place> Holding<P> {
    /// Takes over what another one of the same owner holds, elsewhere.
    pub(super) fn take(&mut self, mut other: Self) {
        self.add(std::mem::take(&mut other.pieces));
    }
}
