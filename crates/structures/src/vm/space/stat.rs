//! What operations wait for, and what becomes of speculations, as Linux's `lock_stat` reports it.

use crate::vm::reclaim::thread_number;
use prim::atomic::{AtomicU64, Ordering};
use prim::clock::{self, Duration};
use spanlock::range::raw::{Mode, Wait};

/// The operations of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Operation {
    /// A page fault.
    Fault,
    /// `mmap`.
    Mmap,
    /// `munmap`.
    Munmap,
    /// `mprotect`.
    Mprotect,
    /// `mremap`.
    Mremap,
    /// `brk`.
    Brk,
    /// `madvise`.
    Madvise,
    /// `find` and `maps`.
    Look,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Fault,
        Self::Mmap,
        Self::Munmap,
        Self::Mprotect,
        Self::Mremap,
        Self::Brk,
        Self::Madvise,
        Self::Look,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Mmap => "mmap",
            Self::Munmap => "munmap",
            Self::Mprotect => "mprotect",
            Self::Mremap => "mremap",
            Self::Brk => "brk",
            Self::Madvise => "madvise",
            Self::Look => "look",
        }
    }
}

/// What became of a range that a change locked in the hope that it suffices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Speculation {
    /// The change was made in place, under a part of the space.
    InPlace,
    /// The change inserted or removed areas, under a part of the space.
    Structural,
    /// The areas had changed before the range was held: the change starts over.
    Retried,
    /// The change needed more than it had locked: it starts over with more.
    Widened,
    /// The change inserts or removes areas: it starts over with everything.
    WholeForStructure,
    /// The change needed more than it had locked, and the variant knows no other range: it starts over with everything.
    WholeForRange,
    /// The change was retried too often: it starts over with everything.
    WholeForRetries,
}

impl Speculation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::InPlace,
        Self::Structural,
        Self::Retried,
        Self::Widened,
        Self::WholeForStructure,
        Self::WholeForRange,
        Self::WholeForRetries,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in place",
            Self::Structural => "structural",
            Self::Retried => "retried",
            Self::Widened => "widened",
            Self::WholeForStructure => "whole, for the structure",
            Self::WholeForRange => "whole, for the range",
            Self::WholeForRetries => "whole, for the retries",
        }
    }
}

/// Acquisitions of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// How many there were.
    pub acquired: u64,
    /// How many of them had to wait.
    pub waited: u64,
    /// How long they waited, together.
    pub time: Duration,
    /// How long the longest waited.
    pub longest: Duration,
}

/// The acquisitions and speculations of a space so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockStat {
    waits: [[Waits; 2]; OPERATIONS],
    outcomes: [[u64; SPECULATIONS]; OPERATIONS],
}

impl LockStat {
    /// The acquisitions of an operation in a mode.
    #[must_use]
    pub fn waits(&self, operation: Operation, mode: Mode) -> Waits {
        self.waits[operation as usize][column(mode)]
    }

    /// How often the changes of an operation came to this.
    #[must_use]
    pub fn speculations(&self, operation: Operation, outcome: Speculation) -> u64 {
        self.outcomes[operation as usize][outcome as usize]
    }
}

const OPERATIONS: usize = Operation::ALL.len();
const SPECULATIONS: usize = Speculation::ALL.len();

/// Threads with the same number modulo this share their counters: the more, the less they disturb each other.
const STRIPES: usize = prim::sized(64, 2);

const fn column(mode: Mode) -> usize {
    match mode {
        Mode::Shared => 0,
        Mode::Exclusive => 1,
    }
}

/// Collects what a [`LockStat`] reports.
#[derive(Debug)]
pub(super) struct Recorder(Box<[Stripe]>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    waits: [[Cell; 2]; OPERATIONS],
    outcomes: [[AtomicU64; SPECULATIONS]; OPERATIONS],
}

#[derive(Debug, Default)]
struct Cell {
    acquired: AtomicU64,
    waited: AtomicU64,
    nanoseconds: AtomicU64,
    longest: AtomicU64,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }

    fn stripe(&self) -> &Stripe {
        &self.0[thread_number() % STRIPES]
    }

    /// Acquires, and records how long that took. Time is taken only of those who wait.
    pub(super) fn acquire<T>(
        &self,
        operation: Operation,
        mode: Mode,
        acquire: impl Fn(Wait) -> Option<T>,
    ) -> Option<T> {
        let cell = &self.stripe().waits[operation as usize][column(mode)];
        // Relaxed, here and below: the counters order nothing.
        cell.acquired.fetch_add(1, Ordering::Relaxed);
        if let Some(token) = acquire(Wait::Never) {
            return Some(token);
        }
        let begin = clock::nanoseconds();
        let token = acquire(Wait::Forever);
        let waited = clock::nanoseconds() - begin;
        cell.waited.fetch_add(1, Ordering::Relaxed);
        cell.nanoseconds.fetch_add(waited, Ordering::Relaxed);
        cell.longest.fetch_max(waited, Ordering::Relaxed);
        token
    }

    pub(super) fn count(&self, operation: Operation, outcome: Speculation) {
        self.stripe().outcomes[operation as usize][outcome as usize]
            .fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn report(&self) -> LockStat {
        let mut report = LockStat::default();
        for stripe in &self.0 {
            for (sums, cells) in report
                .waits
                .iter_mut()
                .flatten()
                .zip(stripe.waits.iter().flatten())
            {
                sums.acquired += cells.acquired.load(Ordering::Relaxed);
                sums.waited += cells.waited.load(Ordering::Relaxed);
                sums.time += Duration::from_nanos(cells.nanoseconds.load(Ordering::Relaxed));
                let longest = Duration::from_nanos(cells.longest.load(Ordering::Relaxed));
                sums.longest = sums.longest.max(longest);
            }
            for (sum, count) in report
                .outcomes
                .iter_mut()
                .flatten()
                .zip(stripe.outcomes.iter().flatten())
            {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        report
    }
}
