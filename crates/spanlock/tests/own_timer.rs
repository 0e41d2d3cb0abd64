//! A timer of the program's: turns and limits of tasks end by it, also if it is early or panics, and the library starts
//! no thread. A process has one timer, so this is one test.

use spanlock::deadlock::Deadlocks;
use spanlock::range::RangeLock;
use spanlock::range::slots::RawSlots;
use spanlock::timer::{self, AlreadyInstalled, Call, CallAt};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::watchdog::{HANG, watched};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: Exact = Exact;

/// Whether the timer panics instead.
static PANICS: AtomicBool = AtomicBool::new(false);

/// How often it has panicked.
static REFUSALS: AtomicUsize = AtomicUsize::new(0);

/// Gives each call to the test.
struct Noting(Mutex<Sender<(Instant, Call)>>);

impl CallAt for Noting {
    fn call_at(&self, when: Instant, call: Call) {
        if PANICS.load(Ordering::SeqCst) {
            REFUSALS.fetch_add(1, Ordering::SeqCst);
            panic!("the executor is gone");
        }
        let sender = self.0.lock().expect("no panic under it");
        sender.send((when, call)).expect("the test receives");
    }
}

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

type Calls = Receiver<(Instant, Call)>;

#[test]
fn turns_and_limits_end_by_it() {
    let (sender, calls) = mpsc::channel();
    timer::install(Box::new(Noting(Mutex::new(sender)))).expect("it is the first");
    let (other, _) = mpsc::channel();
    let refused = timer::install(Box::new(Noting(Mutex::new(other))));
    assert_eq!(refused, Err(AlreadyInstalled));
    makes_way(|| {
        let (when, call) = calls.recv().expect("the library asks for a call");
        thread::sleep(when.saturating_duration_since(Instant::now()));
        call.make();
    });
    a_call_that_is_early_comes_again(&calls);
    PANICS.store(true, Ordering::SeqCst);
    makes_way(|| {});
    a_look_that_is_refused_is_asked_for_again(&calls);
    #[cfg(target_os = "linux")]
    assert!(!threads().contains(&"spanlock-timer".to_owned()));
}

/// Two tasks are woken and never polled: the first, and the one to spare. A thread waits behind them, until the timer
/// calls, as `time` has it.
fn makes_way(time: impl FnOnce()) {
    let lock = RangeLock::new();
    let held = lock.write(0..10);
    let mut tasks = [0, 1].map(|_| Box::pin(lock.write_async(0..10)));
    for task in &mut tasks {
        let waker = Waker::from(Arc::new(Nothing));
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    let report = |(): &()| lock.snapshot().to_string();
    watched(
        HANG,
        || (),
        report,
        || {
            thread::scope(|scope| {
                scope.spawn(|| drop(lock.write(5..15)));
                while lock.snapshot().waiters.len() < 3 {
                    thread::yield_now();
                }
                drop(held);
                // The tasks are awake, and the thread sleeps behind them.
                time();
            });
        },
    );
    assert!(lock.try_write(5..15).is_some(), "the tasks hold nothing");
}

/// The limit of a task is not forgotten.
fn a_call_that_is_early_comes_again(calls: &Calls) {
    let lock = RangeLock::new();
    let held = lock.write(0..10);
    let mut task = pin!(lock.try_write_async_for(0..10, Duration::from_secs(1000)));
    for _ in 0..3 {
        let polled = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        let (_, call) = calls.try_recv().expect("the library asks for a call");
        call.make();
    }
    drop(held);
}

/// By a request that sleeps there afterwards.
fn a_look_that_is_refused_is_asked_for_again(calls: &Calls) {
    let looks = Deadlocks::report().every(Duration::from_millis(1));
    let lock = &RangeLock::from_raw(RawSlots::builder().deadlocks(looks).build());
    let held = lock.write(0..10);
    let before = REFUSALS.load(Ordering::SeqCst);
    // Those that are left over.
    calls.try_iter().for_each(drop);
    let reads = || {
        thread::scope(|scope| {
            scope.spawn(|| drop(lock.read(0..1)));
            while REFUSALS.load(Ordering::SeqCst) == before {
                thread::yield_now();
            }
            PANICS.store(false, Ordering::SeqCst);
            // The first may not have come to know it yet.
            let call = loop {
                scope.spawn(|| drop(lock.read(1..2)));
                if let Ok(call) = calls.recv_timeout(Duration::from_millis(5)) {
                    break call;
                }
            };
            drop((held, call));
        });
    };
    watched(HANG, || (), |()| lock.snapshot().to_string(), reads);
}

/// The names of this process's threads.
#[cfg(target_os = "linux")]
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("there are threads");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        let name = std::fs::read_to_string(task.ok()?.path().join("comm")).ok()?;
        Some(name.trim().to_owned())
    };
    tasks.filter_map(name).collect()
}
