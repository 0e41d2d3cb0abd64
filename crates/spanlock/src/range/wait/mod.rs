//! How a request waits. All range locks of this library share this code.
//!
//! A request that is not granted at once becomes a *waiter* and takes these steps (`machine.rs`):
//!
//! ```text
//!            +------------------------------ retry <------------------------------+
//!            v                                                                    |
//!        admission -----> attempt -----> blocked -----> spin -----> register ---> sleep ---> woken
//!          |   ^             |              |             |            |
//!   give   |   | turn        | granted      | may not     | blocker    | blocker has left by now
//!    way   v   | ends        v              v wait        v left       v
//!          sleep          (holder)      (gives up)      retry        retry
//! ```
//!
//! - *Admission*: an earlier request that others could overtake has a *reservation*. The waiter gives way to it, for a
//!   limited time (`reservation.rs`).
//! - *Attempt*: the lock kind tries to get the whole range. It succeeds, or it names one *blocker* and leaves nothing
//!   behind that could block others.
//! - *Spin*: not while threads that were woken wait for processors: a blocked request is in their way, and sleeps.
//! - *Register*: under the queue's mutex, the waiter marks the blocker and enters the queue. Marking and checking the
//!   blocker are one atomic operation, and so are leaving and checking for the mark. Either the blocker leaves first,
//!   and the waiter sees that and does not sleep; or the mark is first, and the blocker wakes the waiter when it
//!   leaves. So no wake-up is lost.
//! - *Sleep*: on the thread's own parker, until a signal, the end of the turn or the deadline (`driver.rs`). A task
//!   does not spin, and returns instead of sleeping (`poll.rs`).
//!
//! | file | content |
//! |---|---|
//! | `acquisition.rs` | what a lock kind does for the steps |
//! | `awake.rs` | the requests in the queue that are awake |
//! | `driver.rs` | a thread takes the steps, and parks |
//! | `entry.rs` | where a request in the queue stands |
//! | `lines.rs` | requests that want the same and sleep behind the same |
//! | `requests.rs` | the requests in the queue, and where to find them |
//! | `machine.rs` | the steps |
//! | `poll.rs` | a task takes some of them in each poll |
//! | `pursued.rs` | what becomes of a request whose code panics |
//! | `queue.rs` | which requests sleep, and which of them a departure wakes |
//! | `reservation.rs` | patience, reservations and their turns |
//! | `rivals.rs` | what a request that may not wait does about others that are not decided |
//! | `tasks.rs` | what the queue does for tasks: turns of those that are woken, alarms, cancelled requests |
//! | `waiter.rs` | a request that was not granted at once |
//! | `watched.rs` | what the queue does for those who look for deadlocks |

mod acquisition;
mod awake;
mod driver;
mod entry;
mod lines;
mod machine;
mod poll;
mod pursued;
mod queue;
mod requests;
mod reservation;
mod rivals;
mod tasks;
mod waiter;
mod watched;

pub use reservation::Fairness;

pub(super) use acquisition::{Acquisition, Attempt, Holder, Refused, Standing};
pub(super) use entry::HolderId;
pub(super) use poll::{Runner, TaskProgress, at_once};
pub(super) use queue::WaitsFor;
pub(super) use reservation::Patience;
pub(super) use waiter::Waiter;

use super::inspect::{Request, WaitingRequest};
use super::order::QueueOrder;
use super::thread;
use crate::deadlock::{self, Deadlocks, Detection};
use crate::wait::{BRIEF, Wakeups};
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::{self, Instant};
use prim::sync::{Arc, Hint, Mutex, OnceLock, Weak};
use prim::timer::{self, Due};
use queue::Queue;
use std::ptr;

/// A lock's queue, and what newcomers check without its mutex.
pub(super) struct WaitQueue {
    /// How many requests have a reservation. A hint: the queue has the true number.
    reservations: AtomicU32,
    patience: Patience,
    deadlocks: Deadlocks,
    /// Made by the first request that sleeps. The timer calls it, and may be about to do so when the lock is gone.
    queue: OnceLock<Arc<SharedQueue>>,
}

/// A queue and its mutex.
struct SharedQueue {
    queue: Mutex<Queue>,
    /// What those who look call it, if anybody does.
    number: u64,
    /// Since when, in nanoseconds, threads were woken of which none has gone on; 0: there are none. A hint: the queue
    /// has the true time.
    idle_since: Hint,
}

impl WaitQueue {
    prim::const_fn! {
        pub(super) const fn new(patience: Patience, deadlocks: Deadlocks) -> Self {
            Self {
                reservations: AtomicU32::new(0),
                patience,
                deadlocks,
                queue: OnceLock::new(),
            }
        }
    }

    /// The queue of a lock with an order of its own, which is made at once.
    pub(super) fn ordered(patience: Patience, deadlocks: Deadlocks, order: QueueOrder) -> Self {
        let made = Self::new(patience, deadlocks);
        made.made(order);
        made
    }

    pub(super) fn patience(&self) -> Patience {
        self.patience
    }

    /// Whether newcomers may have to give way. A hint.
    #[inline]
    pub(super) fn has_reservations(&self) -> bool {
        self.reservations.load(Ordering::Relaxed) != 0
    }

