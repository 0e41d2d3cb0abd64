//! The reader-writer lock of Rust's standard library on Linux, as its source describes it: so that it can be simulated.
//! On hardware the library's own is measured.
//!
//! ```text
//!   state     bit 31            30                29                                0
//!            +-----------------+-----------------+-----------------------------------+
//!            | WRITERS_WAIT    | READERS_WAIT    | number of readers; all ones: a    |
//!            |                 |                 | writer                            |
//!            +-----------------+-----------------+-----------------------------------+
//!
//!   wake_ups  counts those of writers
//! ```
//!
//! A reader enters if there is neither a writer nor anybody who waits. A writer enters if nobody holds the lock. Who
//! cannot enter spins, marks the state, and sleeps: a reader on `state`, a writer on `wake_ups`. Who frees the lock
//! wakes one writer, if the state says that one waits; else, or if none slept, all readers. A writer that has slept
//! keeps the mark when it enters, since others may sleep.
//!
//! # Memory ordering
//! - **std-acquire** / **std-release**: Acquire by the compare-exchange that enters, Release by the departure: the
//!   critical sections.
//! - **std-signal** / **std-signalled**: Release by the addition to `wake_ups`, Acquire by the load of a writer that is
//!   about to sleep: if it sees the wake-up, it sees the state from which its mark is gone, and does not sleep.

use lock_api::RawRwLock;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex;
use prim::spin::Spin;

const ONE: u32 = 1;
const MASK: u32 = (1 << 30) - 1;
const WRITER: u32 = MASK;
const MOST_READERS: u32 = MASK - 1;
const READERS_WAIT: u32 = 1 << 30;
const WRITERS_WAIT: u32 = 1 << 31;

/// Rounds of spinning, each twice as long as the one before: about the hundred pauses of the original.
const ROUNDS: u32 = 7;

/// The standard library's lock, written anew.
#[derive(Debug)]
pub struct StdRwLock {
    state: AtomicU32,
    wake_ups: AtomicU32,
}

fn is_free(state: u32) -> bool {
    state & MASK == 0
}

fn admits_reader(state: u32) -> bool {
    state & MASK < MOST_READERS && state & (READERS_WAIT | WRITERS_WAIT) == 0
}

