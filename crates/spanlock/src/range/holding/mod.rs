//! What an owner holds of a lock, in pieces that can be converted, cut and released one by one.
//!
//! ```text
//!   holding:            [ 0 ---------- write ---------- 99 ]
//!   convert 40..60 to   [ 0 - write - 39 ][ read ][ write 99 ]
//!     reading:                              ^ readers may come in here at once
//! ```
//!
//! A conversion acquires first what may be refused: what the owner does not hold yet, and what it shares and wants
//! alone. What it holds it keeps meanwhile, and a refusal leaves everything as it was. Then it acquires the pieces that
//! it keeps of ranges that are cut. Those it is always granted, since it holds more. At last it releases the ranges
//! that were cut.
//!
//! # Edges
//!
//! - **pieces-descend**: the pieces of a range are acquired from the last to the first. A search in an index may begin
//!   behind a piece, and so pass by the range itself. It meets all pieces behind that one.

mod by;

pub use by::By;

use super::inspect::Request;
use super::lock::RangeLock;
use super::owner::{Owner, Refusal};
use super::raw::{AskBy, Mode, RawOwned, Wait};
use super::span::Span;
use prim::clock::Duration;
use prim::sync::Arc;
use smallvec::SmallVec;
use std::fmt;
use std::ops::{Range, RangeBounds};

/// Where a [`Holding`] finds its lock: a reference, or an [`Arc`], which keeps the lock. Sealed.
pub trait Place: sealed::Sealed {
    /// The lock's raw lock.
    type Raw: RawOwned;

    #[doc(hidden)]
    fn raw(&self) -> &Self::Raw;
}

mod sealed {
    pub trait Sealed {}
}

impl<L: RawOwned> sealed::Sealed for &RangeLock<L> {}
impl<L: RawOwned> sealed::Sealed for Arc<RangeLock<L>> {}

impl<L: RawOwned> Place for &RangeLock<L> {
    type Raw = L;

    fn raw(&self) -> &L {
        RangeLock::raw(self)
    }
}

impl<L: RawOwned> Place for Arc<RangeLock<L>> {
    type Raw = L;

    fn raw(&self) -> &L {
        RangeLock::raw(self)
    }
}

/// A range held as a whole.
struct Piece<T> {
    span: Span,
    mode: Mode,
    token: T,
}

type TokenAt<P> = <<P as Place>::Raw as super::raw::RawRangeMutex>::Token;

type Pieces<P> = SmallVec<[Piece<TokenAt<P>>; 1]>;

/// What an [`Owner`] holds of a lock by one request, and by what came of it. Dropping it releases all of that.
///
/// Any thread may use it and drop it. From [`By`]; `Holding<&RangeLock>` borrows the lock, and
/// `Holding<Arc<RangeLock>>` keeps it.
///
/// # Cost
/// One node of the lock's list for each piece, of a cache line, or three if the list has an index. A conversion inserts
/// a node for each piece that it makes. A release of a part inserts one or two, for what is left of the range that is
/// cut.
///
/// # What blocks
/// Dropping it never blocks. A method that cuts a range ([`release`](Self::release), [`shrink_to`](Self::shrink_to),
/// [`split_off`](Self::split_off), and conversions of a part) inserts the pieces that are kept. It may meet a request
/// that tries for some of them in vain, and waits until that one has withdrawn, which takes a few steps of its thread.
///
/// # Panics
/// Methods say when they panic.
#[must_use = "the ranges are released when it is dropped"]
pub struct Holding<P: Place> {
    lock: P,
    owner: Owner,
    /// In order. They do not overlap.
    pieces: Pieces<P>,
}

// SAFETY: any thread may release and convert what an owner holds, as `RawOwned` promises of the tokens.
unsafe impl<P: Place + Send> Send for Holding<P> {}
// SAFETY: a reference to it only reads spans and modes.
unsafe impl<P: Place + Sync> Sync for Holding<P> {}

impl<P: Place> Holding<P> {
    fn nothing(lock: P, owner: Owner) -> Self {
        Self {
            lock,
            owner,
            pieces: Pieces::<P>::new(),
        }
    }

