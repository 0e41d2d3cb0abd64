//! The reader-writer locks that can be simulated, by name.

use crate::sim::fuzz::{self, Case};
use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RwLock,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
use prim_sim::Machine;
use prim_sim::clock::{Duration, Instant};
use spanlock_baseline_sim::PaperBravo;
use spanlock_sim::rw::{
    Bias, Bravo, CohortRwLock, FutexMutex, FutexRwLock, MutexRwLock, PerCpu, PhaseFairQueue,
    PhaseFairTicket, ReadersFirst, Tuning,
};

/// A lock held: until dropped.
pub(in crate::sim) trait Held {}

impl<T> Held for T {}

type Holding<'a> = Box<dyn Held + 'a>;

/// A reader-writer lock. What it does not offer is `None`.
pub(in crate::sim) trait Subject: Send + Sync {
    fn read(&self) -> Holding<'_>;
    fn write(&self) -> Holding<'_>;
    fn try_read(&self) -> Option<Holding<'_>>;
    fn try_write(&self) -> Option<Holding<'_>>;

    /// Whether it has the timed forms.
    fn is_timed(&self) -> bool {
        false
    }

    /// As a try unless the lock is timed, as are all that follow.
    fn read_until(&self, _: Instant) -> Option<Holding<'_>> {
        self.try_read()
    }

    fn write_until(&self, _: Instant) -> Option<Holding<'_>> {
        self.try_write()
    }

    /// Reads, calls `seen`, and goes on as a writer without letting others write between; `None` if it cannot.
    fn read_and_write(&self, _seen: &mut dyn FnMut()) -> Option<Holding<'_>> {
        None
    }

    /// Writes, calls `written`, and goes on as a reader without letting go; `None` if it cannot.
    fn write_and_read(&self, _written: &mut dyn FnMut()) -> Option<Holding<'_>> {
        None
    }
}

/// A lock on lines of its own that waits forever or not at all.
#[repr(align(128))]
struct Untimed<L>(RwLock<L, ()>);

/// A lock on lines of its own with the timed forms, of which a writer can become a reader.
#[repr(align(128))]
struct Whole<L>(RwLock<L, ()>);

/// The same, with readers who can become writers.
#[repr(align(128))]
struct Upgradable<L>(RwLock<L, ()>);

macro_rules! basic {
    () => {
        fn read(&self) -> Holding<'_> {
            Box::new(self.0.read())
        }

        fn write(&self) -> Holding<'_> {
            Box::new(self.0.write())
        }

        fn try_read(&self) -> Option<Holding<'_>> {
            Some(Box::new(self.0.try_read()?))
        }

        fn try_write(&self) -> Option<Holding<'_>> {
            Some(Box::new(self.0.try_write()?))
        }
    };
}

macro_rules! timed {
    () => {
        fn is_timed(&self) -> bool {
            true
        }

        fn read_until(&self, deadline: Instant) -> Option<Holding<'_>> {
            Some(Box::new(self.0.try_read_until(deadline)?))
        }

        fn write_until(&self, deadline: Instant) -> Option<Holding<'_>> {
            Some(Box::new(self.0.try_write_until(deadline)?))
        }

        fn write_and_read(&self, written: &mut dyn FnMut()) -> Option<Holding<'_>> {
            let writing = self.0.write();
            written();
            Some(Box::new(RwLockWriteGuard::downgrade(writing)))
        }
    };
}

impl<L: RawRwLock + Send + Sync> Subject for Untimed<L> {
    basic!();
}

impl<L> Subject for Whole<L>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant> + RawRwLockDowngrade + Send + Sync,
{
    basic!();
    timed!();
}

impl<L> Subject for Upgradable<L>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant>
        + RawRwLockDowngrade
        + RawRwLockUpgrade
        + Send
        + Sync,
{
    basic!();
    timed!();

    fn read_and_write(&self, seen: &mut dyn FnMut()) -> Option<Holding<'_>> {
        let reading = self.0.upgradable_read();
        seen();
        Some(Box::new(RwLockUpgradableReadGuard::upgrade(reading)))
    }
}

/// How a lock is to be made.
#[derive(Debug, Clone, Copy)]
pub(in crate::sim) struct Make {
    /// The hardware threads of the machine.
    contexts: usize,
    /// Its memory nodes.
    nodes: usize,
    bias: Bias,
}

impl Make {
    /// As users have it, on that machine.
    pub(in crate::sim) fn on(machine: &Machine) -> Self {
        Self {
            contexts: machine.contexts(),
            nodes: machine.sockets,
            bias: Bias::Adaptive,
        }
    }

    /// With that bias, if it has one.
    pub(in crate::sim) fn with(self, bias: Bias) -> Self {
        Self { bias, ..self }
    }
}

/// Whether readers of a lock share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum Readers {
    /// They do.
    Share,
    /// They do, and one may read again while it reads.
    Recur,
    /// They exclude each other, always or at times.
    Exclude,
}

/// A reader-writer lock that can be simulated.
pub struct Lock {
    /// What users call it.
    pub name: &'static str,
    pub(in crate::sim) readers: Readers,
    pub(in crate::sim) make: fn(Make) -> Box<dyn Subject>,
}

fn plain<L: RawRwLock>() -> RwLock<L, ()> {
    RwLock::new(())
}

fn tuned<L: RawRwLock>(bias: Bias) -> RwLock<Bravo<L, Tuning>, ()> {
    let tuning = Tuning {
        bias,
        ..Tuning::STANDARD
    };
    RwLock::from_raw(Bravo::with_policy(L::INIT, tuning), ())
}

fn off<L: RawRwLock>() -> RwLock<Bravo<L, Tuning>, ()> {
    tuned(Bias::Off)
}

