//! Changing the areas of a range: lock, look, plan, and start over with more if the plan needs more.
//!
//! ```text
//!        ┌──────────────────────────────────────────────────────────┐
//!        v                                                          │
//!   lock a range ──> look ──> plan ──> is what it needs held? ──no──┘  with what it needs, or everything
//!                                             │ yes
//!                                             v
//!                       in place: write boundaries and kinds
//!                       structural, or free pages change: the same and links, under the index's mutex
//! ```
//!
//! # Edges
//!
//! - **cover**: a plan is carried out only if the range that is held covers what the plan needs. The plan was made of
//!   what the thread found, and what it found is certain only as far as it is held.
//! - **search-again**: an area goes to the free range that the search finds under the mutex, and not to the one that
//!   was found before the range was held: a higher one may be free since.
//! - **number**: the number of areas is checked against its limit under the mutex.
//! - **number-certain**: and nowhere else. Another operation that removes an area takes its pages off the account
//!   first. An operation that looked in between would be refused for the number of areas. In no order of the two is it:
//!   before the other it is refused for its pages, and afterwards it is granted.

use super::AddressSpace;
use super::hold::Held;
use super::place::Wish;
use super::refinement::{ChangeRange, StructureRange};
use super::stat::{Operation, Speculation};
use crate::vm::backing::Backing;
use crate::vm::error::VmError;
use crate::vm::index::{Around, Index};
use crate::vm::kind::PAGE;
use crate::vm::layout::Pages;
use crate::vm::plan::{Change, Kind, Plan, Range, Room};
use crate::vm::reclaim::searching;
use spanlock::range::raw::{Mode, RawRangeLock};

/// What must be true of a range before it is mapped.
#[derive(Debug, Clone, Copy)]
pub(super) enum Claim {
    /// Nothing: it takes the place of what is there.
    Replace,
    /// It is free.
    Free,
    /// It is free, and so is the page after it, and an area that grows down keeps its gap.
    Apart,
    /// One area contains it, and all from this address on.
    Tail(u64),
    /// It is where the search for a free range ends.
    Found(Wish),
}

/// What came of an attempt.
pub(super) enum Attempt {
    /// The operation has ended.
    Done(Result<(), VmError>),
    /// More has to be held.
    Needs(Range, Speculation),
    /// The range is mapped, but its backing refuses: it is to be unmapped again.
    Undo(VmError),
    /// The free range is not where the search ends any more.
    Gone,
    /// Another operation interfered.
    Again,
}

/// After so many retries an operation locks everything. Each means that another operation has changed the very area:
/// three in a row are a fight.
const RETRIES: u32 = 3;

/// What a speculation finds before it locks, and must find again. (P1, Listing 4, lines 15 to 17.)
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Glance {
    area: Range,
    /// The number of changes under the mutex.
    sequence: u64,
}

impl<L: RawRangeLock, B: Backing> AddressSpace<L, B> {
    /// What a change locks first.
    pub(super) fn first_range(&self, operation: Operation, range: Range) -> Range {
        match (self.refinement.change, self.refinement.structure) {
            (ChangeRange::Whole, _) => Range::ALL,
            (_, StructureRange::Whole) if operation != Operation::Mprotect => Range::ALL,
            _ => range.widened(),
        }
    }

    /// Changes a range.
    pub(super) fn change(
        &self,
        operation: Operation,
        range: Range,
        change: Change,
        claim: Claim,
    ) -> Result<(), VmError> {
        if operation == Operation::Mprotect && self.refinement.change == ChangeRange::Speculate {
            if let Some(result) = self.speculate(range, change) {
                return result;
            }
            return self.change_holding(operation, Range::ALL, range, change, claim);
        }
        self.change_holding(
            operation,
            self.first_range(operation, range),
            range,
            change,
            claim,
        )
    }