    /// Who holds it.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What is held, piece by piece, in order. Pieces may touch.
    pub fn pieces(&self) -> impl Iterator<Item = (Span, Mode)> {
        self.pieces.iter().map(|piece| (piece.span, piece.mode))
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// From the first position that is held to the last. `None`: nothing is held.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        let (first, last) = (self.pieces.first()?, self.pieces.last()?);
        Span::of(first.span.start()..=last.span.last())
    }

    /// How all of it is held. `None`: nothing is held, or not all pieces in the same mode.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        let mode = self.pieces.first()?.mode;
        let same = self.pieces.iter().all(|piece| piece.mode == mode);
        same.then_some(mode)
    }

    /// From now on the owner holds `range` in `mode`: what it holds of it is converted, and what it does not hold of it
    /// is acquired. What it holds elsewhere stays. Blocks while others hold some of `range` in the way.
    ///
    /// All or nothing: a refusal leaves what was held as it was, and it is held meanwhile. Nobody gets between the old
    /// hold and the new one.
    ///
    /// While it waits, the owner keeps what it holds: two owners that convert may wait for each other, as threads that
    /// lock in two orders do. Where both wait to have alone what they share by one holding each, the second is refused.
    /// It is refused as well if what it wants is only between ranges that the other shares.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::OtherUpgrade`].
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this owner holds some of `range` in another `Holding`.
    #[track_caller]
    pub fn convert(&mut self, range: impl RangeBounds<u64>, mode: Mode) -> Result<(), Refusal> {
        self.convert_within(range, mode, Wait::Forever)
    }

    /// As [`convert`](Self::convert), but [`Refusal::Busy`] if it would block.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_convert(&mut self, range: impl RangeBounds<u64>, mode: Mode) -> Result<(), Refusal> {
        self.convert_within(range, mode, Wait::Never)
    }

    /// As [`convert`](Self::convert), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_convert_for(
        &mut self,
        range: impl RangeBounds<u64>,
        mode: Mode,
        timeout: Duration,
    ) -> Result<(), Refusal> {
        self.convert_within(range, mode, Wait::at_most(timeout))
    }

    /// Holds alone what it shares: [`convert`](Self::convert) for all that is held.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// In debug builds, when this owner, or this thread, holds some of it in another way.
    #[track_caller]
    pub fn upgrade(&mut self) -> Result<(), Refusal> {
        self.upgrade_within(Wait::Forever)
    }

    /// As [`upgrade`](Self::upgrade), but [`Refusal::Busy`] if it would block. To try again in a loop is no way to
    /// wait: two owners that do so never succeed.
    ///
    /// # Errors
    /// See there.
    #[track_caller]
    pub fn try_upgrade(&mut self) -> Result<(), Refusal> {
        self.upgrade_within(Wait::Never)
    }

    /// Shares all that it holds.
    pub fn downgrade(&mut self) {
        self.cut(Span::ALL, Cut::Share);
    }

    /// Releases `range`, and keeps the rest.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn release(&mut self, range: impl RangeBounds<u64>) {
        if let Some(span) = Span::of(range) {
            self.cut(span, Cut::Release);
        }
    }

    /// Releases all but `range`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn shrink_to(&mut self, range: impl RangeBounds<u64>) {
        let Some(kept) = Span::of(range) else {
            return self.release_all();
        };
        for outside in Span::ALL.without(kept).into_iter().flatten() {
            self.cut(outside, Cut::Release);
        }
    }

    /// Splits off what it holds from position `at` on.
    pub fn split_off(&mut self, at: u64) -> Self
    where
        P: Clone,
    {
        let mut rest = Self::nothing(self.lock.clone(), self.owner.clone());
        if let Some(behind) = Span::of(at..) {
            self.cut(behind, Cut::Apart);
        }
        let first = self.pieces.partition_point(|piece| piece.span.start() < at);
        rest.pieces.extend(self.pieces.drain(first..));
        rest
    }
}

/// What becomes of a part of what is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// It is released.
    Release,
    /// It is released if it is shared.
    ReleaseShared,
    /// It is shared.
    Share,
    /// It stays as it is, in a piece of its own.
    Apart,
}

impl Cut {
    /// How such a part is held afterwards, if it is.
    fn mode_after(self, before: Mode) -> Option<Mode> {
        match self {
            Self::Release => None,
            Self::ReleaseShared => (before == Mode::Exclusive).then_some(before),
            Self::Share => Some(Mode::Shared),
            Self::Apart => Some(before),
        }
    }
}

