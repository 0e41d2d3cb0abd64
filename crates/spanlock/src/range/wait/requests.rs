//! The requests in a queue, and where to find them: by name, by what they sleep behind, by their wakers, and those that
//! are awake, give way, have a reservation or are watched by the timer.
//!
//! Each step costs a search, whatever the number of requests that have nothing to do with it.

use super::awake::Awake;
use super::entry::{Entry, RequestId, Sleeper, Stage};
use super::lines::{Behind, LineId, Lines};
use crate::range::inspect::Request;
use crate::range::order::QueueOrder;
use crate::wait::WakerId;
use prim::clock::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug)]
pub(super) struct QueuedRequests {
    pub(super) order: QueueOrder,
    entries: BTreeMap<RequestId, Entry>,
    pub(super) lines: Lines,
    /// To whom a request gives way, and who does.
    ways: BTreeSet<(RequestId, RequestId)>,
    awake: Awake,
    reserved: BTreeSet<RequestId>,
    asks: BTreeSet<RequestId>,
    /// Owners that share a range, and want to have some of it alone.
    upgrades: BTreeSet<RequestId>,
    /// Tasks that sleep.
    tasks: BTreeSet<(WakerId, RequestId)>,
    alarms: BTreeSet<(Instant, RequestId)>,
}

