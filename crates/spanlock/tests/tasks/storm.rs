//! Random work by tasks and threads under one lock, and an oracle that detects forbidden holders.

use super::common::{Shared, assert_nothing_held, setting, watched};
use super::pool::{Count, Pool, poll};
use fastrand::Rng;
use spanlock::range::raw::{Mode, RawOwned};
use spanlock::range::{Holding, Lock, RangeLock};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

const SLOTS: usize = 16;
const WRITER: i32 = i32::MIN;

/// How many hold each slot.
#[derive(Default)]
struct Oracle([AtomicI32; SLOTS]);

/// A range held, as the oracle knows it.
struct Seen<'a> {
    oracle: &'a Oracle,
    range: Range<u64>,
    mode: Mode,
}

impl Oracle {
    fn enter(&self, range: Range<u64>, mode: Mode) -> Seen<'_> {
        for slot in range.clone() {
            let slot = &self.0[slot as usize];
            match mode {
                Mode::Shared => assert!(slot.fetch_add(1, Ordering::SeqCst) >= 0, "a writer"),
                Mode::Exclusive => assert_eq!(slot.swap(WRITER, Ordering::SeqCst), 0, "a holder"),
            }
        }
        let oracle = self;
        Seen {
            oracle,
            range,
            mode,
        }
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        for slot in self.range.clone() {
            let slot = &self.oracle.0[slot as usize];
            match self.mode {
                Mode::Shared => _ = slot.fetch_sub(1, Ordering::SeqCst),
                Mode::Exclusive => slot.store(0, Ordering::SeqCst),
            }
        }
    }
}

fn wish(random: &mut Rng) -> (Range<u64>, Mode) {
    let start = random.u64(..SLOTS as u64);
    let end = (start + random.u64(1..6)).min(SLOTS as u64);
    let mode = match random.u32(..3) {
        0 => Mode::Exclusive,
        _ => Mode::Shared,
    };
    (start..end, mode)
}

fn ask<L: RawOwned>(
    lock: &Arc<RangeLock<L>>,
    wish: &(Range<u64>, Mode),
) -> Lock<Arc<RangeLock<L>>> {
    match wish.1 {
        Mode::Shared => lock.read_owned_async(wish.0.clone()),
        Mode::Exclusive => lock.write_owned_async(wish.0.clone()),
    }
}

/// A thread locks ranges, and waits as threads do.
fn a_thread<L: Shared>(lock: &RangeLock<L>, oracle: &Oracle, random: &mut Rng) {
    let (range, mode) = wish(random);
    match mode {
        Mode::Shared => {
            let guard = lock.read(range.clone());
            drop(oracle.enter(range, mode));
            drop(guard);
        }
        Mode::Exclusive => {
            let guard = lock.write(range.clone());
            drop(oracle.enter(range, mode));
            drop(guard);
        }
    }
}

