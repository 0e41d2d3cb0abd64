//! How a request is announced on a board, and how it looks at the others. The edges cited are the parent module's.

use super::advice::Met;
use super::board::{Board, Counted};
use super::buckets::{Buckets, Parts, WORDS};
use super::look::{Look, SlotBlocker};
use super::request::Entry;
use super::slot::Slot;
use super::state::{Audience, State};
use crate::range::mode::Mode;
use crate::wait::Stay;
use prim::atomic::fence_after_rmw;
use std::ptr;

/// Whether a request that was granted has all of the grant that it was announced with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeGrant {
    Allowed,
    RuledOut,
}

/// What a scan has found and done so far.
struct Scan {
    whole: WholeGrant,
    /// Whether all in the way were asked to leave.
    has_asked: bool,
}

impl Scan {
    /// One that has found nothing yet.
    const NEW: Self = Self {
        whole: WholeGrant::Allowed,
        has_asked: false,
    };

    /// The scan of a request that is to be listed. To ask all at once, it would look at all slots.
    const OF_BUCKETS: Self = Self {
        has_asked: true,
        ..Self::NEW
    };

    /// What the scan has come to: whether anything is in the way, so that the request is to withdraw.
    fn outcome<'a>(&self, met: Option<SlotBlocker<'a>>) -> Result<WholeGrant, SlotBlocker<'a>> {
        met.map_or(Ok(self.whole), Err)
    }
}

