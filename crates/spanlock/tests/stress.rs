//! Random work by many threads under one lock, and an oracle that notices who is inside and should not be.
//!
//! Positions stand for slots. Whoever holds some enters them: each slot counts its readers, or notes its writer,
//! by Relaxed operations, which add no ordering that the lock might lack; and has a plain cell, for sanitizers and
//! for lost updates. A million operations per configuration unless `SPANLOCK_STRESS_OPS` says otherwise, by eight
//! threads unless `SPANLOCK_STRESS_THREADS` does; `SPANLOCK_STRESS_SEED` chooses other ones.
//! `cargo test --test stress -- --nocapture` tells the longest wait.

#[macro_use]
mod common;

use common::{HANG, Random, Shared, abort, assert_nothing_held, setting, snapshot};
use spanlock::range::inspect::Snapshot;
use spanlock::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock::range::{RangeLock, Span};
use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

const SLOTS: u64 = 64;
const EACH_MODE: [Mode; 2] = [Mode::Shared, Mode::Exclusive];

#[derive(Default)]
struct Slot {
    /// Readers inside, or -1 for a writer.
    owner: AtomicI32,
    content: UnsafeCell<u64>,
}

// SAFETY: the content is touched by those who hold the slot; if the lock is wrong, that is what the test is for.
unsafe impl Sync for Slot {}

impl Slot {
    fn read(&self) -> u64 {
        // SAFETY: called by holders only.
        unsafe { *self.content.get() }
    }

    fn enter(&self, mode: Mode) {
        match mode {
            Mode::Shared => assert!(self.owner.fetch_add(1, Relaxed) >= 0, "beside a writer"),
            Mode::Exclusive => {
                assert_eq!(self.owner.swap(-1, Relaxed), 0, "a writer beside others");
                // SAFETY: called by exclusive holders only.
                unsafe { *self.content.get() += 1 };
            }
        }
    }

    fn leave(&self, mode: Mode) {
        match mode {
            Mode::Shared => assert!(self.owner.fetch_sub(1, Relaxed) > 0, "a writer came in"),
            Mode::Exclusive => assert_eq!(self.owner.swap(0, Relaxed), -1, "somebody came in"),
        }
    }
}

/// Somebody's stay in some slots.
struct Visit<'a> {
    slots: &'a [Slot],
    mode: Mode,
    first: u64,
}

impl<'a> Visit<'a> {
    fn begin(all: &'a [Slot], mode: Mode, range: &Range<u64>) -> Self {
        let slots = &all[range.start as usize..range.end as usize];
        for slot in slots {
            slot.enter(mode);
        }
        let first = slots[0].read();
        Self { slots, mode, first }
    }

