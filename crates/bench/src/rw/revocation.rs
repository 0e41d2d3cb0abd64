//! What a writer that revokes a bias pays, by the size of the table of visible readers: to fence for all threads, and to
//! scan the rows that ever had a reader. It decides how large a table may be.

use crate::uncontended::repeat;
use serde::{Deserialize, Serialize};
use spanlock::range::raw::Wait;
use spanlock::rw::visible::{self, LockAddress, Seat};
use std::hint::black_box;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// One round at one size: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Threads that read at some time, each with a row of the table.
    pub rows: usize,
    /// Which of several equal rounds, from 0.
    pub round: u32,
    /// Nanoseconds of a fence for all threads, of which the others sleep.
    pub fence_ns: f64,
    /// Nanoseconds of a scan that finds nobody.
    pub scan_ns: f64,
}

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
    let _ = unsafe { Seat::here() };
}

impl Record {
    /// Measures one round.
    #[must_use]
    pub fn measure(rows: usize, round: u32) -> Self {
        const TIMES: u32 = 20_000;
        take_row();
        let lock = 0_u64;
        let address = LockAddress::of(&lock);
        let each = |what: &dyn Fn()| repeat(TIMES, what).as_nanos() as f64 / f64::from(TIMES);
        Self {
            rows,
            round,
            fence_ns: each(&prim::barrier::heavy),
            scan_ns: each(&|| {
                black_box(visible::drain(black_box(address), Wait::Never));
            }),
        }
    }
}