impl Board {
    /// Announces a request in a slot whose owner has made the state `before` last, and makes sure that no other
    /// announcement is in its way. If one is, the request is to withdraw.
    #[inline(always)] // Most of a newcomer's entry is constant.
    pub(super) fn enter<'a>(
        &'a self,
        mine: &'a Slot,
        before: State,
        entry: &Entry<'_>,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let before = mine.announce(before, entry, Audience::All);
        // [counted] Before the fence.
        if !before.is_counted() {
            self.add_to_count(mine);
        }
        // [registry] How many there are is loaded after the fence.
        let len = prim::order!(
            "registry",
            {
                Self::handshake();
                self.len()
            },
            {
                let early = self.len();
                Self::handshake();
                early
            }
        );
        let mut scan = Scan::NEW;
        if entry.grant != entry.request.span && !self.annex_allows_more() {
            scan.whole = WholeGrant::RuledOut;
        }
        let few = len.min(Self::FEW);
        let end = self.find_in(0, few, &mut |slot| {
            self.look_at(slot, mine, entry, &mut scan)
        });
        if end.is_none() && len > few {
            return self.look_from(1, len, mine, *entry, scan);
        }
        scan.outcome(end)
    }

    /// Announces a narrow request, as [`enter`](Self::enter) does, which is to be listed in buckets. Notes what it
    /// meets there.
    pub(super) fn enter_buckets<'a>(
        &'a self,
        buckets: &Buckets,
        mine: &'a Slot,
        before: State,
        entry: Entry<'_>,
        met: &mut Met,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let parts = buckets.parts(&entry.request, mine.number());
        let is_listed = self.list(buckets, &parts, mine, before, &entry);
        Self::handshake();
        if !is_listed {
            *met = Met {
                others: WORDS as u32,
                slots: self.len() as u32,
            };
            return self.look_at_all(mine, entry);
        }
        let mut scan = Scan::OF_BUCKETS;
        let end = buckets.find(&parts, &mut met.others, |number| {
            // [bucket-look]
            let look = prim::intact!("bucket-look");
            let slot = self.slot(number).filter(|_| look)?;
            self.look_closely(slot, mine, entry, &mut scan)
        });
        // [counted-look] What is not listed is counted.
        let counted = self.counted();
        if end.is_some() || counted.is_none() || !prim::intact!("counted-look") {
            return scan.outcome(end);
        }
        self.look_at_counted(counted, mine, entry)
    }

    /// Looks at the slots that are counted, on behalf of a listed request.
    #[inline(never)] // So that one that is alone is short.
    fn look_at_counted<'a>(
        &'a self,
        counted: Counted,
        mine: &Slot,
        entry: Entry<'_>,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let Some(only) = counted.only() else {
            return self.look_at_all(mine, entry);
        };
        // It may be the request's own, while another thread uncounts it.
        let other = self.slot(only).filter(|slot| !ptr::eq(*slot, mine));
        let mut scan = Scan::OF_BUCKETS;
        let end = other.and_then(|slot| self.look_closely(slot, mine, entry, &mut scan));
        scan.outcome(end)
    }

    /// Looks at all slots, on behalf of a request that was to look at few.
    #[inline(never)]
    fn look_at_all<'a>(
        &'a self,
        mine: &Slot,
        entry: Entry<'_>,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        // [registry] As before.
        self.look_from(0, self.len(), mine, entry, Scan::OF_BUCKETS)
    }

    /// The fence between an announcement and the look at the others.
    #[inline]
    fn handshake() {
        // [slot-handshake] Both sides announce, fence and look.
        if prim::intact!("slot-handshake") {
            fence_after_rmw();
        }
    }

    /// Looks at the slots in that chunk and those after it, among the first `len`.
    #[inline(never)] // So that few slots are looked at without a loop over chunks.
    fn look_from<'a>(
        &'a self,
        chunk: usize,
        len: usize,
        mine: &Slot,
        entry: Entry<'_>,
        mut scan: Scan,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let mut look = |slot| self.look_at(slot, mine, &entry, &mut scan);
        let end = self.find_from(chunk, len, &mut look);
        scan.outcome(end)
    }

    /// Looks at a slot. Returns what is in the way there, if the request is to withdraw.
    #[inline]
    fn look_at<'a>(
        &'a self,
        slot: &'a Slot,
        mine: &Slot,
        entry: &Entry<'_>,
        scan: &mut Scan,
    ) -> Option<SlotBlocker<'a>> {
        if ptr::eq(slot, mine) {
            return None;
        }
        if !slot.load_acquire().concerns(entry.request.mode) {
            return None;
        }
        self.look_closely(slot, mine, *entry, scan)
    }

    /// Announces a narrow request in a slot, for the fence that follows: either it is listed in each of its buckets,
    /// or its slot is counted. The last step is a read-modify-write. Returns whether it is listed.
    #[inline]
    fn list(
        &self,
        buckets: &Buckets,
        parts: &Parts,
        mine: &Slot,
        before: State,
        entry: &Entry<'_>,
    ) -> bool {
        let before = mine.announce(before, entry, Audience::Bucket);
        let Some(places) = buckets.list(parts) else {
            self.count_unlisted(mine, before);
            return false;
        };
        mine.set_places(places);
        if before.is_counted() {
            self.take_off_count(mine);
        }
        true
    }

    /// Counts the slot of a request for which there is no room in its buckets, as if it had not tried.
    #[cold]
    fn count_unlisted(&self, mine: &Slot, before: State) {
        mine.set_counted();
        // [counted] Before the fence.
        if !before.is_counted() {
            self.add_to_count(mine);
        }
    }

    /// Asks all that are in the way of a request to leave: kept grants are revoked, and the others are not kept. So
    /// when its scan waits for them one after another, it waits for all at the same time.
    ///
    /// It meets its rivals, too, and returns one that is senior. So if several writers have come to wait for a holder,
    /// one of them is left when the holder leaves.
    #[cold] // It has to wait.
    fn ask_all<'a>(&'a self, mine: &Slot, entry: &Entry<'_>) -> Option<SlotBlocker<'a>> {
        self.find(|slot| {
            if ptr::eq(slot, mine) {
                return None;
            }
            let Look::Held(state) = slot.look(&entry.request, entry.grant) else {
                return None;
            };
            let blocker = SlotBlocker::new(slot, state);
            if !blocker.is_rival {
                blocker.contend();
                return None;
            }
            let is_junior = slot.is_junior_to(entry.seniority, mine.number());
            (!is_junior).then_some(blocker)
        })
    }

    /// Looks, as `look_at` does, at another slot than the request's own.
    #[inline(never)] // So that a scan that meets nobody is short.
    fn look_closely<'a>(
        &'a self,
        slot: &'a Slot,
        mine: &Slot,
        entry: Entry<'_>,
        scan: &mut Scan,
    ) -> Option<SlotBlocker<'a>> {
        loop {
            match slot.look(&entry.request, entry.grant) {
                Look::Clear => return None,
                Look::RulesOutGrant => {
                    scan.whole = WholeGrant::RuledOut;
                    return None;
                }
                Look::Held(state) => {
                    let blocker = SlotBlocker::new(slot, state);
                    let end = self.wait_in_place(blocker, mine, &entry, scan);
                    if end.is_some() {
                        return end;
                    }
                }
            }
        }
    }

    /// Waits for what is in the way of a request, if the request stays meanwhile. `None`: it looks there again.
    fn wait_in_place<'a>(
        &'a self,
        blocker: SlotBlocker<'a>,
        mine: &Slot,
        entry: &Entry<'_>,
        scan: &mut Scan,
    ) -> Option<SlotBlocker<'a>> {
        let is_junior = blocker.slot.is_junior_to(entry.seniority, mine.number());
        // Of two rivals the senior one stays. It waits until the other one has withdrawn.
        if is_junior && blocker.await_decision(entry.request.mode) {
            return None;
        }
        // A writer in the way may be waiting in place, too. A reader that is undecided has not met this request, so
        // it is about to hold its range.
        let stays = !blocker.is_rival || is_junior && blocker.state.mode() == Mode::Shared;
        let Some(stay) = entry.in_place.filter(|_| stays) else {
            return Some(blocker);
        };
        if !scan.has_asked {
            scan.has_asked = true;
            return self.ask_all(mine, entry);
        }
        let has_left = Self::has_left_in_time(&blocker, stay, entry.request.mode);
        (!has_left).then_some(SlotBlocker {
            outlasts_us: true,
            ..blocker
        })
    }

    /// Whether what is in the way of a request that waits in place has left in time.
    fn has_left_in_time(blocker: &SlotBlocker<'_>, stay: &Stay<'_>, mode: Mode) -> bool {
        blocker.contend();
        while !stay.spin(|| !blocker.is_in_the_way(mode)) {
            // [stay-bounded] The holder may be waiting for this request.
            if prim::intact!("stay-bounded") {
                return false;
            }
        }
        true
    }
}
