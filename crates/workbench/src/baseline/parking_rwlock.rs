//! The reader-writer lock of the crate `parking_lot`, as its source describes it: so that it can be simulated. On
//! hardware the crate itself is measured.
//!
//! ```text
//!   state     bits 31 … 3             2             1                 0
//!            +-------------------+--------------+-----------------+-----------------+
//!            | number of readers | WRITER       | WRITER_SLEEPS   | SLEEPERS        |
//!            +-------------------+--------------+-----------------+-----------------+
//! ```
//!
//! A reader enters if there is no `WRITER`. A writer first sets `WRITER`, if nobody has, and then waits until the
//! readers have left. Who cannot enter spins, yields, and sleeps in the lock's queue. A writer that leaves wakes the
//! first in the queue: readers, up to and with the first writer. Twice a millisecond or so it hands the lock over to
//! them, so that no newcomer is faster.
//!
//! Three things differ. The queue is the lock's own, where the crate has a table for the process; the time until the
//! next handover is not random; and there are no upgradable readers.
//!
//! # Memory ordering
//! - **parking-acquire** / **parking-release**: Acquire by the compare-exchange that enters, Release by the departure:
//!   the critical sections.
//! - **parking-alone**: Acquire by the load by which a writer sees that the readers have left, as above.
//! - **parking-told** / **parking-tell**: Release by the thread that hands the lock over, Acquire by the one that
//!   sleeps.

use lock_api::RawRwLock;
use prim::atomic::{AtomicU32, Ordering};
use prim::clock;
use prim::futex;
use prim::spin::Spin;
use prim::sync::{Arc, Mutex};
use std::collections::VecDeque;

const SLEEPERS: u32 = 1;
const WRITER_SLEEPS: u32 = 2;
const WRITER: u32 = 4;
const READER: u32 = 8;
const READERS: u32 = !(READER - 1);

/// Nanoseconds from one handover to the next. In models: each second departure hands over.
const UNFAIR: u64 = prim::sized(500_000, 1500) as u64;

/// Rounds of pauses, and then of yields, before a thread sleeps.
const ROUNDS: u32 = 3;
const YIELDS: usize = prim::sized(7, 0);

/// `parking_lot`'s lock, written anew.
#[derive(Debug)]
pub struct ParkingRwLock {
    state: AtomicU32,
    queue: Mutex<Queue>,
    /// The writer that waits for readers.
    writer: Mutex<Option<Arc<Sleeper>>>,
}

#[derive(Debug)]
struct Queue {
    /// Each with what it adds to the state when it enters.
    sleepers: VecDeque<(u32, Arc<Sleeper>)>,
    fair_at: u64,
}

/// A thread that sleeps until it is told to go on.
#[derive(Debug)]
struct Sleeper {
    told: AtomicU32,
}

const NOTHING: u32 = 0;
/// To try again.
const AGAIN: u32 = 1;
/// That it holds the lock.
const ENTERED: u32 = 2;

impl Sleeper {
    fn new() -> Arc<Self> {
        let told = AtomicU32::new(NOTHING);
        Arc::new(Self { told })
    }

    fn sleep(&self) -> u32 {
        loop {
            // [parking-told] Acquire: pairs with [parking-tell].
            let acquire = prim::order!("parking-told", Ordering::Acquire);
            match self.told.load(acquire) {
                NOTHING => _ = futex::wait(&self.told, NOTHING, None),
                told => return told,
            }
        }
    }

    fn tell(&self, what: u32) {
        // [parking-tell] Release: pairs with [parking-told].
        let release = prim::order!("parking-tell", Ordering::Release);
        // A read-modify-write, as a model checker then has it after the sleeper's own load.
        self.told.swap(what, release);
        futex::wake_one(&self.told);
    }
}

/// A few pauses and yields.
struct Patience {
    pauses: Spin,
    yields: usize,
}

impl Patience {
    fn new() -> Self {
        Self {
            pauses: Spin::new(ROUNDS),
            yields: YIELDS,
        }
    }

    /// Whether there was some left.
    fn passes(&mut self) -> bool {
        if self.pauses.round() {
            return true;
        }
        if self.yields == 0 {
            return false;
        }
        self.yields -= 1;
        prim::thread::yield_now();
        true
    }
}

