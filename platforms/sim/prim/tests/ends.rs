//! Runs that go wrong end with a report, and the process goes on.

use prim_sim::atomic::{AtomicU32, AtomicU64, Ordering};
use prim_sim::{Machine, Setup, edge, futex, run, sync, thread};
use std::sync::Arc;

fn setup() -> Setup {
    Setup {
        seed: 42,
        operations: 100_000,
        ..Setup::new(Machine::find("small-1x2x1").unwrap())
    }
}

fn failure(f: impl FnOnce() + Send + 'static) -> String {
    run(&setup(), f).expect_err("it goes wrong").to_string()
}

#[test]
fn a_panic_is_reported_with_its_place() {
    let told = failure(|| {
        let _ = thread::spawn(|| panic!("no more {}", "apples")).join();
    });
    for part in [
        "t1: ",
        "ends.rs",
        "no more apples",
        "seed 42",
        "t0: waits for t1 to end",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn a_panic_that_waits_while_it_unwinds_is_reported() {
    struct LocksWhenDropped(Arc<sync::Mutex<()>>);
    impl Drop for LocksWhenDropped {
        fn drop(&mut self) {
            drop(self.0.lock());
        }
    }
    let told = failure(|| {
        let mutex = Arc::new(sync::Mutex::new(()));
        let held = mutex.lock();
        let theirs = LocksWhenDropped(Arc::clone(&mutex));
        let _ = thread::spawn(move || {
            let _theirs = theirs;
            panic!("dropped")
        })
        .join();
        drop(held);
    });
    assert!(told.contains("waits while it unwinds"), "{told}");
}

#[test]
fn a_deadlock_is_reported_with_what_each_thread_did_last() {
    let told = failure(|| {
        let [a, b] = [(); 2].map(|()| Arc::new(sync::Mutex::new(())));
        let (c, d) = (Arc::clone(&a), Arc::clone(&b));
        let other = thread::spawn(move || {
            let _d = d.lock();
            thread::yield_now();
            drop(c.lock());
        });
        let _a = a.lock();
        prim_sim::cost::work(1_000_000);
        drop(b.lock());
        other.join().unwrap();
    });
    for part in [
        "deadlock",
        "t0: sleeps on",
        "t1: sleeps on",
        "swap",
        "ends.rs",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn a_run_without_end_is_ended() {
    let told = failure(|| {
        let word = AtomicU64::new(0);
        while word.load(Ordering::Relaxed) == 0 {}
    });
    assert!(
        told.contains("still running after 100000 operations"),
        "{told}"
    );
}

#[test]
fn a_panic_that_is_caught_is_the_workloads_own() {
    let ended = run(&setup(), || {
        let word = AtomicU64::new(0);
        word.store(1, Ordering::Relaxed);
        let unwound = std::panic::catch_unwind(|| panic!("caught"));
        assert!(unwound.is_err());
        word.fetch_add(1, Ordering::Relaxed)
    });
    assert_eq!(ended.unwrap().value, 1);
}

/// Waits for others when dropped.
struct Waits<'a>(&'a AtomicU32);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Release);
        futex::wake_all(self.0);
        while self.0.load(Ordering::Acquire) != 2 {
            futex::wait(self.0, 1, None);
        }
    }
}

#[test]
fn others_run_while_a_thread_unwinds_from_what_it_throws() {
    let ended = run(&setup(), || {
        let word = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&word);
        let other = thread::spawn(move || {
            let thrown = std::panic::catch_unwind(|| {
                let _waits = Waits(&theirs);
                std::panic::resume_unwind(Box::new(7));
            });
            thrown.expect_err("thrown").downcast::<i32>().is_ok()
        });
        while word.load(Ordering::Acquire) != 1 {
            futex::wait(&word, 0, None);
        }
        word.store(2, Ordering::Release);
        futex::wake_all(&word);
        other.join().unwrap()
    });
    assert!(ended.expect("it ends well").value);
}

