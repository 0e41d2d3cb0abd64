//! What an owner locks again and again: counted for each position, or each key, over one holding.
//!
//! ```text
//!   locked:    0 ------- shared ------- 19
//!                      10 --- alone --- 19
//!                      10 --------- alone --------- 29
//!   counts:    0 ---- 9   10 --------- 19   20 --- 29
//!              1 shared   1 shared, 2 alone   1 alone
//!   holding:   [ shared ] [ ---------- alone ---------- ]
//! ```

use super::located::Leads;
use super::tasks::Until;
use super::{By, Holding, Place, SharedPlace};
use crate::range::order::{Order, Ranges};
use crate::range::owner::Refusal;
use crate::range::raw::{Mode, Wait};
use crate::range::sought::Sought;
use crate::range::span::Span;
use prim::clock::Duration;
use std::fmt;
use std::future::Future;
use std::ops::{Range, RangeBounds};

/// What an owner may lock again although it holds it: a range is held until it was unlocked as often as it was locked,
/// and as long as one of these locks is exclusive it is held alone. From [`By::reentrant`].
///
/// ```
/// use spanlock::range::raw::Mode::{Exclusive, Shared};
/// use spanlock::range::{Owner, RangeLock};
///
/// let rows = RangeLock::new();
/// let transaction = Owner::new();
/// let mut held = rows.by(&transaction).reentrant();
/// held.lock(0..20, Shared)?;
/// held.lock(10..30, Exclusive)?; // What it shares of that it has alone from now on.
/// held.lock(5..6, Shared)?;
/// held.unlock(0..20, Shared);
/// assert!(rows.try_write(0..5).is_some() && rows.try_write(5..6).is_none());
/// # Ok::<(), spanlock::range::Refusal>(())
/// ```
///
/// Any thread may use it. Dropping it releases all. Over keys it is the same: see
/// [`KeyRangeLock::by`](crate::range::keys::KeyRangeLock::by).
///
/// # When not to use it
/// Where it is known what is held: a [`Holding`] keeps no counts.
///
/// # Cost
/// A [`Holding`]'s, and a search among the ranges that are counted differently. Those behind a new one are moved
/// up in memory.
#[must_use = "the ranges are released when it is dropped"]
pub struct Reentrant<P: Place> {
    holding: Holding<P>,
    /// In order. They do not overlap, and each is counted.
    parts: Vec<Part>,
}

/// A range that is counted alike.
#[derive(Debug, Clone)]
struct Part {
    sought: Sought,
    shared: usize,
    alone: usize,
}

impl Part {
    /// What is not locked.
    fn unlocked(sought: Sought) -> Self {
        Self {
            sought,
            shared: 0,
            alone: 0,
        }
    }

    /// A part of it, counted as it is.
    fn part(&self, sought: Sought) -> Self {
        Self { sought, ..*self }
    }

    /// How often it is locked in that mode.
    fn count(&mut self, mode: Mode) -> &mut usize {
        match mode {
            Mode::Shared => &mut self.shared,
            Mode::Exclusive => &mut self.alone,
        }
    }
}

/// What of the parts a range touches, cut at both ends of the range, in order. What of the range is no part yet is one
/// that is not locked.
struct Divided {
    /// Which parts these are to replace.
    places: Range<usize>,
    /// Each with whether it is within the range.
    parts: Vec<(Part, Within)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Range,
    Outside,
}

impl Divided {
    /// The parts within the range.
    fn within(&mut self) -> impl Iterator<Item = &mut Part> {
        let parts = self.parts.iter_mut();
        parts.filter_map(|(part, at)| (*at == Within::Range).then_some(part))
    }
}

impl<P: SharedPlace + Clone> By<'_, P> {
    /// An empty holding of what the owner may lock again and again.
    pub fn reentrant(&self) -> Reentrant<P> {
        Reentrant {
            holding: self.nothing(),
            parts: Vec::new(),
        }
    }
}

impl<P: SharedPlace> Reentrant<P> {
    /// What is held.
    pub fn holding(&self) -> &Holding<P> {
        &self.holding
    }

