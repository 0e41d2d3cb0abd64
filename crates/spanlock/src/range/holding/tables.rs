//! How an owner acquires ranges of several locks by one call, all or none.
//!
//! As [`many`](crate::range::many) does with the ranges of one lock: the locks are in an order that all calls agree on,
//! and so are the ranges of each. So such calls do not deadlock with each other, nor with those that ask one of the
//! locks.

use super::by::OwnerRanges;
use super::tasks::{All, Until, Wanted, acquire_all};
use super::{Gained, Holding, Pieces, Place};
use crate::range::many::Several;
use crate::range::owner::Refusal;
use crate::range::raw::{Mode, Wait};
use std::ops::RangeBounds;

/// Acquires these ranges. Of each lock, in ascending order, the holding to which they are added.
#[track_caller]
pub(in crate::range) fn lock_all<P: Place, R: RangeBounds<P::Key>>(
    mut holdings: Vec<Holding<P>>,
    ranges: Vec<Vec<(R, Mode)>>,
    wait: Wait,
) -> Result<Vec<Holding<P>>, Refusal> {
    let mut all = TableRanges(Vec::new());
    // No closure: it would be the caller.
    for (holding, ranges) in holdings.iter().zip(ranges) {
        all.0.push(OwnerRanges::new(holding, ranges));
    }
    let held = all.acquire_all(wait)?.ok_or(Refusal::Busy)?;
    let gained = held
        .into_iter()
        .map(|(table, gained)| (table, gained.keep()));
    let gained: Vec<(usize, Pieces<P>)> = gained.collect();
    drop(all);
    for (table, pieces) in gained {
        holdings[table].put(pieces);
    }
    // To find their places is to compare keys, which may panic: now all are in holdings.
    holdings.iter_mut().for_each(Holding::sort);
    Ok(holdings)
}

/// As [`lock_all`], for a task.
#[track_caller]
pub(in crate::range) fn lock_all_soon<P: Place + Clone, R: RangeBounds<P::Key>>(
    holdings: Vec<Holding<P>>,
    ranges: Vec<Vec<(R, Mode)>>,
    wait: Wait,
) -> impl Future<Output = Result<All<P>, Refusal>> + use<P, R> {
    let mut wanted: Vec<Wanted> = Vec::new();
    // No closure: it would be the caller.
    for (at, (holding, ranges)) in holdings.iter().zip(ranges).enumerate() {
        let of_table = OwnerRanges::new(holding, ranges).wanted;
        wanted.extend(
            of_table
                .into_iter()
                .map(|(sought, mode)| (at, sought, mode)),
        );
    }
    acquire_all(All::from_vec(holdings), wanted, Until::new(wait))
}

/// The ranges of each lock.
struct TableRanges<'a, P: Place>(Vec<OwnerRanges<'a, P>>);

impl<'a, P: Place> Several for TableRanges<'a, P> {
    type Hold = (usize, Gained<'a, P>);
    type Refusal = Refusal;

    fn count(&self) -> usize {
        self.0.iter().map(Several::count).sum()
    }

    fn is_taken(&self, at: usize) -> bool {
        let (table, at) = self.place(at);
        self.0[table].is_taken(at)
    }

    #[track_caller]
    fn acquire(
        &self,
        at: usize,
        wait: Wait,
        _: Option<&Self::Hold>,
    ) -> Result<Option<Self::Hold>, Refusal> {
        let (table, at) = self.place(at);
        let gained = self.0[table].acquire(at, wait, None)?;
        Ok(gained.map(|gained| (table, gained)))
    }
}

impl<P: Place> TableRanges<'_, P> {
    /// The table of one of them, and its number there.
    fn place(&self, mut at: usize) -> (usize, usize) {
        for (table, ranges) in self.0.iter().enumerate() {
            match at.checked_sub(ranges.count()) {
                Some(further) => at = further,
                None => return (table, at),
            }
        }
        unreachable!("there are so many")
    }
}
