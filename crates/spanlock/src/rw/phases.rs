//! Readers and writers in turns: what the phase-fair locks of Brandenburg and Anderson have in common.
//!
//! Readers count themselves *in* on one word and *out* on another. A writer, once alone among writers, announces
//! itself on the readers' first word, and waits until as many have gone out as had come in by then. A reader that
//! meets an announcement waits until that writer is gone; how is each lock's own.
//!
//! Phases alternate between two parities. A reader that waits for one was counted by the next writer, which waits for
//! it: so the same parity cannot come round before it has left. That holds only if every writer that announces
//! itself waits for those it counted, and every reader that came stays until then. So neither can give up, and who may
//! not wait for ever does not begin: a reader comes only where no writer is announced, and a writer announces itself
//! only where nobody is inside, in one step (**phase-try**). Until then it waits without a place in any queue.
//!
//! # Memory ordering
//!
//! - **phase-alternate**: the writer that leaves changes the parity.
//! - **phase** / **phase-acquire**: Release by the writer that takes its announcement back, Acquire by readers who
//!   come: the writer's critical section.
//! - **phase-out** / **phase-out-acquire**: Release by the reader that leaves, Acquire by the writer that waits for
//!   it.
//! - **phase-wake** (-writer, -readers): who leaves and finds the mark of those who sleep on the word that it changes
//!   takes it off and wakes them.
//! - **phase-share**: a writer that becomes a reader is counted before its phase is over.

use super::park;
use crate::range::raw::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::{Duration, Instant};
use prim::futex;
use prim::spin::{self, Spin};

/// Somebody sleeps on the word.
pub(super) const SLEEPER: u32 = 1;
/// A writer is inside or waits for readers to leave.
const PRESENT: u32 = 2;
/// The parity of its phase, or of the next.
const PARITY: u32 = 4;
/// One reader.
const READER: u32 = 8;
/// The readers.
const COUNT: u32 = !(READER - 1);
/// How long one sleeps that waits for a writer on its way in or out, which will wake nobody.
const GLANCE: Duration = Duration::from_millis(1);

/// Readers there may be at a time, far below where the count would start over.
const MOST_READERS: i32 = 1 << 27;

/// One of two, in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parity {
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

/// The readers of a phase-fair lock.
#[derive(Debug)]
pub(super) struct Phases {
    /// Readers that came, an announcement, a mark of readers who sleep on the word.
    pub(super) came: AtomicU32,
    /// Readers that left, a mark of a writer that sleeps.
    left: AtomicU32,
}

/// A reader that has come, and what it found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came(u32);

impl Came {
    /// As if a reader had found that.
    pub(super) fn of(word: u32) -> Self {
        Self(word)
    }

    /// The announcement in a word, if there is one.
    #[inline]
    pub(super) fn met(self) -> Option<Parity> {
        (self.0 & PRESENT != 0).then(|| Parity::of(self.0))
    }
}

/// How many readers have to leave before the writer may enter, counted from the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before(u32);

impl Phases {
    prim::const_fn! {
        /// Nobody.
        pub(super) const fn new() -> Self {
            Self {
                came: AtomicU32::new(0),
                left: AtomicU32::new(0),
            }
        }
    }

    /// The order of looks at `came` by readers.
    #[inline]
    pub(super) fn acquire() -> Ordering {
        // [phase] Acquire: pairs with the Release in `take_back`.
        prim::order!("phase-acquire", Ordering::Acquire)
    }

    /// How many more came than left since. Less than none, if others came and left after `came` was looked at.
    fn readers(&self, came: u32) -> i32 {
        Self::between(came, self.left.load(Ordering::Relaxed))
    }

    fn between(came: u32, left: u32) -> i32 {
        (came & COUNT).wrapping_sub(left & COUNT).cast_signed() / READER.cast_signed()
    }

    pub(super) fn is_locked(&self) -> bool {
        let came = self.came.load(Ordering::Relaxed);
        came & PRESENT != 0 || self.readers(came) > 0
    }

    /// Also while a writer waits for readers to leave: from there on nobody else gets in.
    pub(super) fn is_announced(&self) -> bool {
        self.came.load(Ordering::Relaxed) & PRESENT != 0
    }

    /// A reader comes; `None` if it would have to wait longer than it may. If it waits for ever it may come beside a
    /// writer, and has to wait until that is gone.
    #[inline]
    pub(super) fn come(&self, wait: Wait) -> Option<Came> {
        if wait == Wait::Forever {
            return Some(Came(self.came.fetch_add(READER, Self::acquire())));
        }
        let alone = |came: u32| came & PRESENT == 0;
        loop {
            let come = |came: u32| alone(came).then(|| came.wrapping_add(READER));
            let came = self
                .came
                .fetch_update(Self::acquire(), Ordering::Relaxed, come);
            if let Ok(came) = came {
                return Some(Came(came));
            }
            if !park::until(&self.came, SLEEPER, Self::acquire(), wait, alone) {
                return None;
            }
        }
    }

