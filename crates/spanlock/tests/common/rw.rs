//! What the tests of reader-writer locks share: the locks, each once, and scenarios as tests for each of them.

use super::watched_silently;
use lock_api::{RawRwLock, RwLock};
use spanlock::rw::{
    Bias, Bravo, FutexRwLock, PhaseFairQueue, PhaseFairTicket, ReadersFirst, WritersFirst,
};
use spanlock_workbench::baseline::{CohortRwLock, MutexRwLock, PerCpu};
use std::thread;
use std::time::Duration;

/// Long enough that a thread which waits goes to sleep.
pub const SHORT: Duration = Duration::from_millis(2);

/// Long enough to be slept through in every other round.
pub fn linger(round: u32) {
    if round.is_multiple_of(2) {
        thread::sleep(SHORT);
    }
}

/// Runs a scenario. Should it hang, aborts. Nothing is held afterwards.
pub fn run<L: RawRwLock + Sync>(raw: L, scenario: impl FnOnce(&RwLock<L, u32>)) {
    let lock = RwLock::from_raw(raw, 0);
    watched_silently(|| scenario(&lock));
    assert!(!lock.is_locked());
    assert!(lock.try_write().is_some(), "something is held");
}

/// A lock under BRAVO with that policy.
pub fn bravo<L: RawRwLock>(bias: Bias) -> Bravo<L, Bias> {
    Bravo::with_policy(L::INIT, bias)
}

/// Functions that make the locks.
macro_rules! locks {
    ($($name:ident: $lock:ty = $make:expr),+ $(,)?) => {
        $(
            pub fn $name() -> $lock {
                $make
            }
        )+
    };
}

locks! {
    futex: FutexRwLock<WritersFirst> = FutexRwLock::new(),
    futex_readers_first: FutexRwLock<ReadersFirst> = FutexRwLock::new(),
    ticket: PhaseFairTicket = PhaseFairTicket::new(),
    queue: PhaseFairQueue = PhaseFairQueue::new(),
    cohort: CohortRwLock<2> = CohortRwLock::new(),
    per_cpu: PerCpu<FutexRwLock, 4> = PerCpu::new(),
    mutex: MutexRwLock = MutexRwLock::new(),
    bravo_adaptive: Bravo<FutexRwLock, Bias> = bravo(Bias::STANDARD),
    bravo_eager: Bravo<FutexRwLock, Bias> = bravo(Bias::EAGER),
    bravo_off: Bravo<FutexRwLock, Bias> = bravo(Bias::Off),
    bravo_ticket: Bravo<PhaseFairTicket, Bias> = bravo(Bias::EAGER),
    bravo_queue: Bravo<PhaseFairQueue, Bias> = bravo(Bias::EAGER),
    bravo_cohort: Bravo<CohortRwLock<2>, Bias> = bravo(Bias::EAGER),
    bravo_per_cpu: Bravo<PerCpu<FutexRwLock, 4>, Bias> = bravo(Bias::EAGER),
    bravo_per_cpu_ticket: Bravo<PerCpu<PhaseFairTicket, 4>, Bias> = bravo(Bias::EAGER),
    bravo_mutex: Bravo<MutexRwLock, Bias> = bravo(Bias::EAGER),
    bravo_adaptive_readers_first: Bravo<FutexRwLock<ReadersFirst>, Bias> = bravo(Bias::STANDARD),
    bravo_eager_readers_first: Bravo<FutexRwLock<ReadersFirst>, Bias> = bravo(Bias::EAGER),
    bravo_off_readers_first: Bravo<FutexRwLock<ReadersFirst>, Bias> = bravo(Bias::Off),
}

/// Makes scenarios tests for each of these locks. The module has a function `run`, as the one here.
macro_rules! for_each {
    ([$($lock:ident),+ $(,)?] $scenarios:tt) => {
        $(for_each!(@$lock $scenarios);)+
    };
    (@$lock:ident { $($scenario:ident),+ $(,)? }) => {
        mod $lock {
            $(
                #[test]
                fn $scenario() {
                    super::run(crate::common::rw::$lock(), super::$scenario);
                }
            )+
        }
    };
}

/// Makes scenarios tests for every lock: each kind, also of those that ours are compared with, and each under BRAVO.
macro_rules! for_every_lock {
    ($scenarios:tt) => {
        for_each! {
            [
                futex, futex_readers_first, ticket, queue, cohort, per_cpu, mutex, bravo_adaptive, bravo_eager,
                bravo_off, bravo_ticket, bravo_queue, bravo_cohort, bravo_per_cpu, bravo_per_cpu_ticket, bravo_mutex,
                bravo_eager_readers_first,
            ]
            $scenarios
        }
    };
}

/// Makes scenarios tests for every lock whose readers share.
macro_rules! for_every_lock_that_shares {
    ($scenarios:tt) => {
        for_each! {
            [
                futex, futex_readers_first, ticket, queue, cohort, per_cpu, bravo_adaptive, bravo_eager, bravo_off,
                bravo_ticket, bravo_queue, bravo_cohort, bravo_per_cpu, bravo_per_cpu_ticket,
                bravo_eager_readers_first,
            ]
            $scenarios
        }
    };
}

/// Makes scenarios tests for every lock with upgradable readers.
macro_rules! for_every_lock_that_upgrades {
    ($scenarios:tt) => {
        for_each! {
            [
                futex, futex_readers_first, bravo_adaptive, bravo_eager, bravo_off, bravo_eager_readers_first,
            ]
            $scenarios
        }
    };
}
