//! The observer is told of each wait that sleeps, how it ends, and of ranges that are held for long.
//!
//! One test, since there is one observer in a process.

mod common;
#[path = "tasks/pool.rs"]
#[allow(dead_code, reason = "each test crate uses its part")]
mod pool;

use pool::{Count, poll};
use spanlock::deadlock::Deadlocks;
use spanlock::observe::{self, AlreadyObserved, LongHold, Observer, Outcome, Waiting};
use spanlock::range::keys::{Builder, KeyRangeLock, ShownKeys, between, point};
use spanlock::range::raw::Mode;
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock, Refusal};
use spanlock_testkit::exact::Exact;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: Exact = Exact;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Begins(Waiting),
    Ends(Waiting, Outcome),
}

struct Noting {
    told: Mutex<Vec<Told>>,
    long: Mutex<Vec<LongHold>>,
    is_long: AtomicBool,
    /// Whether it panics when it is told.
    panics: AtomicBool,
}

impl Observer for Noting {
    fn wait_begins(&self, wait: &Waiting) {
        self.told.lock().unwrap().push(Told::Begins(*wait));
        assert!(!self.panics.load(Relaxed), "it cannot be written");
    }

    fn wait_ends(&self, wait: &Waiting, _: Duration, outcome: Outcome) {
        self.told.lock().unwrap().push(Told::Ends(*wait, outcome));
        assert!(!self.panics.load(Relaxed), "it cannot be written");
    }

    fn held_for_long(&self, hold: &LongHold) {
        self.long.lock().unwrap().push(*hold);
        self.is_long.store(true, Relaxed);
    }
}

static NOTING: Noting = Noting {
    told: Mutex::new(Vec::new()),
    long: Mutex::new(Vec::new()),
    is_long: AtomicBool::new(false),
    panics: AtomicBool::new(false),
};

/// What was told since the last call: one wait, and how it has ended.
fn told() -> (Waiting, Outcome) {
    let told = std::mem::take(&mut *NOTING.told.lock().unwrap());
    match told[..] {
        [Told::Begins(wait), Told::Ends(same, outcome)] if wait == same => (wait, outcome),
        _ => panic!("not one wait: {told:?}"),
    }
}

#[test]
fn waits_are_told_from_begin_to_end() {
    observe::set(&NOTING).expect("the first");
    assert_eq!(observe::set(&NOTING), Err(AlreadyObserved));
    let looks = Deadlocks::report().every(Duration::from_millis(5));
    let lock = &RangeLock::from_raw(RawSlots::builder().deadlocks(looks).build());
    common::watched(lock.raw(), || {
        drop((lock.read(0..5), lock.read(3..9)));
        assert!(lock.try_write(50..60).is_some());
        assert!(NOTING.told.lock().unwrap().is_empty(), "nobody has slept");

        // A thread that waits for long.
        let held = lock.write(0..10);
        thread::scope(|scope| {
            let line = scope.spawn(|| {
                let line = line!() + 1;
                drop(lock.read(5..6));
                line
            });
            common::until(|| NOTING.is_long.load(Relaxed));
            drop(held);
            let line = line.join().expect("it ends");
            let (wait, outcome) = told();
            assert_eq!(outcome, Outcome::Granted);
            assert_eq!((wait.place.file(), wait.place.line()), (file!(), line));
            assert_eq!(
                (wait.span.start(), wait.span.last(), wait.mode),
                (5, 5, Mode::Shared)
            );
            assert_eq!(wait.owner.thread(), wait.thread);
            let long = NOTING.long.lock().unwrap();
            assert_eq!(long.len(), 1, "once for each wait: {long:?}");
            let held = long[0].held;
            assert_eq!(
                (held.span.start(), held.span.last(), held.mode),
                (0, 9, Mode::Exclusive)
            );
            assert!(long[0].at_least >= Duration::from_millis(5));
        });

        // One that gives up, for an owner.
        let held = lock.write(0..10);
        let owner = Owner::new();
        let refused = lock
            .by(&owner)
            .try_write_for(9..20, Duration::from_millis(2));
        assert_eq!(refused.err(), Some(Refusal::Busy));
        let (wait, outcome) = told();
        assert_eq!((wait.owner, outcome), (owner.id(), Outcome::Refused));
        assert!(wait.thread.is_some());

        // A task that is dropped, and one that is granted.
        let waker = Waker::from(Arc::new(Count::default()));
        let mut dropped = lock.by(&owner).write_async(0..1);
        assert!(poll(&mut dropped, &waker).is_pending());
        assert!(poll(&mut dropped, &waker).is_pending());
        drop(dropped);
        let (wait, outcome) = told();
        assert_eq!(
            (wait.owner, wait.thread, outcome),
            (owner.id(), None, Outcome::Dropped)
        );
        let mut granted = lock.by(&owner).write_async(0..1);
        assert!(poll(&mut granted, &waker).is_pending());
        drop(held);
        assert!(poll(&mut granted, &waker).is_ready());
        let (_, outcome) = told();
        assert_eq!(outcome, Outcome::Granted);
    });
    keys_are_told(looks);
    a_panic_takes_no_range_along();
    a_comparison_that_panics_ends_a_wait();
}