impl StdRwLock {
    prim::const_fn! {
        /// A free lock.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                state: AtomicU32::new(0),
                wake_ups: AtomicU32::new(0),
            }
        }
    }

    /// Changes the state from what was seen.
    fn change(&self, seen: u32, to: u32, order: Ordering) -> bool {
        let changed = self
            .state
            .compare_exchange(seen, to, order, Ordering::Relaxed);
        changed.is_ok()
    }

    fn enter(&self, seen: u32, to: u32) -> bool {
        // [std-acquire] Acquire: pairs with [std-release].
        let acquire = prim::order!("std-acquire", Ordering::Acquire);
        self.change(seen, to, acquire)
    }

    fn load(&self) -> u32 {
        // Relaxed: who enters by what it sees acquires then.
        self.state.load(Ordering::Relaxed)
    }

    /// Spins until the state is worth a look.
    #[track_caller]
    fn spin(&self, is_over: impl Fn(u32) -> bool) -> u32 {
        let mut spin = Spin::new(ROUNDS);
        loop {
            let state = self.load();
            if is_over(state) || !spin.round() {
                return state;
            }
        }
    }

    #[cold]
    fn read_slowly(&self) {
        // It ends also if somebody waits: then it has to wait as well.
        let over = |state| state & MASK != WRITER || state & (READERS_WAIT | WRITERS_WAIT) != 0;
        let mut state = self.spin(over);
        loop {
            if admits_reader(state) {
                if self.enter(state, state + ONE) {
                    return;
                }
                state = self.load();
                continue;
            }
            assert_ne!(state & MASK, MOST_READERS, "too many readers");
            if state & READERS_WAIT == 0
                && !self.change(state, state | READERS_WAIT, Ordering::Relaxed)
            {
                state = self.load();
                continue;
            }
            futex::wait(&self.state, state | READERS_WAIT, None);
            state = self.spin(over);
        }
    }

    #[cold]
    fn write_slowly(&self) {
        let over = |state| is_free(state) || state & WRITERS_WAIT != 0;
        let mut state = self.spin(over);
        let mut others = 0;
        loop {
            if is_free(state) {
                if self.enter(state, state | WRITER | others) {
                    return;
                }
                state = self.load();
                continue;
            }
            if state & WRITERS_WAIT == 0
                && !self.change(state, state | WRITERS_WAIT, Ordering::Relaxed)
            {
                state = self.load();
                continue;
            }
            // Others may sleep as well, and who wakes this one takes the mark away.
            others = WRITERS_WAIT;
            // [std-signalled] Acquire: pairs with [std-signal].
            let acquire = prim::order!("std-signalled", Ordering::Acquire);
            let wake_ups = self.wake_ups.load(acquire);
            state = self.load();
            if is_free(state) || state & WRITERS_WAIT == 0 {
                continue;
            }
            futex::wait(&self.wake_ups, wake_ups, None);
            state = self.spin(over);
        }
    }

    /// The lock is free, and somebody waits.
    #[cold]
    fn wake(&self, mut state: u32) {
        if state == WRITERS_WAIT {
            if self.change(state, 0, Ordering::Relaxed) {
                self.wake_writer();
                return;
            }
            state = self.load();
        }
        if state == READERS_WAIT | WRITERS_WAIT {
            if !self.change(state, READERS_WAIT, Ordering::Relaxed) {
                // Somebody holds it, and will be here.
                return;
            }
            if self.wake_writer() {
                return;
            }
            state = READERS_WAIT;
        }
        if state == READERS_WAIT && self.change(state, 0, Ordering::Relaxed) {
            futex::wake_all(&self.state);
        }
    }

    /// Whether there was one.
    fn wake_writer(&self) -> bool {
        // [std-signal] Release: pairs with [std-signalled].
        let release = prim::order!("std-signal", Ordering::Release);
        self.wake_ups.fetch_add(1, release);
        futex::wake_one(&self.wake_ups)
    }

    /// The departure of a reader or of the writer. Returns the state after it.
    fn leave(&self, held: u32) -> u32 {
        // [std-release] Release: pairs with [std-acquire].
        let release = prim::order!("std-release", Ordering::Release);
        self.state.fetch_sub(held, release) - held
    }
}

impl Default for StdRwLock {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a writer enters only when nobody holds it, a reader only when no writer does.
unsafe impl RawRwLock for StdRwLock {
    const INIT: Self = prim::initial!(Self::new());

    type SharedGuard = ();
    type ExclusiveGuard = ();

    #[inline]
    fn lock_shared(&self) {
        let state = self.load();
        if !(admits_reader(state) && self.enter(state, state + ONE)) {
            self.read_slowly();
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<()> {
        let mut state = self.load();
        while admits_reader(state) {
            if self.enter(state, state + ONE) {
                return Some(());
            }
            state = self.load();
        }
        None
    }

    #[inline]
    unsafe fn unlock_shared(&self, (): ()) {
        let state = self.leave(ONE);
        // Readers wait only if a writer does, or if one is inside.
        if is_free(state) && state & WRITERS_WAIT != 0 {
            self.wake(state);
        }
    }

    #[inline]
    fn lock_exclusive(&self) {
        if !self.enter(0, WRITER) {
            self.write_slowly();
        }
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<()> {
        let mut state = self.load();
        while is_free(state) {
            if self.enter(state, state | WRITER) {
                return Some(());
            }
            state = self.load();
        }
        None
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, (): ()) {
        let state = self.leave(WRITER);
        if state & (READERS_WAIT | WRITERS_WAIT) != 0 {
            self.wake(state);
        }
    }

    fn is_locked(&self) -> bool {
        !is_free(self.load())
    }

    fn is_locked_exclusive(&self) -> bool {
        self.load() & MASK == WRITER
    }
}
