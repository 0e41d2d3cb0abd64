//! Deadlocks between threads, owners and tasks: told with the right places, or refused; and nothing else is told.
//!
//! What is reported instead of refused never ends. So the threads of such tests are left behind.

#[path = "../common/mod.rs"]
mod common;
#[path = "../tasks/pool.rs"]
#[allow(dead_code, reason = "each test crate uses its part")]
mod pool;

mod keys;
mod nothing;
mod refused;
mod rings;
#[cfg(feature = "rw")]
mod rw;
mod storm;
mod survivors;

use spanlock::deadlock::{self, Deadlock, Deadlocks, Report};
use spanlock_testkit::exact::Exact;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: Exact = Exact;

/// How the locks of these tests look.
const REPORT: Deadlocks = Deadlocks::report().every(Duration::from_millis(20));
const REFUSE: Deadlocks = Deadlocks::refuse().every(Duration::from_millis(20));

static TOLD: Mutex<Vec<Report>> = Mutex::new(Vec::new());
static MORE: Condvar = Condvar::new();

/// Keeps all reports from now on.
fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: nothing here reads the environment but by the standard library, which takes turns.
        unsafe { std::env::set_var("SPANLOCK_DEADLOCKS", "report:20") };
        deadlock::on_report(|report| {
            let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
            told.push(report.clone());
            MORE.notify_all();
        });
    });
}

/// The first report of which that is so. A report is told once, so it must come.
fn await_report<R>(mut pick: impl FnMut(&Report) -> Option<R>) -> R {
    common::watched_silently(|| {
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(picked) = told.iter().find_map(&mut pick) {
                return picked;
            }
            told = MORE.wait(told).unwrap_or_else(PoisonError::into_inner);
        }
    })
}

/// Whether a report names one of these lines of that file as a place where somebody waits.
fn waits_at(deadlock: &Deadlock, file: &str, line: u32) -> bool {
    let is_there = |step: &deadlock::Step| step.place.file() == file && step.place.line() == line;
    deadlock.steps.iter().any(is_there)
}

/// Where one of the parties has locked, and where it asks for more.
#[derive(Debug, Clone, Copy)]
struct Lines {
    held: u32,
    asked: u32,
}

/// Parties that each lock one thing, and then, when all have, another.
struct Meeting {
    all_hold: Arc<Barrier>,
    tell: Sender<Lines>,
    told: Receiver<Lines>,
    parties: usize,
}

impl Meeting {
    fn of(parties: usize) -> Self {
        begin();
        let (tell, told) = mpsc::channel();
        let all_hold = Arc::new(Barrier::new(parties));
        Self {
            all_hold,
            tell,
            told,
            parties,
        }
    }

    /// A thread of its own. It calls what it is given when it holds something, and is about to ask in a certain line.
    fn party(&self, party: impl FnOnce(&dyn Fn(u32, u32)) + Send + 'static) {
        let (tell, all_hold) = (self.tell.clone(), Arc::clone(&self.all_hold));
        thread::spawn(move || {
            party(&|held, asked| {
                tell.send(Lines { held, asked }).expect("the test listens");
                all_hold.wait();
            });
        });
    }

    /// The ring of all parties, after a check of its places.
    fn ring(self, file: &str) -> Deadlock {
        let lines: Vec<_> = self.told.iter().take(self.parties).collect();
        let asks = lines[0].asked;
        let ring = await_report(|report| match report {
            Report::Deadlock(deadlock) => waits_at(deadlock, file, asks).then(|| deadlock.clone()),
            _ => None,
        });
        assert_eq!(ring.steps.len(), self.parties, "{ring}");
        let of = |line| lines.iter().find(|lines| lines.asked == line);
        let nexts = ring.steps.iter().cycle().skip(1);
        for (step, next) in ring.steps.iter().zip(nexts) {
            assert!(of(step.place.line()).is_some(), "{ring}");
            let next = of(next.place.line()).unwrap_or_else(|| panic!("{ring}"));
            match step.held.place {
                Some(held) => assert_eq!((held.file(), held.line()), (file, next.held), "{ring}"),
                None if cfg!(debug_assertions) => panic!("a place is not known: {ring}"),
                None => {}
            }
        }
        ring
    }
}

/// A lock that outlives all threads.
fn lasting<T>(lock: T) -> &'static T {
    Box::leak(Box::new(lock))
}