    /// Changes a range, beginning with this much held.
    pub(super) fn change_holding(
        &self,
        operation: Operation,
        first: Range,
        range: Range,
        change: Change,
        claim: Claim,
    ) -> Result<(), VmError> {
        let (mut wanted, mut change, mut claim, mut refusal) = (first, change, claim, Ok(()));
        loop {
            let held = self.hold(operation, Mode::Exclusive, wanted);
            match searching(|| self.attempt(operation, &held, range, change, claim)) {
                Attempt::Done(result) => return refusal.and(result),
                Attempt::Needs(more, why) => {
                    self.count(operation, why);
                    wanted = more;
                }
                Attempt::Undo(error) => {
                    (change, claim, refusal) = (Change::Unmap, Claim::Replace, Err(error))
                }
                Attempt::Gone => return Err(VmError::NoRoom),
                Attempt::Again => {}
            }
        }
    }

    /// P1's Listing 4. `None`: everything has to be locked.
    fn speculate(&self, range: Range, change: Change) -> Option<Result<(), VmError>> {
        let operation = Operation::Mprotect;
        for _ in 0..RETRIES {
            let held = self.hold(operation, Mode::Shared, range);
            let glance = searching(|| self.glance(range));
            drop(held);
            let Some(glance) = glance else {
                return Some(Err(VmError::Hole));
            };
            let held = self.hold(operation, Mode::Exclusive, glance.area.widened());
            let attempt = searching(|| {
                if self.glance(range) == Some(glance) {
                    self.attempt(operation, &held, range, change, Claim::Replace)
                } else {
                    Attempt::Again
                }
            });
            match attempt {
                Attempt::Done(result) => return Some(result),
                Attempt::Needs(_, why) => {
                    self.count(operation, why);
                    return None;
                }
                Attempt::Gone | Attempt::Again | Attempt::Undo(_) => {
                    self.count(operation, Speculation::Retried)
                }
            }
        }
        self.count(operation, Speculation::WholeForRetries);
        None
    }

    /// Looks at the area where a range begins, of which the thread holds that page. The caller searches.
    fn glance(&self, range: Range) -> Option<Glance> {
        let sequence = self.index.sequence();
        let area = self.index.at(range.start)?.range();
        Some(Glance { area, sequence })
    }

    /// Changes a range if what is held suffices. The caller searches.
    pub(super) fn attempt(
        &self,
        operation: Operation,
        held: &Held<'_, L>,
        range: Range,
        change: Change,
        claim: Claim,
    ) -> Attempt {
        // Otherwise even the look is a guess, at areas that others may be writing to.
        if !held.range.covers(range.widened()) {
            return self.needs_more(held.range.hull(range.widened()), Speculation::WholeForRange);
        }
        let mut around = Around::none(range);
        self.index.look_around(&mut around);
        match claim {
            Claim::Free if around.overlaps(range) => return Attempt::Done(Err(VmError::Occupied)),
            Claim::Apart
                if around.overlaps(Range {
                    end: range.end + PAGE,
                    ..range
                }) =>
            {
                return Attempt::Gone;
            }
            Claim::Found(_) if around.overlaps(range) => return Attempt::Gone,
            Claim::Tail(start) if !around.has_whole(Range { start, ..range }) => {
                return Attempt::Done(Err(VmError::Unmapped));
            }
            Claim::Replace | Claim::Free | Claim::Apart | Claim::Tail(_) | Claim::Found(_) => {}
        }
        let mut plan = Plan::new(range);
        let room = self.room();
        if let Err(refusal) = plan.make(&around.areas, range, change, &room) {
            return Attempt::Done(Err(refusal));
        }
        // [number-certain] The mutant looks at it before, too.
        if !prim::intact!("number-certain") && self.exceeds(range, change, &around, &plan) {
            return Attempt::Done(Err(VmError::TooManyAreas));
        }
        // [cover] The mutant is P1 §5.1's example of how not to do it.
        if prim::intact!("cover") && !held.range.covers(plan.needs) {
            let why = match plan.is_structural {
                true => Speculation::WholeForStructure,
                false => Speculation::WholeForRange,
            };
            return self.needs_more(held.range.hull(plan.needs), why);
        }
        let is_whole = held.range == Range::ALL;
        if !is_whole && plan.is_structural && self.refinement.structure == StructureRange::Whole {
            return Attempt::Needs(Range::ALL, Speculation::WholeForStructure);
        }
        if !is_whole {
            let structural = plan.is_structural;
            self.count(
                operation,
                if structural {
                    Speculation::Structural
                } else {
                    Speculation::InPlace
                },
            );
        }
        self.carry_out(range, change, claim, &around, &plan, room.pages)
    }

