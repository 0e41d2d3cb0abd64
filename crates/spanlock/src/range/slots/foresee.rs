//! What a request that was blocked looks at before it is announced again.

use super::advice::is_turn_under_way;
use super::board::Board;
use super::buckets::Buckets;
use super::look::SlotBlocker;
use super::request::Entry;
use super::slot::Slot;
use crate::range::raw::Mode;
use prim::{clock, thread};
use std::ptr;

impl Board {
    /// What is announced in the way of a request and would make it withdraw. The request itself is not announced
    /// meanwhile, so it disturbs nobody. One that is to be listed looks in its buckets alone. If nothing would, and the
    /// request is to wait in place for a writer of its node: when the turn of that node began.
    ///
    /// What a writer has written is in the caches of its node. So the next writer should be one of the same node, and
    /// those of other nodes do not wait in place while the turn of that node is under way.
    pub(super) fn foresee<'a>(
        &'a self,
        buckets: Option<&Buckets>,
        mine: &Slot,
        entry: &Entry<'_>,
    ) -> Result<Option<u64>, SlotBlocker<'a>> {
        let first = |stops: &mut dyn FnMut(&SlotBlocker<'a>) -> bool| {
            let mut stops = |slot: &'a Slot| {
                let met = slot.blocks(&entry.request)?;
                (!ptr::eq(slot, mine) && stops(&met)).then_some(met)
            };
            let Some(buckets) = buckets else {
                return self.find(stops);
            };
            let parts = buckets.parts(&entry.request, mine.number());
            buckets.find(&parts, &mut 0, |number| {
                self.slot(number).and_then(&mut stops)
            })
        };
        if entry.in_place.is_none() {
            let senior = first(&mut |met| !met.slot.is_junior_to(entry.seniority, mine.number()));
            return senior.map_or(Ok(None), Err);
        }
        // One writer waits in place, and it is the next. A newcomer does not wait.
        let is_next = |met: &SlotBlocker<'_>| {
            met.state.mode() == Mode::Exclusive && met.slot.seniority().has_waited()
        };
        if buckets.is_some() {
            return first(&mut |met| is_next(met)).map_or(Ok(None), Err);
        }
        let (mut has_reader, mut own, mut far) = (false, None, None);
        let next = first(&mut |met| {
            has_reader |= met.state.mode() == Mode::Shared;
            let seniority = met.slot.seniority();
            match seniority.turn() {
                Some(turn) if seniority.is_on(thread::node()) => own = Some(turn),
                Some(turn) if is_turn_under_way(turn, clock::nanoseconds()) => far = Some(*met),
                _ => {}
            }
            is_next(met)
        });
        // Many writers come to wait for readers at the same time. Each one that is announced in vain turns readers away
        // that could enter, so it looks again whether another one waits.
        let again = || has_reader.then(|| first(&mut |met| is_next(met))).flatten();
        next.or(far).or_else(again).map_or(Ok(own), Err)
    }
}