impl<P: Place> Holding<P> {
    #[track_caller]
    fn convert_within(
        &mut self,
        range: impl RangeBounds<u64>,
        mode: Mode,
        wait: Wait,
    ) -> Result<(), Refusal> {
        let Some(span) = Span::of(range) else {
            return Ok(());
        };
        let gained = self.gain(span, mode, wait)?.keep();
        self.cut(
            span,
            match mode {
                Mode::Shared => Cut::Share,
                Mode::Exclusive => Cut::ReleaseShared,
            },
        );
        self.add(gained);
        Ok(())
    }

    #[track_caller]
    fn upgrade_within(&mut self, wait: Wait) -> Result<(), Refusal> {
        let mut gained = Gained::new(self);
        for piece in &self.pieces {
            gained.convert(piece, piece.span, Mode::Exclusive, wait)?;
        }
        let gained = gained.keep();
        self.cut(Span::ALL, Cut::ReleaseShared);
        self.add(gained);
        Ok(())
    }

    /// Acquires what may be refused: what of `span` is not held, and what of it is shared and is to be held alone.
    #[track_caller]
    fn gain(&self, span: Span, mode: Mode, wait: Wait) -> Result<Gained<'_, P>, Refusal> {
        let mut gained = Gained::new(self);
        let mut rest = Some(span);
        for piece in &self.pieces[self.within(span)] {
            let Some(common) = rest.and_then(|rest| rest.intersection(piece.span)) else {
                continue;
            };
            let [before, behind] = rest.map_or([None, None], |rest| rest.without(common));
            if let Some(gap) = before {
                gained.acquire(gap, mode, wait)?;
            }
            gained.convert(piece, common, mode, wait)?;
            rest = behind;
        }
        if let Some(gap) = rest {
            gained.acquire(gap, mode, wait)?;
        }
        Ok(gained)
    }

    /// Which pieces overlap a span.
    fn within(&self, span: Span) -> Range<usize> {
        let first = self
            .pieces
            .partition_point(|piece| piece.span.last() < span.start());
        let behind = self
            .pieces
            .partition_point(|piece| piece.span.start() <= span.last());
        first..behind.max(first)
    }

    /// Adds what was gained.
    fn add(&mut self, gained: Pieces<P>) {
        // Into its places, from the last: as a rule it is one piece, or many at one place.
        for piece in gained.into_iter().rev() {
            let at = self
                .pieces
                .partition_point(|other| other.span.start() < piece.span.start());
            self.pieces.insert(at, piece);
        }
    }

    /// Does `what` to the part of the pieces that is in `span`.
    fn cut(&mut self, span: Span, what: Cut) {
        for at in self.within(span).rev() {
            let piece = &mut self.pieces[at];
            let Some(common) = piece.span.intersection(span) else {
                continue;
            };
            let after = what.mode_after(piece.mode);
            let [before, behind] = piece.span.without(span);
            let is_whole = common == piece.span;
            if after == Some(piece.mode) && (is_whole || what != Cut::Apart) {
                continue;
            }
            if is_whole && after.is_some() {
                // SAFETY: the lock granted the token to this owner, and it is exclusive: only `Share` comes here.
                unsafe { self.lock.raw().share_by(&piece.token) };
                piece.mode = Mode::Shared;
                continue;
            }
            let mode = piece.mode;
            // [pieces-descend] The last one first.
            let mut kept = [
                (behind, Some(mode)),
                (Some(common), after),
                (before, Some(mode)),
            ];
            if !prim::intact!("pieces-descend") {
                kept.reverse();
            }
            let kept = kept.into_iter().filter_map(|(span, mode)| span.zip(mode));
            let mut pieces: Pieces<P> = kept
                .map(|(span, mode)| self.piece_of(at, span, mode))
                .collect();
            pieces.sort_unstable_by_key(|piece| piece.span.start());
            let whole = self.pieces.remove(at);
            self.unlock(whole.token);
            self.pieces.insert_many(at, pieces);
        }
    }

    /// Acquires a piece of what is held.
    fn piece_of(&self, at: usize, span: Span, mode: Mode) -> Piece<TokenAt<P>> {
        let counted = Counted::piece(&self.owner);
        let token = &self.pieces[at].token;
        // SAFETY: the lock granted the token to this owner, which holds it as the mode says. `cut` acquires all pieces
        // that are kept, the last one first, and then releases the token. Who cuts uses only what is kept.
        let ask = unsafe { AskBy::piece(&self.owner, token, span, mode) };
        let token = self
            .lock
            .raw()
            .lock_by(ask)
            .expect("a piece is always granted");
        counted.keep();
        Piece { span, mode, token }
    }

    fn release_all(&mut self) {
        while let Some(piece) = self.pieces.pop() {
            self.unlock(piece.token);
        }
    }

    fn unlock(&self, token: TokenAt<P>) {
        // SAFETY: this lock granted the token to the owner.
        unsafe { self.lock.raw().unlock_by(token) };
        self.owner.uncount();
    }
}

