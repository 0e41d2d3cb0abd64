//! How a request is announced on a board, and how it looks at the others. The edges cited are the parent module's.

use super::blocker::SlotBlocker;
use super::board::{Board, Counted};
use super::buckets::{Buckets, Parts};
use super::crowd::met_in_vain;
use super::listed::Listing;
use super::policy::Plan;
use super::slot::{Look, Slot};
use super::state::{Audience, Seniority, State, is_under_way};
use crate::range::inspect::Request;
use crate::range::raw::Mode;
use crate::range::span::Span;
use crate::wait::Stay;
use prim::atomic::{Ordering, fence_after_rmw};
use prim::{clock, thread};
use std::panic::Location;
use std::ptr;

/// A request to be announced.
#[derive(Clone, Copy)] // By value it stays in registers on the short paths.
pub(super) struct Entry<'a> {
    pub(super) request: Request,
    /// What the thread may take again later, if it keeps it.
    pub(super) grant: Span,
    pub(super) seniority: Seniority,
    /// If the request is to wait in place while others are in its way, for how long.
    pub(super) in_place: Option<&'a Stay<'a>>,
    pub(super) at: &'static Location<'static>,
}

impl<'a> Entry<'a> {
    /// The entry of a request that tries for the first time.
    #[inline]
    pub(super) fn newcomer(request: Request, at: &'static Location<'static>) -> Self {
        Self {
            request,
            grant: request.span,
            seniority: Seniority::NEWCOMER,
            in_place: None,
            at,
        }
    }
}

/// Whether a request that was granted has all of the grant that it was announced with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeGrant {
    Allowed,
    RuledOut,
}

/// How a scan ends before the last slot: the request is to withdraw, or it has waited for all that were in its way.
type End<'a> = Result<(), SlotBlocker<'a>>;

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

    /// The scan of a request that is to be listed. [outwait-in-order] It may look at few slots, and not in the order of
    /// their numbers, so it never waits for all holders at a time.
    fn of_buckets() -> Self {
        Self {
            has_asked: prim::intact!("outwait-in-order"),
            ..Self::NEW
        }
    }

    /// What the scan has come to, after the last slot or where it ended before.
    fn outcome<'a>(&self, end: Option<End<'a>>) -> Result<WholeGrant, SlotBlocker<'a>> {
        end.unwrap_or(Ok(())).map(|()| self.whole)
    }
}