/// Of a lock over keys the observer is told the keys.
fn keys_are_told(looks: Deadlocks) {
    NOTING.is_long.store(false, Relaxed);
    NOTING.long.lock().unwrap().clear();
    let table = &Builder::<str>::new().deadlocks(looks).build();
    let keys = |keys: Option<ShownKeys>| keys.map(|keys| keys.to_string());
    let held = table.write(between("a", "m"));
    thread::scope(|scope| {
        scope.spawn(|| drop(table.read(point("k"))));
        // The monitor may come late with what it saw of the other lock, which has no keys.
        common::until(|| {
            NOTING
                .long
                .lock()
                .unwrap()
                .iter()
                .any(|long| long.held.keys.is_some())
        });
        drop(held);
    });
    let (wait, outcome) = told();
    assert_eq!(outcome, Outcome::Granted);
    assert_eq!(keys(wait.keys).as_deref(), Some(r#""k"..="k""#));
    let long = NOTING.long.lock().unwrap();
    let held = long.iter().find_map(|long| keys(long.held.keys));
    assert_eq!(held.as_deref(), Some(r#""a".."m""#));
    // A task that is dropped.
    let held = table.read(..);
    let mut dropped = table.write_async(between("b", "c"));
    assert!(poll(&mut dropped, &Waker::from(Arc::new(Count::default()))).is_pending());
    drop(dropped);
    let (wait, outcome) = told();
    assert_eq!((wait.thread, outcome), (None, Outcome::Dropped));
    assert_eq!(keys(wait.keys).as_deref(), Some(r#""b".."c""#));
    drop(held);
}

/// The observer panics when it is told. A thread, a task, and one whose future is dropped go on all the same.
fn a_panic_takes_no_range_along() {
    let lock = &RangeLock::new();
    let waker = Waker::from(Arc::new(Count::default()));
    let owner = Owner::new();
    common::watched(lock.raw(), || {
        let held = lock.write(0..10);
        let mut granted = lock.by(&owner).read_async(0..1);
        let mut dropped = lock.by(&owner).write_async(5..6);
        NOTING.panics.store(true, Relaxed);
        assert!(poll(&mut granted, &waker).is_pending());
        assert!(poll(&mut dropped, &waker).is_pending());
        thread::scope(|scope| {
            scope.spawn(|| drop(lock.read(1..2)));
            common::until(|| lock.snapshot().waiters.len() == 3);
            drop(held);
        });
        drop(dropped);
        assert!(poll(&mut granted, &waker).is_ready());
        NOTING.panics.store(false, Relaxed);
    });
    assert_eq!(owner.asks_or_holds(), 0);
    common::assert_nothing_held(lock.raw());
}

/// Of a thread. A task's wait ends when its future is dropped.
fn a_comparison_that_panics_ends_a_wait() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    NOTING.told.lock().unwrap().clear();
    let fragile = |one: &u32, other: &u32| {
        let is_waiting = thread::current().name() == Some("waiting");
        assert!(!is_waiting || !PANICS.load(Relaxed), "it cannot compare");
        one.cmp(other)
    };
    let table = &KeyRangeLock::<u32, _>::ordered_by(fragile);
    let (held, _beside) = (table.write(0..10), table.write(20..30));
    thread::scope(|scope| {
        let waiting = thread::Builder::new().name("waiting".to_owned());
        let waiting = waiting.spawn_scoped(scope, || drop(table.read(5..6)));
        let waiting = waiting.expect("it starts");
        common::until(|| table.snapshot().waiters.len() == 1);
        PANICS.store(true, Relaxed);
        drop(held);
        waiting.join().expect_err("it panics");
    });
    let (_, outcome) = told();
    assert_eq!(outcome, Outcome::Refused);
}
