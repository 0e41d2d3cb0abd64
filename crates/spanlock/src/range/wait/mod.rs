//! How a request waits. All range locks of this library share this code.
//!
//! A request that is not granted at once becomes a *waiter* and goes round this loop:
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
//! - *Register*: under the queue's mutex, the waiter marks the blocker and enters the queue. Marking and checking the
//!   blocker are one atomic operation, and so are leaving and checking for the mark. Either the blocker leaves first,
//!   and the waiter sees that and does not sleep; or the mark is first, and the blocker wakes the waiter when it
//!   leaves. So no wake-up is lost.
//! - *Sleep*: on the thread's own parker, until a signal, the end of the turn or the deadline.
//!
//! | file | content |
//! |---|---|
//! | `awake.rs` | the requests in the queue that are awake |
//! | `driver.rs` | the loop, and the trait with which a lock kind takes part in it |
//! | `entry.rs` | where a request in the queue stands |
//! | `leaders.rs` | the requests in the queue that give way, and who may follow them |
//! | `queue.rs` | which requests sleep, and which of them a departure wakes |
//! | `reservation.rs` | patience, reservations and their turns |
//! | `turns.rs` | which reservations in the queue share their turns |

mod awake;
mod driver;
mod entry;
mod leaders;
mod queue;
mod reservation;
mod turns;

pub use reservation::Fairness;

pub(super) use driver::{Acquisition, Attempt, Holder, Refused, Reserves, Waiter};
pub(super) use entry::HolderId;
pub(super) use reservation::Patience;

use crate::wait::Wakeups;
use prim::atomic::{AtomicU32, Ordering};
use prim::sync::{Mutex, MutexGuard};
use queue::Queue;

/// A lock's queue with its mutex, and what newcomers check without the mutex.
pub(super) struct WaitQueue {
    /// How many requests have a reservation. A hint: the queue has the true number.
    reservations: AtomicU32,
    patience: Patience,
    queue: Mutex<Queue>,
}

impl WaitQueue {
    prim::const_fn! {
        pub(super) const fn new(patience: Patience) -> Self {
            Self {
                reservations: AtomicU32::new(0),
                patience,
                queue: Mutex::new(Queue::new()),
            }
        }
    }

    pub(super) fn patience(&self) -> Patience {
        self.patience
    }

    /// Whether newcomers may have to give way. A hint.
    #[inline]
    pub(super) fn has_reservations(&self) -> bool {
        self.reservations.load(Ordering::Relaxed) != 0
    }

    /// The queue, to read.
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Changes the queue: under its mutex, with the hint kept true. The threads that `change` signals are woken after
    /// the mutex is free. There is no other way to change the queue.
    #[cold] // A thread sleeps, or is about to.
    #[inline(never)]
    pub(super) fn with_queue<R>(&self, change: impl FnOnce(&mut Queue, &mut Wakeups) -> R) -> R {
        let mut wakeups = Wakeups::default();
        let mut queue = self.queue.lock();
        let result = change(&mut queue, &mut wakeups);
        let reservations = queue.reservations();
        // Relaxed: a hint, and written under the mutex only. Written only when it changes, because all acquisitions
        // read its cache line.
        if self.reservations.load(Ordering::Relaxed) != reservations {
            self.reservations.store(reservations, Ordering::Relaxed);
        }
        drop(queue);
        wakeups.deliver();
        result
    }
}
