//! The table of visible readers, and what is left of it in a forked child. Alone in its process, one test at a time:
//! the table is the process's.

mod common;

use common::elsewhere;
use spanlock::range::raw::Wait;
use spanlock::rw::pthread::table::{self, COLUMNS, LockAddress, Publication, ReaderRow};
use spanlock::rw::{Bias, Bravo, FutexRwLock};
use spanlock_testkit::exact::Exact;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: Exact = Exact;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn here() -> ReaderRow {
    // SAFETY: these tests use it at once.
    unsafe { ReaderRow::here() }
}

fn retract(slot: Publication) {
    // SAFETY: these tests retract each publication once.
    unsafe { slot.retract() };
}

#[test]
fn a_row_takes_so_many_and_no_more() {
    let _alone = alone();
    let lock = 0_u8;
    let address = LockAddress::of(&lock);
    // All numbers are good, and share rows if need be.
    let shared = [0, 1, 12_345, usize::MAX].map(ReaderRow::shared);
    // SAFETY: no other thread of this process has got so far, and one alone publishes now.
    let own = [ReaderRow::owners() - 1, usize::MAX].map(|number| unsafe { ReaderRow::own(number) });
    for row in shared.into_iter().chain(own).chain([here()]) {
        let slots: Vec<Publication> = (0..COLUMNS)
            .map(|_| table::publish(address, row).expect("there is a slot free"))
            .collect();
        let collisions = slots.iter().filter(|slot| row.is_collision(slot)).count();
        assert_eq!(collisions, COLUMNS - 1);
        assert!(table::publish(address, row).is_none());
        assert!(table::is_published(address));
        slots.into_iter().for_each(retract);
        assert!(!table::is_published(address));
        assert!(table::drain(address, Wait::Never));
    }
}

#[test]
fn a_drain_waits_for_its_lock_only() {
    let _alone = alone();
    let locks = [0_u8; 2];
    let [mine, other] = [0, 1].map(|at| LockAddress::of(&locks[at]));
    let slot = table::publish(mine, here()).expect("free");
    assert!(table::drain(other, Wait::Forever));
    assert!(!table::drain(mine, Wait::Never));
    let soon = Wait::Until(Instant::now() + Duration::from_millis(2));
    assert!(!table::drain(mine, soon));
    thread::scope(|scope| {
        let drain = scope.spawn(|| table::drain(mine, Wait::Forever));
        thread::sleep(Duration::from_millis(2));
        retract(slot);
        assert!(drain.join().unwrap());
    });
}

#[test]
fn a_publication_is_retracted_by_address_too() {
    let _alone = alone();
    let lock = 0_u8;
    let address = LockAddress::of(&lock);
    for _ in 0..2 {
        let _leaked = table::publish(address, here());
    }
    // SAFETY: here and below: nobody reads this lock.
    let retract_any = || unsafe { table::retract_any(address) };
    assert!(elsewhere(retract_any));
    assert!(table::is_published(address));
    assert!(retract_any());
    assert!(!retract_any());
    let _leaked = table::publish(address, here());
    // SAFETY: as above.
    unsafe { table::forget(address) };
    assert!(!table::is_published(address));
}

/// Has the kernel refuse `membarrier` to this thread, as sandboxes do to all. Returns whether the kernel lets it.
#[cfg(target_os = "linux")]
fn refuse_membarrier() -> bool {
    let step = |code: u32, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: 0,
        jf: 0,
        k,
    };
    let call = u32::try_from(libc::SYS_membarrier).unwrap();
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0), // The number of the system call.
        libc::sock_filter {
            jf: 1, // Skips the refusal.
            ..step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call)
        },
        step(libc::BPF_RET | libc::BPF_K, refusal),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: 4,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: it takes numbers.
    let bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: a filter of four steps, which are live.
    let filtered = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        )
    };
    bound == 0 && filtered == 0
}

