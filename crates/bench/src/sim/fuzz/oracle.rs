//! Who is inside, and meetings of all threads.

use prim_sim::atomic::{AtomicU32, Ordering};
use prim_sim::futex;
use spanlock_sim::range::raw::Mode;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Readers inside, or -1 for a writer. Of the host: seen by all at once, and no help to the lock.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Place(AtomicI32);

impl Place {
    /// # Panics
    /// When somebody is inside who excludes the newcomer.
    pub(super) fn enter(&self, mode: Mode) {
        match mode {
            Mode::Shared => {
                let inside = self.0.fetch_add(1, Relaxed);
                assert!(inside >= 0, "a reader beside a writer");
            }
            Mode::Exclusive => {
                let inside = self.0.swap(-1, Relaxed);
                assert!(inside == 0, "a writer beside {}", told(inside));
            }
        }
    }

    /// # Panics
    /// When somebody came in meanwhile who is excluded.
    pub(super) fn leave(&self, mode: Mode) {
        match mode {
            Mode::Shared => {
                let inside = self.0.fetch_sub(1, Relaxed);
                assert!(inside > 0, "a writer came in beside a reader");
            }
            Mode::Exclusive => {
                let inside = self.0.swap(0, Relaxed);
                assert!(inside == -1, "{} came in beside a writer", told(inside));
            }
        }
    }
}

fn told(inside: i32) -> String {
    match inside {
        -1 => "a writer".to_owned(),
        0 => "somebody who has left".to_owned(),
        1 => "a reader".to_owned(),
        readers => format!("{readers} readers"),
    }
}

/// Where all threads wait for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Meeting(AtomicU32);

impl Meeting {
    /// Returns when so many threads have called this.
    pub(super) fn await_all(&self, threads: usize) {
        let all = u32::try_from(threads).expect("few");
        self.0.fetch_add(1, Ordering::AcqRel);
        futex::wake_all(&self.0);
        loop {
            let here = self.0.load(Ordering::Acquire);
            if here == all {
                return;
            }
            futex::wait(&self.0, here, None);
        }
    }
}