    /// A reader that came is inside.
    ///
    /// # Panics
    /// When there are too many; then it has left.
    #[inline]
    pub(super) fn stay(&self, came: Came) {
        if self.readers(came.0) >= MOST_READERS {
            self.turn_away();
        }
    }

    #[cold]
    fn turn_away(&self) -> ! {
        self.leave();
        panic!("more than {MOST_READERS} readers of one lock");
    }

    #[inline]
    pub(super) fn leave(&self) {
        // [phase-out] Release: pairs with the Acquire in `drain`.
        let release = prim::order!("phase-out", Ordering::Release);
        let before = self.left.fetch_add(READER, release);
        if before & SLEEPER != 0 {
            self.wake_writer();
        }
    }

    #[cold] // A writer sleeps until all readers it counted have left.
    fn wake_writer(&self) {
        self.left.fetch_and(!SLEEPER, Ordering::Relaxed);
        // [phase-wake]
        if prim::intact!("phase-wake-writer") {
            futex::wake_all(&self.left);
        }
    }

    /// From now on readers wait. To be called by one that is alone among writers, and will [`drain`](Self::drain).
    pub(super) fn announce(&self, release: Ordering) -> Before {
        let came = self.came.fetch_add(PRESENT, release);
        debug_assert!(came & PRESENT == 0, "two writers at a time");
        Before(came & COUNT)
    }

    /// As [`announce`](Self::announce), but only if nobody is inside.
    pub(super) fn announce_if_free(&self, release: Ordering) -> bool {
        // [phase-out] Acquire: pairs with the Release in `leave`.
        let left = self.left.load(Ordering::Acquire) & COUNT;
        // [phase-try] If as many came as had left before, all have left.
        let free = |came: u32| {
            let nobody = came & COUNT == left || !prim::intact!("phase-try");
            (came & PRESENT == 0 && nobody).then(|| came + PRESENT)
        };
        self.came
            .fetch_update(release, Ordering::Relaxed, free)
            .is_ok()
    }

    /// The parity of the phase, for the writer whose it is or will be.
    pub(super) fn parity(&self) -> Parity {
        // Relaxed: writers change it, and pass that on.
        Parity::of(self.came.load(Ordering::Relaxed))
    }

    /// Waits until those who came before have left.
    pub(super) fn drain(&self, Before(came): Before) {
        // [phase-out] Acquire: pairs with the Release in `leave`.
        let acquire = prim::order!("phase-out-acquire", Ordering::Acquire);
        let gone = |left: u32| left & COUNT == came;
        park::until(&self.left, SLEEPER, acquire, Wait::Forever, gone);
    }

    /// The writer that is inside will stay as a reader when it leaves.
    pub(super) fn share(&self) {
        // [phase-share] Relaxed: whom it is to keep out is let in by what this writer does next.
        if prim::intact!("phase-share") {
            self.came.fetch_add(READER, Ordering::Relaxed);
        }
    }

    /// The writer leaves: readers need not wait.
    pub(super) fn take_back(&self) {
        // [phase] Release: pairs with the Acquire in `come`.
        let release = prim::order!("phase", Ordering::Release);
        // [phase-alternate]
        let changed = if prim::intact!("phase-alternate") {
            PRESENT | PARITY
        } else {
            PRESENT
        };
        let before = self.came.fetch_xor(changed, release);
        if before & SLEEPER != 0 {
            self.wake_readers();
        }
    }

    #[cold] // Readers sleep until the writer's phase is over.
    fn wake_readers(&self) {
        self.came.fetch_and(!SLEEPER, Ordering::Relaxed);
        // [phase-wake]
        if prim::intact!("phase-wake-readers") {
            futex::wake_all(&self.came);
        }
    }

    /// A writer that may not wait for ever tries again whenever somebody has left.
    pub(super) fn poll<T>(&self, wait: Wait, attempt: impl Fn() -> Option<T>) -> Option<T> {
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

    /// Sleeps until a writer leaves, or a reader if there is no writer.
    fn await_departure(&self, deadline: Instant) {
        let mut came = self.came.load(Ordering::Relaxed);
        if came & PRESENT != 0 {
            came = self.came.fetch_or(SLEEPER, Ordering::Relaxed);
            if came & PRESENT != 0 {
                futex::wait(&self.came, came | SLEEPER, Some(deadline));
            }
            return;
        }
        if self.readers(came) > 0 {
            let left = self.left.fetch_or(SLEEPER, Ordering::Relaxed);
            if Self::between(came, left) > 0 {
                futex::wait(&self.left, left | SLEEPER, Some(deadline));
            }
            return;
        }
        // Some writer has its turn and has not announced itself, or not passed it on.
        let soon = (Instant::now() + GLANCE).min(deadline);
        futex::wait(&self.came, came, Some(soon));
    }
}
