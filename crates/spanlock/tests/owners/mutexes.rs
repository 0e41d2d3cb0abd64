//! Threads pass on what owners hold of a lock of exclusive ranges, and an oracle knows who holds what.

use super::common::{assert_nothing_held, setting};
use super::{CELLS, Cells, cell};
use spanlock::range::raw::RawOwnedMutex;
use spanlock::range::{Holding, Owner, RangeMutex, Refusal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

type Held<L> = Holding<Arc<RangeMutex<L>>>;

/// Which cells are held.
struct Oracle([AtomicBool; CELLS]);

impl Oracle {
    fn change(&self, cell: usize, held: bool) {
        let before = self.0[cell].swap(held, Ordering::SeqCst);
        assert_ne!(before, held, "cell {cell} is held twice, or by nobody");
    }
}

/// Threads extend, cut, split and release holdings, and pass them on.
pub fn threads_pass_holdings_on<L: RawOwnedMutex + Send + Sync + 'static>(lock: RangeMutex<L>) {
    let lock = Arc::new(lock);
    let oracle = Oracle([const { AtomicBool::new(false) }; CELLS]);
    let waiting: Mutex<Vec<(Held<L>, [bool; CELLS])>> = Mutex::new(Vec::new());
    let turn = |random: &mut fastrand::Rng| {
        let first = random.usize(..CELLS);
        let last = (first + random.usize(..4)).min(CELLS - 1);
        let cells = Cells { first, last };
        let taken = waiting.lock().unwrap().pop();
        let (mut holding, mut map) = taken.unwrap_or_else(|| {
            let nothing = lock.by_arc(&Owner::new()).nothing();
            (nothing, [false; CELLS])
        });
        match random.u32(..6) {
            0..3 => match holding.try_extend(cells.span()) {
                Ok(()) => {
                    for cell in cells.each().filter(|&cell| !map[cell]) {
                        oracle.change(cell, true);
                    }
                    cells.each().for_each(|cell| map[cell] = true);
                }
                Err(refusal) => assert_eq!(refusal, Refusal::Busy),
            },
            3 => {
                for cell in cells.each().filter(|&cell| map[cell]) {
                    oracle.change(cell, false);
                }
                cells.each().for_each(|cell| map[cell] = false);
                holding.release(cells.span());
            }
            4 => {
                let rest = holding.split_off(cell(first).start());
                let mut moved = [false; CELLS];
                moved[first..].copy_from_slice(&map[first..]);
                map[first..].fill(false);
                waiting.lock().unwrap().push((rest, moved));
            }
            _ => {
                // A thread's own request, beside them.
                let soon = Duration::from_micros(50);
                if let Some(guard) = lock.try_lock_for(cells.span(), soon) {
                    cells.each().for_each(|cell| oracle.change(cell, true));
                    cells.each().for_each(|cell| oracle.change(cell, false));
                    drop(guard);
                }
                (0..CELLS)
                    .filter(|&cell| map[cell])
                    .for_each(|cell| oracle.change(cell, false));
                return;
            }
        }
        let mut waiting = waiting.lock().unwrap();
        let at = random.usize(..=waiting.len());
        waiting.insert(at, (holding, map));
    };
    let turns = setting("SPANLOCK_OWNER_TURNS", 20_000);
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                (0..turns).for_each(|_| turn(&mut random));
            });
        }
    });
    waiting.lock().unwrap().clear();
    assert_nothing_held(lock.raw());
}