fn paper<L: RawRwLock>() -> RwLock<PaperBravo<L>, ()> {
    RwLock::new(())
}

/// How to make a lock of a kind over one, in a face: with the bias that is asked for, without any, or the paper's.
macro_rules! over {
    ($face:ident, bravo, $lock:ty) => {
        |make: Make| match make.bias {
            Bias::Adaptive => boxed($face(RwLock::<Bravo<$lock>, ()>::new(()))),
            bias => boxed($face(tuned::<$lock>(bias))),
        }
    };
    ($face:ident, paper, $lock:ty) => {
        |_: Make| boxed(Untimed(paper::<$lock>()))
    };
    ($face:ident, $kind:ident, $lock:ty) => {
        |_: Make| boxed($face($kind::<$lock>()))
    };
}

fn boxed(lock: impl Subject + 'static) -> Box<dyn Subject> {
    Box::new(lock)
}

/// As the paper's: a phase-fair lock for each processor.
type PerProcessor<const PROCESSORS: usize> = PerCpu<PhaseFairQueue, PROCESSORS>;
type Mutex = MutexRwLock<FutexMutex>;

/// The same over a lock of as many parts as the machine has processors, or a few more.
macro_rules! over_parts {
    ($kind:ident) => {
        |make: Make| match make.contexts {
            ..=2 => over!(Whole, $kind, PerProcessor<2>)(make),
            3..=40 => over!(Whole, $kind, PerProcessor<40>)(make),
            41..=72 => over!(Whole, $kind, PerProcessor<72>)(make),
            73..=128 => over!(Whole, $kind, PerProcessor<128>)(make),
            129.. => over!(Whole, $kind, PerProcessor<256>)(make),
        }
    };
}

/// The same over a lock of as many nodes as the machine has.
macro_rules! over_nodes {
    ($kind:ident) => {
        |make: Make| match make.nodes {
            ..=2 => over!(Whole, $kind, CohortRwLock<2>)(make),
            3.. => over!(Whole, $kind, CohortRwLock<4>)(make),
        }
    };
}

const fn lock(name: &'static str, readers: Readers, make: fn(Make) -> Box<dyn Subject>) -> Lock {
    Lock {
        name,
        readers,
        make,
    }
}

use Readers::{Exclude, Recur, Share};

/// Those of [`rw::locks`](crate::rw::locks) that are ours, by the same names.
pub static LOCKS: &[Lock] = &[
    lock("futex", Share, over!(Upgradable, plain, FutexRwLock)),
    lock("bravo-futex", Share, over!(Upgradable, bravo, FutexRwLock)),
    lock(
        "bravo-futex-off",
        Share,
        over!(Upgradable, off, FutexRwLock),
    ),
    lock("bravo-futex-paper", Share, over!(Whole, paper, FutexRwLock)),
    lock("pf-t", Share, over!(Whole, plain, PhaseFairTicket)),
    lock("bravo-pf-t", Share, over!(Whole, bravo, PhaseFairTicket)),
    lock("bravo-pf-t-off", Share, over!(Whole, off, PhaseFairTicket)),
    lock(
        "bravo-pf-t-paper",
        Share,
        over!(Whole, paper, PhaseFairTicket),
    ),
    lock("pf-q", Share, over!(Whole, plain, PhaseFairQueue)),
    lock("bravo-pf-q", Share, over!(Whole, bravo, PhaseFairQueue)),
    lock("bravo-pf-q-off", Share, over!(Whole, off, PhaseFairQueue)),
    lock(
        "bravo-pf-q-paper",
        Share,
        over!(Whole, paper, PhaseFairQueue),
    ),
    lock("c-rw-wp", Share, over_nodes!(plain)),
    lock("bravo-c-rw-wp", Share, over_nodes!(bravo)),
    lock("bravo-c-rw-wp-off", Share, over_nodes!(off)),
    lock("bravo-c-rw-wp-paper", Share, over_nodes!(paper)),
    lock("per-cpu", Share, over_parts!(plain)),
    lock("bravo-per-cpu", Share, over_parts!(bravo)),
    lock("bravo-per-cpu-off", Share, over_parts!(off)),
    lock("bravo-per-cpu-paper", Share, over_parts!(paper)),
    lock("mutex", Exclude, over!(Whole, plain, Mutex)),
    lock("bravo-mutex", Exclude, over!(Whole, bravo, Mutex)),
    lock("bravo-mutex-off", Exclude, over!(Whole, off, Mutex)),
    lock("bravo-mutex-paper", Exclude, over!(Whole, paper, Mutex)),
];

type ReadersFirstLock = FutexRwLock<ReadersFirst>;

/// More of them, which are only fuzzed.
pub static FUZZED: &[Lock] = &[
    lock(
        "futex-readers",
        Recur,
        over!(Upgradable, plain, ReadersFirstLock),
    ),
    lock(
        "bravo-futex-readers",
        Recur,
        over!(Upgradable, bravo, ReadersFirstLock),
    ),
    lock(
        "per-cpu-futex",
        Share,
        over!(Whole, plain, PerCpu<FutexRwLock, 4>),
    ),
    lock(
        "bravo-per-cpu-futex",
        Share,
        over!(Whole, bravo, PerCpu<FutexRwLock, 4>),
    ),
];

impl Lock {
    /// Runs a case on it.
    ///
    /// # Errors
    /// What the case found.
    pub fn fuzz(&'static self, case: &Case) -> fuzz::Run {
        fuzz::rw::run(self, case)
    }

    /// The lock of that name.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn find(
        name: &str,
        among: impl Iterator<Item = &'static Self> + Clone,
    ) -> Result<&'static Self, String> {
        among.clone().find(|lock| lock.name == name).ok_or_else(|| {
            let names: Vec<_> = among.map(|lock| lock.name).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}
