//! What a queue does for those who look for deadlocks: it lists its requests, and refuses one of them.

use super::entry::{Entry, HolderId, RequestId, Stage};
use super::queue::Queue;
use super::{Holder, Refused, SharedQueue, WaitQueue, Waiter};
use crate::deadlock::{
    self, Account, Deadlock, Detection, Idle, Key, NotPolled, Published, Seen, Wait,
};
use crate::observe::{self, Observed, Outcome, Waiting};
use crate::range::inspect::Request;
use crate::range::order::QueueOrder;
use crate::range::raw::Wait as Limit;
use crate::range::shown::{HeldRange, Shown, ShownKeys};
use crate::range::span::Span;
use crate::wait::{Alarm, Wakeups};
use prim::clock::{Duration, Instant};
use prim::sync::Arc;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

type Line = &'static Location<'static>;

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) at: Line,
    /// The thread that waits, if it is not a task's.
    pub(super) thread: Option<u32>,
    /// Whether nothing but its grant, or a cancellation, ends the wait.
    pub(super) is_endless: bool,
}

impl Origin {
    fn waiting(&self, request: &Request, lock: usize, order: &QueueOrder) -> Waiting {
        let Shown(span, keys) = order.shown(request.span);
        Waiting {
            owner: request.owner,
            thread: self.thread,
            lock,
            span,
            keys,
            mode: request.mode,
            place: self.at,
        }
    }
}

/// What is known of a holder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Where it has locked.
    at: Option<Line>,
    /// Its range, if its words are no positions. What they name may be gone before it is asked for.
    keys: Option<ShownKeys>,
}

/// What a queue keeps for those who look.
#[derive(Debug)]
pub(super) struct Watching {
    detection: Option<Detection>,
    /// An address within the lock, as it was when a request went to sleep.
    lock: usize,
    /// Until when the queue is known to those who look.
    listed: Alarm,
    /// What is known of holders.
    known: BTreeMap<HolderId, Known>,
    /// The requests that are refused, and have not found out.
    refused: BTreeMap<RequestId, Deadlock>,
    /// When tasks were woken that have not been polled since.
    woken: BTreeMap<RequestId, Instant>,
}

impl Watching {
    pub(super) const fn new(detection: Option<Detection>) -> Self {
        Self {
            detection,
            lock: 0,
            listed: Alarm::none(),
            known: BTreeMap::new(),
            refused: BTreeMap::new(),
            woken: BTreeMap::new(),
        }
    }

    /// Notes what is known of a holder behind which a request is about to sleep.
    pub(super) fn note(&mut self, holder: HolderId, known: Known) {
        if self.detection.is_some() && known != Known::default() {
            self.known.insert(holder, known);
        }
    }

    pub(super) fn forget(&mut self, holder: HolderId) {
        if self.detection.is_some() {
            self.known.remove(&holder);
        }
    }

    /// A task was woken.
    pub(super) fn woken(&mut self, id: RequestId) {
        if self.detection.is_some() {
            self.woken.insert(id, Instant::now());
        }
    }

    /// A woken task was polled.
    pub(super) fn polled(&mut self, id: RequestId) {
        self.woken.remove(&id);
    }

    /// A request has left the queue: forgets all of it.
    pub(super) fn removed(&mut self, id: RequestId) {
        self.polled(id);
        self.refusal(id);
    }

    /// Takes the refusal of a request, if it was refused.
    pub(super) fn refusal(&mut self, id: RequestId) -> Option<Deadlock> {
        self.refused.remove(&id)
    }
}

impl Queue {
    /// What is to be known of a holder with that range, which lives and has locked there, if anybody looks.
    pub(super) fn known(&self, span: Span, at: Option<Line>) -> Known {
        match self.watching.detection {
            Some(_) => Known {
                at,
                keys: self.order().shown(span).1,
            },
            None => Known::default(),
        }
    }

    /// A request is about to sleep behind a holder, which lives. In a lock over keys that is a node, of which all is
    /// known when the first request sleeps there: the keys are not formatted again.
    pub(super) fn note_holder(&mut self, holder: &Holder) {
        if !self.order().is_by_position() && self.watching.known.contains_key(&holder.id) {
            return;
        }
        let known = self.known(holder.request.span, holder.at);
        self.watching.note(holder.id, known);
    }

