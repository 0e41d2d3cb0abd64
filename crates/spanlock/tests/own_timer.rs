//! A timer of the program's: turns of tasks end by it, and the library starts no thread. A process has one timer, so
//! this is a test by itself.

use spanlock::range::RangeLock;
use spanlock::timer::{self, AlreadyInstalled, Call, CallAt};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::watchdog::{HANG, watched};
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Instant;

#[global_allocator]
static HEAP: Exact = Exact;

/// Gives each call to the test.
struct Noting(Mutex<Sender<(Instant, Call)>>);

impl CallAt for Noting {
    fn call_at(&self, when: Instant, call: Call) {
        let sender = self.0.lock().expect("no panic under it");
        sender.send((when, call)).expect("the test receives");
    }
}

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

/// A task is woken and never polled. A thread waits behind it, until the program's timer calls.
#[test]
fn turns_end_by_it() {
    let (sender, calls) = mpsc::channel();
    timer::install(Box::new(Noting(Mutex::new(sender)))).expect("it is the first");
    let (other, _) = mpsc::channel();
    let refused = timer::install(Box::new(Noting(Mutex::new(other))));
    assert_eq!(refused, Err(AlreadyInstalled));

    let lock = RangeLock::new();
    let held = lock.write(0..10);
    let waker = Waker::from(Arc::new(Nothing));
    let mut task = pin!(lock.write_async(0..10));
    assert!(matches!(
        task.as_mut().poll(&mut Context::from_waker(&waker)),
        Poll::Pending
    ));
    let report = |(): &()| lock.snapshot().to_string();
    watched(
        HANG,
        || (),
        report,
        || {
            thread::scope(|scope| {
                scope.spawn(|| drop(lock.write(5..15)));
                while lock.snapshot().waiters.len() < 2 {
                    thread::yield_now();
                }
                drop(held);
                // The task is awake, and the thread sleeps behind it.
                let (when, call) = calls.recv().expect("the library asks for a call");
                thread::sleep(when.saturating_duration_since(Instant::now()));
                call.make();
            });
        },
    );
    assert!(lock.try_write(5..15).is_some(), "the task holds nothing");
    #[cfg(target_os = "linux")]
    assert!(!threads().contains(&"spanlock-timer".to_owned()));
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
