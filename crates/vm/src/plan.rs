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
//!   edits    V ends at s; insert s..e; insert e..N   V stays the area that it covers most of
//! ```
//!
//! The *edits* are those by which the areas become the pieces. If they neither insert nor remove an area, the change
//! is made *in place*: it moves boundaries and rewrites kinds. Otherwise it is *structural*. Linux's eight cases of
//! merging (`mm/vma.c`) are the possible pairs of neighbours on both sides, and need no code of their own:
//!
//! | Linux's case | what becomes of P, V and N |
//! |---|---|
//! | 1, 6 | P takes V (or the free range) and N |
//! | 2, 7 | P takes V (or the free range) |
//! | 3, 8 | N takes V (or the free range) |
//! | 4 | N takes the end of V: one boundary moves |
//! | 5 | P takes the beginning of V: one boundary moves |

use crate::error::VmError;
use crate::kind::{Area, Flags, PAGE, Protection, Source};
use crate::layout::{Limits, Pages};
use smallvec::SmallVec;

/// What all pages of an area have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) protection: Protection,
    pub(crate) most: Protection,
    pub(crate) flags: Flags,
    /// See [`Area::family`].
    pub(crate) family: u32,
    /// Zero: anonymous.
    pub(crate) file: u64,
    /// What to add to an address to get the offset in the file, modulo 2^64. It does not depend on where the area
    /// begins, so a boundary is one word. Private zeros have an origin, too: zero, until `mremap` moves them.
    pub(crate) origin: u64,
}

impl Kind {
    pub(crate) fn area(self, start: u64, end: u64) -> Area {
        let Self {
            protection,
            most,
            flags,
            family,
            file,
            origin,
        } = self;
        let source = match file {
            0 => Source::Anonymous,
            _ => Source::File {
                file,
                offset: origin.wrapping_add(start),
            },
        };
        Area {
            start,
            end,
            protection,
            most,
            flags,
            source,
            family,
        }
    }

    /// Whether a page that is written becomes private to the space.
    pub(crate) fn is_private(self) -> bool {
        !self.flags.contains(Flags::SHARED)
    }

    /// Whether others keep a gap below it. An area that is in the index keeps this for good.
    pub(crate) fn is_guarded(self) -> bool {
        self.flags.contains(Flags::GROWS_DOWN)
    }

    /// Whether neighbours of these kinds become one area.
    fn merges_with(self, other: Self) -> bool {
        let families = self.family == other.family || self.family == 0 || other.family == 0;
        families && Self { family: 0, ..self } == Self { family: 0, ..other }
    }

    /// With another protection, and memory reserved as Linux does: for what is writable and private, until it is neither
    /// writable nor written.
    fn protected(self, protection: Protection) -> Self {
        let mut flags = self.flags;
        if protection == self.protection {
            return self;
        }
        if !protection.allows(Protection::WRITE) {
            if self.file == 0 && self.family == 0 {
                flags = flags.without(Flags::RESERVED);
            }
        } else if !self.protection.allows(Protection::WRITE)
            && !flags.intersects(Flags::SHARED | Flags::NO_RESERVE)
        {
            flags = flags | Flags::RESERVED;
        }
        Self {
            protection,
            flags,
            ..self
        }
    }

    /// Whether a fresh area of this kind takes the family of a neighbour, although their protections differ.
    pub(crate) fn is_akin_to(self, other: Self) -> bool {
        let bare = |kind| Self {
            protection: Protection::NONE,
            family: 0,
            ..kind
        };
        other.family != 0 && bare(self) == bare(other)
    }

    /// As what pages of this kind count.
    pub(crate) fn count(self, bytes: u64) -> Pages {
        let pages = bytes / PAGE;
        let mut count = Pages {
            total: pages,
            ..Pages::default()
        };
        if self.flags.contains(Flags::STACK) {
            count.stack = pages;
        } else if self.protection.allows(Protection::WRITE) {
            count.data = if self.is_private() { pages } else { 0 };
        } else if self.protection.allows(Protection::EXECUTE) {
            count.code = pages;
        }
        count
    }
}