impl Board {
    /// What is announced in the way of a request and would make it withdraw. The request itself is not announced
    /// meanwhile, so it disturbs nobody. One that is to be listed looks in its buckets alone. If nothing would, and the
    /// request is to wait in place for a writer of its node: when the turn of that node began.
    ///
    /// What a writer has written is in the caches of its node. So the next writer should be one of the same node, and
    /// those of other nodes do not wait in place while the turn of that node is under way.
    pub(super) fn foresee<'a>(
        &'a self,
        listing: Option<Listing<'_>>,
        mine: &Slot,
        entry: &Entry<'_>,
    ) -> Result<Option<u64>, SlotBlocker<'a>> {
        let first = |stops: &mut dyn FnMut(&SlotBlocker<'a>) -> bool| {
            let mut stops = |slot: &'a Slot| {
                let met = slot.blocks(&entry.request)?;
                (!ptr::eq(slot, mine) && stops(&met)).then_some(met)
            };
            let Some(Listing { buckets, .. }) = listing else {
                return self.find(stops);
            };
            let parts = buckets.parts(&entry.request, mine.number());
            buckets.find(&parts, |number| self.slot(number).and_then(&mut stops))
        };
        if entry.in_place.is_none() {
            let senior = first(&mut |met| !met.slot.is_junior_to(entry.seniority, mine.number()));
            return senior.map_or(Ok(None), Err);
        }
        // One writer waits in place, and it is the next. A newcomer does not wait.
        let is_next = |met: &SlotBlocker<'_>| {
            met.state.mode() == Mode::Exclusive && met.slot.seniority().has_waited()
        };
        if listing.is_some() {
            return first(&mut |met| is_next(met)).map_or(Ok(None), Err);
        }
        let (mut has_reader, mut own, mut far) = (false, None, None);
        let next = first(&mut |met| {
            has_reader |= met.state.mode() == Mode::Shared;
            let seniority = met.slot.seniority();
            match seniority.turn() {
                Some(turn) if seniority.is_on(thread::node()) => own = Some(turn),
                Some(turn) if is_under_way(turn, clock::nanoseconds()) => far = Some(*met),
                _ => {}
            }
            is_next(met)
        });
        // Many writers come to wait for readers at the same time. Each one that is announced in vain turns readers away
        // that could enter, so it looks again whether another one waits.
        let again = || has_reader.then(|| first(&mut |met| is_next(met))).flatten();
        next.or(far).or_else(again).map_or(Ok(own), Err)
    }

    /// Announces a request in a slot whose owner has made the state `before` last, and makes sure that no other
    /// announcement is in its way. If one is, the request is to withdraw.
    #[inline(always)] // Most of a newcomer's entry is constant.
    pub(super) fn enter<'a>(
        &'a self,
        mine: &'a Slot,
        before: State,
        entry: &Entry<'_>,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let early = (!prim::intact!("registry")).then(|| self.len());
        let before = mine.announce(before, entry, Audience::All);
        // [counted] Before the fence. Relaxed: that orders it.
        if !before.is_counted() && prim::intact!("counted") {
            self.add_to_count(mine);
        }
        Self::handshake();
        // [registry] How many there are is loaded after the fence.
        let len = early.unwrap_or_else(|| self.len());
        let mut scan = Scan::NEW;
        if entry.grant != entry.request.span && !self.annex_allows_more() {
            scan.whole = WholeGrant::RuledOut;
        }
        let few = len.min(Self::FEW);
        let end = self.find_in(0, few, &mut |slot| self.pass(slot, mine, entry, &mut scan));
        if end.is_none() && len > few {
            return self.look_from(1, len, mine, *entry, scan);
        }
        scan.outcome(end)
    }

    /// Announces a request, as [`enter`](Self::enter) does, whose grant the thread plans to keep.
    #[inline(never)] // So that one that is not kept is announced without it.
    pub(super) fn enter_to_keep<'a>(
        &'a self,
        mine: &'a Slot,
        before: State,
        mut entry: Entry<'_>,
        plan: Plan,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        entry.grant = plan.grant(entry.request.span);
        self.enter(mine, before, &entry).inspect(|&whole| {
            mine.policy()
                .granted(plan, whole, mine.noted_state().number())
        })
    }

    /// Announces a narrow request, as [`enter`](Self::enter) does, which is to be listed in buckets. Its grant is not
    /// larger and not kept.
    pub(super) fn enter_buckets<'a>(
        &'a self,
        listing: Listing<'_>,
        mine: &'a Slot,
        before: State,
        entry: Entry<'_>,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let buckets = listing.buckets;
        let parts = buckets.parts(&entry.request, mine.number());
        let is_listed = self.list(buckets, &parts, mine, before, &entry);
        Self::handshake();
        if !is_listed {
            self.note_congestion(listing, met_in_vain(self.len()));
            let scan = Scan::of_buckets();
            // [registry] As before.
            return self.look_from(0, self.len(), mine, entry, scan);
        }
        // [uncount-acquire] Acquire: pairs with [uncount], for what was held in slots that are no longer counted.
        let acquire = prim::order!("uncount-acquire", Ordering::Acquire);
        let counted = Counted(self.counted.load(acquire));
        // Most meet nobody. [counted-look] [bucket-look]
        let neighbours = buckets.neighbours(&parts);
        if neighbours.others != 0 {
            self.note_congestion(listing, neighbours.others);
        }
        if counted.is_none() && !neighbours.is_in_the_way {
            return Ok(WholeGrant::Allowed);
        }
        let meeting = neighbours.is_in_the_way.then_some(parts);
        self.look_listed(listing, meeting, mine, entry, counted)
    }

    /// Looks at the slots that concern a listed request, which is not alone: with `meeting`, at those in its buckets.
    #[inline(never)] // So that one that is alone is short.
    fn look_listed<'a>(
        &'a self,
        listing: Listing<'_>,
        meeting: Option<Parts>,
        mine: &Slot,
        entry: Entry<'_>,
        counted: Counted,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let mut scan = Scan::of_buckets();
        let mut meet = |number| {
            let slot = self.slot(number)?;
            self.meet(slot, slot.see(), mine, entry, &mut scan)
        };
        // [bucket-look]
        let look = |number| prim::intact!("bucket-look").then(|| meet(number))?;
        let end = meeting.and_then(|parts| listing.buckets.find(&parts, look));
        // [counted-look] What is not listed is counted.
        if end.is_some() || counted.is_none() || !prim::intact!("counted-look") {
            return scan.outcome(end);
        }
        if let Some(only) = counted.only() {
            // It may be the request's own, while another thread uncounts it.
            let other = Some(only).filter(|&only| only != mine.number());
            let end = other.and_then(meet);
            return scan.outcome(end);
        }
        listing.stop_if_resting();
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
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let mut pass = |slot| self.pass(slot, mine, &entry, &mut scan);
        let end = self.find_from(chunk, len, &mut pass);
        scan.outcome(end)
    }

    /// Looks at a slot. The scan may end there.
    #[inline]
    fn pass<'a>(
        &'a self,
        slot: &'a Slot,
        mine: &Slot,
        entry: &Entry<'_>,
        scan: &mut Scan,
    ) -> Option<End<'a>> {
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
        // [bucket-full]
        if prim::intact!("bucket-full") {
            mine.set_counted();
            if !before.is_counted() {
                self.add_to_count(mine);
            }
        }
    }

    /// A slot is counted.
    #[inline]
    fn add_to_count(&self, slot: &Slot) {
        // Relaxed: the fence of the handshake follows.
        self.counted
            .fetch_add(Counted::of(slot).0, Ordering::Relaxed);
    }

    /// It is no longer counted.
    fn take_off_count(&self, slot: &Slot) {
        // [uncount] Release: pairs with [uncount-acquire]. What was held in the slot was released before.
        let release = prim::order!("uncount", Ordering::Release);
        self.counted.fetch_sub(Counted::of(slot).0, release);
    }

    /// Uncounts the slots that are idle.
    #[cold]
    pub(super) fn tidy(&self) {
        self.find(|slot| {
            if slot.clear_counted_if_idle() {
                self.take_off_count(slot);
            }
            None::<()>
        });
    }

    /// Waits for all that are in the way of a request, in a slot that its scan has come to or in one after that. Before
    /// it waits for the first, it asks all to leave, so it waits for all at the same time: kept grants are revoked, and
    /// the others are not kept.
    ///
    /// It meets its rivals before it waits, too, and withdraws if one is senior. So if several writers have come to
    /// wait for a holder, one of them is left when the holder leaves.
    ///
    /// Where nothing is in the way then, it does not look again: whoever announces a request there later meets this
    /// one. So when the last one has left, it has its range without a look at what newcomers have written meanwhile.
    #[cold] // It has to wait.
    fn outwait_all<'a>(
        &'a self,
        first: &Slot,
        mine: &Slot,
        entry: &Entry<'_>,
        scan: &mut Scan,
    ) -> End<'a> {
        // The slots to look at, by the last digits of their numbers. A slot more is looked at in vain.
        let (mut rivals, mut holders) = (0_u64, 0_u64);
        let digits = |number: u32| 1_u64 << (number % u64::BITS);
        let senior = self.find(|slot| {
            if ptr::eq(slot, mine) {
                return None;
            }
            let mut noted = &mut holders;
            let look = slot.look(slot.see(), &entry.request, entry.grant);
            if let Look::Held(state) = look {
                let blocker = SlotBlocker::new(slot, state);
                if !blocker.is_rival {
                    blocker.contend();
                } else if slot.is_junior_to(entry.seniority, mine.number()) {
                    noted = &mut rivals;
                } else {
                    return Some(blocker);
                }
            }
            // [outwait-in-order] The scan has passed the slots before the first.
            let is_to_come = slot.number() >= first.number();
            if is_to_come && !matches!(look, Look::Clear) && prim::intact!("outwait-noted") {
                // [outwait-noted] Also what has changed meanwhile.
                *noted |= digits(slot.number());
            }
            None
        });
        if let Some(senior) = senior {
            return Err(senior);
        }
        // Rivals first, which leave soon: so when the last holder has left, no other slot is left to look at.
        let noted =
            |digit: u64| (0..self.len() as u32).filter(move |&number| digit & digits(number) != 0);
        [rivals, holders & !rivals]
            .into_iter()
            .flat_map(noted)
            .filter_map(|number| self.slot(number))
            .filter(|slot| !ptr::eq(*slot, mine))
            .find_map(|slot| self.meet(slot, slot.see(), mine, *entry, scan))
            .unwrap_or(Ok(()))
    }

    /// Looks, as `pass` does, at another slot than the request's own, which was seen in that state.
    #[inline(never)] // So that a scan that meets nobody is short.
    fn meet<'a>(
        &'a self,
        slot: &'a Slot,
        mut seen: State,
        mine: &Slot,
        entry: Entry<'_>,
        scan: &mut Scan,
    ) -> Option<End<'a>> {
        loop {
            match slot.look(seen, &entry.request, entry.grant) {
                Look::Clear => return None,
                Look::RulesOutGrant => {
                    scan.whole = WholeGrant::RuledOut;
                    return None;
                }
                Look::Changed => {}
                Look::Held(state) => {
                    let blocker = SlotBlocker::new(slot, state);
                    let end = self.outwait(blocker, mine, &entry, scan);
                    if end.is_some() {
                        return end;
                    }
                }
            }
            seen = slot.see();
        }
    }

    /// Waits for what is in the way of a request, if the request stays meanwhile. `None`: it has left.
    fn outwait<'a>(
        &'a self,
        blocker: SlotBlocker<'a>,
        mine: &Slot,
        entry: &Entry<'_>,
        scan: &mut Scan,
    ) -> Option<End<'a>> {
        let is_junior = blocker.slot.is_junior_to(entry.seniority, mine.number());
        // Of two rivals the senior one stays. It waits until the other one has withdrawn.
        if is_junior && blocker.await_decision(entry.request.mode) {
            return None;
        }
        // A writer in the way may be waiting in place, too. A reader that is undecided has not met this request, so
        // it is about to hold its range.
        let stays = !blocker.is_rival || is_junior && blocker.state.mode() == Mode::Shared;
        let Some(stay) = entry.in_place.filter(|_| stays) else {
            return Some(Err(blocker));
        };
        if !scan.has_asked {
            scan.has_asked = true;
            return Some(self.outwait_all(blocker.slot, mine, entry, scan));
        }
        let has_left = Self::outlasts(&blocker, stay, entry.request.mode);
        (!has_left).then_some(Err(SlotBlocker {
            outlasts_us: true,
            ..blocker
        }))
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
}
