//! No call of the library takes more stack than its front page says.
#![cfg(target_os = "linux")]

mod common;

use spanlock::deadlock::{self, Deadlocks};
use spanlock::range::keys::KeyRangeLock;
use spanlock::range::raw::Mode;
use spanlock::range::{Owner, RangeLock, RangeLocked};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::stack::taken_by;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: Exact = Exact;

/// What the front page promises, in bytes.
const MOST: usize = if cfg!(debug_assertions) {
    32 << 10
} else {
    8 << 10
};

/// Long enough to sleep meanwhile.
const SHORT: Duration = Duration::from_millis(2);

/// Each is run on a thread of its own, so that each finds what the first call of a thread finds.
#[track_caller]
fn takes_little(what: &str, f: impl FnOnce() + Send) {
    let taken = taken_by(f);
    println!("{what}: {taken} bytes");
    assert!(
        taken <= MOST,
        "{what}: {taken} bytes of stack, and {MOST} are promised"
    );
}

/// Runs `f` while somebody holds something, and releases that meanwhile.
fn takes_little_to_wait<G>(what: &str, hold: impl FnOnce() -> G + Send, f: impl FnOnce() + Send) {
    let (held, is_held) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let guard = hold();
            held.send(()).expect("the test waits");
            thread::sleep(5 * SHORT);
            drop(guard);
        });
        is_held.recv().expect("it is held");
        takes_little(what, f);
    });
}

fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// More than fit where a thread's first ones are kept.
const MANY: u64 = 70;

macro_rules! by_threads {
    ($($name:ident)+) => {$(
        #[test]
        fn $name() {
            let named = |what| format!(concat!(stringify!($name), ", {}"), what);
            let lock = RangeLock::from_raw(common::$name());
            takes_little(&named("the first call"), || drop(lock.write(3..5)));
            takes_little(&named("two shared"), || drop((lock.read(3..5), lock.try_read(5..7))));
            takes_little(&named("downgraded"), || drop(lock.write(3..5).downgrade()));
            takes_little(&named("two ranges"), || drop(lock.write_many([3..5, 8..9])));
            takes_little(&named("many ranges"), || {
                drop((0..MANY).map(|at| lock.write(4 * at..4 * at + 1)).collect::<Vec<_>>());
            });
            takes_little_to_wait(&named("a wait"), || lock.write(0..10), || drop(lock.write(3..5)));
            let held = lock.write(0..10);
            takes_little(&named("a wait that ends"), || {
                assert!(lock.try_read_for(3..5, SHORT).is_none());
            });
            drop(held);
            takes_little(&named("the listing"), || drop(lock.snapshot()));
            takes_little(&named("a new lock and its end"), || {
                let lock = RangeLock::from_raw(common::$name());
                drop(lock.write(3..5));
            });
        }
    )+};
}

by_threads! {
    standard slow_path unfair fair_at_once writers_first skip skip_standard
    slots slots_at_once slots_buckets slots_annex slots_unfair
    srl_array srl_tree
}

macro_rules! by_owners {
    ($($test:ident: $name:ident)+) => {$(
        #[test]
        fn $test() {
            let named = |what| format!(concat!(stringify!($test), ", {}"), what);
            let lock = RangeLock::from_raw(common::$name());
            let owner = Owner::new();
            takes_little(&named("a holding, changed"), || {
                let mut holding = lock.by(&owner).read(10..20).expect("it is free");
                holding.extend(30..40).expect("it is free");
                holding.convert(5..25, Mode::Exclusive).expect("it is free");
                holding.release(12..14);
                holding.downgrade();
                holding.upgrade().expect("it is free");
            });
            takes_little(&named("several"), || {
                let wanted = [(3..5, Mode::Shared), (7..9, Mode::Exclusive)];
                drop(lock.by(&owner).lock_many(wanted));
            });
            takes_little(&named("re-entry"), || {
                let mut reentrant = lock.by(&owner).reentrant();
                for _ in 0..2 {
                    reentrant.lock(3..5, Mode::Shared).expect("it is free");
                }
            });
            takes_little_to_wait(&named("a wait"), || lock.write(0..10), || {
                drop(lock.by(&owner).write(3..5));
            });
            takes_little(&named("a task"), || drop(poll_once(lock.write_async(3..5))));
            let held = lock.write(0..10);
            takes_little(&named("a task that waits"), || {
                assert!(poll_once(lock.read_async(3..5)).is_none());
                // Or its time is over at once.
                let tried = poll_once(lock.try_read_async_for(3..5, SHORT));
                assert!(tried.flatten().is_none());
            });
            drop(held);
        }
    )+};
}