#[test]
fn a_panic_that_unwinds_without_end_is_reported() {
    struct Spins(AtomicU64);
    impl Drop for Spins {
        fn drop(&mut self) {
            while self.0.load(Ordering::Relaxed) == 0 {}
        }
    }
    let told = failure(|| {
        let _spins = Spins(AtomicU64::new(0));
        panic!("at first");
    });
    assert!(told.contains("at first"), "{told}");
    assert!(told.contains("unwinds without end"), "{told}");
}

#[test]
fn a_failure_tells_what_threads_were_about() {
    static HEARD: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let heard = Setup {
        trace: 1,
        listener: Some(|_| {
            HEARD.fetch_add(1, Ordering::Relaxed);
        }),
        ..setup()
    };
    let failure = run(&heard, || {
        prim_sim::mark("asks for more");
        let word = AtomicU32::new(0);
        (0..9).for_each(|_| word.store(1, Ordering::Relaxed));
        futex::wait(&word, 1, None);
    });
    let told = failure.expect_err("it sleeps for ever").to_string();
    assert!(
        told.contains("t0: sleeps on") && told.contains("; last it asks for more"),
        "{told}"
    );
    assert_eq!(told.matches("asks for more").count(), 2, "{told}");
    assert_eq!(HEARD.load(Ordering::Relaxed), 1);
}

#[test]
fn a_mutant_weakens_its_edge_alone() {
    let weak = Setup {
        mutant: Some("one".to_owned()),
        ..setup()
    };
    let intact = || [edge::is_intact("one"), edge::is_intact("two")];
    assert_eq!(run(&weak, intact).unwrap().value, [false, true]);
    assert_eq!(run(&setup(), intact).unwrap().value, [true, true]);
    assert_eq!(intact(), [true, true]);
}

prim_sim::global! {
    static COUNT: AtomicU64 = AtomicU64::new(0);
}

prim_sim::local! {
    static MINE: std::cell::Cell<u64> = std::cell::Cell::new(0);
}

#[test]
fn globals_and_locals_are_fresh_in_each_run_and_locals_in_each_thread() {
    fn count() -> (u64, u64) {
        MINE.with(|mine| mine.set(mine.get() + 1));
        (
            COUNT.fetch_add(1, Ordering::Relaxed),
            MINE.with(std::cell::Cell::get),
        )
    }
    for _ in 0..2 {
        let ended = run(&setup(), || {
            [count(), count(), thread::spawn(count).join().unwrap()]
        });
        assert_eq!(ended.unwrap().value, [(0, 1), (1, 2), (2, 1)]);
    }
}

#[test]
fn indices_are_dense_and_reused_and_exits_run_their_hooks() {
    prim_sim::global! {
        static EXITS: AtomicU32 = AtomicU32::new(0);
    }
    fn hook(_: usize) {
        EXITS.fetch_add(1, Ordering::Relaxed);
    }
    let ended = run(&setup(), || {
        let index = || thread::with_index(hook, |index, _| index);
        let here = index();
        let others = [(); 3].map(|()| thread::spawn(index).join().unwrap());
        (
            here,
            others,
            EXITS.load(Ordering::Relaxed),
            thread::high_water(),
        )
    });
    assert_eq!(ended.unwrap().value, (0, [1, 1, 1], 3, 2));
}

#[test]
fn outside_a_run_words_are_words() {
    let word = AtomicU32::new(1);
    word.store(2, Ordering::SeqCst);
    assert_eq!(word.fetch_or(4, Ordering::SeqCst), 2);
    assert_eq!(
        word.compare_exchange(6, 7, Ordering::SeqCst, Ordering::SeqCst),
        Ok(6)
    );
    futex::wake_all(&word);
    assert_eq!(futex::wait(&word, 0, None), futex::Woken::Recheck);
    assert_eq!(*sync::Mutex::new(3).lock(), 3);
}