    /// What the observer was told of a request, if it was told since then.
    pub(super) fn observed(&self, id: RequestId, since: Option<Instant>) -> Option<Observed> {
        let (since, entry) = (since?, self.places.get(id)?);
        let (origin, lock) = (entry.origin, self.watching.lock);
        let wait = origin.waiting(&entry.request, lock, self.order());
        Some(Observed { wait, since })
    }

    /// Whether those who look have to be told of this queue.
    pub(super) fn is_to_be_watched(&mut self, lock: usize) -> Option<Detection> {
        self.watching.lock = lock;
        let detection = self.watching.detection?;
        if self.places.is_empty() {
            return None;
        }
        let is_new = self.watching.listed.set(Instant::now());
        (is_new || deadlock::is_refused()).then_some(detection)
    }

    /// Whether those who look may know it.
    pub(super) fn is_watched(&self) -> bool {
        self.watching.listed.is_set()
    }

    /// Those who wait, and the tasks that do not act.
    fn look(&self, queue: u64, seen: &mut Seen) {
        for entry in self.places.all() {
            let key = Key::Request(queue, entry.id);
            match self.places.stage(entry.id) {
                Stage::BehindHolder(holder) if entry.origin.is_endless => {
                    seen.waits.push(self.wait(key, entry, holder));
                }
                // The others act, or wait for one who does, or wait for a turn to end, or until their deadline.
                _ => {}
            }
        }
        let now = Instant::now();
        for (&id, &since) in &self.watching.woken {
            let key = Key::Request(queue, id);
            let what = self.not_polled(self.places.of(id), now.saturating_duration_since(since));
            seen.idle.push(Idle { key, since, what });
        }
    }

    fn wait(&self, key: Key, entry: &Entry, holder: HolderId) -> Wait {
        let behind = self.blocker(entry);
        let known = self.watching.known.get(&holder).copied();
        let known = known.unwrap_or_default();
        let Shown(held, held_keys) = self.order().shown_by(behind.span, known.keys);
        let Shown(span, keys) = self.order().shown(entry.request.span);
        Wait {
            key,
            owner: entry.request.owner,
            thread: entry.origin.thread,
            lock: self.watching.lock,
            span,
            keys,
            mode: entry.request.mode,
            at: entry.origin.at,
            behind: vec![(
                behind.owner,
                HeldRange {
                    span: held,
                    keys: held_keys,
                    mode: behind.mode,
                    place: known.at,
                },
            )],
        }
    }

    fn not_polled(&self, entry: &Entry, at_least: Duration) -> NotPolled {
        let Shown(span, keys) = self.order().shown(entry.request.span);
        NotPolled {
            owner: entry.request.owner,
            lock: self.watching.lock,
            span,
            keys,
            mode: entry.request.mode,
            place: entry.origin.at,
            at_least,
        }
    }

    /// Refuses a request, if it still waits like that: it is woken, and finds that out.
    fn refuse(&mut self, id: RequestId, wait: &Wait, deadlock: &Deadlock, wakeups: &mut Wakeups) {
        let Some(entry) = self.places.get(id) else {
            return;
        };
        let Stage::BehindHolder(holder) = self.places.stage(id) else {
            return;
        };
        if self.wait(wait.key, entry, holder) == *wait {
            self.watching.refused.insert(id, deadlock.clone());
            // [refused-wakes]
            if prim::intact!("refused-wakes") {
                self.wake(id, wakeups);
            }
        }
    }

    fn describe(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        writeln!(text, "lock {:#x}", self.watching.lock)?;
        let shown = |request: Request| request.shown(&self.order().shown(request.span).to_string());
        for entry in self.places.all() {
            let (request, at) = (entry.request, entry.origin.at);
            write!(text, "  {}", shown(request))?;
            if let Some(thread) = entry
                .origin
                .thread
                .filter(|_| request.owner.thread().is_none())
            {
                write!(text, " (thread {thread})")?;
            }
            match self.places.stage(entry.id) {
                Stage::Awake => write!(text, ", awake")?,
                Stage::Idle => write!(text, ", woken and not polled")?,
                Stage::BehindHolder(holder) => {
                    let known = self.watching.known.get(&holder).copied();
                    let (known, blocker) = (known.unwrap_or_default(), self.blocker(entry));
                    let range = self.order().shown_by(blocker.span, known.keys).to_string();
                    write!(text, ", behind the holder {}", blocker.shown(&range))?;
                    if let Some(at) = known.at {
                        write!(text, ", locked at {at}")?;
                    }
                }
                Stage::BehindRequest(other) => {
                    write!(text, ", behind {}", shown(self.places.of(other).request))?;
                }
                Stage::GivingWay(other, _) => {
                    let other = shown(self.places.of(other).request);
                    write!(text, ", gives way to {other}")?;
                }
            }
            writeln!(text, "; asked for at {at}")?;
        }
        Ok(())
    }
}

