//! Threads pass holdings on, and an oracle knows who holds what.

use super::common::{assert_nothing_held, setting};
use super::{CELLS, Cells, Map, cell};
use spanlock::range::raw::{Mode, RawOwned};
#[cfg(target_os = "linux")]
use spanlock::range::slots::RawSlots;
use spanlock::range::{Holding, Owner, RangeLock};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::{array, cell::Cell};

/// Who holds the cells: so many readers, or a writer, which is -1.
struct Oracle([AtomicI32; CELLS]);

impl Oracle {
    fn change(&self, cell: usize, from: Option<Mode>, to: Option<Mode>) {
        let state = &self.0[cell];
        let swap = |from, to| {
            let swapped = state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
            assert_eq!(swapped, Ok(from), "cell {cell} is held twice");
        };
        match (from, to) {
            (None, Some(Mode::Shared)) => {
                assert!(
                    state.fetch_add(1, Ordering::SeqCst) >= 0,
                    "cell {cell} has a writer"
                );
            }
            (Some(Mode::Shared), None) => {
                assert!(
                    state.fetch_sub(1, Ordering::SeqCst) > 0,
                    "cell {cell} has no reader"
                );
            }
            (None, Some(Mode::Exclusive)) => swap(0, -1),
            (Some(Mode::Exclusive), None) => swap(-1, 0),
            (Some(Mode::Shared), Some(Mode::Exclusive)) => swap(1, -1),
            (Some(Mode::Exclusive), Some(Mode::Shared)) => swap(-1, 1),
            (None, None)
            | (Some(Mode::Shared), Some(Mode::Shared))
            | (Some(Mode::Exclusive), Some(Mode::Exclusive)) => {}
        }
    }
}

/// How often threads end and others take their places. What they have locked for owners outlives them.
const ROUNDS: u64 = 20;

const THREADS: u64 = 4;

/// A child is forked in the midst of all this. What this thread has locked for an owner is released there, and lent to
/// others.
fn a_child_releases() {
    #[cfg(target_os = "linux")]
    {
        let slots = RawSlots::builder().slots_at_once().build();
        let lock = Arc::new(RangeLock::from_raw(slots));
        let locked = |at| {
            let owner = Owner::new();
            let by = lock.by_arc(&owner);
            by.try_lock(cell(at), Mode::Exclusive).ok()
        };
        let held = Cell::new(Some(array::from_fn::<_, 8, _>(locked)));
        let status = super::common::status_of_child(|| {
            let is_held = lock.try_read(..).is_none();
            drop(held.take());
            let all: Vec<_> = (0..CELLS).map(locked).collect();
            let are_granted = all.iter().all(Option::is_some);
            drop(all);
            is_held && are_granted && lock.try_write(..).is_some()
        });
        assert_eq!(status, 0);
    }
}

/// Threads pass holdings on, and convert, cut and release them. What is held alone, nobody else holds.
pub fn threads_pass_holdings_on<L: RawOwned + Send + Sync + 'static>(lock: RangeLock<L>) {
    type Place<L> = Arc<RangeLock<L>>;
    struct Shared<L: RawOwned> {
        lock: Place<L>,
        oracle: Oracle,
        waiting: Mutex<Vec<(Holding<Place<L>>, Map)>>,
    }
    impl<L: RawOwned> Shared<L> {
        /// Tells the oracle what comes to be held, after that, or what ceases to be, before that.
        fn become_of(&self, map: &mut Map, cell: usize, to: Option<Mode>) {
            self.oracle.change(cell, map[cell], to);
            map[cell] = to;
        }

        fn turn(&self, random: &mut fastrand::Rng) {
            let first = random.usize(..CELLS);
            let cells = Cells {
                first,
                last: (first + random.usize(..4)).min(CELLS - 1),
            };
            let mode = if random.bool() {
                Mode::Shared
            } else {
                Mode::Exclusive
            };
            let taken = self.waiting.lock().unwrap().pop();
            let (mut holding, mut map) =
                taken.unwrap_or_else(|| (self.lock.by_arc(&Owner::new()).nothing(), [None; CELLS]));
            match random.u32(..8) {
                0..4 => {
                    // It shares at once what it held alone.
                    let shares = |map: &Map, cell: &usize| {
                        (map[*cell], mode) == (Some(Mode::Exclusive), Mode::Shared)
                    };
                    let shared: Vec<_> = cells.each().filter(|cell| shares(&map, cell)).collect();
                    shared
                        .iter()
                        .for_each(|&cell| self.become_of(&mut map, cell, Some(Mode::Shared)));
                    let time = Duration::from_micros(random.u64(..200));
                    match holding.try_convert_for(cells.span(), mode, time) {
                        Ok(()) => cells
                            .each()
                            .for_each(|cell| self.become_of(&mut map, cell, Some(mode))),
                        Err(_) => shared.iter().for_each(|&cell| {
                            self.become_of(&mut map, cell, Some(Mode::Exclusive))
                        }),
                    }
                }
                4 => {
                    cells
                        .each()
                        .for_each(|cell| self.become_of(&mut map, cell, None));
                    holding.release(cells.span());
                }
                5 => {
                    let rest = holding.split_off(cell(first).start());
                    let mut moved = [None; CELLS];
                    moved[first..].copy_from_slice(&map[first..]);
                    map[first..].fill(None);
                    self.waiting.lock().unwrap().push((rest, moved));
                }
                6 => {
                    (0..CELLS).for_each(|cell| self.become_of(&mut map, cell, None));
                    drop(holding);
                    return;
                }
                _ => {
                    // A thread's own request, beside them.
                    if let Some(guard) = self
                        .lock
                        .try_write_for(cells.span(), Duration::from_micros(50))
                    {
                        cells
                            .each()
                            .for_each(|cell| self.oracle.change(cell, None, Some(Mode::Exclusive)));
                        cells
                            .each()
                            .for_each(|cell| self.oracle.change(cell, Some(Mode::Exclusive), None));
                        drop(guard);
                    }
                }
            }
            let mut waiting = self.waiting.lock().unwrap();
            let at = random.usize(..=waiting.len());
            waiting.insert(at, (holding, map));
        }
    }
    let shared = Arc::new(Shared {
        lock: Arc::new(lock),
        oracle: Oracle([const { AtomicI32::new(0) }; CELLS]),
        waiting: Mutex::new(Vec::new()),
    });
    let turns = setting("SPANLOCK_OWNER_TURNS", 20_000) / ROUNDS;
    for round in 0..ROUNDS {
        thread::scope(|scope| {
            for seed in 0..THREADS {
                let shared = &shared;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(round * THREADS + seed);
                    (0..turns).for_each(|_| shared.turn(&mut random));
                    a_child_releases();
                });
            }
        });
    }
    shared.waiting.lock().unwrap().clear();
    assert_nothing_held(shared.lock.raw());
}
