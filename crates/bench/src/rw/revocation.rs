//! The cost of a revocation, by the size of the table of visible readers: a fence for all threads, and a scan of the
//! rows that ever had a reader. It decides how large a table may be.

use crate::pairs::repeat;
use spanlock::range::raw::Wait;
use spanlock::rw::pthread::table::{self, LockAddress, ReaderRow};
use spanlock_records::record::Revocation;
use std::hint::black_box;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// Threads that have read, and sleep since.
#[derive(Default)]
pub struct Sleepers(Vec<(mpsc::Sender<()>, JoinHandle<()>)>);

impl Sleepers {
    /// Has at least so many rows in use. They never get fewer in a process: so sizes are measured in their order.
    ///
    /// # Panics
    /// When no thread can be started.
    pub fn grow(&mut self, rows: usize) {
        // This thread reads as well.
        while self.0.len() + 1 < rows {
            let (wake, sleep) = mpsc::channel();
            let (read, has_read) = mpsc::channel();
            let sleeper = thread::spawn(move || {
                take_row();
                let _ = read.send(());
                let _ = sleep.recv();
            });
            has_read.recv().expect("it reads and says so");
            self.0.push((wake, sleeper));
        }
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for (wake, sleeper) in self.0.drain(..) {
            drop(wake);
            let _ = sleeper.join();
        }
    }
}

fn take_row() {
    // SAFETY: not kept.
    let _ = unsafe { ReaderRow::here() };
}

/// Measures one round.
#[must_use]
pub fn measure(rows: usize, round: u32) -> Revocation {
    const TIMES: u32 = 20_000;
    take_row();
    let lock = 0_u64;
    let address = LockAddress::of(&lock);
    let each = |what: &dyn Fn()| repeat(TIMES, what).as_nanos() as f64 / f64::from(TIMES);
    Revocation {
        rows,
        round,
        fence_ns: each(&prim::barrier::heavy),
        scan_ns: each(&|| {
            black_box(table::drain(black_box(address), Wait::Never));
        }),
    }
}