impl Waiter<'_> {
    /// Where the request comes from.
    pub(super) fn origin(&self) -> Origin {
        Origin {
            at: self.at,
            thread: (!self.sleeper.is_task()).then(|| self.record.thread()),
            is_endless: self.wait == Limit::Forever,
        }
    }

    /// Says what the thread holds in locks that do not know it, where deadlocks are looked for.
    pub(super) fn publish(&self) -> Option<Published> {
        self.queue.detection()?;
        let waits = self.wish;
        let holds = self.record.accounts();
        let thread = self.record.thread();
        let account = Account {
            number: 0,
            thread,
            waits,
            holds,
        };
        (account.waits.is_some() || !account.holds.is_empty()).then(|| deadlock::publish(account))
    }

    /// Whether the request was refused while it slept, because of a deadlock.
    pub(super) fn refused(&self) -> Result<(), Refused> {
        let (Some(_), Some(_), Some(id)) = (self.owner, self.queue.detection(), self.pursuit.id)
        else {
            return Ok(());
        };
        let refusal = self.queue.with_queue(|queue, _| queue.watching.refusal(id));
        refusal.map_or(Ok(()), |deadlock| {
            Err(Refused::Deadlock(Box::new(deadlock)))
        })
    }
}

impl Waiter<'_> {
    /// Tells the observer that the request waits, once.
    pub(super) fn observe(&mut self) {
        if self.pursuit.observed.is_none() && observe::is_set() {
            self.pursuit.observed = Some(Instant::now());
            let wait = self.waiting();
            observe::tell(|observer| observer.wait_begins(&wait));
        }
    }

    /// What the observer was told.
    pub(super) fn observed(&self) -> Option<Observed> {
        let since = self.pursuit.observed?;
        let wait = self.waiting();
        Some(Observed { wait, since })
    }

    fn waiting(&self) -> Waiting {
        let lock = std::ptr::from_ref(self.queue).addr();
        self.origin()
            .waiting(&self.request, lock, &self.queue.order())
    }
}

/// How a wait has ended.
pub(super) fn outcome_of<T>(outcome: &Result<T, Refused>) -> Outcome {
    match outcome {
        Ok(_) => Outcome::Granted,
        Err(_) => Outcome::Refused,
    }
}

impl WaitQueue {
    /// How its ranges compare, and are shown.
    fn order(&self) -> QueueOrder {
        let order = |queue: &Arc<SharedQueue>| queue.queue.lock().order().clone();
        self.queue.get().map_or(QueueOrder::Positions, order)
    }

    /// How the lock looks for deadlocks, if it does.
    pub(super) fn detection(&self) -> Option<Detection> {
        self.deadlocks.detection()
    }
}

impl deadlock::Watched for SharedQueue {
    fn number(&self) -> u64 {
        self.number
    }

    fn detection(&self) -> Detection {
        let told = self.queue.lock().watching.detection;
        told.expect("a queue that is watched detects")
    }

    fn look(self: Arc<Self>, seen: &mut Seen) -> bool {
        let mut queue = self.queue.lock();
        queue.look(self.number, seen);
        let remains = !queue.places.is_empty();
        if !remains {
            queue.watching.listed = Alarm::none();
            deadlock::forget(self.number);
        }
        remains
    }

    fn refuse(self: Arc<Self>, request: u64, wait: &Wait, deadlock: &Deadlock) {
        let mut wakeups = Wakeups::default();
        let mut queue = self.queue.lock();
        queue.refuse(request, wait, deadlock, &mut wakeups);
        queue.watch(&mut wakeups);
        self.note_idle(&queue);
        drop(queue);
        self.deliver(wakeups);
    }

    fn describe(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        self.queue.lock().describe(text)
    }
}
