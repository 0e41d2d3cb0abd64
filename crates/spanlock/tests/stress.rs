//! Random work by many threads under one lock, and an oracle that detects forbidden holders.
//!
//! Positions stand for slots, which the holders of a range visit. Each configuration gets 200,000 operations by eight
//! threads, and as many fresh threads in each of a few rounds: a lock outlives those that use it.
//! `SPANLOCK_STRESS_OPS`, `SPANLOCK_STRESS_THREADS` and `SPANLOCK_STRESS_SEED` choose other numbers. `cargo test --test
//! stress -- --nocapture` prints the longest wait.

#[macro_use]
mod common;

use common::{HANG, Shared, assert_nothing_held, setting, snapshot};
use fastrand::Rng;
use spanlock::range::inspect::Snapshot;
use spanlock::range::raw::{Ask, Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock::range::{RangeLock, RangeLocked, Span};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::exclusion::{Holder, Slot, Visit};
use spanlock_testkit::watchdog;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: Exact = Exact;

const SLOTS: u64 = 64;
/// How often threads end and others take their places.
const ROUNDS: u64 = 4;

const EACH_MODE: [Mode; 2] = [Mode::Shared, Mode::Exclusive];

fn holder(mode: Mode) -> Holder {
    match mode {
        Mode::Shared => Holder::Reader,
        Mode::Exclusive => Holder::Writer(0),
    }
}

/// Releases also when the oracle panics, so that others come to their end.
struct Granted<'a, L: RawRangeMutex> {
    raw: &'a L,
    token: Option<L::Token>,
}

impl<L: RawRangeMutex> Drop for Granted<'_, L> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: this lock's token.
            unsafe { self.raw.unlock(token) };
        }
    }
}

struct Worker<'a, L: RawRangeLock> {
    lock: &'a RangeLock<L>,
    slots: &'a [Slot],
    random: Rng,
    /// How many slots it wrote to.
    written: u64,
    longest_wait: Duration,
}

impl<'a, L: Shared> Worker<'a, L> {
    fn work(&mut self) {
        match self.random.u64(..16) {
            0..=6 => self.hold_ascending(0, 1),
            7..=8 => self.hold_ascending(0, 4),
            9..=10 => self.hold_if_granted(|_| Wait::Never),
            11..=12 => {
                self.hold_if_granted(|random| {
                    Wait::at_most(Duration::from_micros(random.u64(..60)))
                });
            }
            13 => self.downgrade(),
            _ => self.hold_many(),
        }
    }

    /// Holds up to `depth` ranges at a time, each beyond the one before: so no two threads wait for each other.
    fn hold_ascending(&mut self, from: u64, depth: u32) {
        if depth == 0 || from == SLOTS {
            return;
        }
        let range = self.range(from);
        let start = Instant::now();
        match self.mode() {
            Mode::Shared => {
                let _held = self.lock.read(range.clone());
                self.waited_since(start);
                self.stay(Mode::Shared, &range, depth - 1);
            }
            Mode::Exclusive => {
                let _held = self.lock.write(range.clone());
                self.waited_since(start);
                self.stay(Mode::Exclusive, &range, depth - 1);
            }
        }
    }

    fn hold_if_granted(&mut self, wait: impl FnOnce(&mut Rng) -> Wait) {
        let range = self.range(0);
        let mode = self.mode();
        let span = Span::of(range.clone()).expect("not empty");
        let raw = self.lock.raw();
        let wait = wait(&mut self.random);
        let granted = match mode {
            Mode::Shared => raw.lock_shared(Ask::new(span, wait)),
            Mode::Exclusive => raw.lock_exclusive(Ask::new(span, wait)),
        };
        if granted.is_some() {
            let _held = Granted {
                raw,
                token: granted,
            };
            self.stay(mode, &range, 0);
        }
    }

    fn downgrade(&mut self) {
        let range = self.range(0);
        let writer = self.lock.write(range.clone());
        self.stay(Mode::Exclusive, &range, 0);
        let _reader = writer.downgrade();
        self.stay(Mode::Shared, &range, 0);
    }