    /// Whether threads that were woken wait for processors, as far as one can tell: none of them has gone on for a
    /// while. Then a blocked thread sleeps at once. Otherwise it would keep from its processor whom it waits for, or
    /// who has waited longer.
    pub(super) fn is_short_of_processors(&self) -> bool {
        let since = self.queue.get().map_or(0, |shared| {
            // Relaxed: a hint, and written under the mutex only.
            shared.idle_since.load(Ordering::Relaxed)
        });
        since != 0 && clock::nanoseconds().saturating_sub(since) > BRIEF
    }

    /// The sleeping requests, as tools show them.
    pub(super) fn waiters(&self) -> Vec<WaitingRequest> {
        let queue = self.queue.get();
        queue.map_or_else(Vec::new, |queue| queue.queue.lock().waiters())
    }

    /// Calls `visit` with the sleeping requests while they live: under the mutex.
    pub(super) fn each_waiter(&self, visit: impl FnMut(&Request, WaitsFor<'_>)) {
        if let Some(queue) = self.queue.get() {
            queue.queue.lock().each_waiter(visit);
        }
    }

    fn shared(&self) -> &Arc<SharedQueue> {
        let queue = self.queue.get();
        queue.unwrap_or_else(|| self.made(QueueOrder::Positions))
    }

    /// The queue, which is made unless there is one.
    fn made(&self, order: QueueOrder) -> &Arc<SharedQueue> {
        let detection = self.detection();
        // Taken before, since to make the queue must not block, not even where an atomic operation does.
        let number = detection.map_or(0, |_| deadlock::new_number());
        self.queue
            .get_or_init(|| SharedQueue::new(order, detection, number))
    }

    /// Changes the queue: under its mutex, with the hint kept true. Whom `change` signals is woken after the mutex is
    /// free. Only the timer and the refusal of a deadlock change the queue in another way.
    #[cold] // A thread sleeps, or is about to.
    #[inline(never)]
    pub(super) fn with_queue<R>(&self, change: impl FnOnce(&mut Queue, &mut Wakeups) -> R) -> R {
        let shared = self.shared();
        let mut wakeups = Wakeups::default();
        let mut queue = shared.queue.lock();
        let result = change(&mut queue, &mut wakeups);
        queue.watch(&mut wakeups);
        let detection = queue.is_to_be_watched(ptr::from_ref(self).addr());
        let reservations = queue.reservations();
        // Relaxed: a hint, and written under the mutex only. Written only when it changes, because all acquisitions
        // read its cache line.
        if self.reservations.load(Ordering::Relaxed) != reservations {
            self.reservations.store(reservations, Ordering::Relaxed);
        }
        shared.note_idle(&queue);
        drop(queue);
        if let Some(detection) = detection {
            deadlock::watch(shared, detection);
        }
        shared.deliver(wakeups);
        result
    }
}

impl SharedQueue {
    fn new(order: QueueOrder, detection: Option<Detection>, number: u64) -> Arc<Self> {
        Arc::new(Self {
            number,
            queue: Mutex::new(Queue::new(order, detection)),
            idle_since: Hint::new(0),
        })
    }

    /// Keeps the hint true. The caller has the mutex.
    fn note_idle(&self, queue: &Queue) {
        let since = queue.places.idle_since().unwrap_or(0);
        // Relaxed: as where it is read.
        if self.idle_since.load(Ordering::Relaxed) != since {
            self.idle_since.store(since, Ordering::Relaxed);
        }
    }

    fn deliver(self: &Arc<Self>, wakeups: Wakeups) {
        let (mut tasks, mut alarm) = wakeups.deliver();
        // First: foreign code may take its time.
        while let Some(when) = alarm {
            let whom: Weak<dyn Due> = Arc::downgrade(self) as Weak<dyn Due>;
            if timer::at(when, whom) {
                break;
            }
            // Where there is no timer, turns of tasks have no length.
            let (more, next) = self.ring(when).deliver();
            tasks.append(more);
            alarm = next;
        }
        thread::call_tasks(tasks);
    }

    /// Does what is due at that time. Returns what is to be done when the mutex is free.
    fn ring(&self, at: Instant) -> Wakeups {
        let mut wakeups = Wakeups::default();
        let mut queue = self.queue.lock();
        queue.ring(at, &mut wakeups);
        self.note_idle(&queue);
        wakeups
    }
}

impl Due for SharedQueue {
    // The hint of how many reservations there are stays as it was. It is in the lock, where each acquisition reads it
    // without a look at the queue, and the lock may be gone by now. If it is too large, the next request goes to the
    // queue in vain, and that corrects it. If it is too small, newcomers overtake a reservation until somebody changes
    // the queue: a request that was woken here and acts, or the next holder that others sleep behind and that leaves.
    fn due(self: Arc<Self>, at: Instant) {
        self.deliver(self.ring(at));
    }
}

impl Drop for SharedQueue {
    /// Leaked futures have left their wakers.
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        let (left, is_watched) = (queue.take_wakers(), queue.is_watched());
        drop(queue);
        if is_watched {
            deadlock::forget(self.number);
        }
        thread::call_tasks(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_short_while_a_woken_thread_does_not_go_on() {
        let queue = WaitQueue::new(Patience::ENDLESS, Deadlocks::OFF);
        assert!(!queue.is_short_of_processors());
        let shared = queue.shared();
        shared
            .idle_since
            .store(clock::nanoseconds(), Ordering::Relaxed);
        while !queue.is_short_of_processors() {}
        queue.with_queue(|_, _| {});
        assert!(!queue.is_short_of_processors(), "nobody was woken");
    }
}
