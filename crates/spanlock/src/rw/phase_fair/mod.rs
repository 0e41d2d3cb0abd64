//! The phase-fair locks of Brandenburg and Anderson, which let readers and writers take turns; here what both have in
//! common.
//!
//! Readers count themselves in on the word `entries`, and out on the word `exits`. A writer, once it is alone among
//! writers, *announces* itself in `entries`. It then waits until as many readers have exited as had entered by then. A
//! reader that finds an announcement waits until that writer has left, and no longer: its *phase* comes next. How it
//! waits differs between the locks.
//!
//! ```text
//!   entries   bit 31                    3     2         1          0
//!            +---------------------------+---------+---------+---------+
//!            |    readers that entered   | PARITY  | PRESENT | SLEEPER |
//!            +---------------------------+---------+---------+---------+
//!   exits    |    readers that exited    |    -    |    -    | SLEEPER |
//!            +---------------------------+---------+---------+---------+
//! ```
//!
//! ```text
//!   reader                                 writer, alone among writers
//!   ------                                 ---------------------------
//!   e := entries, entries += 1 reader      e := entries, entries |= PRESENT     announce
//!   PRESENT in e?                          wait until exits = e                 drain
//!     no:  inside                          inside
//!     yes: wait until PRESENT is gone,     entries: PRESENT off, PARITY flips   end_phase
//!          or PARITY differs from e        (and wake the readers that wait)
//!   inside
//!   exits += 1 reader
//! ```
//!
//! Phases alternate between two parities. A reader that waits for the phase of one writer is counted by the next
//! writer, which waits for it. So the same parity cannot come again before that reader has observed the other one.
//!
//! This holds only if each announced writer waits for all readers that it counted, and each reader that entered stays
//! until it exits. So neither can give up, and a thread that may give up does not begin: such a reader enters only when
//! no writer is announced, and such a writer announces itself only when nobody is inside, in one step (**phase-try**).
//! Until then it waits without a place in any queue.
//!
//! # Memory ordering
//!
//! - **phase** / **phase-acquire**: Release by the writer that ends its phase, Acquire by readers that enter: the
//!   writer's critical section.
//! - **phase-alternate**: the writer that ends its phase flips the parity.
//! - **phase-out** / **phase-out-acquire**: Release by the reader that exits, Acquire by the writer that waits for it.
//! - **phase-looked**: Acquire by a thread that looks whether the lock is held, before it loads `entries`; pairs with
//!   **phase-out**: it counts the entry of each reader whose exit it counts.
//! - **phase-wake-writer**, **phase-wake-readers**: a thread that changes a word and finds the mark of sleepers clears
//!   the mark and wakes them.
//! - **phase-downgrade**: a writer that becomes a reader counts itself in before its phase ends.

use super::raw::ThreadBound;
use crate::rw::word::Awaited;
use crate::wait::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::{Duration, Instant};
use prim::futex;
use prim::spin::{self, Spin};

pub(super) mod queue;
pub(super) mod ticket;

/// A thread sleeps on the word.
const SLEEPER: u32 = 1;
/// A writer is announced: it is inside, or waits for readers to exit.
const PRESENT: u32 = 2;
/// The parity of the announced writer's phase, or of the next.
const PARITY: u32 = 4;
/// One reader.
const READER: u32 = 8;
/// The bits that count readers.
const COUNT: u32 = !(READER - 1);
/// How long a timed writer sleeps beside a writer that is about to announce itself, or to pass its turn on: neither
/// wakes it.
const GLANCE: Duration = Duration::from_millis(1);

/// The most readers at a time, far below where the count would overflow.
const MOST_READERS: i32 = 1 << 27;

/// The parity of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parity {
    Even,
    Odd,
}

impl Parity {
    fn of(word: u32) -> Self {
        if word & PARITY == 0 {
            Self::Even
        } else {
            Self::Odd
        }
    }
}

/// The readers of a phase-fair lock, and the announcement of its writer.
#[derive(Debug)]
struct Phases {
    /// Readers that entered; the announcement; a mark of readers that sleep on the word.
    entries: AtomicU32,
    /// Readers that exited; a mark of a writer that sleeps on the word.
    exits: AtomicU32,
}

/// A value of `entries`.
#[derive(Debug, Clone, Copy)]
struct Entry(u32);

