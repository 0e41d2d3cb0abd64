//! What a request looks at before it is announced: one that was blocked, and one that may not wait.
//!
//! The edges cited are the parent module's.

use super::advice::is_turn_under_way;
use super::board::Board;
use super::buckets::Buckets;
use super::look::SlotBlocker;
use super::request::Entry;
use super::slot::Slot;
use crate::range::inspect::Request;
use crate::range::mode::Mode;
use prim::{clock, thread};
use std::ptr;

impl Board {
    /// Makes sure that nothing is announced in the way of a request that may not wait. A narrow one looks in its
    /// buckets, and at what is counted. It is not announced itself. `None`: something may be in the annex.
    #[inline]
    pub(super) fn look_for_refusal<'a>(
        &'a self,
        request: &Request,
    ) -> Result<(), Option<SlotBlocker<'a>>> {
        // [slot-try-looks]
        if !prim::intact!("slot-try-looks") {
            return Ok(());
        }
        let mut blocks = |slot: &'a Slot| slot.blocks(request);
        let (start, last) = (request.span.start(), request.span.last());
        let narrow = |buckets: &&Buckets| buckets.is_narrow(start, last);
        let met = match self.buckets().filter(narrow) {
            None => self.find(&mut blocks),
            Some(buckets) => {
                // Of no slot, so no word that is listed is its own.
                let parts = buckets.parts(request, u32::MAX);
                let listed = buckets.find(&parts, &mut 0, |number| {
                    self.slot(number).and_then(&mut blocks)
                });
                listed.or_else(|| self.find_counted(&mut blocks))
            }
        };
        match met {
            None if self.annex_is_empty() => Ok(()),
            met => Err(met),
        }
    }

    /// What `f` returns for the first slot for which it returns anything, of those that are counted; or of all, if
    /// several are.
    fn find_counted<'a, R>(&'a self, mut f: impl FnMut(&'a Slot) -> Option<R>) -> Option<R> {
        let counted = self.counted();
        if counted.is_none() {
            return None;
        }
        match counted.only() {
            Some(only) => self.slot(only).and_then(f),
            None => self.find(&mut f),
        }
    }

    /// What is announced in the way of a request and would make it withdraw. The request itself is not announced
    /// meanwhile, so it disturbs nobody. One that is to be listed looks in its buckets alone. If nothing would, and the
    /// request is to wait in place for a writer of its node: when the turn of that node began.
    ///
    /// What a writer has written is in the caches of its node. So the next writer should be one of the same node, and
    /// those of other nodes do not wait in place while the turn of that node is under way.
    pub(super) fn look_before<'a>(
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

#[cfg(test)]
mod tests {
    use crate::range::raw::{Ask, RawRangeMutex, Wait};
    use crate::range::slots::{RawSlots, Token};
    use crate::range::span::Span;
    use std::thread;

    /// How often something was announced in its slots.
    fn announcements(lock: &RawSlots) -> u64 {
        let mut sum = 0;
        let board = lock.board().expect("it has moved");
        board.find(|slot| {
            sum += slot.noted_state().number();
            None::<()>
        });
        sum
    }

    /// Beside what its thread holds, too.
    #[test]
    fn a_try_that_a_holder_refuses_is_not_announced() {
        let at_once = RawSlots::builder().slots_at_once().build();
        for lock in [at_once, RawSlots::builder().buckets_at_once(2).build()] {
            let write = |range, wait| {
                let span = Span::of(range).expect("it has positions");
                lock.lock_exclusive(Ask::new(span, wait))
            };
            // SAFETY: the lock has granted it to this thread.
            let release = |token: Option<Token>| unsafe { lock.unlock(token.expect("it is free")) };
            let held = write(2_u64..3, Wait::Never);
            let in_vain = || {
                let before = announcements(&lock);
                assert!((0..9).all(|_| write(1..4, Wait::Never).is_none()));
                assert_eq!(announcements(&lock), before);
            };
            thread::scope(|scope| {
                scope.spawn(|| {
                    release(write(8..9, Wait::Never));
                    in_vain();
                    let own = write(8..9, Wait::Never);
                    in_vain();
                    release(own);
                });
            });
            release(held);
        }
    }
}