/// A range of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Range {
    /// All addresses that any space has, with room for a page on both sides.
    pub(crate) const ALL: Self = Self {
        start: 0,
        end: u64::MAX,
    };

    pub(crate) fn hull(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// With a page on each side.
    pub(crate) fn widened(self) -> Self {
        Self {
            start: self.start.saturating_sub(PAGE),
            end: self.end.saturating_add(PAGE),
        }
    }

    /// The part within `other`; if there is none, some range of no length.
    pub(crate) fn within(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self {
            start,
            end: self.end.min(other.end).max(start),
        }
    }

    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }
}

/// An area as it was found, or as it is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) range: Range,
    pub(crate) kind: Kind,
    /// Whether the operation changed some of it. Only then it is merged with other areas.
    changed: bool,
    /// Where the area began that it is, or is a part of.
    of: u64,
}

impl Piece {
    pub(crate) fn found(range: Range, kind: Kind) -> Self {
        Self {
            range,
            kind,
            changed: false,
            of: range.start,
        }
    }
}

/// Where no area begins.
const NO_AREA: u64 = u64::MAX;

/// The areas that overlap or touch a range, in order.
pub(crate) type Pieces = SmallVec<[Piece; 4]>;

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

/// A step by which the areas of a neighbourhood, by their places in it, become the pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    Start(usize, u64),
    End(usize, u64),
    Kind(usize, Kind),
    Remove(usize),
    Insert(Range, Kind),
}

impl Edit {
    fn is_structural(self) -> bool {
        matches!(self, Self::Remove(_) | Self::Insert(..))
    }
}

/// All that an operation does to the areas.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) edits: SmallVec<[Edit; 4]>,
    /// What has to be held exclusively while it is done.
    pub(crate) needs: Range,
    /// The pages of the range before, and after.
    pub(crate) before: Pages,
    pub(crate) after: Pages,
    /// How far the operation came: to the end of its range, or to where it was stopped.
    pub(crate) done: u64,
    /// What stopped the operation in the middle.
    pub(crate) error: Option<VmError>,
}

impl Plan {
    #[inline]
    pub(crate) fn is_structural(&self) -> bool {
        self.edits.iter().any(|edit| edit.is_structural())
    }

    /// How many areas there are more afterwards.
    pub(crate) fn growth(&self) -> i64 {
        self.edits
            .iter()
            .map(|edit| match edit {
                Edit::Insert(..) => 1,
                Edit::Remove(_) => -1,
                _ => 0,
            })
            .sum()
    }
}

/// What a plan must not exceed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) limits: Limits,
    /// The areas of the whole space.
    pub(crate) areas: u64,
    /// The pages of the whole space.
    pub(crate) pages: Pages,
}

impl Room {
    /// Whether `after` may take the place of `before`.
    pub(crate) fn admits(&self, before: Pages, after: Pages) -> bool {
        let fits = |limit: u64, used: u64, before: u64, after: u64| {
            after <= before || used.saturating_add(after - before) <= limit
        };
        fits(
            self.limits.pages,
            self.pages.total,
            before.total,
            after.total,
        ) && fits(self.limits.data, self.pages.data, before.data, after.data)
    }
}

/// Plans a change of `range`, given the areas that overlap or touch it.
pub(crate) fn plan(
    found: &[Piece],
    range: Range,
    change: Change,
    room: &Room,
) -> Result<Plan, VmError> {
    let mut planner = Planner::default();
    for piece in found {
        planner.keep(
            piece,
            Range {
                start: 0,
                end: range.start,
            },
        );
    }
    let (done, error) = match change {
        Change::Map(kind) | Change::Extend(kind) | Change::Lengthen(kind) => {
            planner.replace(found, range, Some(kind))
        }
        Change::Unmap => planner.replace(found, range, None),
        Change::Protect(_) | Change::Advise(..) => planner.alter(found, range, change, room),
    };
    if let Change::Extend(_) = change {
        planner.close();
    }
    for piece in found {
        planner.keep(
            piece,
            Range {
                start: range.end,
                end: u64::MAX,
            },
        );
    }
    let (before, after) = (planner.before, planner.after);
    if !room.admits(before, after) {
        return Err(VmError::OverLimit);
    }
    let edits = edits(found, &planner.pieces);
    let needs = needs(found, &edits).fold(range.widened(), Range::hull);
    let plan = Plan {
        edits,
        needs,
        before,
        after,
        done,
        error,
    };
    plan.check_number(found, range, change, room)?;
    Ok(plan)
}

