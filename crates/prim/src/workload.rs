//! What workloads and the comparison locks need, and the library does not: threads that begin and end together, and a
//! spin without a bound.

use crate::atomic::{AtomicU64, Ordering};
use crate::clock::{Duration, Instant};
use std::sync::{Barrier, Mutex};

/// Whether time is that of a simulated machine.
pub const IS_VIRTUAL: bool = false;

/// Runs `work` in `threads` threads, each with its number, and `meanwhile` in this thread. Returns their results when
/// all have ended.
///
/// # Panics
/// When `work` or `meanwhile` does.
pub fn crew<T: Send>(
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
    meanwhile: impl FnOnce(),
) -> Vec<T> {
    let results = Results::new(threads);
    let mut meanwhile = Some(meanwhile);
    join_all(
        threads,
        &|number| results.put(number, work(number)),
        &mut || meanwhile.take().expect("it is called once")(),
    );
    results.into_vec()
}

/// What the threads of a crew leave. Its methods are compiled for each type of result, where [`crew`] is compiled for
/// each workload and lock.
struct Results<T>(Vec<Mutex<Option<T>>>);

impl<T> Results<T> {
    #[inline(never)]
    fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Mutex::new(None)).collect())
    }

    #[inline(never)]
    fn put(&self, number: usize, result: T) {
        *self.0[number].lock().expect("one thread locks it") = Some(result);
    }

    #[inline(never)]
    fn into_vec(self) -> Vec<T> {
        let results = self.0.into_iter().map(Mutex::into_inner);
        results
            .map(|result| result.ok().flatten().expect("its thread has ended"))
            .collect()
    }
}

/// Compiled once.
fn join_all(threads: usize, work: &(dyn Fn(usize) + Sync), meanwhile: &mut dyn FnMut()) {
    std::thread::scope(|scope| {
        let crew: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        meanwhile();
        for worker in crew {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// A barrier: threads wait for each other and begin together.
#[derive(Debug)]
pub struct Start(Barrier);

impl Start {
    /// A barrier for so many threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self(Barrier::new(threads))
    }

    /// Returns when all threads have called it.
    pub fn wait(&self) {
        self.0.wait();
    }
}

/// Sleeps for at least `time`, and returns how long it really was.
pub fn sleep(time: Duration) -> Duration {
    let begin = Instant::now();
    std::thread::sleep(time);
    begin.elapsed()
}

/// Loads of an unbounded spin before the thread begins to yield its processor after each load.
const LOADS: u32 = 1000;

/// Spins until `word` differs from `seen`, and returns its new value.
///
/// The spin has no bound.
#[inline]
pub fn until_changed(word: &AtomicU64, seen: u64) -> u64 {
    let mut loads = 0;
    loop {
        // Acquire: callers use the load as the acquisition of a spin lock.
        let now = word.load(Ordering::Acquire);
        if now != seen {
            return now;
        }
        if loads < LOADS {
            loads += 1;
            core::hint::spin_loop();
        } else {
            crate::thread::yield_now();
        }
    }
}
