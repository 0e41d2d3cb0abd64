//! How what an owner holds becomes something else: what may be refused is gained first, then the rest is cut.
//!
//! The edges cited are the parent module's.

use super::located::Leads;
use super::{Holding, Piece, Pieces, Place, SharedPlace, TokenAt};
use crate::range::order::{Order, Ranges};
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{AskBy, Mode, RawOwned, RawOwnedMutex, RawRangeMutex, Wait};
use crate::range::sought::Sought;
use crate::range::span::Span;
use smallvec::SmallVec;
use std::ops::{Range, RangeBounds};

/// What becomes of a part of what is held.
pub(super) enum Cut<P: Place> {
    /// It is released.
    Release,
    /// It is released if it is shared.
    ReleaseShared,
    /// It is shared. This function shares what one token holds, which is exclusive.
    Share(fn(&P::Raw, &TokenAt<P>)),
    /// It stays as it is, in a piece of its own.
    Apart,
}

impl<P: Place> Cut<P> {
    /// How such a part is held afterwards, if it is.
    fn mode_after(&self, before: Mode) -> Option<Mode> {
        match self {
            Self::Release => None,
            Self::ReleaseShared => (before == Mode::Exclusive).then_some(before),
            Self::Share(_) => Some(Mode::Shared),
            Self::Apart => Some(before),
        }
    }
}

impl<P: SharedPlace> Holding<P> {
    #[track_caller]
    pub(super) fn convert_within(
        &mut self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        wait: Wait,
    ) -> Result<(), Refusal> {
        match mode {
            Mode::Exclusive => self.extend_within(range, wait),
            Mode::Shared => {
                let Some(sought) = self.lock.ranges().sought(&range) else {
                    return Ok(());
                };
                let span = sought.span();
                let gained = self.gain(span, mode, wait)?.keep();
                self.exchange(gained, |held| held.share(span));
                Ok(())
            }
        }
    }

    #[track_caller]
    pub(in crate::range) fn upgrade_within(&mut self, wait: Wait) -> Result<(), Refusal> {
        let mut gained = Gained::new(self);
        for (at, piece) in self.pieces.iter().enumerate() {
            gained.convert(at, piece.span, Mode::Exclusive, wait)?;
        }
        let gained = gained.keep();
        self.exchange(gained, |held| {
            let all = held.lock.ranges().everything();
            held.cut(all.span(), &Cut::ReleaseShared);
        });
        Ok(())
    }

    /// Shares what it holds of a span.
    pub(super) fn share(&mut self, span: Span) {
        let share = |raw: &P::Raw, token: &TokenAt<P>| {
            // SAFETY: `cut` calls this with an exclusive token that the lock granted to the owner.
            unsafe { raw.share_by(token) };
        };
        self.cut(span, &Cut::Share(share));
    }
}

impl<P: Place> Holding<P> {
    #[track_caller]
    pub(super) fn extend_within(
        &mut self,
        range: impl RangeBounds<P::Key>,
        wait: Wait,
    ) -> Result<(), Refusal> {
        match self.lock.ranges().sought(&range) {
            Some(sought) => self.extend_span(sought.span(), wait),
            None => Ok(()),
        }
    }

    /// From now on it holds a span alone.
    #[track_caller]
    pub(super) fn extend_span(&mut self, span: Span, wait: Wait) -> Result<(), Refusal> {
        let gained = self.gain(span, Mode::Exclusive, wait)?.keep();
        self.exchange(gained, |held| held.cut(span, &Cut::ReleaseShared));
        Ok(())
    }

    /// Shares what it does not hold of a span. What it holds alone stays so.
    #[track_caller]
    pub(super) fn share_more(&mut self, span: Span, wait: Wait) -> Result<(), Refusal> {
        let gained = self.gain(span, Mode::Shared, wait)?.keep();
        self.add(gained);
        Ok(())
    }

    /// Releases what it holds of a span.
    pub(super) fn release_span(&mut self, span: Span) {
        self.cut(span, &Cut::Release);
    }

