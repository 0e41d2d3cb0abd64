//! What an operation does to the areas that it meets: a pure function, the same for every lock.
//!
//! A *neighbourhood* is the areas that overlap a range, and those that touch it. A *change* turns it into *pieces*:
//!
//! ```text
//!   areas      P         V               N          protect(s..e):
//!            |-----|-------------------|-----|
//!                      s         e
//!   pieces   |-----|---|---------|-----|-----|       split where the range begins and ends,
//!   merged   |-----|---|---------|-----|-----|       then, from left to right, merge what fits and was changed
//!
//!   records    P     V                    N          V's record becomes the first piece of its kind;
//!                        new       new               the others get new ones
//! ```
//!
//! Each area has a *record*, and the plan says which piece takes it over. If each piece takes over one and none is
//! left, the change is made *in place*: it moves boundaries and rewrites kinds. Otherwise it is *structural*. Linux's
//! eight cases of merging (`mm/vma.c`) are the possible pairs of neighbours on both sides, and need no code of their
//! own:
//!
//! | Linux's case | what becomes of P, V and N |
//! |---|---|
//! | 1, 6 | P takes V (or the free range) and N |
//! | 2, 7 | P takes V (or the free range) |
//! | 3, 8 | N takes V (or the free range) |
//! | 4 | N takes the end of V: one boundary moves |
//! | 5 | P takes the beginning of V: one boundary moves |

mod kind;
mod range;
mod room;

use crate::vm::error::VmError;
use crate::vm::kind::{Flags, Protection};
use crate::vm::layout::Pages;
pub(crate) use kind::Kind;
pub(crate) use range::Range;
pub(crate) use room::Room;
use smallvec::SmallVec;

/// An area as it was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) range: Range,
    pub(crate) kind: Kind,
}

/// An area as it is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) range: Range,
    pub(crate) kind: Kind,
    /// Which of the areas found has the record that it takes over. `None`: it gets a new one.
    pub(crate) record: Option<usize>,
    /// Whether the operation changed some of it. Only then it is merged with other areas.
    changed: bool,
    /// Which of the areas found it is, or is a part of; [`NO_AREA`] if that does not matter.
    of: usize,
}

const NO_AREA: usize = usize::MAX;

/// What is done to a range.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    /// It becomes of this kind, whatever was there.
    Map(Kind),
    /// The same; but it is not merged with what follows (`brk`).
    Extend(Kind),
    /// It becomes a part of the area before it, which is of this kind (`mremap`).
    Lengthen(Kind),
    /// It becomes free.
    Unmap,
    /// Its areas get this protection. They must leave no hole.
    Protect(Protection),
    /// Its areas get the first flags and lose the second. Holes are passed over, and reported.
    Advise(Flags, Flags),
}

impl Change {
    /// Whether it takes or frees pages, so that searches for free ranges have to see it whole or not at all.
    pub(crate) fn changes_what_is_free(self) -> bool {
        matches!(
            self,
            Self::Map(_) | Self::Extend(_) | Self::Lengthen(_) | Self::Unmap
        )
    }

    /// What the pages of an area become that stay mapped.
    #[inline]
    fn altered(self, kind: Kind) -> Result<Kind, VmError> {
        match self {
            Self::Protect(protection) if !kind.most.allows(protection) => {
                Err(VmError::NotPermitted)
            }
            Self::Protect(protection) => Ok(kind.protected(protection)),
            Self::Advise(set, clear) => Ok(Kind {
                flags: kind.flags.without(clear) | set,
                ..kind
            }),
            Self::Map(_) | Self::Extend(_) | Self::Lengthen(_) | Self::Unmap => Ok(kind),
        }
    }
}

/// All that an operation does to the areas.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What the areas become, in order. The records that are taken over are in order, too.
    pub(crate) pieces: SmallVec<[Piece; 4]>,
    /// What has to be held exclusively while it is done.
    pub(crate) needs: Range,
    /// Whether some piece gets a new record, or some record is left.
    pub(crate) is_structural: bool,
    /// How many areas there are more afterwards.
    growth: i64,
    /// The pages of the range before, and after.
    pub(crate) before: Pages,
    pub(crate) after: Pages,
    /// How far the operation came: to the end of its range, or to where it was stopped.
    pub(crate) done: u64,
    /// What stopped the operation in the middle.
    pub(crate) error: Option<VmError>,
}

impl Plan {
    /// Nothing is planned yet for this range.
    #[inline]
    pub(crate) fn new(range: Range) -> Self {
        Self {
            pieces: SmallVec::new(),
            needs: range.widened(),
            is_structural: false,
            growth: 0,
            before: Pages::default(),
            after: Pages::default(),
            done: range.end,
            error: None,
        }
    }

    /// Plans a change of `range`, given the areas that overlap or touch it. The plan is new.
    pub(crate) fn make(
        &mut self,
        found: &[Found],
        range: Range,
        change: Change,
        room: &Room,
    ) -> Result<(), VmError> {
        match change {
            Change::Map(kind) | Change::Extend(kind) | Change::Lengthen(kind) => {
                self.replace(found, range, change, Some(kind))
            }
            Change::Unmap => self.replace(found, range, change, None),
            Change::Protect(_) | Change::Advise(..) => self.alter(found, range, change, room),
        }
        if !room.admits(self.before, self.after) {
            return Err(VmError::OverLimit);
        }
        self.hand_over(found);
        Ok(())
    }

