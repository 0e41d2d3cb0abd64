//! How an owner acquires: one range or several, each in its mode.

use super::{Gained, Holding, Pieces, Place};
use crate::range::many::{self, Several};
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{Mode, Wait};
use crate::range::span::Span;
use prim::clock::{Duration, Instant};
use std::ops::RangeBounds;

/// A lock as an [`Owner`] sees it: what is acquired here, the owner holds. From
/// [`RangeLock::by`](crate::range::RangeLock::by).
#[derive(Debug, Clone, Copy)]
pub struct By<'a, P> {
    lock: P,
    owner: &'a Owner,
}

impl<'a, P: Place + Clone> By<'a, P> {
    pub(in crate::range) fn new(lock: P, owner: &'a Owner) -> Self {
        Self { lock, owner }
    }

    /// Nothing yet: [`Holding::convert`] adds to it.
    pub fn nothing(&self) -> Holding<P> {
        Holding::nothing(self.lock.clone(), self.owner.clone())
    }

    /// Locks a range; blocks while others hold some of it in the way. An empty range is granted at once.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`].
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this owner holds some of it in the way.
    #[track_caller]
    pub fn lock(&self, range: impl RangeBounds<u64>, mode: Mode) -> Result<Holding<P>, Refusal> {
        self.lock_within(range, mode, Wait::Forever)
    }

    /// As [`lock`](Self::lock), but [`Refusal::Busy`] if it would block.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_lock(
        &self,
        range: impl RangeBounds<u64>,
        mode: Mode,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_within(range, mode, Wait::Never)
    }

    /// As [`lock`](Self::lock), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_lock_for(
        &self,
        range: impl RangeBounds<u64>,
        mode: Mode,
        timeout: Duration,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_within(range, mode, Wait::at_most(timeout))
    }

    /// As [`lock`](Self::lock), but [`Refusal::Busy`] at `deadline`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_lock_until(
        &self,
        range: impl RangeBounds<u64>,
        mode: Mode,
        deadline: Instant,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_within(range, mode, Wait::Until(deadline))
    }

    /// Locks a range with other readers: [`lock`](Self::lock), shared.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// See there.
    #[track_caller]
    pub fn read(&self, range: impl RangeBounds<u64>) -> Result<Holding<P>, Refusal> {
        self.lock(range, Mode::Shared)
    }

    /// Locks a range alone: [`lock`](Self::lock), exclusive.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// See there.
    #[track_caller]
    pub fn write(&self, range: impl RangeBounds<u64>) -> Result<Holding<P>, Refusal> {
        self.lock(range, Mode::Exclusive)
    }

    /// Locks several ranges, each in its mode, all or none. Blocks while others hold some of them in the way. Of
    /// positions that are asked for more than once the stronger mode counts.
    ///
    /// Does not deadlock with other calls that lock many, of owners or of threads, whatever their order. An owner that
    /// holds other ranges meanwhile is responsible for the order itself.
    ///
    /// ```
    /// use spanlock::range::raw::Mode::{Exclusive, Shared};
    /// use spanlock::range::{Owner, RangeLock};
    ///
    /// let rows = RangeLock::new();
    /// let transaction = Owner::new();
    /// let mut held = rows.by(&transaction).lock_many([(4..5, Exclusive), (0..10, Shared)])?;
    /// held.release(5..10);
    /// assert_eq!(held.pieces().count(), 2);
    /// # Ok::<(), spanlock::range::Refusal>(())
    /// ```
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`].
    ///
    /// # Panics
    /// When a range is reversed; in debug builds, when this owner holds some of them in the way.
    #[track_caller]
    pub fn lock_many<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = (R, Mode)>,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_many_within(ranges, Wait::Forever)
    }

    /// As [`lock_many`](Self::lock_many), but [`Refusal::Busy`] if it would block.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_lock_many<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = (R, Mode)>,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_many_within(ranges, Wait::Never)
    }

    /// As [`lock_many`](Self::lock_many), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_lock_many_for<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = (R, Mode)>,
        timeout: Duration,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_many_within(ranges, Wait::at_most(timeout))
    }

    #[track_caller]
    fn lock_many_within<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = (R, Mode)>,
        wait: Wait,
    ) -> Result<Holding<P>, Refusal> {
        let mut holding = self.nothing();
        let several = OfOwner::new(&holding, ranges);
        let held = several.acquire_all(wait)?.ok_or(Refusal::Busy)?;
        let mut pieces: Pieces<P> = held.into_iter().flat_map(Gained::keep).collect();
        pieces.sort_unstable_by_key(|piece| piece.span.start());
        holding.pieces = pieces;
        Ok(holding)
    }

    #[track_caller]
    fn lock_within(
        &self,
        range: impl RangeBounds<u64>,
        mode: Mode,
        wait: Wait,
    ) -> Result<Holding<P>, Refusal> {
        let mut holding = self.nothing();
        if let Some(span) = Span::of(range) {
            let mut gained = Gained::new(&holding);
            gained.acquire(span, mode, wait)?;
            holding.pieces = gained.keep();
        }
        Ok(holding)
    }
}

/// The ranges that an owner acquires by one call, each in its mode.
struct OfOwner<'a, P: Place> {
    /// Of the owner, and of this lock.
    holding: &'a Holding<P>,
    wanted: Vec<(Span, Mode)>,
}

impl<'a, P: Place> OfOwner<'a, P> {
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    fn new<R: RangeBounds<u64>>(
        holding: &'a Holding<P>,
        ranges: impl IntoIterator<Item = (R, Mode)>,
    ) -> Self {
        let mut by_mode = [Vec::new(), Vec::new()];
        for (range, mode) in ranges {
            if let Some(span) = Span::of(range) {
                by_mode[usize::from(mode == Mode::Exclusive)].push(span);
            }
        }
        let [shared, alone] = by_mode.map(|spans| many::arrange(holding.lock.raw(), spans));
        let mut wanted = Vec::new();
        for span in shared {
            let mut rest = Some(span);
            for &taken in &alone {
                let Some(whole) = rest.filter(|rest| rest.overlaps(taken)) else {
                    continue;
                };
                let [before, behind] = whole.without(taken);
                wanted.extend(before.map(|span| (span, Mode::Shared)));
                rest = behind;
            }
            wanted.extend(rest.map(|span| (span, Mode::Shared)));
        }
        wanted.extend(alone.into_iter().map(|span| (span, Mode::Exclusive)));
        wanted.sort_unstable_by_key(|(span, _)| span.start());
        Self { holding, wanted }
    }
}

impl<'a, P: Place> Several for OfOwner<'a, P> {
    type Held = Gained<'a, P>;
    type Refusal = Refusal;

    fn count(&self) -> usize {
        self.wanted.len()
    }

    #[track_caller]
    fn acquire(
        &self,
        at: usize,
        wait: Wait,
        _: Option<&Gained<'a, P>>,
    ) -> Result<Option<Gained<'a, P>>, Refusal> {
        let (span, mode) = self.wanted[at];
        let mut gained = Gained::new(self.holding);
        match gained.acquire(span, mode, wait) {
            Ok(()) => Ok(Some(gained)),
            Err(Refusal::Busy) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }
}