    /// Acquires what may be refused: what of `span` is not held, and what of it is shared and is to be held alone.
    #[track_caller]
    fn gain(&self, span: Span, mode: Mode, wait: Wait) -> Result<Gained<'_, P>, Refusal> {
        let mut gained = Gained::new(self);
        let parts = self.parts(span);
        // [many-try-looks]
        let looks = wait == Wait::Never && parts.len() > 1 && prim::intact!("many-try-looks");
        let ranges = self.lock.ranges();
        let is_taken = |span: Span| self.lock.raw().is_taken(ranges.part(span).span(), mode);
        if looks {
            let mut fresh = parts.iter().filter(|(at, _)| at.is_none());
            self.owner.has_room_for(fresh.clone().count())?;
            if fresh.any(|&(_, part)| is_taken(part)) {
                return Err(Refusal::Busy);
            }
        }
        for (at, part) in parts {
            match at {
                None => gained.acquire(part, mode, wait)?,
                Some(at) => gained.convert(at, part, mode, wait)?,
            }
        }
        Ok(gained)
    }

    /// The parts of a span, in order: what of it a piece holds, with the place of the piece, and what nobody holds.
    pub(super) fn parts(&self, span: Span) -> SmallVec<[(Option<usize>, Span); 3]> {
        let ranges = self.lock.ranges();
        let mut parts = SmallVec::new();
        let mut rest = Some(span);
        for at in self.within(span) {
            let piece = &self.pieces[at];
            let Some(common) = rest.and_then(|rest| ranges.intersection(rest, piece.span)) else {
                continue;
            };
            let [before, behind] = rest.map_or([None, None], |rest| ranges.without(rest, common));
            parts.extend(before.map(|gap| (None, gap)));
            parts.push((Some(at), common));
            rest = behind;
        }
        parts.extend(rest.map(|gap| (None, gap)));
        parts
    }

    /// From the first position that is shared to the last, where the piece at that place is shared.
    pub(super) fn shares(&self, at: usize) -> Span {
        let mut shared = self
            .pieces
            .iter()
            .filter(|piece| piece.mode == Mode::Shared);
        let (first, last) = (shared.next(), shared.next_back());
        let first = first.map_or(self.pieces[at].span, |first| first.span);
        first.to(last.map_or(first, |last| last.span))
    }

    /// Which pieces overlap a span.
    fn within(&self, span: Span) -> Range<usize> {
        let ranges = self.lock.ranges();
        let ends_before = |piece: &Piece<_>| ranges.is_behind(span, piece.span);
        let starts_within = |piece: &Piece<_>| !ranges.is_behind(piece.span, span);
        let first = self.pieces.partition_point(ends_before);
        let behind = self.pieces.partition_point(starts_within);
        first..behind.max(first)
    }

    /// Adds what was gained, wherever it belongs.
    pub(super) fn put(&mut self, gained: Pieces<P>) {
        self.pieces.extend(gained);
    }

    /// Puts all pieces in order.
    pub(super) fn sort(&mut self) {
        self.lock
            .ranges()
            .sort(&mut self.pieces, |piece| piece.span);
    }

    /// Adds what was gained, which is in order. If a comparison panics, that is released.
    pub(super) fn add(&mut self, gained: Pieces<P>) {
        self.exchange(gained, |_| {});
    }

    /// Adds what was gained, once `cuts` has released what that replaces.
    fn exchange(&mut self, gained: Pieces<P>, cuts: impl FnOnce(&mut Self)) {
        let mut exchanged = Exchanged {
            holding: self,
            gained,
        };
        cuts(exchanged.holding);
        let Holding { lock, pieces, .. } = &*exchanged.holding;
        let ranges = lock.ranges();
        // All places first: to find them is to compare keys, which may panic.
        let place_of = |next: &Piece<_>| {
            pieces.partition_point(|other: &Piece<_>| ranges.starts_before(other.span, next.span))
        };
        let places: SmallVec<[usize; 4]> = exchanged.gained.iter().map(place_of).collect();
        let gained = std::mem::take(&mut exchanged.gained);
        // The last one first, as the others' places are before it.
        for (at, piece) in places.into_iter().zip(gained).rev() {
            exchanged.holding.pieces.insert(at, piece);
        }
    }

    /// Does `what` to the part of the pieces that is in `span`.
    pub(super) fn cut(&mut self, span: Span, what: &Cut<P>) {
        for at in self.within(span).rev() {
            let ranges = self.lock.ranges();
            let piece = &mut self.pieces[at];
            let Some(common) = ranges.intersection(piece.span, span) else {
                continue;
            };
            let after = what.mode_after(piece.mode);
            let [before, behind] = ranges.without(piece.span, span);
            let is_whole = common == piece.span;
            if after == Some(piece.mode) && (is_whole || !matches!(what, Cut::Apart)) {
                continue;
            }
            if let Cut::Share(share) = what
                && is_whole
            {
                share(self.lock.raw(), &piece.token);
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
            let mut cutting = Cutting {
                holding: self,
                at,
                pieces: Pieces::<P>::new(),
            };
            for (span, mode) in kept {
                let piece = cutting.holding.piece_of(at, span, mode);
                cutting.pieces.push(piece);
            }
            cutting.end();
        }
    }

    /// Acquires a piece of what is held.
    fn piece_of(&self, at: usize, span: Span, mode: Mode) -> Piece<TokenAt<P>> {
        let counted = Counted::piece(&self.owner);
        let sought = self.lock.ranges().part(span);
        let token = &self.pieces[at].token;
        // SAFETY: the lock granted the token to this owner, which holds it as the mode says. `cut` acquires all pieces
        // that are kept, the last one first, and then releases the token. Who cuts uses only what is kept.
        let ask = unsafe { AskBy::piece(&self.owner, token, sought.span(), mode) };
        let token = self
            .lock
            .raw()
            .lock_by(ask)
            .expect("a piece is always granted");
        counted.keep();
        Piece::new(&self.lock, &sought, mode, token)
    }
}