/// Lets the other tasks run.
async fn pause() {
    let mut first = true;
    std::future::poll_fn(|context| {
        if std::mem::take(&mut first) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Many tasks on few threads, which hold ranges while others run, beside threads that wait.
pub fn tasks_and_threads<L: Shared + RawOwned>(lock: Arc<RangeLock<L>>) {
    let turns = setting("SPANLOCK_TASK_TURNS", 300);
    let oracle = Arc::new(Oracle::default());
    let pool = Pool::default();
    for seed in 0..24 {
        let (lock, oracle) = (Arc::clone(&lock), Arc::clone(&oracle));
        pool.spawn(async move {
            let mut random = Rng::with_seed(seed);
            for _ in 0..turns {
                let wish = wish(&mut random);
                let held = ask(&lock, &wish).await;
                let seen = oracle.enter(wish.0, wish.1);
                if random.bool() {
                    pause().await;
                }
                drop(seen);
                drop(held);
            }
        });
    }
    watched(lock.raw(), || {
        thread::scope(|scope| {
            for seed in 0..2 {
                let (lock, oracle) = (&lock, &oracle);
                scope.spawn(move || {
                    let mut random = Rng::with_seed(seed);
                    (0..turns).for_each(|_| a_thread(lock, oracle, &mut random));
                });
            }
            scope.spawn(|| pool.run(2));
        });
    });
    assert_nothing_held(lock.raw());
}

/// A request, and what it asks for.
type Asked<L> = (Lock<Arc<RangeLock<L>>>, (Range<u64>, Mode));

/// Threads make futures, poll them, pass them on and drop them, at random. A thread waits beside them, for whom each
/// task that is not polled must make way.
pub fn polled_and_dropped<L: Shared + RawOwned>(lock: Arc<RangeLock<L>>) {
    let turns = setting("SPANLOCK_TASK_TURNS", 300);
    let oracle = Oracle::default();
    let passed_on: Mutex<Vec<Asked<L>>> = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    watched(lock.raw(), || {
        thread::scope(|scope| {
            let plays: Vec<_> = (0..3)
                .map(|seed| {
                    let (lock, oracle, passed_on) = (&lock, &oracle, &passed_on);
                    scope.spawn(move || {
                        let mut random = Rng::with_seed(seed);
                        let mut play = Play {
                            lock,
                            oracle,
                            passed_on,
                            held: Vec::new(),
                            wakers: std::array::from_fn(|_| {
                                Waker::from(Arc::new(Count::default()))
                            }),
                        };
                        (0..10 * turns).for_each(|_| play.turn(&mut random));
                    })
                })
                .collect();
            scope.spawn(|| {
                let mut random = Rng::with_seed(7);
                while !is_over.load(Ordering::Relaxed) {
                    a_thread(&lock, &oracle, &mut random);
                }
            });
            plays
                .into_iter()
                .for_each(|play| play.join().expect("no oracle complains"));
            is_over.store(true, Ordering::Relaxed);
            passed_on.lock().unwrap().clear();
        });
    });
    assert_nothing_held(lock.raw());
}

struct Play<'a, L: RawOwned> {
    lock: &'a Arc<RangeLock<L>>,
    oracle: &'a Oracle,
    passed_on: &'a Mutex<Vec<Asked<L>>>,
    held: Vec<(Seen<'a>, Holding<Arc<RangeLock<L>>>)>,
    wakers: [Waker; 2],
}

impl<L: Shared + RawOwned> Play<'_, L> {
    fn turn(&mut self, random: &mut Rng) {
        match random.u32(..16) {
            0..4 => {
                let wish = wish(random);
                let request = ask(self.lock, &wish);
                self.passed_on.lock().unwrap().push((request, wish));
            }
            4..10 => self.poll(random),
            10..12 => {
                let mut waiting = self.passed_on.lock().unwrap();
                let dropped = waiting
                    .len()
                    .checked_sub(1)
                    .map(|last| waiting.swap_remove(random.usize(..=last)));
                drop(waiting);
                drop(dropped);
            }
            12..15 => {
                let dropped = self
                    .held
                    .len()
                    .checked_sub(1)
                    .map(|last| self.held.swap_remove(random.usize(..=last)));
                drop(dropped);
            }
            _ => thread::sleep(Duration::from_micros(random.u64(..300))),
        }
    }

    fn poll(&mut self, random: &mut Rng) {
        let mut waiting = self.passed_on.lock().unwrap();
        let Some(last) = waiting.len().checked_sub(1) else {
            return;
        };
        let (mut request, wish) = waiting.swap_remove(random.usize(..=last));
        drop(waiting);
        match poll(&mut request, &self.wakers[random.usize(..2)]) {
            Poll::Ready(holding) => {
                let seen = self.oracle.enter(wish.0, wish.1);
                self.held.push((seen, holding));
            }
            Poll::Pending => self.passed_on.lock().unwrap().push((request, wish)),
        }
    }
}