    /// The ranges are disjoint, or the oracle would find a holder beside itself.
    fn hold_many(&mut self) {
        let thirds = [0, SLOTS / 3, 2 * SLOTS / 3];
        let ranges = thirds.map(|from| {
            let start = from + self.random.u64(..SLOTS / 6);
            start..start + 1 + self.random.u64(..SLOTS / 6)
        });
        let [first, second, third] = ranges.clone();
        match self.mode() {
            Mode::Shared => {
                let _held = self.lock.read_many([third, first, second]);
                self.stay_in_all(Mode::Shared, &ranges);
            }
            Mode::Exclusive => {
                let _held = self.lock.write_many([second, third, first]);
                self.stay_in_all(Mode::Exclusive, &ranges);
            }
        }
    }

    fn stay(&mut self, mode: Mode, range: &Range<u64>, depth: u32) {
        let visit = self.enter(mode, range);
        self.hold_ascending(range.end, depth);
        self.linger();
        visit.end();
    }

    fn stay_in_all(&mut self, mode: Mode, ranges: &[Range<u64>]) {
        let visits: Vec<_> = ranges.iter().map(|range| self.enter(mode, range)).collect();
        self.linger();
        visits.into_iter().for_each(Visit::end);
    }

    fn enter(&mut self, mode: Mode, range: &Range<u64>) -> Visit<'a> {
        if mode == Mode::Exclusive {
            self.written += range.end - range.start;
        }
        let slots = &self.slots[range.start as usize..range.end as usize];
        // SAFETY: the caller holds the range, and ends the visit before it releases it.
        unsafe { Visit::begin(slots, holder(mode)) }
    }

    /// Now and then gives others the processor, to be found inside by them.
    fn linger(&mut self) {
        if self.random.u64(..32) == 0 {
            thread::yield_now();
        }
    }

    fn waited_since(&mut self, start: Instant) {
        self.longest_wait = self.longest_wait.max(start.elapsed());
    }

    fn mode(&mut self) -> Mode {
        EACH_MODE[self.random.u64(..2) as usize]
    }

    /// Everything from `from` on, something wide, a block with neighbours on both sides, or something narrow.
    fn range(&mut self, from: u64) -> Range<u64> {
        let room = SLOTS - from;
        let start = from + self.random.u64(..room);
        let width = match self.random.u64(..16) {
            0 => return from..SLOTS,
            1..=3 => 1 + self.random.u64(..SLOTS / 2),
            4..=7 => 8 - start % 8,
            _ => 1 + self.random.u64(..3),
        };
        start..SLOTS.min(start + width)
    }
}

fn run<L: Shared>(name: &str, raw: L) {
    let threads = setting("SPANLOCK_STRESS_THREADS", 8);
    let operations = setting("SPANLOCK_STRESS_OPS", 200_000) / threads / ROUNDS;
    let seed = setting("SPANLOCK_STRESS_SEED", 1);
    let lock = RangeLock::from_raw(raw);
    let mut slots = Slot::many(SLOTS);
    let progress: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let start = Instant::now();
    let worker = |seed, done: &AtomicU64| {
        let mut worker = Worker {
            lock: &lock,
            slots: &slots,
            random: Rng::with_seed(seed),
            written: 0,
            longest_wait: Duration::ZERO,
        };
        for _ in 0..operations {
            worker.work();
            done.fetch_add(1, Relaxed);
        }
        (worker.written, worker.longest_wait)
    };
    let counts = || -> Vec<_> { progress.iter().map(|count| count.load(Relaxed)).collect() };
    let report = |counts: &Vec<u64>| format!("beyond {counts:?}\n{}", snapshot(lock.raw()));
    let round = |round| {
        thread::scope(|scope| {
            let worker = &worker;
            let workers: Vec<_> = (1_000 * (seed + round)..)
                .zip(&progress)
                .map(|(seed, done)| scope.spawn(move || worker(seed, done)))
                .collect();
            let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join();
            workers.into_iter().map(join).collect::<Vec<_>>()
        })
    };
    let results: Vec<_> = watchdog::watched(HANG, counts, report, || {
        let results = (0..ROUNDS).flat_map(round);
        results
            .map(|result| result.expect("no violation"))
            .collect()
    });
    assert_nothing_held(lock.raw());
    let written: u64 = results.iter().map(|(written, _)| written).sum();
    let writes: u64 = slots.iter_mut().map(Slot::writes).sum();
    assert_eq!(writes, written, "lost updates");
    let longest = results
        .iter()
        .map(|(_, wait)| *wait)
        .max()
        .unwrap_or_default();
    let (all, took) = (operations * threads * ROUNDS, start.elapsed());
    println!("{name}: {all} operations in {took:.1?}, longest wait {longest:.1?}");
}

