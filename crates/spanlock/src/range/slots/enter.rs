//! How a request is announced on a board, and how it looks at the others. The edges cited are the parent module's.

use super::blocker::SlotBlocker;
use super::board::Board;
use super::buckets::Buckets;
use super::slot::{Look, Slot};
use super::state::{Audience, Seniority};
use crate::range::inspect::Request;
use crate::range::raw::Mode;
use crate::range::span::Span;
use crate::wait::Stay;
use prim::atomic::{Ordering, fence_after_rmw};
use std::panic::Location;
use std::ptr;

/// A request to be announced.
pub(super) struct Entry<'a> {
    pub(super) request: Request,
    /// What the thread may take again later, if it keeps it.
    pub(super) grant: Span,
    /// The buckets that it is to be listed in, if it is narrow. Then the grant is not larger and not kept.
    pub(super) buckets: Option<&'a Buckets>,
    pub(super) seniority: Seniority,
    /// If the request is to wait in place while others are in its way, for how long.
    pub(super) stays: Option<&'a Stay<'a>>,
    pub(super) at: &'static Location<'static>,
}

/// Whether a request that was granted has all of the grant that it was announced with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Granted,
    RuledOut,
}

/// What a scan has found and done so far.
struct Scan {
    whole: Whole,
    /// Whether all in the way were asked to leave.
    has_asked: bool,
}

