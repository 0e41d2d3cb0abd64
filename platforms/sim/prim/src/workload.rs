//! What workloads and the comparison locks need, and the library does not: the same functions as in `prim`.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::clock::{Duration, Instant};
use crate::futex::{self, Woken};
use crate::world;
use std::cell::RefCell;

/// Whether time is that of a simulated machine.
pub const IS_VIRTUAL: bool = true;

/// Runs `work` in `threads` threads, each with its number, and `meanwhile` in this thread. Returns their results when
/// all have ended.
pub fn crew<T: Send>(
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
    meanwhile: impl FnOnce(),
) -> Vec<T> {
    let results: Vec<_> = (0..threads).map(|_| RefCell::new(None)).collect();
    let spawned: Vec<_> = results
        .iter()
        .enumerate()
        .map(|(number, result)| {
            let work = &work;
            let body = move || *result.borrow_mut() = Some(work(number));
            let body: Box<dyn FnOnce() + '_> = Box::new(body);
            // SAFETY: the closure's borrows outlive it, because this function joins the thread before it returns. If
            // this thread unwinds instead, the run is over, and no other thread is ever resumed.
            let body: Box<dyn FnOnce()> = unsafe { std::mem::transmute(body) };
            world::spawn(body)
        })
        .collect();
    meanwhile();
    spawned.into_iter().for_each(world::join);
    let results = results.into_iter().map(RefCell::into_inner);
    results
        .map(|result| result.expect("a thread that has ended leaves its result"))
        .collect()
}

/// A barrier that does nothing: the threads of a crew begin at the same virtual time anyway.
#[derive(Debug)]
pub struct Start;

impl Start {
    /// A barrier for any number of threads.
    #[must_use]
    pub fn new(_threads: usize) -> Self {
        Self
    }

    /// Returns at once.
    pub fn wait(&self) {}
}

/// Sleeps for so much virtual time, and returns it.
pub fn sleep(time: Duration) -> Duration {
    /// A word on cache lines of its own.
    #[repr(align(128))]
    struct Nobody(AtomicU32);
    let nobody = Nobody(AtomicU32::new(0));
    let deadline = Some(Instant::now() + time);
    while futex::wait(&nobody.0, 0, deadline) != Woken::TimedOut {}
    time
}

/// Spins until `word` differs from `seen`, and returns its new value. The only cost is that of the loads after each
/// change.
#[track_caller]
pub fn until_changed(word: &AtomicU64, seen: u64) -> u64 {
    loop {
        let now = word.load(Ordering::Acquire);
        if now != seen {
            return now;
        }
        world::watch(std::ptr::from_ref(word).addr());
    }
}
