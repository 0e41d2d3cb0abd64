//! Fork and join while a range is held, and while another thread asks for everything.
//!
//! A parent holds the head of an array, and its workers change the rest. Meanwhile a checkpointer asks for the whole
//! array. It waits for the parent, and the parent joins the workers. The workers ask for free ranges, but the
//! checkpointer's request is older. They give way to it for a limited time only, so all three make progress.
//!
//! ```text
//! checkpointer --waits for--> parent --joins--> workers --give way, for a time--> checkpointer
//! ```
//!
//! `cargo run --release --example fork_join`

use spanlock::range::RangeLocked;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const CELLS: usize = 100_000;
const ROUNDS: usize = 50;
const WORKERS: usize = 3;
/// Ranges that each worker changes in a round.
const PIECES: usize = 33;

fn main() {
    let cells = RangeLocked::from(vec![0_u64; CELLS]);
    let is_done = AtomicBool::new(false);
    let checkpoints = thread::scope(|scope| {
        let checkpointer = scope.spawn(|| {
            let mut taken = 0;
            while !is_done.load(Ordering::Relaxed) {
                drop(cells.write(..));
                taken += 1;
                thread::sleep(Duration::from_millis(3));
            }
            taken
        });
        for _ in 0..ROUNDS {
            let head = cells.read(0..10);
            thread::scope(|workers| {
                for worker in 0..WORKERS {
                    let cells = &cells;
                    workers.spawn(move || change(cells, worker));
                }
            });
            drop(head);
        }
        is_done.store(true, Ordering::Relaxed);
        checkpointer
            .join()
            .expect("the checkpointer does not panic")
    });
    let changes: u64 = cells.read(..).iter().sum();
    assert_eq!(changes, (ROUNDS * WORKERS * PIECES) as u64);
    println!("{changes} changes beside {checkpoints} checkpoints");
}

/// Changes one cell in each of the worker's ranges.
fn change(cells: &RangeLocked<u64>, worker: usize) {
    for piece in 0..PIECES {
        let start = (1 + worker * PIECES + piece) * 1000;
        cells.write(start..start + 500)[0] += 1;
        thread::sleep(Duration::from_micros(20));
    }
}
