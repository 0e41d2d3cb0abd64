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
mod convert;
mod reentrant;
pub(super) mod tables;
mod tasks;

pub use by::By;
pub(super) use by::of_anonymous;
pub use reentrant::Reentrant;
pub(super) use tasks::Until;
pub use tasks::{Lock, LockBy, TryLock};

use convert::{Cut, Gained};
use located::Leads;

use super::inspect::Request;
use super::order::{Order, Positions, Ranges};
use super::owner::{Owner, Refusal};
use super::raw::{Mode, RawOwned, RawOwnedMutex, RawRangeMutex, Wait};
use super::sought::Sought;
use super::span::Span;
use prim::clock::Duration;
use smallvec::SmallVec;
use std::fmt;
use std::ops::RangeBounds;

/// Where a [`Holding`] finds its lock: a reference, or an [`Arc`](std::sync::Arc), which keeps the lock. Sealed.
pub trait Place: located::Located {}

impl<P: located::Located> Place for P {}

/// A [place](Place) of a lock that grants shared ranges, too: of any but [`RangeMutex`](crate::range::RangeMutex).
/// Sealed.
#[diagnostic::on_unimplemented(message = "the lock behind `{Self}` grants no shared ranges")]
pub trait SharedPlace: Place<Raw: RawOwned> {}

pub(super) mod located {
    use crate::range::order::Ranges;
    use crate::range::raw::{RawOwnedMutex, RawRangeMutex};
    use crate::range::span::Span;

    /// Who asks what a place leads to. Only this library can name it.
    #[derive(Debug, Clone, Copy)]
    pub struct Inside(());

    /// What a place leads to. Programs cannot call this, as they have no [`Inside`]: the raw lock takes the words of a
    /// span at their word.
    pub trait Located {
        /// The lock's raw lock.
        type Raw: RawOwnedMutex;

        /// What its ranges are of: positions, or keys.
        type Key: ?Sized;

        /// How they compare.
        type Ranges: Ranges<Self::Key>;

        /// What a piece of what is held is shown as.
        type Piece;

        fn raw_for(&self, _: Inside) -> &Self::Raw;

        fn ranges_for(&self, _: Inside) -> &Self::Ranges;

        /// A piece of what is held, by the words that name it.
        ///
        /// # Safety
        /// The words name what is held.
        unsafe fn piece_for(&self, _: Inside, held: Span) -> Self::Piece;

        /// What names the range that is held by a token, of which `asked` was asked for.
        fn held_for(
            &self,
            _: Inside,
            _token: &<Self::Raw as RawRangeMutex>::Token,
            asked: Span,
        ) -> Span {
            asked
        }
    }

    /// What this library calls of a place. It is no supertrait of what programs name, so they do not get these methods.
    pub(in crate::range) trait Leads: Located {
        #[inline]
        fn raw(&self) -> &Self::Raw {
            self.raw_for(Inside(()))
        }

        #[inline]
        fn ranges(&self) -> &Self::Ranges {
            self.ranges_for(Inside(()))
        }

        /// # Safety
        /// The words name what is held.
        unsafe fn piece(&self, held: Span) -> Self::Piece {
            // SAFETY: the caller's promise.
            unsafe { self.piece_for(Inside(()), held) }
        }

        #[inline]
        fn held(&self, token: &<Self::Raw as RawRangeMutex>::Token, asked: Span) -> Span {
            self.held_for(Inside(()), token, asked)
        }
    }

    impl<P: Located> Leads for P {}
}

/// A place of a lock over positions. Sealed.
pub trait OfPositions: Place<Key = u64, Ranges = Positions> {}

impl<P: Place<Key = u64, Ranges = Positions>> OfPositions for P {}

/// What a place of a lock over positions has.
macro_rules! over_positions {
    () => {
        type Key = u64;
        type Ranges = $crate::range::order::Positions;
        type Piece = $crate::range::Span;

        unsafe fn piece_for(
            &self,
            _: $crate::range::holding::located::Inside,
            held: $crate::range::Span,
        ) -> Self::Piece {
            held
        }

        #[inline]
        fn ranges_for(
            &self,
            _: $crate::range::holding::located::Inside,
        ) -> &$crate::range::order::Positions {
            &$crate::range::order::Positions
        }
    };
}
pub(super) use over_positions;

/// A typed lock, as a place.
macro_rules! places {
    ($Lock:ident over RawOwned, shared) => {
        places!($Lock over RawOwned);
        impl<L: RawOwned> $crate::range::SharedPlace for &$Lock<L> {}
        impl<L: RawOwned> $crate::range::SharedPlace for Arc<$Lock<L>> {}
    };
    ($Lock:ident over $Raw:ident) => {
        places!(@&$Lock<L>, $Lock, $Raw);
        places!(@Arc<$Lock<L>>, $Lock, $Raw);
    };
    (@$Place:ty, $Lock:ident, $Raw:ident) => {
        impl<L: $Raw> $crate::range::holding::located::Located for $Place {
            type Raw = L;

            $crate::range::holding::over_positions!();

            fn raw_for(&self, _: $crate::range::holding::located::Inside) -> &L {
                $Lock::raw(self)
            }
        }
    };
}
pub(super) use places;

/// A range held as a whole.
struct Piece<T> {
    span: Span,
    mode: Mode,
    token: T,
}

impl<T> Piece<T> {
    /// What a lock has granted of what was asked for.
    #[inline]
    fn new<P: Place<Raw: RawRangeMutex<Token = T>>>(
        lock: &P,
        sought: &Sought,
        mode: Mode,
        token: T,
    ) -> Self {
        let span = lock.held(&token, sought.span());
        Self { span, mode, token }
    }
}