    /// More has to be held: this much, or everything if the variant knows nothing in between.
    fn needs_more(&self, more: Range, why: Speculation) -> Attempt {
        match self.refinement.structure {
            StructureRange::Partial => Attempt::Needs(more, Speculation::Widened),
            StructureRange::Whole => Attempt::Needs(Range::ALL, why),
        }
    }

    /// Makes a plan true, which was made when there were so many pages. What it needs is held.
    fn carry_out(
        &self,
        range: Range,
        change: Change,
        claim: Claim,
        around: &Around<'_>,
        plan: &Plan,
        pages: Pages,
    ) -> Attempt {
        let is_under_mutex = plan.is_structural || change.changes_what_is_free();
        let mut writer = is_under_mutex.then(|| self.index.writer());
        if writer.is_some() {
            // [number]
            if prim::intact!("number") && self.exceeds(range, change, around, plan) {
                // With other pages there might be another plan, which ends sooner, or later and with fewer areas.
                return match self.account.pages() == pages {
                    true => Attempt::Done(Err(VmError::TooManyAreas)),
                    false => Attempt::Again,
                };
            }
            // [search-again]
            if let Claim::Found(wish) = claim
                && prim::intact!("search-again")
                && self.find_room(writer.as_deref(), wish) != Some(range.start)
            {
                return Attempt::Gone;
            }
            if matches!(claim, Claim::Apart) && !self.is_apart(range) {
                return Attempt::Gone;
            }
        }
        if !self.account.exchange(plan.before, plan.after, &self.limits) {
            return Attempt::Again;
        }
        let done = Range {
            end: plan.done,
            ..range
        };
        if let Change::Protect(protection) = change
            && done.len() > 0
            && let Err(refusal) = self.backing.protect(done.start..done.end, protection)
        {
            let _less = self.account.exchange(plan.after, plan.before, &self.limits);
            return Attempt::Done(Err(refusal));
        }
        match &mut writer {
            // SAFETY: [cover] was checked by the caller.
            Some(writer) => unsafe { self.index.edit(writer, around, plan) },
            // SAFETY: the same.
            None => unsafe { Index::edit_in_place(around, &plan.pieces) },
        }
        drop(writer);
        if change.changes_what_is_free() && around.overlaps(range) {
            self.backing.unmap(range.start..range.end);
        }
        let area = |kind: Kind| kind.area(range.start, range.end);
        let backed = match change {
            Change::Map(kind) | Change::Extend(kind) => self.backing.map(&area(kind)),
            Change::Lengthen(kind) => self.backing.lengthen(&area(kind)),
            Change::Unmap | Change::Protect(_) | Change::Advise(..) => Ok(()),
        };
        if let Err(refusal) = backed {
            return Attempt::Undo(refusal);
        }
        Attempt::Done(plan.error.map_or(Ok(()), Err))
    }

    /// Whether a plan makes too many areas. Certain for the holder of the index's mutex.
    fn exceeds(&self, range: Range, change: Change, around: &Around<'_>, plan: &Plan) -> bool {
        let (areas, most) = (self.index.areas(), self.limits.areas);
        plan.exceeds(&around.areas, range, change, areas, most)
    }

    pub(super) fn room(&self) -> Room {
        Room {
            limits: self.limits,
            pages: self.account.pages(),
        }
    }

    pub(super) fn count(&self, operation: Operation, outcome: Speculation) {
        if let Some(stat) = &self.stat {
            stat.count(operation, outcome);
        }
    }
}

impl Around<'_> {
    /// Whether one area has all of the range.
    fn has_whole(&self, range: Range) -> bool {
        self.areas.iter().any(|area| area.range.covers(range))
    }

    pub(super) fn overlaps(&self, range: Range) -> bool {
        self.areas
            .iter()
            .any(|area| area.range.within(range).len() > 0)
    }
}