    fn end(self) {
        assert_eq!(self.slots[0].read(), self.first, "changed under a holder");
        for slot in self.slots {
            slot.leave(self.mode);
        }
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
    random: Random,
    /// How many slots it wrote to.
    written: u64,
    longest_wait: Duration,
}

impl<'a, L: Shared> Worker<'a, L> {
    fn work(&mut self) {
        match self.random.below(16) {
            0..=6 => self.hold_ascending(0, 1),
            7..=8 => self.hold_ascending(0, 4),
            9..=10 => self.hold_if_granted(|_| Wait::Never),
            11..=12 => {
                self.hold_if_granted(|random| {
                    Wait::at_most(Duration::from_micros(random.below(60)))
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

    fn hold_if_granted(&mut self, wait: impl FnOnce(&mut Random) -> Wait) {
        let range = self.range(0);
        let mode = self.mode();
        let span = Span::of(range.clone()).expect("not empty");
        let raw = self.lock.raw();
        let wait = wait(&mut self.random);
        let granted = match mode {
            Mode::Shared => raw.lock_shared(span, wait),
            Mode::Exclusive => raw.lock_exclusive(span, wait),
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
            let start = from + self.random.below(SLOTS / 6);
            start..start + 1 + self.random.below(SLOTS / 6)
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
        Visit::begin(self.slots, mode, range)
    }

    /// Now and then gives others the processor, to be found inside by them.
    fn linger(&mut self) {
        if self.random.below(32) == 0 {
            thread::yield_now();
        }
    }

    fn waited_since(&mut self, start: Instant) {
        self.longest_wait = self.longest_wait.max(start.elapsed());
    }

    fn mode(&mut self) -> Mode {
        EACH_MODE[self.random.below(2) as usize]
    }

    /// Everything from `from` on, something wide, a block with neighbours on both sides, or something narrow.
    fn range(&mut self, from: u64) -> Range<u64> {
        let room = SLOTS - from;
        let start = from + self.random.below(room);
        let width = match self.random.below(16) {
            0 => return from..SLOTS,
            1..=3 => 1 + self.random.below(SLOTS / 2),
            4..=7 => 8 - start % 8,
            _ => 1 + self.random.below(3),
        };
        start..SLOTS.min(start + width)
    }
}

/// Aborts, after saying what can be said, when no thread gets on.
fn watch_progress<L: Shared>(raw: &L, progress: &[AtomicU64], ended: &mpsc::Receiver<()>) {
    let counts = || -> Vec<_> { progress.iter().map(|count| count.load(Relaxed)).collect() };
    let mut before = counts();
    while ended.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
        let now = counts();
        if now == before {
            abort(&format!("no progress beyond {now:?}\n{}", snapshot(raw)));
        }
        before = now;
    }
}

fn run<L: Shared>(name: &str, raw: L) {
    let threads = setting("SPANLOCK_STRESS_THREADS", 8);
    let operations = setting("SPANLOCK_STRESS_OPS", 1_000_000) / threads;
    let seed = setting("SPANLOCK_STRESS_SEED", 1);
    let lock = RangeLock::from_raw(raw);
    let slots: Vec<Slot> = (0..SLOTS).map(|_| Slot::default()).collect();
    let progress: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let start = Instant::now();
    let worker = |seed, done: &AtomicU64| {
        let mut worker = Worker {
            lock: &lock,
            slots: &slots,
            random: Random::new(seed),
            written: 0,
            longest_wait: Duration::ZERO,
        };
        for _ in 0..operations {
            worker.work();
            done.fetch_add(1, Relaxed);
        }
        (worker.written, worker.longest_wait)
    };
    let (running, ended) = mpsc::channel::<()>();
    let results: Vec<_> = thread::scope(|scope| {
        let (raw, progress, worker) = (lock.raw(), &progress, &worker);
        scope.spawn(move || watch_progress(raw, progress, &ended));
        let workers: Vec<_> = (0..)
            .zip(progress)
            .map(|(at, done)| scope.spawn(move || worker(1_000 * seed + at, done)))
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join();
        let results: Vec<_> = workers.into_iter().map(join).collect();
        drop(running);
        results
            .into_iter()
            .map(|result| result.expect("no violation"))
            .collect()
    });
    assert_nothing_held(lock.raw());
    let written: u64 = results.iter().map(|(written, _)| written).sum();
    assert_eq!(
        slots.iter().map(Slot::read).sum::<u64>(),
        written,
        "lost updates"
    );
    let longest = results
        .iter()
        .map(|(_, wait)| *wait)
        .max()
        .unwrap_or_default();
    let (all, took) = (operations * threads, start.elapsed());
    println!("{name}: {all} operations in {took:.1?}, longest wait {longest:.1?}");
}

/// An exclusive lock, to be used like the others: its readers exclude each other.
struct NoSharing<L>(L);

// SAFETY: the inner lock's promise.
unsafe impl<L: RawRangeMutex> RawRangeMutex for NoSharing<L> {
    type Token = L::Token;

    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<Self::Token> {
        self.0.lock_exclusive(span, wait)
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
    fn lock_shared(&self, span: Span, wait: Wait) -> Option<Self::Token> {
        self.0.lock_exclusive(span, wait)
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

stress! {
    standard: common::standard(),
    slow_path: common::slow_path(),
    unfair: common::unfair(),
    fair_at_once: common::fair_at_once(),
    writers_first: common::writers_first(),
    writers_first_unfair: common::writers_first_unfair(),
    instrumented: common::instrumented(),
    srl_array: common::srl_array(),
    srl_array_unfair: common::srl_array_unfair(),
    srl_array_fair_at_once: common::srl_array_fair_at_once(),
    srl_tree: common::srl_tree(),
    skip: common::skip(),
    skip_standard: common::skip_standard(),
    skip_unfair: common::skip_unfair(),
    exclusive: NoSharing(common::exclusive()),
    exclusive_slow_path: NoSharing(common::exclusive_slow_path()),
    skip_exclusive: NoSharing(common::skip_exclusive()),
}
