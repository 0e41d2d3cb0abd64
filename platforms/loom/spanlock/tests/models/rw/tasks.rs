//! Tasks that wait for a reader-writer lock, beside threads.

use super::{Futex, futex};
use lock_api::{RawRwLock, RawRwLockDowngrade, RwLock, RwLockWriteGuard};
use prim::atomic::{AtomicU32, Ordering};
use prim::cell::UnsafeCell;
use prim::{Model, futex as word, thread, timer};
use spanlock_loom::rw::{AwaitRwLock, ForTasks, ForeignRelease};
use spanlock_workbench_loom::CohortRwLock;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

/// A lock, and what it protects.
struct World(RwLock<ForTasks<Futex>, ()>, UnsafeCell<u64>);

// SAFETY: the cell is used under the lock; loom checks.
unsafe impl Sync for World {}
// SAFETY: a number may go to any thread.
unsafe impl Send for World {}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Read,
    Write,
}

struct Signal(AtomicU32);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
        word::wake_all(&self.0);
    }
}

impl Signal {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU32::new(0)))
    }

    fn until_woken(&self) {
        while self.0.load(Ordering::Acquire) == 0 {
            word::wait(&self.0, 0, None);
        }
    }
}

impl World {
    fn new() -> Arc<Self> {
        let lock = RwLock::from_raw(ForTasks::new(futex()), ());
        Arc::new(Self(lock, UnsafeCell::new(0)))
    }

    fn touch(&self, mode: Mode) {
        match mode {
            // SAFETY: it is held; loom checks.
            Mode::Read => _ = self.1.with(|cell| unsafe { *cell }),
            // SAFETY: it is held alone; loom checks.
            Mode::Write => self.1.with_mut(|cell| unsafe { *cell += 1 }),
        }
    }

    fn thread(&self, mode: Mode) {
        match mode {
            Mode::Read => {
                let guard = self.0.read();
                self.touch(mode);
                drop(guard);
            }
            Mode::Write => {
                let guard = self.0.write();
                self.touch(mode);
                drop(guard);
            }
        }
    }

    fn task(&self, mode: Mode) {
        match mode {
            Mode::Read => {
                let guard = finish(self.0.read_async());
                self.touch(mode);
                drop(guard);
            }
            Mode::Write => {
                let guard = finish(self.0.write_async());
                self.touch(mode);
                drop(guard);
            }
        }
    }
}

fn poll<F: Future + Unpin>(future: &mut F, signal: &Arc<Signal>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(signal));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// Polls a future when it was woken, until it is ready.
fn finish<F: Future + Unpin>(mut future: F) -> F::Output {
    loop {
        let signal = Signal::new();
        match poll(&mut future, &signal) {
            Poll::Ready(output) => return output,
            Poll::Pending => signal.until_woken(),
        }
        // As an executor does: what is in the way of its try may be another one that is under way.
        thread::yield_now();
    }
}

fn meet(task: Mode, other: Mode, is_task: bool) {
    // A task also fences by itself, which is nothing to a release on hardware.
    Model::new(Some(3)).barrier_apart().check(move || {
        let world = World::new();
        let theirs = Arc::clone(&world);
        let other = thread::spawn(move || match is_task {
            true => theirs.task(other),
            false => theirs.thread(other),
        });
        world.task(task);
        other.join().unwrap();
    });
}

#[test]
fn a_writing_task_and_a_writer() {
    meet(Mode::Write, Mode::Write, false);
}

#[test]
fn a_reading_task_and_a_writer() {
    meet(Mode::Read, Mode::Write, false);
}

#[test]
fn a_writing_task_and_a_reader() {
    meet(Mode::Write, Mode::Read, false);
}

#[test]
fn two_writing_tasks() {
    meet(Mode::Write, Mode::Write, true);
}

#[test]
fn a_reading_and_a_writing_task() {
    meet(Mode::Read, Mode::Write, true);
}