by_owners! {
    owners_of_a_list: standard owners_of_an_index: skip owners_of_slots: slots_at_once
    owners_in_the_annex: slots_annex
}

const KEYS: [[u8; 3]; 6] = [*b"app", *b"bee", *b"cat", *b"dog", *b"elk", *b"fox"];

#[test]
fn keys() {
    let lock = KeyRangeLock::<[u8; 3]>::new();
    takes_little("keys, the first call", || {
        drop(lock.write(KEYS[1]..KEYS[3]))
    });
    takes_little("keys, a try", || drop(lock.try_read(KEYS[1]..KEYS[2])));
    let owner = Owner::new();
    takes_little("keys, an owner's", || {
        let mut holding = lock.by(&owner).read(KEYS[1]..KEYS[3]).expect("it is free");
        holding.extend(KEYS[4]..KEYS[5]).expect("it is free");
    });
    takes_little_to_wait(
        "keys, a wait",
        || lock.write(KEYS[0]..),
        || drop(lock.write(KEYS[1]..KEYS[2])),
    );
    takes_little("keys, the listing", || drop(lock.snapshot()));
}

#[test]
fn slices() {
    let slice = RangeLocked::from(vec![0_u8; 100]);
    takes_little("slices", || slice.write(3..5).fill(1));
}

#[test]
fn deadlocks() {
    let lock = RangeLock::from_raw(
        spanlock::range::slots::RawSlots::builder()
            .deadlocks(Deadlocks::refuse())
            .build(),
    );
    takes_little("deadlocks, a wait", || {
        let owner = Owner::new();
        drop(lock.by(&owner).write(3..5));
    });
    takes_little("deadlocks, the listing", || drop(deadlock::dump_all()));
}

#[cfg(feature = "rw")]
mod rw {
    use super::{SHORT, common, poll_once, takes_little, takes_little_to_wait};
    use lock_api::RwLock;
    use spanlock::rw::{AwaitRwLock, ForTasks, FutexRwLock};

    macro_rules! reader_writer_locks {
        ($($name:ident)+) => {$(
            #[test]
            fn $name() {
                let named = |what| format!(concat!("rw::", stringify!($name), ", {}"), what);
                let lock = RwLock::from_raw(common::rw::$name(), 0);
                takes_little(&named("read"), || drop(lock.read()));
                takes_little(&named("write"), || *lock.write() += 1);
                takes_little(&named("tries"), || drop((lock.try_read(), lock.try_write())));
                takes_little_to_wait(&named("a wait to write"), || lock.read(), || drop(lock.write()));
                takes_little_to_wait(&named("a wait to read"), || lock.write(), || drop(lock.read()));
            }
        )+};
    }

    reader_writer_locks! {
        futex futex_readers_first ticket queue cohort per_cpu mutex
        bravo_adaptive bravo_eager bravo_ticket bravo_queue bravo_cohort bravo_per_cpu
    }

    #[test]
    fn tasks() {
        let lock = RwLock::<ForTasks<FutexRwLock>, u32>::new(0);
        takes_little("rw::ForTasks, free", || drop(poll_once(lock.write_async())));
        let held = lock.write();
        takes_little("rw::ForTasks, held", || {
            assert!(poll_once(lock.read_async()).is_none());
            assert!(poll_once(lock.write_async()).is_none());
        });
        drop(held);
        takes_little_to_wait(
            "rw::ForTasks, a thread",
            || lock.write(),
            || drop(lock.try_read_for(SHORT)),
        );
    }
}
