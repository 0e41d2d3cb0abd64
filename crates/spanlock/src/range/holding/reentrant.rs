//! What an owner locks again and again: counted for each position, over one holding.
//!
//! ```text
//!   locked:    0 ------- shared ------- 19
//!                      10 --- alone --- 19
//!                      10 --------- alone --------- 29
//!   counts:    0 ---- 9   10 --------- 19   20 --- 29
//!              1 shared   1 shared, 2 alone   1 alone
//!   holding:   [ shared ] [ ---------- alone ---------- ]
//! ```

use super::{By, Holding, OfPositions};
use crate::range::owner::Refusal;
use crate::range::raw::{Mode, RawOwned, Wait};
use crate::range::span::Span;
use prim::clock::Duration;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeBounds;

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
/// Any thread may use it. Dropping it releases all.
///
/// # When not to use it
/// Where it is known what is held: a [`Holding`] keeps no counts.
///
/// # Cost
/// That of a [`Holding`], and a search among the ranges that are counted differently.
#[must_use = "the ranges are released when it is dropped"]
pub struct Reentrant<P: OfPositions> {
    holding: Holding<P>,
    /// By first positions. Parts do not overlap, and each is counted.
    parts: BTreeMap<u64, Part>,
}

/// Positions that are counted alike.
#[derive(Debug, Clone, Copy)]
struct Part {
    last: u64,
    shared: usize,
    alone: usize,
}

impl Part {
    /// How often it is locked in that mode.
    fn count(&mut self, mode: Mode) -> &mut usize {
        match mode {
            Mode::Shared => &mut self.shared,
            Mode::Exclusive => &mut self.alone,
        }
    }
}

impl<P: OfPositions<Raw: RawOwned> + Clone> By<'_, P> {
    /// Nothing yet, of a kind that the owner may lock again and again.
    pub fn reentrant(&self) -> Reentrant<P> {
        Reentrant {
            holding: self.nothing(),
            parts: BTreeMap::new(),
        }
    }
}

impl<P: OfPositions<Raw: RawOwned>> Reentrant<P> {
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
    /// When the range is reversed; in debug builds, when this owner holds some of it elsewhere.
    #[track_caller]
    pub fn lock(&mut self, range: impl RangeBounds<u64>, mode: Mode) -> Result<(), Refusal> {
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
    pub fn try_lock(&mut self, range: impl RangeBounds<u64>, mode: Mode) -> Result<(), Refusal> {
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
        range: impl RangeBounds<u64>,
        mode: Mode,
        timeout: Duration,
    ) -> Result<(), Refusal> {
        self.lock_within(range, mode, Wait::at_most(timeout))
    }

    /// Unlocks a range that was locked in that mode. What is not locked any more is released, and what is locked shared
    /// only is shared.
    ///
    /// # Panics
    /// When the range is reversed, or some of it is not locked in that mode. Then nothing has changed.
    #[track_caller]
    pub fn unlock(&mut self, range: impl RangeBounds<u64>, mode: Mode) {
        let Some(span) = Span::of(range) else {
            return;
        };
        self.part(span);
        let mut next = Some(span.start());
        for (&start, part) in self.parts.range_mut(span.start()..=span.last()) {
            let is_locked = next == Some(start) && *part.count(mode) > 0;
            assert!(is_locked, "{span} is not locked {mode:?} as a whole");
            next = part.last.checked_add(1);
        }
        let end = span.last().checked_add(1);
        assert!(next == end, "{span} is not locked {mode:?} as a whole");
        let (mut released, mut shared) = (Vec::new(), Vec::new());
        for (&start, part) in self.parts.range_mut(span.start()..=span.last()) {
            *part.count(mode) -= 1;
            let of_part = Span::inclusive(start, part.last).expect("a part has positions");
            match (part.alone, part.shared) {
                (0, 0) => released.push(of_part),
                (0, _) if mode == Mode::Exclusive => shared.push(of_part),
                _ => {}
            }
        }
        for part in shared {
            self.holding.share(part);
        }
        for part in released {
            self.parts.remove(&part.start());
            self.holding.release(part);
        }
    }

    #[track_caller]
    fn lock_within(
        &mut self,
        range: impl RangeBounds<u64>,
        mode: Mode,
        wait: Wait,
    ) -> Result<(), Refusal> {
        let Some(span) = Span::of(range) else {
            return Ok(());
        };
        match mode {
            Mode::Exclusive => self.holding.extend_within(span, wait)?,
            Mode::Shared => self.share_more(span, wait)?,
        }
        self.part(span);
        for gap in self.gaps(span) {
            let part = Part {
                last: gap.last(),
                shared: 0,
                alone: 0,
            };
            self.parts.insert(gap.start(), part);
        }
        for (_, part) in self.parts.range_mut(span.start()..=span.last()) {
            *part.count(mode) += 1;
        }
        Ok(())
    }

    /// Shares what is not held of a span. What is held alone stays so.
    #[track_caller]
    fn share_more(&mut self, span: Span, wait: Wait) -> Result<(), Refusal> {
        let gaps = self.gaps(span);
        for (number, &gap) in gaps.iter().enumerate() {
            let refused = self.holding.convert_within(gap, Mode::Shared, wait);
            if let Err(refusal) = refused {
                for &gained in &gaps[..number] {
                    self.holding.release(gained);
                }
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// What of a span is not counted, from the first position to the last.
    fn gaps(&self, span: Span) -> Vec<Span> {
        let mut gaps = Vec::new();
        let mut rest = Some(span);
        let before = self.parts.range(..span.start()).next_back();
        let within = self.parts.range(span.start()..=span.last());
        for (&start, part) in before.into_iter().chain(within) {
            let part = Span::inclusive(start, part.last).expect("a part has positions");
            let Some(whole) = rest.filter(|rest| rest.overlaps(part)) else {
                continue;
            };
            let [gap, behind] = whole.without(part);
            gaps.extend(gap);
            rest = behind;
        }
        gaps.extend(rest);
        gaps
    }

    /// Cuts the parts at both ends of a span.
    fn part(&mut self, span: Span) {
        let behind = span.last().checked_add(1);
        for at in [Some(span.start()), behind].into_iter().flatten() {
            let Some((_, part)) = self.parts.range_mut(..at).next_back() else {
                continue;
            };
            if part.last >= at {
                let others = *part;
                part.last = at - 1;
                self.parts.insert(at, others);
            }
        }
    }
}

impl<P: OfPositions> fmt::Debug for Reentrant<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.holding.fmt(f)
    }
}