/// A task is polled again with another waker while the lock is released. The new waker is woken.
fn polled_with_another_waker(mode: Mode) {
    fn twice<F: Future + Unpin>(mut task: F) {
        if poll(&mut task, &Signal::new()).is_pending() {
            drop(finish(task));
        }
    }
    Model::new(Some(3)).check(move || {
        let world = World::new();
        let held = world.0.write();
        let theirs = Arc::clone(&world);
        let polls = thread::spawn(move || match mode {
            Mode::Read => twice(theirs.0.read_async()),
            Mode::Write => twice(theirs.0.write_async()),
        });
        drop(held);
        polls.join().unwrap();
    });
}

#[test]
fn a_writing_task_is_polled_with_another_waker() {
    polled_with_another_waker(Mode::Write);
}

#[test]
fn a_reading_task_is_polled_with_another_waker() {
    polled_with_another_waker(Mode::Read);
}

/// A task that waits is dropped while the lock is released, beside a thread that wants it.
#[test]
fn a_waiting_task_is_dropped() {
    Model::new(Some(2)).check(|| {
        let world = World::new();
        let held = world.0.write();
        let theirs = Arc::clone(&world);
        let waits = thread::spawn(move || {
            let mut task = theirs.0.read_async();
            drop(poll(&mut task, &Signal::new()));
        });
        let theirs = Arc::clone(&world);
        let other = thread::spawn(move || theirs.thread(Mode::Write));
        drop(held);
        waits.join().unwrap();
        other.join().unwrap();
    });
}

/// A task is woken and never polled. The next one goes on when its turn ends.
#[test]
fn a_woken_task_is_never_polled() {
    Model::new(Some(3)).check(|| {
        let world = World::new();
        let held = world.0.write();
        let mut dead = world.0.write_async();
        assert!(poll(&mut dead, &Signal::new()).is_pending());
        let mut next = world.0.write_async();
        let signal = Signal::new();
        assert!(poll(&mut next, &signal).is_pending());
        drop(held);
        assert!(timer::fire(), "its turn is limited");
        signal.until_woken();
        drop(finish(next));
        drop(dead);
    });
}

/// A reading task is woken and dropped, beside a task behind it.
#[test]
fn a_woken_reading_task_is_dropped() {
    Model::new(Some(3)).check(|| {
        let world = World::new();
        let held = world.0.write();
        let mut first = world.0.read_async();
        assert!(poll(&mut first, &Signal::new()).is_pending());
        let theirs = Arc::clone(&world);
        let second = thread::spawn(move || theirs.task(Mode::Write));
        drop(held);
        drop(first);
        second.join().unwrap();
    });
}

/// A task is woken and dropped, beside a task behind it.
#[test]
fn a_woken_task_is_dropped() {
    Model::new(Some(3)).check(|| {
        let world = World::new();
        let held = world.0.write();
        let mut first = world.0.write_async();
        assert!(poll(&mut first, &Signal::new()).is_pending());
        let theirs = Arc::clone(&world);
        let second = thread::spawn(move || theirs.task(Mode::Write));
        drop(held);
        drop(first);
        second.join().unwrap();
    });
}

/// Readers that wait get in together.
#[test]
fn readers_go_on_together() {
    Model::new(Some(1)).check(|| {
        let world = World::new();
        let held = world.0.write();
        let mut first = world.0.read_async();
        assert!(poll(&mut first, &Signal::new()).is_pending());
        let theirs = Arc::clone(&world);
        let second = thread::spawn(move || theirs.task(Mode::Read));
        drop(held);
        let first = finish(first);
        // Joined while the first reads.
        second.join().unwrap();
        drop(first);
    });
}

/// A writer becomes a reader while a task waits to write, and another task comes to read. It gets in beside that
/// reader.
fn a_writing_task_holds_no_reader_back<L>(lock: fn() -> L)
where
    L: ForeignRelease + RawRwLockDowngrade + Send + Sync + 'static,
{
    Model::new(Some(3)).check(move || {
        let lock = Arc::new(RwLock::from_raw(ForTasks::new(lock()), ()));
        let held = lock.write();
        let mut writes = lock.write_async();
        let signal = Signal::new();
        assert!(poll(&mut writes, &signal).is_pending());
        let theirs = Arc::clone(&lock);
        let reads = thread::spawn(move || drop(finish(theirs.read_async())));
        let held = RwLockWriteGuard::downgrade(held);
        signal.until_woken();
        assert!(poll(&mut writes, &Signal::new()).is_pending());
        // Joined while somebody reads.
        reads.join().unwrap();
        drop(held);
        drop(finish(writes));
    });
}