impl Change {
    /// Whether it takes or frees pages, so that searches for free ranges have to see it whole or not at all.
    pub(crate) fn changes_what_is_free(self) -> bool {
        matches!(
            self,
            Self::Map(_) | Self::Extend(_) | Self::Lengthen(_) | Self::Unmap
        )
    }
}

impl Plan {
    /// Linux lets one area more than the limit come into being by `mmap`, and none by a split.
    pub(crate) fn check_number(
        &self,
        found: &[Piece],
        range: Range,
        change: Change,
        room: &Room,
    ) -> Result<(), VmError> {
        let most = room.limits.areas;
        let is_inside = found
            .iter()
            .any(|piece| piece.range.start < range.start && range.end < piece.range.end);
        let exceeds = match change {
            Change::Map(_) | Change::Extend(_) | Change::Lengthen(_) => {
                room.areas > most || (is_inside && room.areas >= most)
            }
            Change::Unmap => is_inside && room.areas >= most,
            _ => self.growth() > 0 && room.areas.saturating_add_signed(self.growth()) > most,
        };
        if exceeds {
            Err(VmError::TooManyAreas)
        } else {
            Ok(())
        }
    }
}

/// The pieces planned so far, from left to right.
#[derive(Default)]
struct Planner {
    pieces: Pieces,
    before: Pages,
    after: Pages,
}

impl Planner {
    /// Adds a piece; merges it with the one before, if they fit and the operation changed one of them.
    fn push(&mut self, piece: Piece) {
        if let Some(last) = self.pieces.last_mut()
            && last.range.end == piece.range.start
            && (last.changed || piece.changed || last.of == piece.of)
            && last.kind.merges_with(piece.kind)
        {
            last.range.end = piece.range.end;
            last.kind.family = last.kind.family.max(piece.kind.family);
            last.changed |= piece.changed;
            return;
        }
        self.pieces.push(piece);
    }

    /// Keeps the part of a piece that lies within some bounds.
    fn keep(&mut self, piece: &Piece, within: Range) {
        let range = piece.range.within(within);
        if range.start < range.end {
            self.push(Piece { range, ..*piece });
        }
    }

    /// No later piece is merged with the last.
    fn close(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.changed = false;
            last.of = NO_AREA;
        }
    }

    /// The whole range becomes one piece, or free.
    fn replace(
        &mut self,
        found: &[Piece],
        range: Range,
        kind: Option<Kind>,
    ) -> (u64, Option<VmError>) {
        for piece in found {
            self.before = self
                .before
                .plus(piece.kind.count(piece.range.within(range).len()));
        }
        if let Some(kind) = kind {
            self.after = kind.count(range.len());
            self.push(Piece {
                range,
                kind,
                changed: true,
                of: NO_AREA,
            });
        }
        (range.end, None)
    }

    /// Each area in the range is altered, as far as there is no error.
    fn alter(
        &mut self,
        found: &[Piece],
        range: Range,
        change: Change,
        room: &Room,
    ) -> (u64, Option<VmError>) {
        let mut done = range.start;
        let mut error = None;
        for piece in found {
            let middle = piece.range.within(range);
            if middle.len() == 0 {
                continue;
            }
            if middle.start > done {
                error = Some(VmError::Hole);
                if !matches!(change, Change::Advise(..)) {
                    break;
                }
            }
            let kind = match altered(piece.kind, change) {
                Ok(kind) => kind,
                Err(refusal) => {
                    error = Some(refusal);
                    break;
                }
            };
            let before = self.before.plus(piece.kind.count(middle.len()));
            let after = self.after.plus(kind.count(middle.len()));
            if !room.admits(before, after) {
                error = Some(VmError::OverLimit);
                break;
            }
            (self.before, self.after) = (before, after);
            self.push(Piece {
                range: middle,
                kind,
                changed: kind != piece.kind,
                of: piece.of,
            });
            done = middle.end;
        }
        for piece in found {
            self.keep(
                piece,
                Range {
                    start: done,
                    end: range.end,
                },
            );
        }
        (done, error.or((done < range.end).then_some(VmError::Hole)))
    }
}