    /// Adds a piece; merges it with the one before, if they fit and the operation changed one of them.
    #[inline]
    fn push(&mut self, range: Range, kind: Kind, changed: bool, of: usize) {
        if range.len() == 0 {
            return;
        }
        if let Some(last) = self.pieces.last_mut()
            && last.range.end == range.start
            && (last.changed || changed || last.of == of)
            && last.kind.merges_with(kind)
        {
            last.range.end = range.end;
            last.kind.family = last.kind.family.max(kind.family);
            last.changed |= changed;
            return;
        }
        self.pieces.push(Piece {
            range,
            kind,
            record: None,
            changed,
            of,
        });
    }

    /// The whole range becomes one piece, or free.
    fn replace(&mut self, found: &[Found], range: Range, change: Change, kind: Option<Kind>) {
        for (of, area) in found.iter().enumerate() {
            self.push(area.range.before(range.start), area.kind, false, of);
            let lost = area.kind.count(area.range.within(range).len());
            self.before = self.before.plus(lost);
        }
        if let Some(kind) = kind {
            self.after = kind.count(range.len());
            self.push(range, kind, true, NO_AREA);
        }
        if let (Change::Extend(_), Some(last)) = (change, self.pieces.last_mut()) {
            // No later piece is merged with it.
            (last.changed, last.of) = (false, NO_AREA);
        }
        for (of, area) in found.iter().enumerate() {
            self.push(area.range.after(range.end), area.kind, false, of);
        }
    }

    /// Each area in the range is altered, as far as there is no error.
    #[inline]
    fn alter(&mut self, found: &[Found], range: Range, change: Change, room: &Room) {
        self.done = range.start;
        let mut is_stopped = false;
        for (of, area) in found.iter().enumerate() {
            let middle = area.range.within(range);
            if middle.len() == 0 || is_stopped {
                self.push(area.range, area.kind, false, of);
                continue;
            }
            if middle.start > self.done {
                self.error = Some(VmError::Hole);
                is_stopped = !matches!(change, Change::Advise(..));
            }
            let altered = match is_stopped {
                true => Err(VmError::Hole),
                false => self.exchange(area.kind, middle.len(), change, room),
            };
            match altered {
                Ok(kind) => {
                    self.push(area.range.before(middle.start), area.kind, false, of);
                    self.push(middle, kind, kind != area.kind, of);
                    self.push(area.range.after(middle.end), area.kind, false, of);
                    self.done = middle.end;
                }
                Err(refusal) => {
                    self.error = Some(refusal);
                    is_stopped = true;
                    self.push(area.range, area.kind, false, of);
                }
            }
        }
        if self.error.is_none() && self.done < range.end {
            self.error = Some(VmError::Hole);
        }
    }

    /// What so many bytes of this kind become. They are counted.
    fn exchange(
        &mut self,
        kind: Kind,
        bytes: u64,
        change: Change,
        room: &Room,
    ) -> Result<Kind, VmError> {
        let altered = change.altered(kind)?;
        let before = self.before.plus(kind.count(bytes));
        let after = self.after.plus(altered.count(bytes));
        if !room.admits(before, after) {
            return Err(VmError::OverLimit);
        }
        (self.before, self.after) = (before, after);
        Ok(altered)
    }

    /// Decides which piece takes over which record, and what has to be held for that.
    ///
    /// A piece takes over the record of an area that it overlaps: rather one of its own kind, so that only a boundary
    /// moves. So the order of the records remains.
    ///
    /// - To move a boundary, all between its old and its new place has to be held, and a page on each side. So each
    ///   area keeps a page that others may rely on, and neither is changed otherwise.
    /// - To rewrite a kind, and to insert or remove an area: all of it.
    #[inline]
    fn hand_over(&mut self, found: &[Found]) {
        // Without a call, for the few areas that most operations find.
        let (mut few, mut many) = ([false; 8], Vec::new());
        let is_taken = match few.get_mut(..found.len()) {
            Some(few) => few,
            None => {
                many.resize(found.len(), false);
                &mut many[..]
            }
        };
        self.match_records(found, is_taken, |area, piece| area.kind == piece.kind);
        if self.pieces.iter().any(|piece| piece.record.is_none()) {
            self.match_records(found, is_taken, |area, piece| {
                area.kind.is_guarded() == piece.kind.is_guarded()
            });
        }
        let mut needs = self.needs;
        let mut kept = 0;
        for piece in &self.pieces {
            let Some(record) = piece.record else {
                needs = needs.hull(piece.range);
                continue;
            };
            kept += 1;
            let Found { range, kind } = found[record];
            if range.start != piece.range.start {
                needs = needs.hull(Range::between(range.start, piece.range.start).widened());
            }
            if range.end != piece.range.end {
                needs = needs.hull(Range::between(range.end, piece.range.end).widened());
            }
            if kind != piece.kind {
                needs = needs.hull(range);
            }
        }
        for (area, _) in found.iter().zip(&*is_taken).filter(|(_, taken)| !**taken) {
            needs = needs.hull(area.range);
        }
        self.needs = needs;
        self.is_structural = kept < self.pieces.len().max(found.len());
        self.growth = self.pieces.len() as i64 - found.len() as i64;
    }

    /// Gives pieces without a record the first that fits.
    #[inline]
    fn match_records(
        &mut self,
        found: &[Found],
        is_taken: &mut [bool],
        fits: impl Fn(&Found, &Piece) -> bool,
    ) {
        let mut first = 0;
        for piece in self
            .pieces
            .iter_mut()
            .filter(|piece| piece.record.is_none())
        {
            while first < found.len() && found[first].range.end <= piece.range.start {
                first += 1;
            }
            for (at, area) in found.iter().enumerate().skip(first) {
                if area.range.start >= piece.range.end {
                    break;
                }
                if !is_taken[at] && fits(area, piece) {
                    (piece.record, is_taken[at]) = (Some(at), true);
                    break;
                }
            }
        }
    }
}