impl Entry {
    /// The parity of the announced writer, if there is one.
    #[inline]
    fn writer_met(self) -> Option<Parity> {
        (self.0 & PRESENT != 0).then(|| Parity::of(self.0))
    }
}

/// How many readers had entered when a writer announced itself: as many have to exit before it is inside.
#[derive(Debug, Clone, Copy)]
struct Entered(u32);

impl Phases {
    prim::const_fn! {
        /// Nobody is inside.
        const fn new() -> Self {
            Self {
                entries: AtomicU32::new(0),
                exits: AtomicU32::new(0),
            }
        }
    }

    /// `entries`, as readers wait for it.
    #[inline]
    fn awaited(&self) -> Awaited<'_> {
        Awaited {
            word: &self.entries,
            mark: SLEEPER,
            acquire: Self::acquire(),
        }
    }

    /// The order in which readers load `entries`.
    #[inline]
    fn acquire() -> Ordering {
        // [phase-acquire] Acquire: pairs with [phase].
        prim::order!("phase-acquire", Ordering::Acquire)
    }

    /// How many more readers have entered than exited. Less than zero, if others entered and exited after `entries` was
    /// loaded.
    fn readers(&self, entries: u32) -> i32 {
        Self::between(entries, self.exits.load(Ordering::Relaxed))
    }

    fn between(entries: u32, exits: u32) -> i32 {
        (entries & COUNT).wrapping_sub(exits & COUNT).cast_signed() / READER.cast_signed()
    }

    fn is_locked(&self) -> bool {
        // [phase-looked] Acquire: pairs with [phase-out]. Whoever has exited was counted in before, so a reader that is
        // inside all the time is not missed.
        let acquire = prim::order!("phase-looked", Ordering::Acquire);
        let exits = self.exits.load(acquire);
        let entries = self.entries.load(Ordering::Relaxed);
        entries & PRESENT != 0 || Self::between(entries, exits) > 0
    }

    /// Whether a writer is announced: it is inside, or waits for readers to exit, and nobody else gets in.
    fn is_announced(&self) -> bool {
        self.entries.load(Ordering::Relaxed) & PRESENT != 0
    }

    /// Enters as a reader; `None` if that takes longer than `wait` allows. `await_writer` waits until the phase of that
    /// parity has ended.
    ///
    /// # Panics
    /// When there are too many readers.
    #[inline]
    fn read(&self, wait: Wait, await_writer: impl FnOnce(Parity)) -> Option<ThreadBound> {
        let entry = self.count_in(wait)?;
        if let Some(met) = entry.writer_met() {
            await_writer(met);
        }
        if self.readers(entry.0) >= MOST_READERS {
            self.refuse_reader();
        }
        Some(ThreadBound::new())
    }

    /// Counts a reader in. If it may wait for ever it is counted beside an announced writer, and has to wait until that
    /// has left. Otherwise it is counted when no writer is announced; `None` if that takes longer than `wait` allows.
    #[inline]
    fn count_in(&self, wait: Wait) -> Option<Entry> {
        if wait == Wait::Forever {
            return Some(Entry(self.entries.fetch_add(READER, Self::acquire())));
        }
        let alone = |entries: u32| entries & PRESENT == 0;
        loop {
            let enter = |entries: u32| alone(entries).then(|| entries.wrapping_add(READER));
            let entries = self
                .entries
                .fetch_update(Self::acquire(), Ordering::Relaxed, enter);
            if let Ok(entries) = entries {
                return Some(Entry(entries));
            }
            if !self.awaited().until(wait, alone) {
                return None;
            }
        }
    }

    #[cold]
    fn refuse_reader(&self) -> ! {
        self.count_out();
        panic!("more than {MOST_READERS} readers of one lock");
    }

    /// A reader exits.
    #[inline]
    fn count_out(&self) {
        // [phase-out] Release: pairs with [phase-out-acquire].
        let release = prim::order!("phase-out", Ordering::Release);
        let before = self.exits.fetch_add(READER, release);
        if before & SLEEPER != 0 {
            self.wake_writer();
        }
    }

    #[cold] // A writer sleeps until all readers it counted have exited.
    fn wake_writer(&self) {
        self.exits.fetch_and(!SLEEPER, Ordering::Relaxed);
        // [phase-wake-writer]
        if prim::intact!("phase-wake-writer") {
            futex::wake_all(&self.exits);
        }
    }

    /// Announces a writer: from now on new readers wait. The caller is alone among writers, and will
    /// [`drain`](Self::drain).
    fn announce(&self, release: Ordering) -> Entered {
        let entries = self.entries.fetch_add(PRESENT, release);
        debug_assert!(entries & PRESENT == 0, "two writers at a time");
        Entered(entries & COUNT)
    }

    /// Announces a writer, but only if nobody is inside.
    fn announce_if_free(&self, release: Ordering) -> bool {
        // Acquire: pairs with [phase-out].
        let exits = self.exits.load(Ordering::Acquire) & COUNT;
        // [phase-try] If as many have entered as had exited before, all have exited.
        let free = |entries: u32| {
            let nobody = entries & COUNT == exits || !prim::intact!("phase-try");
            (entries & PRESENT == 0 && nobody).then(|| entries + PRESENT)
        };
        self.entries
            .fetch_update(release, Ordering::Relaxed, free)
            .is_ok()
    }

    /// The parity of the phase that the calling writer has, or will have.
    fn parity(&self) -> Parity {
        // Relaxed: only writers change it, and each passes its change on to the next.
        Parity::of(self.entries.load(Ordering::Relaxed))
    }

    /// Waits until the readers that had entered have exited.
    fn drain(&self, Entered(entered): Entered) {
        let exits = Awaited {
            word: &self.exits,
            mark: SLEEPER,
            // [phase-out-acquire] Acquire: pairs with [phase-out].
            acquire: prim::order!("phase-out-acquire", Ordering::Acquire),
        };
        exits.until(Wait::Forever, |exits| exits & COUNT == entered);
    }

    /// Counts the writer that is inside in as a reader. It ends its phase next.
    fn keep_as_reader(&self) {
        // [phase-downgrade] Relaxed: the next writer gets in by what this one does next.
        if prim::intact!("phase-downgrade") {
            self.entries.fetch_add(READER, Ordering::Relaxed);
        }
    }

    /// The writer leaves: readers need not wait for it.
    fn end_phase(&self) {
        // [phase] Release: pairs with [phase-acquire].
        let release = prim::order!("phase", Ordering::Release);
        // [phase-alternate]
        let changed = if prim::intact!("phase-alternate") {
            PRESENT | PARITY
        } else {
            PRESENT
        };
        let before = self.entries.fetch_xor(changed, release);
        if before & SLEEPER != 0 {
            self.wake_readers();
        }
    }

    #[cold] // Readers sleep until the writer's phase has ended.
    fn wake_readers(&self) {
        self.entries.fetch_and(!SLEEPER, Ordering::Relaxed);
        // [phase-wake-readers]
        if prim::intact!("phase-wake-readers") {
            futex::wake_all(&self.entries);
        }
    }

    /// Waits as a writer that may give up: tries again after each departure.
    fn poll<T>(&self, wait: Wait, attempt: impl Fn() -> Option<T>) -> Option<T> {
        let mut spin = Spin::new(spin::ON_HOLDER);
        loop {
            let granted = attempt();
            if granted.is_some() {
                return granted;
            }
            let deadline = wait.deadline()?;
            if Instant::now() >= deadline {
                return None;
            }
            if !spin.round() {
                self.await_departure(deadline);
            }
        }
    }

    /// Sleeps until the announced writer leaves; if there is none, until a reader exits.
    fn await_departure(&self, deadline: Instant) {
        let mut entries = self.entries.load(Ordering::Relaxed);
        if entries & PRESENT != 0 {
            entries = self.entries.fetch_or(SLEEPER, Ordering::Relaxed);
            if entries & PRESENT != 0 {
                futex::wait(&self.entries, entries | SLEEPER, Some(deadline));
            }
            return;
        }
        if self.readers(entries) > 0 {
            let exits = self.exits.fetch_or(SLEEPER, Ordering::Relaxed);
            if Self::between(entries, exits) > 0 {
                futex::wait(&self.exits, exits | SLEEPER, Some(deadline));
            }
            return;
        }
        // A writer has its turn and has not announced itself yet, or has not passed the turn on.
        let soon = (Instant::now() + GLANCE).min(deadline);
        futex::wait(&self.entries, entries, Some(soon));
    }
}