/// Threads write to parts of a slice, by what is lent to them alone.
fn lend<L: Shared>(raw: L) {
    let threads = setting("SPANLOCK_STRESS_THREADS", 8);
    let operations = setting("SPANLOCK_STRESS_OPS", 200_000) / threads;
    let seed = setting("SPANLOCK_STRESS_SEED", 1);
    let elements = vec![0_u64; SLOTS as usize].into_boxed_slice();
    let mut slice = RangeLocked::with_lock(elements, RangeLock::from_raw(raw));
    let borrow = |seed| {
        let mut random = Rng::with_seed(seed);
        let mut written = 0;
        for _ in 0..operations {
            let start = random.usize(..SLOTS as usize - 8);
            let range = start..start + 1 + random.usize(..8);
            if random.bool() {
                written += range.len() as u64;
                slice.write(range).iter_mut().for_each(|count| *count += 1);
            } else {
                let lent = slice.read(range);
                assert_eq!(lent.iter().sum::<u64>(), lent.iter().sum::<u64>());
            }
        }
        written
    };
    let written: u64 = common::watched(slice.lock().raw(), || {
        thread::scope(|scope| {
            let borrow = &borrow;
            let all: Vec<_> = (0..threads)
                .map(|at| scope.spawn(move || borrow(1_000 * seed + at)))
                .collect();
            let all = all.into_iter();
            all.map(|thread| thread.join().expect("no panic")).sum()
        })
    });
    assert_eq!(slice.get_mut().iter().sum::<u64>(), written, "lost updates");
}

/// An exclusive lock, to be used like the others: its readers exclude each other.
struct NoSharing<L>(L);

// SAFETY: the inner lock's promise.
unsafe impl<L: RawRangeMutex> RawRangeMutex for NoSharing<L> {
    type Token = L::Token;

    fn lock_exclusive(&self, ask: Ask<'_, Self::Token>) -> Option<Self::Token> {
        self.0.lock_exclusive(ask)
    }

    unsafe fn unlock(&self, token: Self::Token) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock(token) };
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.0.snapshot()
    }
}

// SAFETY: exclusive is more than shared.
unsafe impl<L: RawRangeMutex> RawRangeLock for NoSharing<L> {
    fn lock_shared(&self, ask: Ask<'_, Self::Token>) -> Option<Self::Token> {
        self.0.lock_exclusive(ask)
    }

    unsafe fn downgrade(&self, token: Self::Token) -> Self::Token {
        token
    }
}

macro_rules! stress {
    ($($name:ident: $raw:expr),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name), $raw);
            }
        )+
    };
}

#[test]
fn lent_parts_of_a_slice() {
    lend(common::slots());
    lend(common::slots_at_once());
    lend(common::slots_buckets());
}

stress! {
    standard: common::standard(),
    slow_path: common::slow_path(),
    unfair: common::unfair(),
    fair_at_once: common::fair_at_once(),
    writers_first: common::writers_first(),
    writers_first_unfair: common::writers_first_unfair(),
    srl_array: common::srl_array(),
    srl_array_unfair: common::srl_array_unfair(),
    srl_array_fair_at_once: common::srl_array_fair_at_once(),
    srl_tree: common::srl_tree(),
    slots: common::slots(),
    slots_at_once: common::slots_at_once(),
    slots_buckets: common::slots_buckets(),
    slots_annex: common::slots_annex(),
    slots_unfair: common::slots_unfair(),
    skip: common::skip(),
    keys: common::keys(),
    keys_slow_path: common::keys_slow_path(),
    skip_standard: common::skip_standard(),
    skip_unfair: common::skip_unfair(),
    exclusive: NoSharing(common::exclusive()),
    exclusive_slow_path: NoSharing(common::exclusive_slow_path()),
    skip_exclusive: NoSharing(common::skip_exclusive()),
}