type TokenAt<P> = <<P as located::Located>::Raw as RawRangeMutex>::Token;

type Pieces<P> = SmallVec<[Piece<TokenAt<P>>; 1]>;

/// What an [`Owner`] holds of a lock by one request, and by what came of it. Dropping it releases all of that.
///
/// Any thread may use it and drop it. From [`By`], or from
/// [`RangeLock::write_owned`](crate::range::RangeLock::write_owned) and its kin, which name no owner.
/// `Holding<&RangeLock>` borrows the lock, and `Holding<Arc<RangeLock>>` keeps it.
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
    pub(super) fn nothing(lock: P, owner: Owner) -> Self {
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

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How all of it is held. `None`: nothing is held, or not all pieces in the same mode.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        let mode = self.pieces.first()?.mode;
        let same = self.pieces.iter().all(|piece| piece.mode == mode);
        same.then_some(mode)
    }

    /// From now on the owner holds `range` alone. What it holds elsewhere stays. Blocks while others hold some of
    /// `range`.
    ///
    /// All or nothing: a refusal leaves what was held as it was, and it is held meanwhile.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`], [`Refusal::OtherUpgrade`].
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this thread has locked some of `range` for this owner in
    /// another `Holding`, or for itself.
    #[track_caller]
    pub fn extend(&mut self, range: impl RangeBounds<P::Key>) -> Result<(), Refusal> {
        self.extend_within(range, Wait::Forever)
    }

    /// As [`extend`](Self::extend), but [`Refusal::Busy`] if it would block.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_extend(&mut self, range: impl RangeBounds<P::Key>) -> Result<(), Refusal> {
        self.extend_within(range, Wait::Never)
    }

    /// Releases `range`, and keeps the rest.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn release(&mut self, range: impl RangeBounds<P::Key>) {
        if let Some(sought) = self.lock.ranges().sought(&range) {
            self.release_span(sought.span());
        }
    }

    /// Releases all but `range`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn shrink_to(&mut self, range: impl RangeBounds<P::Key>) {
        let Some(kept) = self.lock.ranges().sought(&range) else {
            return self.release_all();
        };
        let all = self.lock.ranges().everything();
        let outside = self.lock.ranges().without(all.span(), kept.span());
        for outside in outside.into_iter().flatten() {
            self.release_span(outside);
        }
    }

    pub(super) fn place(&self) -> &P {
        &self.lock
    }

    /// What is held, piece by piece, in order: of positions each a [`Span`], of keys a
    /// [`KeyRange`](super::keys::KeyRange). Pieces may touch.
    pub fn pieces(&self) -> impl Iterator<Item = (P::Piece, Mode)> {
        self.pieces.iter().map(|piece| {
            // SAFETY: it is held.
            let shown = unsafe { self.lock.piece(piece.span) };
            (shown, piece.mode)
        })
    }

    /// Splits off what it holds of a range that reaches to the end.
    pub(super) fn split_behind(&mut self, behind: &Sought) -> Self
    where
        P: Clone,
    {
        let span = behind.span();
        let mut rest = Self::nothing(self.lock.clone(), self.owner.clone());
        self.cut(span, &Cut::Apart);
        let ranges = self.lock.ranges();
        let is_before = |piece: &Piece<_>| ranges.starts_before(piece.span, span);
        let first = self.pieces.partition_point(is_before);
        rest.pieces.extend(self.pieces.drain(first..));
        rest
    }
}

/// Of locks over positions.
impl<P: OfPositions> Holding<P> {
    /// From the first position that is held to the last. `None`: nothing is held.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        let (first, last) = (self.pieces.first()?, self.pieces.last()?);
        Span::of(first.span.start()..=last.span.last())
    }

    /// Splits off what it holds from position `at` on.
    pub fn split_off(&mut self, at: u64) -> Self
    where
        P: Clone,
    {
        let behind = Span::of(at..).expect("there is a last position");
        self.split_behind(&Sought::positions(behind))
    }
}

/// Of locks that grant shared ranges.
impl<P: SharedPlace> Holding<P> {
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
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`], [`Refusal::OtherUpgrade`].
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this thread has locked some of `range` for this owner in
    /// another `Holding`, or for itself.
    #[track_caller]
    pub fn convert(&mut self, range: impl RangeBounds<P::Key>, mode: Mode) -> Result<(), Refusal> {
        self.convert_within(range, mode, Wait::Forever)
    }

    /// As [`convert`](Self::convert), but [`Refusal::Busy`] if it would block. A request that is about to hold some of
    /// `range` or to withdraw counts as a holder if it has not decided after 128 us. A conversion of several parts
    /// holds those that it has until it meets one that is taken meanwhile.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_convert(
        &mut self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
    ) -> Result<(), Refusal> {
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
        range: impl RangeBounds<P::Key>,
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
    /// In debug builds, when this thread has locked some of it in another way, for this owner or for itself.
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
        let all = self.lock.ranges().everything();
        self.share(all.span());
    }
}

impl<P: Place> Holding<P> {
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
    #[inline]
    fn drop(&mut self) {
        let count = self.pieces.len();
        while let Some(piece) = self.pieces.pop() {
            // SAFETY: this lock granted the token to the owner.
            unsafe { self.lock.raw().unlock_by(piece.token) };
        }
        std::mem::replace(&mut self.owner, Owner::anonymous()).drop_counted(count);
    }
}

impl<P: Place> fmt::Debug for Holding<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let described = self.pieces.iter().map(|piece| {
            let request = Request::new(piece.span, piece.mode, self.owner.id());
            request.shown(&self.lock.ranges().describe(piece.span))
        });
        f.debug_list().entries(described).finish()
    }
}