/// From then on readers fence in earnest: so in a process of its own.
#[cfg(target_os = "linux")]
#[test]
fn a_writer_whose_fence_is_refused_gets_in() {
    let _alone = alone();
    if common::status_of_child(refuse_membarrier) != 0 {
        println!("skipped: a thread may not have system calls refused here");
        return;
    }
    let status = common::status_of_child(|| {
        let lock = 0_u8;
        let address = LockAddress::of(&lock);
        let turns = Barrier::new(2);
        here(); // The kernel is asked, and grants it at first.
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                assert!(refuse_membarrier());
                prim::barrier::heavy();
                for _ in 0..300 {
                    turns.wait();
                    let patience = Wait::Until(Instant::now() + common::HANG);
                    assert!(table::drain(address, patience));
                    turns.wait();
                }
            });
            for round in 0..300 {
                let slot = table::publish(address, here()).expect("free");
                turns.wait();
                // Long enough to be slept through, in most rounds.
                thread::sleep(Duration::from_micros(10 * (round % 20)));
                retract(slot);
                turns.wait();
            }
            writer.join().is_ok()
        })
    });
    assert_eq!(status, 0);
}

/// A child keeps what it is told to keep, of what the parent's threads had published.
#[cfg(target_os = "linux")]
#[test]
fn a_child_forgets_the_readers_it_left_behind() {
    let _alone = alone();
    let locks = [0_u8; 2];
    let [mine, other] = [0, 1].map(|at| LockAddress::of(&locks[at]));
    let kept = [table::publish(mine, here()).expect("free")];
    let theirs = elsewhere(|| table::publish(other, here()).expect("free"));
    let status = common::status_of_child(|| {
        let before = table::is_published(other);
        // SAFETY: a child's one thread, which reads nothing.
        unsafe { table::forget_all_but(&kept) };
        before && !table::is_published(other) && table::is_published(mine)
    });
    assert_eq!(status, 0);
    assert!(table::is_published(other));
    retract(theirs);
    kept.into_iter().for_each(retract);
}

/// A forked child uses the locks of its parent: what other threads read stays read, its own it may leave.
#[cfg(target_os = "linux")]
#[test]
fn a_child_reads_and_writes() {
    let _alone = alone();
    let make =
        || lock_api::RwLock::from_raw(Bravo::with_policy(FutexRwLock::new(), Bias::EAGER), 0);
    let (lock, read): (lock_api::RwLock<Bravo<FutexRwLock, Bias>, i32>, _) = (make(), make());
    let reading = read.read();
    elsewhere(|| {
        let status = common::status_of_child(|| {
            for _ in 0..100 {
                let seen = *lock.read();
                *lock.write() = seen + 1;
            }
            *lock.read() == 100
                && read.try_write().is_none()
                && read.try_write_for(Duration::from_millis(2)).is_none()
        });
        assert_eq!(status, 0);
    });
    drop(reading);
    assert_eq!(*lock.read(), 0);
}

/// How a reader-writer lock fares in a child that was forked while this thread read it and another waited to write it.
#[cfg(target_os = "linux")]
fn a_child_where_a_writer_waited<L>(lock: lock_api::RwLock<L, u32>)
where
    L: lock_api::RawRwLockTimed<Duration = Duration, Instant = Instant> + Send + Sync,
{
    let reading = Cell::new(Some(lock.read()));
    let forked = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            *lock.write() += 1;
            assert!(forked.load(Relaxed), "beside a reader");
        });
        // It waits: readers hold back for it.
        common::until(|| elsewhere(|| lock.try_read().is_none()));
        let status = common::status_of_child(|| {
            let beside = lock.try_read().is_some();
            drop(reading.take());
            let alone = lock.try_read_for(PATIENCE).is_some()
                && lock.try_write_for(PATIENCE).is_some()
                && lock.try_read().is_some();
            // A writer of this process is held back for as in any.
            let reading = lock.read();
            let held_back = thread::scope(|scope| {
                let writer = scope.spawn(|| *lock.write() += 1);
                common::until(|| elsewhere(|| lock.try_read().is_none()));
                drop(reading);
                writer.join().is_ok()
            });
            beside && alone && held_back && *lock.read() == 1
        });
        forked.store(true, Relaxed);
        // Readers held back for the writer all the while.
        let held_back = elsewhere(|| lock.try_read().is_none());
        drop(reading.take());
        writer.join().expect("a write");
        assert_eq!(status, 0);
        assert!(held_back);
    });
    assert_eq!(*lock.read(), 1);
}

/// Shorter than what a child is given.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(target_os = "linux")]
#[test]
fn a_child_reads_a_lock_that_a_writer_of_its_parent_waited_for() {
    let _alone = alone();
    a_child_where_a_writer_waited(spanlock::rw::RwLock::new(0));
    a_child_where_a_writer_waited(lock_api::RwLock::<FutexRwLock, _>::new(0));
}
