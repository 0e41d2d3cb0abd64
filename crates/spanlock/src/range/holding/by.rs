//! How an owner acquires: one range or several, each in its mode.

use super::convert::Counted;
use super::located::Leads;
use super::{Gained, Holding, LockBy, Piece, Pieces, Place, SharedPlace};
use crate::range::many::{self, Several};
use crate::range::order::{Order, Ranges};
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{AskBy, Mode, RawOwnedMutex, RawRangeMutex, Wait};
use crate::range::sought::Sought;
use prim::clock::{Duration, Instant};
use std::ops::RangeBounds;

/// A lock as an [`Owner`] sees it: what is acquired here, the owner holds. From
/// [`RangeLock::by`](crate::range::RangeLock::by) or [`RangeMutex::by`](crate::range::RangeMutex::by).
#[derive(Debug, Clone, Copy)]
pub struct By<'a, P> {
    lock: P,
    owner: &'a Owner,
}

impl<'a, P: Place + Clone> By<'a, P> {
    pub(in crate::range) fn new(lock: P, owner: &'a Owner) -> Self {
        Self { lock, owner }
    }

    /// An empty holding: [`Holding::convert`] adds to it.
    pub fn nothing(&self) -> Holding<P> {
        Holding::nothing(self.lock.clone(), self.owner.clone())
    }

    /// Locks a range alone; blocks while others hold some of it. An empty range is granted at once.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`].
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this thread has locked some of it, for itself or for
    /// this owner.
    #[track_caller]
    pub fn write(&self, range: impl RangeBounds<P::Key>) -> Result<Holding<P>, Refusal> {
        self.lock_within(range, Mode::Exclusive, Wait::Forever)
    }

    /// As [`write`](Self::write), but [`Refusal::Busy`] if it would block.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_write(&self, range: impl RangeBounds<P::Key>) -> Result<Holding<P>, Refusal> {
        self.lock_within(range, Mode::Exclusive, Wait::Never)
    }

    /// As [`write`](Self::write), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_write_for(
        &self,
        range: impl RangeBounds<P::Key>,
        timeout: Duration,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_within(range, Mode::Exclusive, Wait::at_most(timeout))
    }

    /// As [`write`](Self::write), but [`Refusal::Busy`] at `deadline`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_write_until(
        &self,
        range: impl RangeBounds<P::Key>,
        deadline: Instant,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_within(range, Mode::Exclusive, Wait::Until(deadline))
    }

    /// Locks several ranges alone, all or none. Blocks while others hold some of them.
    ///
    /// Does not deadlock with other calls that lock many, of owners or of threads, whatever their order. An owner that
    /// holds other ranges meanwhile is responsible for the order itself.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`].
    ///
    /// # Panics
    /// When a range is reversed; in debug builds, when this thread has locked some of them, for itself or for
    /// this owner.
    #[track_caller]
    pub fn write_many<R: RangeBounds<P::Key>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_many_within(alone(ranges), Wait::Forever)
    }

    /// As [`write_many`](Self::write_many), but [`Refusal::Busy`] if it would block.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_write_many<R: RangeBounds<P::Key>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_many_within(alone(ranges), Wait::Never)
    }

    /// As [`write_many`](Self::write_many), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_write_many_for<R: RangeBounds<P::Key>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        timeout: Duration,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_many_within(alone(ranges), Wait::at_most(timeout))
    }

    #[track_caller]
    fn lock_many_within<R: RangeBounds<P::Key>>(
        &self,
        ranges: impl IntoIterator<Item = (R, Mode)>,
        wait: Wait,
    ) -> Result<Holding<P>, Refusal> {
        let mut holding = self.nothing();
        let several = OwnerRanges::new(&holding, ranges);
        let held = several.acquire_all(wait)?.ok_or(Refusal::Busy)?;
        let gained: Pieces<P> = held.into_iter().flat_map(Gained::keep).collect();
        holding.put(gained);
        holding.sort();
        Ok(holding)
    }

    #[inline]
    #[track_caller]
    pub(in crate::range) fn lock_within(
        &self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        wait: Wait,
    ) -> Result<Holding<P>, Refusal> {
        Holding::acquire(self.lock.clone(), self.owner, range, mode, wait)
    }

    /// As [`lock_within`](Self::lock_within), for a task.
    #[inline]
    #[track_caller]
    pub(super) fn asks(
        &self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        wait: Wait,
    ) -> LockBy<P> {
        LockBy::new(self.lock.clone(), self.owner.clone(), range, mode, wait)
    }
}

impl<P: Place> Holding<P> {
    /// Acquires one range for an owner.
    #[inline]
    #[track_caller]
    pub(in crate::range) fn acquire(
        lock: P,
        owner: &Owner,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        wait: Wait,
    ) -> Result<Self, Refusal> {
        match lock.ranges().sought(&range) {
            Some(sought) => Self::acquire_sought(lock, owner, &sought, mode, wait),
            None => Ok(Self::nothing(lock, owner.clone())),
        }
    }

    /// Acquires one range for an owner.
    #[inline]
    #[track_caller]
    pub(super) fn acquire_sought(
        lock: P,
        owner: &Owner,
        sought: &Sought,
        mode: Mode,
        wait: Wait,
    ) -> Result<Self, Refusal> {
        let owner = owner.clone_counted()?;
        let counted = Counted::as_is(&owner);
        let ask = AskBy::new(&owner, sought.span(), mode, wait);
        let token = lock.raw().lock_by(ask)?;
        counted.keep();
        let pieces = Pieces::<P>::from_buf([Piece::new(&lock, sought, mode, token)]);
        Ok(Self {
            lock,
            owner,
            pieces,
        })
    }
}