    /// Locks a range once more; blocks while others hold some of it in the way. A refusal changes nothing.
    ///
    /// While it waits, the owner keeps what it holds: see [`Holding::convert`].
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`], [`Refusal::OtherUpgrade`].
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this thread has locked some of it elsewhere, for itself or for
    /// this owner. When a comparison of keys panics: then nothing more is counted, and what is held besides is released
    /// with the rest.
    #[track_caller]
    pub fn lock(&mut self, range: impl RangeBounds<P::Key>, mode: Mode) -> Result<(), Refusal> {
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
    pub fn try_lock(&mut self, range: impl RangeBounds<P::Key>, mode: Mode) -> Result<(), Refusal> {
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
        &mut self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        timeout: Duration,
    ) -> Result<(), Refusal> {
        self.lock_within(range, mode, Wait::at_most(timeout))
    }

    /// Unlocks a range that was locked in that mode. What is not locked any more is released, and what is locked shared
    /// only is shared. Over keys there may be more between any two, so two keys locked one by one are not unlocked by a
    /// range of both.
    ///
    /// # Panics
    /// When the range is reversed, or some of it is not locked in that mode. Then nothing has changed. When a
    /// comparison of keys panics: then what is not counted any more may be held until this is dropped.
    #[track_caller]
    pub fn unlock(&mut self, range: impl RangeBounds<P::Key>, mode: Mode) {
        let ranges = self.holding.place().ranges();
        let Some(sought) = ranges.sought(&range) else {
            return;
        };
        let mut divided = self.divided(sought.span());
        let is_locked = divided.within().all(|part| *part.count(mode) > 0);
        assert!(
            is_locked,
            "{} is not locked {mode:?} as a whole",
            ranges.describe(sought.span())
        );
        divided.within().for_each(|part| *part.count(mode) -= 1);
        let (released, kept): (Vec<_>, Vec<_>) = divided
            .parts
            .into_iter()
            .partition(|(part, _)| part.shared + part.alone == 0);
        let is_shared = |(part, at): &&(Part, Within)| {
            mode == Mode::Exclusive && part.alone == 0 && *at == Within::Range
        };
        let shared: Vec<_> = kept.iter().filter(is_shared).cloned().collect();
        let kept = kept.into_iter().map(|(part, _)| part);
        self.parts.splice(divided.places, kept);
        for (part, _) in &shared {
            self.holding.share(part.sought.span());
        }
        for (part, _) in &released {
            self.holding.release_span(part.sought.span());
        }
    }

    #[track_caller]
    fn lock_within(
        &mut self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        wait: Wait,
    ) -> Result<(), Refusal> {
        let Some(sought) = self.holding.place().ranges().sought(&range) else {
            return Ok(());
        };
        let span = sought.span();
        let divided = self.divided(span);
        match mode {
            Mode::Exclusive => self.holding.extend_span(span, wait)?,
            Mode::Shared => self.holding.share_more(span, wait)?,
        }
        self.count(divided, mode);
        Ok(())
    }

    /// Counts a range that was locked once more.
    fn count(&mut self, mut divided: Divided, mode: Mode) {
        divided.within().for_each(|part| *part.count(mode) += 1);
        let parts = divided.parts.into_iter().map(|(part, _)| part);
        self.parts.splice(divided.places, parts);
    }

    /// Which parts a range touches, and how it divides them.
    fn divided(&self, span: Span) -> Divided {
        let ranges = self.holding.place().ranges();
        let ends_before = |part: &Part| ranges.is_behind(span, part.sought.span());
        let starts_within = |part: &Part| !ranges.is_behind(part.sought.span(), span);
        let first = self.parts.partition_point(ends_before);
        let behind = self.parts.partition_point(starts_within).max(first);
        let mut parts = Vec::new();
        let mut rest = Some(span);
        for part in &self.parts[first..behind] {
            let own = part.sought.span();
            let Some(common) = ranges.intersection(own, span) else {
                parts.push((part.clone(), Within::Outside));
                continue;
            };
            let cut = |span| part.part(ranges.part(span));
            let [before, behind] = ranges.without(own, span);
            parts.extend(before.map(|before| (cut(before), Within::Outside)));
            let [gap, next] = rest.map_or([None, None], |rest| ranges.without(rest, common));
            parts.extend(gap.map(|gap| (Part::unlocked(ranges.part(gap)), Within::Range)));
            parts.push((cut(common), Within::Range));
            parts.extend(behind.map(|behind| (cut(behind), Within::Outside)));
            rest = next;
        }
        parts.extend(rest.map(|rest| (Part::unlocked(ranges.part(rest)), Within::Range)));
        Divided {
            places: first..behind,
            parts,
        }
    }
}

/// For tasks.
impl<P: SharedPlace + Clone> Reentrant<P> {
    /// As [`lock`](Self::lock), for a task: a future, which waits without blocking a thread. Dropping it leaves what
    /// was held as it was. Leaking it locks for good what it has gained so far, and leaves its request in the queue.
    ///
    /// ```
    /// use spanlock::range::raw::Mode::{Exclusive, Shared};
    /// use spanlock::range::{Owner, RangeLock, Refusal};
    ///
    /// async fn serve(rows: &RangeLock, request: &Owner) -> Result<(), Refusal> {
    ///     let mut held = rows.by(request).reentrant();
    ///     held.lock_async(0..20, Shared).await?;
    ///     held.lock_async(10..30, Exclusive).await?;
    ///     held.unlock(0..20, Shared);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// See there.
    #[track_caller]
    pub fn lock_async(
        &mut self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
    ) -> impl Future<Output = Result<(), Refusal>> {
        let sought = self.holding.place().ranges().sought(&range);
        self.lock_soon(sought, mode, Until::new(Wait::Forever))
    }

    /// As [`lock_async`](Self::lock_async), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_lock_async_for(
        &mut self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), Refusal>> {
        let until = Until::new(Wait::at_most(timeout));
        let sought = self.holding.place().ranges().sought(&range);
        self.lock_soon(sought, mode, until)
    }

    async fn lock_soon(
        &mut self,
        sought: Option<Sought>,
        mode: Mode,
        until: Until,
    ) -> Result<(), Refusal> {
        let Some(sought) = sought else {
            return Ok(());
        };
        let divided = self.divided(sought.span());
        match mode {
            Mode::Exclusive => self.holding.extend_soon(Some(sought), until).await?,
            Mode::Shared => self.holding.share_more_soon(sought, until).await?,
        }
        self.count(divided, mode);
        Ok(())
    }
}

impl<P: Place> fmt::Debug for Reentrant<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.holding.fmt(f)
    }
}
