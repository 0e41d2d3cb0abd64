//! How a request is announced on a board, and how it looks at the others. The edges cited are the parent module's.

use super::blocker::SlotBlocker;
use super::board::Board;
use super::buckets::{Buckets, Parts};
use super::policy::Plan;
use super::slot::{Look, Slot};
use super::state::{Audience, Seniority, State};
use crate::range::inspect::Request;
use crate::range::raw::Mode;
use crate::range::span::Span;
use crate::wait::Stay;
use prim::atomic::{Ordering, fence_after_rmw};
use std::panic::Location;
use std::ptr;

/// A request to be announced.
#[derive(Clone, Copy)] // Only what is done rarely takes it from memory.
pub(super) struct Entry<'a> {
    pub(super) request: Request,
    /// What the thread may take again later, if it keeps it.
    pub(super) grant: Span,
    pub(super) seniority: Seniority,
    /// If the request is to wait in place while others are in its way, for how long.
    pub(super) stays: Option<&'a Stay<'a>>,
    pub(super) at: &'static Location<'static>,
}

impl<'a> Entry<'a> {
    /// That of a request which tries for the first time.
    #[inline]
    pub(super) fn newcomer(request: Request, at: &'static Location<'static>) -> Self {
        Self {
            request,
            grant: request.span,
            seniority: Seniority::NEWCOMER,
            stays: None,
            at,
        }
    }
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
    #[inline(always)] // Most of a newcomer's entry is constant.
    pub(super) fn enter<'a>(
        &'a self,
        mine: &'a Slot,
        entry: &Entry<'_>,
    ) -> Result<Whole, SlotBlocker<'a>> {
        let early = (!prim::intact!("registry")).then(|| self.len());
        let before = mine.announce(entry, Audience::All);
        // [counted] Before the fence. Relaxed: that orders it.
        if !before.is_counted() && prim::intact!("counted") {
            self.counted.fetch_add(1, Ordering::Relaxed);
        }
        Self::handshake();
        // [registry] How many there are is loaded after the fence.
        let len = early.unwrap_or_else(|| self.len());
        let mut scan = Scan {
            whole: Whole::Granted,
            has_asked: false,
        };
        let few = len.min(Self::FEW);
        let blocker = self.find_in(0, few, &mut |slot| self.pass(slot, mine, entry, &mut scan));
        match blocker {
            Some(blocker) => Err(blocker),
            None if len > few => self.look_from(1, len, mine, *entry, scan),
            None => Ok(scan.whole),
        }
    }

    /// The same for a request whose grant the thread plans to keep.
    #[inline(never)] // So that one that is not kept is announced without it.
    pub(super) fn enter_to_keep<'a>(
        &'a self,
        mine: &'a Slot,
        mut entry: Entry<'_>,
        plan: Plan,
    ) -> Result<Whole, SlotBlocker<'a>> {
        entry.grant = plan.grant(entry.request.span);
        self.enter(mine, &entry)
            .inspect(|&whole| mine.policy().granted(plan, whole, mine.made().number()))
    }

    /// The same for a narrow request, which is to be listed in buckets. Its grant is not larger and not kept.
    pub(super) fn enter_buckets<'a>(
        &'a self,
        buckets: &Buckets,
        mine: &'a Slot,
        entry: Entry<'_>,
    ) -> Result<Whole, SlotBlocker<'a>> {
        let parts = buckets.parts(&entry.request, mine.number());
        let is_listed = self.list(buckets, &parts, mine, &entry);
        Self::handshake();
        let mut scan = Scan {
            whole: Whole::Granted,
            // A listed request looks at few slots.
            has_asked: true,
        };
        if is_listed {
            // [uncount-acquire] Acquire: pairs with [uncount], for what was held in slots that are no longer counted.
            let acquire = prim::order!("uncount-acquire", Ordering::Acquire);
            // [counted-look] What is not listed is counted.
            let everyone_listed = self.counted.load(acquire) == 0 || !prim::intact!("counted-look");
            let blocker = buckets.find(&parts, |number| {
                // [bucket-look]
                let slot = self.slot(number).filter(|_| prim::intact!("bucket-look"))?;
                self.meet(slot, slot.see(), mine, entry, &mut scan)
            });
            if blocker.is_some() || everyone_listed {
                return blocker.map_or(Ok(scan.whole), Err);
            }
        }
        // [registry] As before.
        self.look_from(0, self.len(), mine, entry, scan)
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
    ) -> Result<Whole, SlotBlocker<'a>> {
        let mut pass = |slot| self.pass(slot, mine, &entry, &mut scan);
        let blocker = self.find_from(chunk, len, &mut pass);
        blocker.map_or(Ok(scan.whole), Err)
    }

    /// What is held in a slot, if it is in the way and stays.
    #[inline]
    fn pass<'a>(
        &self,
        slot: &'a Slot,
        mine: &Slot,
        entry: &Entry<'_>,
        scan: &mut Scan,
    ) -> Option<SlotBlocker<'a>> {
        if ptr::eq(slot, mine) {
            return None;
        }
        let state = slot.see();
        if !state.concerns(entry.request.mode) {
            return None;
        }
        self.meet(slot, state, mine, *entry, scan)
    }

    /// Announces a narrow request in a slot, for the fence that follows: either it is listed in each of its buckets,
    /// or its slot is counted. The last step is a read-modify-write. Returns whether it is listed.
    #[inline]
    fn list(&self, buckets: &Buckets, parts: &Parts, mine: &Slot, entry: &Entry<'_>) -> bool {
        let before = mine.announce(entry, Audience::Bucket);
        let listed = buckets.list(parts);
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
        listed.is_some()
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
                && let Look::Held(state) = slot.look(slot.see(), &entry.request, entry.grant)
            {
                SlotBlocker::new(slot, state).contend();
            }
            None::<()>
        });
    }

    /// The same for a slot that was seen in that state.
    #[inline(never)] // So that a scan that meets nobody is short.
    fn meet<'a>(
        &self,
        slot: &'a Slot,
        mut seen: State,
        mine: &Slot,
        entry: Entry<'_>,
        scan: &mut Scan,
    ) -> Option<SlotBlocker<'a>> {
        loop {
            match slot.look(seen, &entry.request, entry.grant) {
                Look::Clear => return None,
                Look::RulesOutGrant => {
                    scan.whole = Whole::RuledOut;
                    return None;
                }
                Look::Changed => {}
                Look::Held(state) => {
                    let blocker = SlotBlocker::new(slot, state);
                    let stays = self.outwait(blocker, mine, &entry, scan);
                    if stays.is_some() {
                        return stays;
                    }
                }
            }
            seen = slot.see();
        }
    }

    /// Waits for what is in the way of a request, if the request stays meanwhile. Returns it, unless it has left.
    fn outwait<'a>(
        &self,
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
        let Some(stay) = entry.stays.filter(|_| stays) else {
            return Some(blocker);
        };
        if !scan.has_asked {
            scan.has_asked = true;
            self.ask_all(mine, entry);
        }
        let has_left = Self::outlasts(&blocker, stay, entry.request.mode);
        (!has_left).then_some(SlotBlocker {
            outlasts_us: true,
            ..blocker
        })
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
