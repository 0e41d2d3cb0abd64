//! What tasks get done under locks that tasks and threads may wait for.
//!
//! Tasks of tokio lock and release ranges, hold them for no time, and yield once in a while. Locks without ranges take
//! each range for everything. A range lock has more to do for a range than they have for a word; these loads show how
//! much, and from which number of workers on it pays.
//!
//! One load is a crowd: many tasks on two workers, and two threads, all in one queue for one range. How long each waits
//! is recorded.

mod lock;

pub use lock::{SUBJECTS, Subject};

use crate::pairs::repeat;
use derive_more::Display;
use fastrand::Rng;
use lock::Lock;
use spanlock_records::record::Tasks;
use spanlock_records::trial::setting::named;
use spanlock_records::trial::times::{AcquireTimes, Times};
use std::future::Future;
use std::hint::black_box;
use std::ops::Range;
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

/// The positions of the resource.
const POSITIONS: u64 = 1024;
/// The range of one task, and that of a crowd.
const PART: u64 = 64;
/// Tasks for each worker.
const TASKS: usize = 4;
/// A task yields after so many acquisitions.
const BURST: usize = 64;
/// The workers of a crowd, and the threads beside them.
const CROWDED: usize = 2;

/// What is done with a lock.
#[derive(Debug, Clone, Copy, Display, PartialEq, Eq)]
pub enum Load {
    /// One thread reads, and nobody else wants the lock.
    #[display("read")]
    Read,
    /// The same by a task, which never waits.
    #[display("read-async")]
    ReadAsync,
    /// One thread writes.
    #[display("write")]
    Write,
    /// The same by a task.
    #[display("write-async")]
    WriteAsync,
    /// Each task writes a range of its own.
    #[display("disjoint")]
    Disjoint,
    /// Each task reads everything.
    #[display("whole")]
    Whole,
    /// Each task reads or writes random ranges.
    #[display("random")]
    Random,
    /// Many tasks, and two threads, write one range.
    #[display("crowd")]
    Crowd,
}

impl Load {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::ReadAsync,
        Self::Write,
        Self::WriteAsync,
        Self::Disjoint,
        Self::Whole,
        Self::Random,
        Self::Crowd,
    ];

    /// The numbers of workers with which it is measured, of those that are asked for. None: it takes no executor.
    #[must_use]
    pub fn workers(self, asked: &[usize]) -> Vec<usize> {
        match self {
            Self::Read | Self::ReadAsync | Self::Write | Self::WriteAsync => vec![0],
            Self::Disjoint | Self::Whole | Self::Random => asked.to_vec(),
            Self::Crowd => vec![CROWDED],
        }
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name, Self::ALL, ToString::to_string)
    }
}

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Threads that run tasks; 0 where there is no executor.
    pub workers: usize,
    /// How long tasks work.
    pub measured: Duration,
    /// Acquisitions where one thread has the lock to itself.
    pub pairs: u32,
    /// How many of a hundred random ranges are written.
    pub writes: u8,
    /// The tasks of a crowd.
    pub crowd: usize,
}

/// One round.
fn measure<L: Lock>(name: &'static str, load: Load, plan: Plan, round: u32) -> Tasks {
    let lock = L::default();
    let own = |task: usize| {
        let start = task as u64 % (POSITIONS / PART) * PART;
        start..start + PART
    };
    let each = |took: Duration| Done {
        count: u64::from(plan.pairs),
        took,
        ..Done::default()
    };
    let done = match load {
        Load::Read => each(repeat(plan.pairs, || {
            drop(black_box(black_box(&lock).read(black_box(0..PART))));
        })),
        Load::Write => each(repeat(plan.pairs, || {
            drop(black_box(black_box(&lock).write(black_box(0..PART))));
        })),
        Load::ReadAsync => each(awaited(plan.pairs, async |pairs| {
            for _ in 0..pairs {
                drop(black_box(
                    black_box(&lock).read_async(black_box(0..PART)).await,
                ));
            }
        })),
        Load::WriteAsync => each(awaited(plan.pairs, async |pairs| {
            for _ in 0..pairs {
                drop(black_box(
                    black_box(&lock).write_async(black_box(0..PART)).await,
                ));
            }
        })),
        Load::Disjoint => tasks(lock, plan, move |task, _| Ask::Write(own(task))),
        Load::Whole => tasks(lock, plan, |_, _| Ask::Read(0..POSITIONS)),
        Load::Random => tasks(lock, plan, move |_, random| {
            let start = random.u64(..POSITIONS);
            let range = start..start + random.u64(1..=PART);
            match random.u8(..100) < plan.writes {
                true => Ask::Write(range),
                false => Ask::Read(range),
            }
        }),
        Load::Crowd => crowd(lock, plan),
    };
    Tasks {
        lock: name.to_owned(),
        load: load.to_string(),
        workers: plan.workers,
        round,
        ops_per_sec: done.count as f64 / done.took.as_secs_f64(),
        task_ns: done.by_tasks.as_ref().map(AcquireTimes::from),
        thread_ns: done.by_threads.as_ref().map(AcquireTimes::from),
    }
}