impl<P: Place> Drop for Holding<P> {
    fn drop(&mut self) {
        self.release_all();
    }
}

impl<P: Place> fmt::Debug for Holding<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self
            .pieces()
            .map(|(span, mode)| Request::new(span, mode, self.owner.id()));
        f.debug_list()
            .entries(requests.map(|request| request.to_string()))
            .finish()
    }
}

/// The count of a range that is asked for, taken back unless the range is granted.
struct Counted<'a>(&'a Owner);

impl<'a> Counted<'a> {
    /// # Errors
    /// The owner holds and asks for as many as it may.
    fn new(owner: &'a Owner) -> Result<Self, Refusal> {
        owner.count()?;
        Ok(Self(owner))
    }

    /// Of a part of what is held, whatever the limit.
    fn piece(owner: &'a Owner) -> Self {
        owner.count_piece();
        Self(owner)
    }

    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.uncount();
    }
}

/// What a conversion has acquired so far, and releases if it is refused.
struct Gained<'a, P: Place> {
    holding: &'a Holding<P>,
    pieces: Pieces<P>,
}

impl<'a, P: Place> Gained<'a, P> {
    fn new(holding: &'a Holding<P>) -> Self {
        Self {
            holding,
            pieces: Pieces::<P>::new(),
        }
    }

    /// Acquires what the holding does not hold.
    #[track_caller]
    fn acquire(&mut self, span: Span, mode: Mode, wait: Wait) -> Result<(), Refusal> {
        let owner = &self.holding.owner;
        self.ask(Counted::new(owner)?, AskBy::new(owner, span, mode, wait))
    }

    /// Acquires what of a piece is to be held otherwise, if that may be refused.
    #[track_caller]
    fn convert(
        &mut self,
        piece: &Piece<TokenAt<P>>,
        span: Span,
        mode: Mode,
        wait: Wait,
    ) -> Result<(), Refusal> {
        if (piece.mode, mode) != (Mode::Shared, Mode::Exclusive) {
            return Ok(());
        }
        let Holding { owner, pieces, .. } = self.holding;
        let mut shared = pieces.iter().filter(|piece| piece.mode == Mode::Shared);
        let (first, last) = (shared.next(), shared.next_back());
        let first = first.map_or(piece.span, |first| first.span);
        let shares = first.to(last.map_or(first, |last| last.span));
        // SAFETY: the lock granted the token to this owner, which shares it. Either what is gained is released, or the
        // piece is cut, before the owner asks for more of it.
        let ask = unsafe { AskBy::alone(owner, &piece.token, shares, span, wait) };
        self.ask(Counted::piece(owner), ask)
    }

    #[track_caller]
    fn ask(&mut self, counted: Counted<'_>, ask: AskBy<'_, TokenAt<P>>) -> Result<(), Refusal> {
        let (span, mode) = (ask.span, ask.mode);
        let token = self.holding.lock.raw().lock_by(ask)?;
        counted.keep();
        self.pieces.push(Piece { span, mode, token });
        Ok(())
    }

    fn keep(mut self) -> Pieces<P> {
        std::mem::take(&mut self.pieces)
    }
}

impl<P: Place> Drop for Gained<'_, P> {
    fn drop(&mut self) {
        for piece in self.pieces.drain(..) {
            self.holding.unlock(piece.token);
        }
    }
}
