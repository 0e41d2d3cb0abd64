//! What an owner asks for: one range or several.

use super::super::by::{OfOwner, alone};
use super::super::{By, Holding, Place};
use super::LockBy;
use crate::range::many::EMPTY_HANDED_ROUNDS;
use crate::range::owner::Refusal;
use crate::range::raw::{Mode, RawOwned, Wait};
use crate::range::sought::Sought;
use prim::clock::Duration;
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
    fn many<R: RangeBounds<P::Key>, I: IntoIterator<Item = (R, Mode)>>(
        &self,
        ranges: I,
        wait: Wait,
    ) -> impl Future<Output = Result<Holding<P>, Refusal>> + use<P, R, I> {
        let nothing = self.nothing();
        let wanted = OfOwner::new(&nothing, ranges).wanted;
        acquire_all(nothing, wanted, wait)
    }
}

impl<P: Place<Raw: RawOwned> + Clone> By<'_, P> {
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

/// Acquires all of them or none, in the rounds of [`many`](crate::range::many).
async fn acquire_all<P: Place + Clone>(
    nothing: Holding<P>,
    wanted: Vec<(Sought, Mode)>,
    wait: Wait,
) -> Result<Holding<P>, Refusal> {
    let mut awaited = 0;
    for _ in 0..EMPTY_HANDED_ROUNDS {
        let Some((sought, mode)) = wanted.get(awaited).cloned() else {
            break;
        };
        let mut held = nothing.asks(Some(sought), mode, wait).await?;
        match held.try_others(&wanted, awaited)? {
            None => return Ok(held),
            Some(taken) => awaited = taken,
        }
    }
    let mut held = nothing;
    for (sought, mode) in wanted {
        let next = held.asks(Some(sought), mode, wait).await?;
        held.take(next);
    }
    Ok(held)
}

impl<P: Place + Clone> Holding<P> {
    /// A request of its owner, of the same lock.
    pub(super) fn asks(&self, sought: Option<Sought>, mode: Mode, wait: Wait) -> LockBy<P> {
        LockBy::sought(self.lock.clone(), self.owner.clone(), sought, mode, wait)
    }

    /// Of the same lock and owner, of which nothing is held.
    pub(super) fn another(&self) -> Self {
        Self::nothing(self.lock.clone(), self.owner.clone())
    }

    /// Acquires the other ranges if that takes no waiting; or says which one is taken.
    fn try_others(
        &mut self,
        wanted: &[(Sought, Mode)],
        awaited: usize,
    ) -> Result<Option<usize>, Refusal> {
        for (at, (sought, mode)) in wanted.iter().enumerate() {
            if at == awaited {
                continue;
            }
            let (lock, wait) = (self.lock.clone(), Wait::Never);
            match Self::acquire_sought(lock, &self.owner, sought, *mode, wait) {
                Ok(next) => self.take(next),
                Err(Refusal::Busy) => return Ok(Some(at)),
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(None)
    }
}

impl<P: Place> Holding<P> {
    /// Takes over what another one of the same owner holds, elsewhere.
    pub(super) fn take(&mut self, mut other: Self) {
        self.add(std::mem::take(&mut other.pieces));
    }
}