impl Board {
    /// What is announced in the way of a request and would make it withdraw. The request itself is not announced
    /// meanwhile, so it disturbs nobody.
    pub(super) fn foresee(&self, mine: &Slot, entry: &Entry<'_>) -> Option<SlotBlocker<'_>> {
        self.find(|slot| {
            let blocker = slot.blocks(&entry.request)?;
            let stops = match entry.stays {
                // One writer waits in place, and it is the next. A newcomer does not wait.
                Some(_) => blocker.state.mode() == Mode::Exclusive && slot.seniority().has_waited(),
                None => !slot.is_junior_to(entry.seniority, mine.number()),
            };
            (stops && !ptr::eq(slot, mine)).then_some(blocker)
        })
    }

    /// Announces a request, and makes sure that no other announcement is in its way. If one is, the request is to
    /// withdraw.
    #[inline]
    pub(super) fn enter<'a>(
        &'a self,
        mine: &'a Slot,
        entry: &Entry<'_>,
    ) -> Result<Whole, SlotBlocker<'a>> {
        let early = (!prim::intact!("registry")).then(|| self.len());
        let listed = self.announce(mine, entry);
        // [slot-handshake] Both sides announce, fence and look.
        if prim::intact!("slot-handshake") {
            fence_after_rmw();
        }
        let mut scan = Scan {
            whole: Whole::Granted,
            // A listed request looks at few slots.
            has_asked: entry.buckets.is_some(),
        };
        let mut everyone_listed = false;
        let mut blocker = None;
        if let Some(buckets) = listed {
            // [uncount-acquire] Acquire: pairs with [uncount], for what was held in slots that are no longer counted.
            let acquire = prim::order!("uncount-acquire", Ordering::Acquire);
            // [counted-look] What is not listed is counted.
            everyone_listed = self.counted.load(acquire) == 0 || !prim::intact!("counted-look");
            blocker = buckets.find(&entry.request, mine.number(), |number| {
                // [bucket-look]
                let slot = self.slot(number).filter(|_| prim::intact!("bucket-look"));
                self.meet(slot?, mine, entry, &mut scan)
            });
        }
        if blocker.is_none() && !everyone_listed {
            // [registry] How many there are is loaded after the fence.
            let len = early.unwrap_or_else(|| self.len());
            blocker = self.find_among(len, &mut |slot| {
                let is_mine = ptr::eq(slot, mine);
                if is_mine {
                    None
                } else {
                    self.meet(slot, mine, entry, &mut scan)
                }
            });
        }
        match blocker {
            None => Ok(scan.whole),
            Some(blocker) => Err(blocker),
        }
    }

    /// Announces a request in a slot, for the fence that follows: either it is listed in each of its buckets, or its
    /// slot is counted. The last step is a read-modify-write.
    #[inline]
    fn announce<'a>(&self, mine: &Slot, entry: &Entry<'a>) -> Option<&'a Buckets> {
        let Some(buckets) = entry.buckets else {
            let before = mine.announce(entry, Audience::All);
            // [counted] Before the fence. Relaxed: that orders it.
            if !before.is_counted() && prim::intact!("counted") {
                self.counted.fetch_add(1, Ordering::Relaxed);
            }
            return None;
        };
        let before = mine.announce(entry, Audience::Bucket);
        let listed = buckets.list(&entry.request, mine.number());
        match listed {
            Some(places) => {
                mine.set_places(places);
                if before.is_counted() {
                    self.uncounted();
                }
            }
            // [bucket-full] As if it had not tried.
            None if prim::intact!("bucket-full") => {
                mine.count();
                if !before.is_counted() {
                    self.counted.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => {}
        }
        listed.map(|_| buckets)
    }

    /// A slot is no longer counted.
    fn uncounted(&self) {
        // [uncount] Release: pairs with [uncount-acquire]. What was held in the slot was released before.
        let release = prim::order!("uncount", Ordering::Release);
        self.counted.fetch_sub(1, release);
    }

    /// Uncounts the slots that are idle.
    #[cold]
    pub(super) fn tidy(&self) {
        self.find(|slot| {
            if slot.uncount() {
                self.uncounted();
            }
            None::<()>
        });
    }

    /// Asks all that are in the way of a request that waits in place to leave, before it waits for the first of them.
    /// So it waits for all at the same time. Kept grants are revoked, and the others are not kept.
    #[cold] // It has to wait.
    fn ask_all(&self, mine: &Slot, entry: &Entry<'_>) {
        self.find(|slot| {
            if !ptr::eq(slot, mine)
                && let Look::Held(state) = slot.look(&entry.request, entry.grant)
            {
                SlotBlocker::new(slot, state).contend();
            }
            None::<()>
        });
    }

    /// What is held in a slot, if it is in the way and stays.
    #[inline]
    fn meet<'a>(
        &self,
        slot: &'a Slot,
        mine: &Slot,
        entry: &Entry<'_>,
        scan: &mut Scan,
    ) -> Option<SlotBlocker<'a>> {
        loop {
            let state = match slot.look(&entry.request, entry.grant) {
                Look::Clear => return None,
                Look::RulesOutGrant => {
                    scan.whole = Whole::RuledOut;
                    return None;
                }
                Look::Changed => continue,
                Look::Held(state) => state,
            };
            let blocker = SlotBlocker::new(slot, state);
            let is_junior = slot.is_junior_to(entry.seniority, mine.number());
            // Of two rivals the senior one stays. It waits until the other one has withdrawn.
            if is_junior && blocker.await_decision(entry.request.mode) {
                continue;
            }
            // A writer in the way may be waiting in place, too. A reader that is undecided has not met this request, so
            // it is about to hold its range.
            let stays = !blocker.is_rival || is_junior && blocker.state.mode() == Mode::Shared;
            let Some(stay) = entry.stays.filter(|_| stays) else {
                return Some(blocker);
            };
            if !scan.has_asked {
                scan.has_asked = true;
                self.ask_all(mine, entry);
            }
            if !Self::outlasts(&blocker, stay, entry.request.mode) {
                return Some(SlotBlocker {
                    outlasts_us: true,
                    ..blocker
                });
            }
        }
    }

    /// Whether what is in the way of a request that waits in place has left in time.
    fn outlasts(blocker: &SlotBlocker<'_>, stay: &Stay<'_>, mode: Mode) -> bool {
        blocker.contend();
        while !stay.spin(|| !blocker.is_in_the_way(mode)) {
            // [stay-bounded] The holder may be waiting for this request.
            if prim::intact!("stay-bounded") {
                return false;
            }
        }
        true
    }

    /// A writer that holds what is in the way of a request, on another node than this thread.
    pub(super) fn far_writer(&self, request: &Request) -> Option<SlotBlocker<'_>> {
        self.find(|slot| {
            let blocker = slot.blocks(request)?;
            let is_writer = blocker.state.mode() == Mode::Exclusive;
            (is_writer && slot.seniority().is_far()).then_some(blocker)
        })
    }
}