/// Of locks that grant shared ranges.
impl<P: SharedPlace + Clone> By<'_, P> {
    /// Locks a range; blocks while others hold some of it in the way. An empty range is granted at once.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`].
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when what this thread has locked, for itself or for this owner,
    /// is in the way.
    #[track_caller]
    pub fn lock(&self, range: impl RangeBounds<P::Key>, mode: Mode) -> Result<Holding<P>, Refusal> {
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
        range: impl RangeBounds<P::Key>,
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
        range: impl RangeBounds<P::Key>,
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
        range: impl RangeBounds<P::Key>,
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
    pub fn read(&self, range: impl RangeBounds<P::Key>) -> Result<Holding<P>, Refusal> {
        self.lock(range, Mode::Shared)
    }

    /// As [`read`](Self::read), but [`Refusal::Busy`] if it would block: [`try_lock`](Self::try_lock), shared.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_read(&self, range: impl RangeBounds<P::Key>) -> Result<Holding<P>, Refusal> {
        self.try_lock(range, Mode::Shared)
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
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`].
    ///
    /// # Panics
    /// When a range is reversed; in debug builds, when what this thread has locked, for itself or for this owner, is
    /// in the way.
    #[track_caller]
    pub fn lock_many<R: RangeBounds<P::Key>>(
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
    pub fn try_lock_many<R: RangeBounds<P::Key>>(
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
    pub fn try_lock_many_for<R: RangeBounds<P::Key>>(
        &self,
        ranges: impl IntoIterator<Item = (R, Mode)>,
        timeout: Duration,
    ) -> Result<Holding<P>, Refusal> {
        self.lock_many_within(ranges, Wait::at_most(timeout))
    }
}

/// What an anonymous owner gets: `None`, if it is refused and was not to wait for ever.
///
/// # Panics
/// When it was to wait for ever, and the lock limits what owners hold and is full.
#[track_caller]
pub(in crate::range) fn of_anonymous<H>(outcome: Result<H, Refusal>, wait: Wait) -> Option<H> {
    match outcome {
        Ok(held) => Some(held),
        Err(_) if wait != Wait::Forever => None,
        // Nobody limits or cancels such an owner.
        Err(refusal) => panic!("an owned guard is refused: {refusal}"),
    }
}

/// Ranges that are all to be held alone.
pub(super) fn alone<R>(ranges: impl IntoIterator<Item = R>) -> impl Iterator<Item = (R, Mode)> {
    ranges.into_iter().map(|range| (range, Mode::Exclusive))
}

/// The ranges that an owner acquires by one call, each in its mode.
pub(super) struct OwnerRanges<'a, P: Place> {
    /// Of the owner, and of this lock.
    holding: &'a Holding<P>,
    pub(super) wanted: Vec<(Sought, Mode)>,
}

impl<'a, P: Place> OwnerRanges<'a, P> {
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub(super) fn new<R: RangeBounds<P::Key>>(
        holding: &'a Holding<P>,
        ranges: impl IntoIterator<Item = (R, Mode)>,
    ) -> Self {
        let order = holding.lock.ranges();
        let mut by_mode = [Vec::<Sought>::new(), Vec::new()];
        for (range, mode) in ranges {
            if let Some(sought) = order.sought(&range) {
                by_mode[usize::from(mode == Mode::Exclusive)].push(sought);
            }
        }
        let arrange = |all: &Vec<Sought>| {
            let spans = all.iter().map(Sought::span).collect();
            many::arrange(holding.lock.raw(), order, spans)
        };
        let [shared, alone] = by_mode.each_ref().map(arrange);
        let mut wanted = Vec::new();
        for span in shared {
            let mut rest = Some(span);
            for &taken in &alone {
                let Some(whole) = rest.filter(|&rest| order.overlap(rest, taken)) else {
                    continue;
                };
                let [before, behind] = order.without(whole, taken);
                wanted.extend(before.map(|span| (span, Mode::Shared)));
                rest = behind;
            }
            wanted.extend(rest.map(|span| (span, Mode::Shared)));
        }
        wanted.extend(alone.into_iter().map(|span| (span, Mode::Exclusive)));
        order.sort(&mut wanted, |&(span, _)| span);
        let part = |(span, mode)| (order.part(span), mode);
        let wanted = wanted.into_iter().map(part).collect();
        Self { holding, wanted }
    }
}

impl<'a, P: Place> Several for OwnerRanges<'a, P> {
    type Hold = Gained<'a, P>;
    type Refusal = Refusal;

    fn count(&self) -> usize {
        self.wanted.len()
    }

    fn is_taken(&self, at: usize) -> bool {
        let (sought, mode) = &self.wanted[at];
        self.holding.lock.raw().is_taken(sought.span(), *mode)
    }

    #[track_caller]
    fn acquire(
        &self,
        at: usize,
        wait: Wait,
        _: Option<&Gained<'a, P>>,
    ) -> Result<Option<Gained<'a, P>>, Refusal> {
        let (sought, mode) = &self.wanted[at];
        let mut gained = Gained::new(self.holding);
        match gained.acquire(sought.span(), *mode, wait) {
            Ok(()) => Ok(Some(gained)),
            Err(Refusal::Busy) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }
}