fn altered(kind: Kind, change: Change) -> Result<Kind, VmError> {
    match change {
        Change::Protect(protection) if !kind.most.allows(protection) => Err(VmError::NotPermitted),
        Change::Protect(protection) => Ok(kind.protected(protection)),
        Change::Advise(set, clear) => Ok(Kind {
            flags: kind.flags.without(clear) | set,
            ..kind
        }),
        Change::Map(_) | Change::Extend(_) | Change::Lengthen(_) | Change::Unmap => Ok(kind),
    }
}

/// The steps by which the areas become the pieces. An area becomes a piece that it overlaps: rather one of its own kind,
/// so that only a boundary moves. So the order of the areas remains.
fn edits(found: &[Piece], pieces: &[Piece]) -> SmallVec<[Edit; 4]> {
    let mut becomes: SmallVec<[Option<usize>; 4]> = found.iter().map(|_| None).collect();
    let mut is_made: SmallVec<[bool; 4]> = pieces.iter().map(|_| false).collect();
    for same_kind in [true, false] {
        for (at, piece) in pieces.iter().enumerate().filter(|_| !found.is_empty()) {
            if is_made[at] {
                continue;
            }
            let fits = |area: &usize| {
                let area = &found[*area];
                area.range.within(piece.range).len() > 0
                    && if same_kind {
                        area.kind == piece.kind
                    } else {
                        area.kind.is_guarded() == piece.kind.is_guarded()
                    }
            };
            if let Some(area) = (0..found.len())
                .filter(|&area| becomes[area].is_none())
                .find(fits)
            {
                becomes[area] = Some(at);
                is_made[at] = true;
            }
        }
    }
    let mut edits = SmallVec::new();
    for (at, area) in found.iter().enumerate() {
        let Some(piece) = becomes[at].map(|piece| &pieces[piece]) else {
            edits.push(Edit::Remove(at));
            continue;
        };
        if area.range.start != piece.range.start {
            edits.push(Edit::Start(at, piece.range.start));
        }
        if area.range.end != piece.range.end {
            edits.push(Edit::End(at, piece.range.end));
        }
        if area.kind != piece.kind {
            edits.push(Edit::Kind(at, piece.kind));
        }
    }
    let inserted = pieces.iter().zip(is_made).filter(|(_, is_made)| !is_made);
    edits.extend(inserted.map(|(piece, _)| Edit::Insert(piece.range, piece.kind)));
    edits
}

/// What has to be held for each edit.
///
/// - To move a boundary: all between its old and its new place, and a page on each side. So each area keeps a page that
///   others may rely on, and neither is changed otherwise.
/// - To rewrite a kind, and to insert or remove an area: all of it.
fn needs<'a>(found: &'a [Piece], edits: &'a [Edit]) -> impl Iterator<Item = Range> + 'a {
    edits.iter().map(|&edit| {
        let between = |old: u64, new: u64| {
            Range {
                start: old.min(new),
                end: old.max(new),
            }
            .widened()
        };
        match edit {
            Edit::Start(at, new) => between(found[at].range.start, new),
            Edit::End(at, new) => between(found[at].range.end, new),
            Edit::Kind(at, _) | Edit::Remove(at) => found[at].range,
            Edit::Insert(range, _) => range,
        }
    })
}