impl ParkingRwLock {
    prim::const_fn! {
        /// A free lock.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                state: AtomicU32::new(0),
                queue: Mutex::new(Queue {
                    sleepers: VecDeque::new(),
                    fair_at: 0,
                }),
                writer: Mutex::new(None),
            }
        }
    }

    fn load(&self) -> u32 {
        // Relaxed: who enters by what it sees acquires then.
        self.state.load(Ordering::Relaxed)
    }

    /// Adds to the state until `WRITER` is there. Returns the last state seen, if it was.
    fn try_add(&self, addition: u32) -> Result<(), u32> {
        let mut seen = self.load();
        while seen & WRITER == 0 {
            // [parking-acquire] Acquire: pairs with [parking-release].
            let acquire = prim::order!("parking-acquire", Ordering::Acquire);
            let added =
                self.state
                    .compare_exchange(seen, seen + addition, acquire, Ordering::Relaxed);
            match added {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
        Err(seen)
    }

    #[cold]
    fn add_slowly(&self, addition: u32) {
        let mut patience = Patience::new();
        while let Err(seen) = self.try_add(addition) {
            if seen & (SLEEPERS | WRITER_SLEEPS) == 0 && patience.passes() {
                continue;
            }
            if seen & SLEEPERS == 0 && !self.mark(seen, SLEEPERS) {
                continue;
            }
            let mut queue = self.queue.lock();
            let now = self.load();
            if now & SLEEPERS == 0 || now & WRITER == 0 {
                continue;
            }
            let sleeper = Sleeper::new();
            queue.sleepers.push_back((addition, Arc::clone(&sleeper)));
            drop(queue);
            if sleeper.sleep() == ENTERED {
                return;
            }
            patience = Patience::new();
        }
    }

    fn mark(&self, seen: u32, mark: u32) -> bool {
        let (relaxed, to) = (Ordering::Relaxed, seen | mark);
        self.state
            .compare_exchange(seen, to, relaxed, relaxed)
            .is_ok()
    }

    /// A thread that has set `WRITER` waits until the readers have left.
    fn wait_for_readers(&self) {
        let mut patience = Patience::new();
        loop {
            // [parking-alone] Acquire: pairs with [parking-release].
            let acquire = prim::order!("parking-alone", Ordering::Acquire);
            let seen = self.state.load(acquire);
            if seen & READERS == 0 {
                return;
            }
            if patience.passes() {
                continue;
            }
            if seen & WRITER_SLEEPS == 0 && !self.mark(seen, WRITER_SLEEPS) {
                continue;
            }
            let mut place = self.writer.lock();
            let now = self.load();
            if now & READERS == 0 || now & WRITER_SLEEPS == 0 {
                continue;
            }
            let sleeper = Sleeper::new();
            *place = Some(Arc::clone(&sleeper));
            drop(place);
            sleeper.sleep();
            patience = Patience::new();
        }
    }

    #[cold]
    fn wake_writer(&self) {
        let mut place = self.writer.lock();
        self.state.fetch_and(!WRITER_SLEEPS, Ordering::Relaxed);
        let writer = place.take();
        drop(place);
        if let Some(writer) = writer {
            writer.tell(AGAIN);
        }
    }

    /// A writer leaves, and somebody sleeps.
    #[cold]
    fn leave_and_wake(&self) {
        let mut queue = self.queue.lock();
        let mut woken = Vec::new();
        let mut entered = 0;
        // Readers, up to and with the first writer.
        while entered & WRITER == 0
            && let Some((addition, sleeper)) = queue.sleepers.pop_front()
        {
            entered += addition;
            woken.push(sleeper);
        }
        let left = match queue.sleepers.is_empty() {
            true => 0,
            false => SLEEPERS,
        };
        let hands_over = !woken.is_empty() && queue.is_fair();
        let held = if hands_over { entered } else { 0 };
        // [parking-release] Release: pairs with [parking-acquire].
        let release = prim::order!("parking-release", Ordering::Release);
        self.state.store(held | left, release);
        drop(queue);
        for sleeper in woken {
            sleeper.tell(if hands_over { ENTERED } else { AGAIN });
        }
    }
}

impl Queue {
    fn is_fair(&mut self) -> bool {
        let now = clock::nanoseconds();
        let is_fair = now >= self.fair_at;
        if is_fair {
            self.fair_at = now + UNFAIR;
        }
        is_fair
    }
}

impl Default for ParkingRwLock {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a reader enters only when there is no `WRITER`, which one thread at a time sets. A writer that has set it
// goes on when no reader is inside.
unsafe impl RawRwLock for ParkingRwLock {
    const INIT: Self = prim::initial!(Self::new());

    type SharedGuard = ();
    type ExclusiveGuard = ();

    #[inline]
    fn lock_shared(&self) {
        if self.try_add(READER).is_err() {
            self.add_slowly(READER);
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<()> {
        self.try_add(READER).ok()
    }

    #[inline]
    unsafe fn unlock_shared(&self, (): ()) {
        // [parking-release]
        let release = prim::order!("parking-release", Ordering::Release);
        let before = self.state.fetch_sub(READER, release);
        if before & (READERS | WRITER_SLEEPS) == READER | WRITER_SLEEPS {
            self.wake_writer();
        }
    }

    #[inline]
    fn lock_exclusive(&self) {
        if self.try_lock_exclusive().is_none() {
            if self.try_add(WRITER).is_err() {
                self.add_slowly(WRITER);
            }
            self.wait_for_readers();
        }
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<()> {
        // [parking-acquire]
        let acquire = prim::order!("parking-acquire", Ordering::Acquire);
        let entered = self
            .state
            .compare_exchange(0, WRITER, acquire, Ordering::Relaxed);
        entered.ok().map(drop)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, (): ()) {
        // [parking-release]
        let release = prim::order!("parking-release", Ordering::Release);
        let left = self
            .state
            .compare_exchange(WRITER, 0, release, Ordering::Relaxed);
        if left.is_err() {
            self.leave_and_wake();
        }
    }

    fn is_locked(&self) -> bool {
        self.load() & (READERS | WRITER) != 0
    }

    fn is_locked_exclusive(&self) -> bool {
        self.load() & WRITER != 0
    }
}