/// The count of a range that is asked for, taken back unless the range is granted.
pub(super) struct Counted<'a>(&'a Owner);

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

    /// Of a range that is counted already.
    pub(super) fn as_is(owner: &'a Owner) -> Self {
        Self(owner)
    }

    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.uncount();
    }
}

/// A holding that is about to get what it has gained. Dropping it releases that: only when a comparison of keys panics.
struct Exchanged<'a, P: Place> {
    holding: &'a mut Holding<P>,
    gained: Pieces<P>,
}

impl<P: Place> Drop for Exchanged<'_, P> {
    fn drop(&mut self) {
        for piece in self.gained.drain(..) {
            self.holding.unlock(piece.token);
        }
    }
}

/// A piece at a place that is cut into others, the last one first.
struct Cutting<'a, P: Place> {
    holding: &'a mut Holding<P>,
    at: usize,
    pieces: Pieces<P>,
}

impl<P: Place> Cutting<'_, P> {
    /// The owner holds the pieces from now on, and not the whole.
    fn end(&mut self) {
        let mut pieces = std::mem::take(&mut self.pieces);
        if prim::intact!("pieces-descend") {
            pieces.reverse();
        }
        let whole = self.holding.pieces.remove(self.at);
        self.holding.pieces.insert_many(self.at, pieces);
        self.holding.unlock(whole.token);
    }
}

impl<P: Place> Drop for Cutting<'_, P> {
    /// If a comparison of keys has panicked, others may have passed the whole by a piece that is behind it. So it is
    /// held no more, and what was not acquired is not held either.
    fn drop(&mut self) {
        if !self.pieces.is_empty() {
            self.end();
        }
    }
}

/// What a conversion has acquired so far, and releases if it is refused.
pub(super) struct Gained<'a, P: Place> {
    holding: &'a Holding<P>,
    pieces: Pieces<P>,
}

impl<'a, P: Place> Gained<'a, P> {
    pub(super) fn new(holding: &'a Holding<P>) -> Self {
        Self {
            holding,
            pieces: Pieces::<P>::new(),
        }
    }

    /// Acquires what the holding does not hold.
    #[track_caller]
    pub(super) fn acquire(&mut self, span: Span, mode: Mode, wait: Wait) -> Result<(), Refusal> {
        let owner = &self.holding.owner;
        let sought = self.holding.lock.ranges().part(span);
        let ask = AskBy::new(owner, sought.span(), mode, wait);
        self.ask(Counted::new(owner)?, &sought, ask)
    }

    /// Acquires what of a piece is to be held otherwise, if that may be refused.
    #[track_caller]
    fn convert(&mut self, at: usize, span: Span, mode: Mode, wait: Wait) -> Result<(), Refusal> {
        let Holding { owner, pieces, .. } = self.holding;
        let piece = &pieces[at];
        if (piece.mode, mode) != (Mode::Shared, Mode::Exclusive) {
            return Ok(());
        }
        let shares = self.holding.shares(at);
        let sought = self.holding.lock.ranges().part(span);
        // SAFETY: the lock granted the token to this owner, which shares it. Either what is gained is released, or the
        // piece is cut, before the owner asks for more of it.
        let ask = unsafe { AskBy::alone(owner, &piece.token, shares, sought.span(), wait) };
        self.ask(Counted::piece(owner), &sought, ask)
    }

    #[track_caller]
    fn ask(
        &mut self,
        counted: Counted<'_>,
        sought: &Sought,
        ask: AskBy<'_, TokenAt<P>>,
    ) -> Result<(), Refusal> {
        let (lock, mode) = (&self.holding.lock, ask.mode);
        let token = lock.raw().lock_by(ask)?;
        counted.keep();
        self.pieces.push(Piece::new(lock, sought, mode, token));
        Ok(())
    }

    pub(super) fn keep(mut self) -> Pieces<P> {
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