/// What came of a round.
#[derive(Default)]
struct Done {
    count: u64,
    took: Duration,
    by_tasks: Option<Times>,
    by_threads: Option<Times>,
}

/// What a task asks for.
enum Ask {
    Read(Range<u64>),
    Write(Range<u64>),
}

/// How long a task takes for so many acquisitions, once caches are warm. It never waits.
fn awaited(pairs: u32, acquire: impl AsyncFn(u32)) -> Duration {
    let polled = |pairs| {
        let mut context = Context::from_waker(Waker::noop());
        let polled = pin!(acquire(pairs)).poll(&mut context);
        assert!(polled.is_ready(), "nobody else wants the lock");
    };
    polled(1000);
    let start = Instant::now();
    polled(pairs);
    start.elapsed()
}

fn runtime(workers: usize) -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(workers).build();
    runtime.expect("threads for the workers")
}

/// Tasks that lock what `ask` says, again and again.
fn tasks<L: Lock>(
    lock: L,
    plan: Plan,
    ask: impl Fn(usize, &mut Rng) -> Ask + Copy + Send + 'static,
) -> Done {
    let runtime = runtime(plan.workers);
    let shared = Arc::new((lock, AtomicBool::new(false)));
    let begun = Instant::now();
    let spawned: Vec<_> = (0..plan.workers * TASKS)
        .map(|task| {
            let shared = Arc::clone(&shared);
            runtime.spawn(async move {
                let (lock, stop) = &*shared;
                let mut random = Rng::with_seed(task as u64);
                let mut count = 0;
                // At least once: a busy machine may not come to it in the time that is measured.
                loop {
                    for _ in 0..BURST {
                        match ask(task, &mut random) {
                            Ask::Read(range) => drop(black_box(lock.read_async(range).await)),
                            Ask::Write(range) => drop(black_box(lock.write_async(range).await)),
                        }
                    }
                    count += BURST as u64;
                    yield_now().await;
                    if stop.load(Relaxed) {
                        break count;
                    }
                }
            })
        })
        .collect();
    thread::sleep(plan.measured);
    shared.1.store(true, Relaxed);
    let mut count = 0;
    for task in spawned {
        count += runtime.block_on(task).expect("no task panics");
    }
    Done {
        count,
        took: begun.elapsed(),
        ..Done::default()
    }
}

/// Many tasks on few workers, and as many threads as workers, in the queue for one range. Each of them waits again as
/// soon as it was served.
fn crowd<L: Lock>(lock: L, plan: Plan) -> Done {
    let runtime = runtime(plan.workers);
    let shared = Arc::new((lock, AtomicBool::new(false)));
    let begun = Instant::now();
    let spawned: Vec<_> = (0..plan.crowd)
        .map(|_| {
            let shared = Arc::clone(&shared);
            runtime.spawn(async move {
                let (lock, stop) = &*shared;
                let mut waits = Vec::new();
                // At least once, as above.
                loop {
                    let asked = Instant::now();
                    let held = lock.write_async(0..PART).await;
                    waits.push(asked.elapsed());
                    drop(black_box(held));
                    yield_now().await;
                    if stop.load(Relaxed) {
                        break waits;
                    }
                }
            })
        })
        .collect();
    let (lock, stop) = &*shared;
    let (by_threads, (by_tasks, took)) = thread::scope(|scope| {
        let threads: Vec<_> = (0..CROWDED)
            .map(|_| {
                scope.spawn(|| {
                    let mut times = Times::default();
                    loop {
                        let asked = Instant::now();
                        let held = lock.write(0..PART);
                        times.record(asked.elapsed());
                        drop(black_box(held));
                        if stop.load(Relaxed) {
                            break times;
                        }
                    }
                })
            })
            .collect();
        thread::sleep(plan.measured);
        stop.store(true, Relaxed);
        let mut by_tasks = Times::default();
        for task in spawned {
            let waits = runtime.block_on(task).expect("no task panics");
            waits.into_iter().for_each(|wait| by_tasks.record(wait));
        }
        let took = begun.elapsed();
        let threads = threads.into_iter().map(|thread| thread.join());
        let times: Vec<_> = threads
            .map(|times| times.expect("no thread panics"))
            .collect();
        (Times::sum(&times), (by_tasks, took))
    });
    Done {
        count: by_tasks.count() + by_threads.count(),
        took,
        by_tasks: Some(by_tasks),
        by_threads: Some(by_threads),
    }
}