#[test]
fn a_writing_task_holds_no_reader_of_a_futex_lock_back() {
    a_writing_task_holds_no_reader_back(futex);
}

/// A writer comes before it finds readers.
#[test]
fn a_writing_task_holds_no_reader_of_a_cohort_lock_back() {
    a_writing_task_holds_no_reader_back(CohortRwLock::<1>::new);
}

/// A reader that may not wait comes just before a writer, is counted for a moment beside it, and keeps a task from the
/// lock that the writer has left.
#[test]
fn a_task_beside_a_reader_that_backs_out() {
    Model::new(Some(4)).check(|| {
        let world = World::new();
        let (tries, task) = (Arc::clone(&world), Arc::clone(&world));
        let tries = thread::spawn(move || drop(tries.0.try_read()));
        let task = thread::spawn(move || task.task(Mode::Write));
        drop(world.0.write());
        tries.join().unwrap();
        task.join().unwrap();
    });
}

/// A waker that does something when it is cloned, once, and whose clones are those of a signal.
struct Cloned<'a> {
    first: Cell<Option<Box<dyn FnOnce() + 'a>>>,
    signal: Arc<Signal>,
}

impl<'a> Cloned<'a> {
    const TABLE: RawWakerVTable = RawWakerVTable::new(Self::clone, Self::wake, Self::wake, |_| {});

    /// # Safety
    /// It is used on this thread, and lives as long as the waker.
    unsafe fn waker(&self) -> Waker {
        // SAFETY: the functions take the data for what it is.
        unsafe { Waker::from_raw(RawWaker::new((&raw const *self).cast(), &Self::TABLE)) }
    }

    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: the data of a waker that is in use.
        let this = unsafe { &*data.cast::<Self>() };
        if let Some(first) = this.first.take() {
            first();
        }
        let clone = ManuallyDrop::new(Waker::from(Arc::clone(&this.signal)));
        RawWaker::new(clone.data(), clone.vtable())
    }

    unsafe fn wake(data: *const ()) {
        // SAFETY: the data of a waker that is in use.
        let this = unsafe { &*data.cast::<Self>() };
        this.signal.wake_by_ref();
    }
}

/// Two tasks have found the lock taken, and it is released before either is listed. Then each try of one may be in the
/// way of the other's: a reader is counted before it finds a writer, and a writer comes before it finds readers.
fn in_each_other_s_way(is_dropped: bool) {
    Model::new(Some(4)).check(move || {
        let lock = Arc::new(RwLock::from_raw(
            ForTasks::new(CohortRwLock::<1>::new()),
            (),
        ));
        // SAFETY: what is acquired by it is released by it.
        let held = unsafe { lock.raw() }.lock_exclusive();
        let theirs = Arc::clone(&lock);
        let reads = thread::spawn(move || drop(finish(theirs.read_async())));
        let release = || {
            // SAFETY: as above.
            let raw = unsafe { lock.raw() };
            // SAFETY: this lock has granted it.
            unsafe { raw.unlock_exclusive(held) };
        };
        let cloned = Cloned {
            first: Cell::new(Some(Box::new(release))),
            signal: Signal::new(),
        };
        let mut writes = lock.write_async();
        // SAFETY: the future clones it, and does not keep it.
        let waker = unsafe { cloned.waker() };
        let is_pending = Pin::new(&mut writes)
            .poll(&mut Context::from_waker(&waker))
            .is_pending();
        if is_pending && !is_dropped {
            cloned.signal.until_woken();
            thread::yield_now();
            drop(finish(writes));
        } else {
            drop(writes);
        }
        reads.join().unwrap();
    });
}

#[test]
fn two_tasks_in_each_other_s_way() {
    in_each_other_s_way(false);
}

/// The one that is to try again is dropped, and the other one tries.
#[test]
fn one_of_two_tasks_in_each_other_s_way_is_dropped() {
    in_each_other_s_way(true);
}