impl QueuedRequests {
    pub(super) const fn new(order: QueueOrder) -> Self {
        Self {
            order,
            entries: BTreeMap::new(),
            lines: Lines::new(),
            ways: BTreeSet::new(),
            awake: Awake::new(),
            reserved: BTreeSet::new(),
            asks: BTreeSet::new(),
            upgrades: BTreeSet::new(),
            tasks: BTreeSet::new(),
            alarms: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, id: RequestId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// A request in the queue.
    pub(super) fn of(&self, id: RequestId) -> &Entry {
        &self.entries[&id]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them, first come first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    fn named<'a>(
        &'a self,
        names: impl Iterator<Item = &'a RequestId> + 'a,
    ) -> impl Iterator<Item = &'a Entry> + 'a {
        names.map(|id| self.of(*id))
    }

    /// Those with a reservation, first come first.
    pub(super) fn reserved(&self) -> impl Iterator<Item = &Entry> {
        self.named(self.reserved.iter())
    }

    pub(super) fn reservations(&self) -> usize {
        self.reserved.len()
    }

    /// Those that ask for a reservation.
    pub(super) fn asking(&self) -> Vec<RequestId> {
        self.asks.iter().copied().collect()
    }

    pub(super) fn upgrades(&self) -> impl Iterator<Item = &Entry> {
        self.named(self.upgrades.iter())
    }

    /// Those that give way to a request.
    pub(super) fn giving_way_to(&self, first: RequestId) -> Vec<RequestId> {
        let ways = self.ways.range((first, 0)..=(first, RequestId::MAX));
        ways.map(|&(_, id)| id).collect()
    }

    /// Those in a line that are requests of the task with that waker.
    pub(super) fn of_task(&self, waker: WakerId, line: LineId) -> Vec<RequestId> {
        let tasks = self.tasks.range((waker, 0)..=(waker, RequestId::MAX));
        let tasks = tasks.map(|&(_, id)| id);
        tasks.filter(|&id| self.of(id).line == Some(line)).collect()
    }

    /// The requests that are due by that time.
    pub(super) fn due(&self, now: Instant) -> Vec<RequestId> {
        let due = self.alarms.iter().take_while(|&&(when, _)| when <= now);
        due.map(|&(_, id)| id).collect()
    }

    pub(super) fn first_alarm(&self) -> Option<Instant> {
        self.alarms.first().map(|&(when, _)| when)
    }

    /// The first awake request that conflicts with that one, and is not of the same task.
    pub(super) fn conflicting_with(&self, asleep: &Entry) -> Option<RequestId> {
        self.awake
            .conflicting_with(&self.order, &self.entries, asleep)
    }

    /// Since when no thread that was woken has gone on; `None`: none is to.
    pub(super) fn idle_since(&self) -> Option<u64> {
        self.awake.idle_since()
    }

    /// Where a request stands.
    pub(super) fn stage(&self, id: RequestId) -> Stage {
        let entry = self.of(id);
        match entry.line.map(|line| self.lines.is_behind(line)) {
            None => entry.stage,
            Some(Behind::Holder(holder)) => Stage::BehindHolder(holder),
            Some(Behind::Request(other)) => Stage::BehindRequest(other),
        }
    }

    /// Whether another one is ahead in its line.
    pub(super) fn is_in_line(&self, id: RequestId) -> bool {
        let line = self.of(id).line;
        line.is_some_and(|line| self.lines.head(line) != Some(id))
    }

    /// Changes what does not say where a request stands.
    pub(super) fn change(&mut self, id: RequestId, change: impl FnOnce(&mut Entry)) {
        let entry = self.entries.get_mut(&id).expect("it is in the queue");
        let watched = entry.alarm();
        change(entry);
        keep(&mut self.reserved, id, entry.reserved.is_some());
        keep(&mut self.asks, id, entry.asks);
        let now = entry.alarm();
        if watched != now {
            watched.map(|when| self.alarms.remove(&(when, id)));
            now.map(|when| self.alarms.insert((when, id)));
        }
    }

    /// Enters a request, or what it is now, instead of what it was.
    pub(super) fn put(&mut self, entry: Entry) {
        let id = entry.id;
        self.take(id);
        let stage = entry.stage;
        keep(&mut self.reserved, id, entry.reserved.is_some());
        keep(&mut self.asks, id, entry.asks);
        keep(&mut self.upgrades, id, entry.shares.is_some());
        self.entries.insert(id, entry);
        self.settle(id, stage);
    }

    /// Takes a request out.
    pub(super) fn take(&mut self, id: RequestId) -> Option<Entry> {
        self.entries.get(&id)?;
        self.unsettle(id);
        for set in [&mut self.reserved, &mut self.asks, &mut self.upgrades] {
            set.remove(&id);
        }
        self.entries.remove(&id)
    }

    /// Moves a request. Those behind it in a line stay there.
    pub(super) fn move_to(&mut self, id: RequestId, stage: Stage, behind: Request) {
        self.unsettle(id);
        self.entries
            .get_mut(&id)
            .expect("it is in the queue")
            .behind = behind;
        self.settle(id, stage);
    }

    /// Moves a whole line.
    pub(super) fn move_line(&mut self, line: LineId, behind: Behind, blocker: Request) {
        let merged = self.lines.put_behind(line, behind, blocker);
        let (movers, to): (VecDeque<_>, _) = merged.unwrap_or_default();
        for id in movers {
            self.entries.get_mut(&id).expect("it is in the queue").line = Some(to);
        }
    }

    fn settle(&mut self, id: RequestId, stage: Stage) {
        let entry = self.entries.get_mut(&id).expect("it is in the queue");
        entry.stage = stage;
        entry.line = None;
        match stage {
            Stage::Awake => self.awake.add(&self.order, entry),
            Stage::Idle => {}
            Stage::BehindHolder(holder) => {
                entry.line = Some(self.lines.join(&self.order, Behind::Holder(holder), entry));
            }
            Stage::BehindRequest(other) => {
                entry.line = Some(self.lines.join(&self.order, Behind::Request(other), entry));
            }
            Stage::GivingWay(first, _) => _ = self.ways.insert((first, id)),
        }
        if let Sleeper::Task { waker, .. } = entry.sleeper
            && stage.is_asleep()
        {
            self.tasks.insert((waker, id));
        }
        if let Some(when) = entry.alarm() {
            self.alarms.insert((when, id));
        }
    }

    fn unsettle(&mut self, id: RequestId) {
        let entry = self.entries.get_mut(&id).expect("it is in the queue");
        if let Some(when) = entry.alarm() {
            self.alarms.remove(&(when, id));
        }
        if let Sleeper::Task { waker, .. } = entry.sleeper {
            self.tasks.remove(&(waker, id));
        }
        match (entry.line.take(), entry.stage) {
            (Some(line), _) => self.lines.leave(line, id),
            (None, Stage::Awake) => {
                entry.turn_ends = None;
                self.awake.remove(entry);
            }
            (None, Stage::GivingWay(first, _)) => _ = self.ways.remove(&(first, id)),
            (None, Stage::Idle | Stage::BehindHolder(_) | Stage::BehindRequest(_)) => {}
        }
    }

    /// The task that sleeps has another waker.
    pub(super) fn change_waker(&mut self, id: RequestId, fresh: WakerId) {
        let entry = self.entries.get_mut(&id).expect("it is in the queue");
        if let Sleeper::Task { waker, .. } = &mut entry.sleeper {
            self.tasks.remove(&(*waker, id));
            *waker = fresh;
            self.tasks.insert((fresh, id));
        }
    }
}

/// Whether a name is in a set.
fn keep(set: &mut BTreeSet<RequestId>, id: RequestId, is_member: bool) {
    if is_member {
        set.insert(id);
    } else {
        set.remove(&id);
    }
}
