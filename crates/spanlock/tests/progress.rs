//! Every waiting request is granted, and waiting uses almost no processor time.

#[macro_use]
mod common;

use common::{Shared, shared};
use spanlock::range::RangeLock;
use spanlock_testkit::exact::Exact;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

/// Seven threads read everything, such that there is always one inside, until a writer was in ten times.
fn a_writer_gets_in_among_readers_without_pause<L: Shared>(lock: &RangeLock<L>) {
    const TIMES: u64 = 10;
    let satisfied = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..7 {
            scope.spawn(|| {
                while !satisfied.load(Relaxed) {
                    let _held = lock.read(..);
                    reads.fetch_add(1, Relaxed);
                    thread::yield_now();
                }
            });
        }
        for _ in 0..TIMES {
            let before = reads.load(Relaxed);
            common::until(|| reads.load(Relaxed) > before);
            drop(lock.write(50..60));
        }
        satisfied.store(true, Relaxed);
    });
}

#[test]
fn a_writer_gets_in_by_default() {
    shared(
        common::standard,
        a_writer_gets_in_among_readers_without_pause,
    );
}

#[test]
fn a_writer_gets_in_when_fair_at_once() {
    shared(
        common::fair_at_once,
        a_writer_gets_in_among_readers_without_pause,
    );
}

#[test]
fn a_writer_gets_in_with_writers_first() {
    shared(
        common::writers_first,
        a_writer_gets_in_among_readers_without_pause,
    );
}

#[test]
fn a_writer_gets_in_among_readers_of_segments() {
    shared(
        common::srl_array,
        a_writer_gets_in_among_readers_without_pause,
    );
}

/// The other way round: writers of parts, such that there is always one inside, and one reader of everything.
fn a_reader_gets_in_among_writers_without_pause<L: Shared>(lock: &RangeLock<L>) {
    const TIMES: u64 = 10;
    let satisfied = AtomicBool::new(false);
    thread::scope(|scope| {
        for at in 0..7 {
            let satisfied = &satisfied;
            scope.spawn(move || {
                while !satisfied.load(Relaxed) {
                    let _held = lock.write(10 * at..10 * at + 10);
                    thread::yield_now();
                }
            });
        }
        for _ in 0..TIMES {
            thread::yield_now();
            drop(lock.read(..));
        }
        satisfied.store(true, Relaxed);
    });
}

#[test]
fn a_reader_gets_in_by_default() {
    shared(
        common::standard,
        a_reader_gets_in_among_writers_without_pause,
    );
}

#[test]
fn a_reader_gets_in_with_writers_first() {
    shared(
        common::writers_first,
        a_reader_gets_in_among_writers_without_pause,
    );
}

#[test]
fn a_reader_gets_in_among_writers_of_segments() {
    shared(
        common::srl_tree,
        a_reader_gets_in_among_writers_without_pause,
    );
}

#[cfg(target_os = "linux")]
mod on_linux {
    use super::common::await_sleepers;
    use super::{RangeLock, Relaxed, Shared, thread};
    use std::fs;
    use std::mem::MaybeUninit;
    use std::sync::mpsc;
    use std::time::Duration;

    /// What the running thread has used so far.
    fn usage() -> libc::rusage {
        let mut usage = MaybeUninit::uninit();
        // SAFETY: it writes to the place it is given.
        let rc = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        assert_eq!(rc, 0);
        // SAFETY: written by the call, which succeeded.
        unsafe { usage.assume_init() }
    }

    /// Returns when a thread has slept from one look at it to the next. One that spins or polls runs in between, and
    /// the kernel counts that.
    fn await_sleep(thread: libc::pid_t) {
        let look = || {
            let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
            let told = |line: &&str| line.starts_with("State:") || line.contains("ctxt_switches:");
            status.lines().filter(told).collect::<String>()
        };
        loop {
            let before = look();
            thread::sleep(Duration::from_millis(10));
            if before.contains("S (sleeping)") && look() == before {
                return;
            }
        }
    }

    /// A request that waits by this call for `0..10` sleeps.
    fn sleeps<L: Shared>(lock: &RangeLock<L>, wait: impl FnOnce() + Send) {
        let held = lock.write(0..10);
        let (thread, waiter) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                // SAFETY: the function has no preconditions.
                thread.send(unsafe { libc::gettid() }).unwrap();
                wait();
            });
            await_sleep(waiter.recv().unwrap());
            drop(held);
        });
    }

    fn a_waiter_sleeps<L: Shared>(lock: &RangeLock<L>) {
        sleeps(lock, || drop(lock.read(5..15)));
    }

    fn a_timed_waiter_sleeps<L: Shared>(lock: &RangeLock<L>) {
        const HOUR: Duration = Duration::from_secs(3600);
        sleeps(lock, || {
            assert!(lock.try_write_for(5..15, HOUR).is_some());
        });
    }

    /// Trap 19: a thousand releases wake no request that sleeps behind another range.
    fn trap_19_a_release_wakes_only_those_behind_it<L: Shared>(lock: &RangeLock<L>) {
        const RELEASES: u64 = 1_000;
        let held = lock.write(100..110);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let before = usage().ru_nvcsw;
                drop(lock.write(105..120));
                usage().ru_nvcsw - before
            });
            await_sleepers(lock.raw(), 1);
            for _ in 0..RELEASES / 10 {
                let busy = lock.write(0..10);
                let woken = super::AtomicU64::new(0);
                thread::scope(|scope| {
                    for _ in 0..10 {
                        scope.spawn(|| {
                            drop(lock.write(0..10));
                            woken.fetch_add(1, Relaxed);
                        });
                    }
                    await_sleepers(lock.raw(), 11);
                    drop(busy);
                });
                assert_eq!(woken.load(Relaxed), 10);
            }
            drop(held);
            let switches = sleeper.join().unwrap();
            assert!(switches < 100, "woken {switches} times");
        });
    }

    in_every_shared_configuration!(crate::common::shared:
        a_waiter_sleeps,
        a_timed_waiter_sleeps,
        trap_19_a_release_wakes_only_those_behind_it,
    );
}
