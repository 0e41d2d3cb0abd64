//! Wakers that are not what they seem: whose clones are elsewhere, and that cannot be cloned.

use super::common::{assert_nothing_held, watched};
use super::pool::{Count, poll};
use spanlock::range::{Owner, RangeLock, WriteGuard};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{RawWaker, RawWakerVTable, Wake, Waker};
use std::time::Duration;

/// A waker's data. A clone of the waker has data of its own.
struct Post {
    whom: Mutex<Arc<Count>>,
    clones_left: AtomicUsize,
}

impl Post {
    const TABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::discard);

    fn new(whom: &Arc<Count>, clones: usize) -> Arc<Self> {
        Arc::new(Self {
            whom: Mutex::new(Arc::clone(whom)),
            clones_left: AtomicUsize::new(clones),
        })
    }

    fn raw(self: Arc<Self>) -> RawWaker {
        RawWaker::new(Arc::into_raw(self).cast(), &Self::TABLE)
    }

    fn waker(self: &Arc<Self>) -> Waker {
        // SAFETY: the functions are those for data that comes from an `Arc`.
        unsafe { Waker::from_raw(Arc::clone(self).raw()) }
    }

    unsafe fn of(data: *const ()) -> ManuallyDrop<Arc<Self>> {
        // SAFETY: the data comes from `raw`, and is not dropped here.
        ManuallyDrop::new(unsafe { Arc::from_raw(data.cast()) })
    }

    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: the data of a waker.
        let this = unsafe { Self::of(data) };
        let left = this.clones_left.fetch_sub(1, Ordering::SeqCst);
        assert!(left > 0, "it cannot be cloned any more");
        Self::new(&this.whom.lock().unwrap(), usize::MAX).raw()
    }

    unsafe fn wake(data: *const ()) {
        // SAFETY: the data of a waker.
        unsafe { Self::wake_by_ref(data) };
        // SAFETY: the data of a waker, which is used up.
        unsafe { Self::discard(data) };
    }

    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: the data of a waker.
        let this = unsafe { Self::of(data) };
        this.whom.lock().unwrap().wake_by_ref();
    }

    unsafe fn discard(data: *const ()) {
        // SAFETY: the data of a waker, which is used up.
        drop(ManuallyDrop::into_inner(unsafe { Self::of(data) }));
    }
}

/// The first waker is gone, and another task's has come to its address.
#[test]
fn a_waker_at_the_same_place_wakes_another_task() {
    let lock = &RangeLock::new();
    let counts: [Arc<Count>; 2] = Default::default();
    let post = Post::new(&counts[0], usize::MAX);
    let owner = Owner::new();
    watched(lock.raw(), || {
        let held = lock.write(0..10);
        let mut request = lock.write_async(0..10);
        let mut other = lock.by(&owner).write_async(5..10);
        for count in &counts {
            *post.whom.lock().unwrap() = Arc::clone(count);
            assert!(poll(&mut request, &post.waker()).is_pending());
            assert!(poll(&mut other, &post.waker()).is_pending());
        }
        owner.cancel();
        assert_eq!(counts.each_ref().map(|count| count.woken()), [0, 1]);
        drop(held);
        // The request, and maybe the other one to spare.
        let [first, second] = counts.each_ref().map(|count| count.woken());
        assert!(first == 0 && second > 1, "{first}, {second}");
        assert!(poll(&mut request, &post.waker()).is_ready());
    });
}

/// Whatever fails when a task goes to sleep: its request is over when it is dropped.
#[test]
fn a_waker_that_cannot_be_cloned_leaves_no_request_behind() {
    let lock = &RangeLock::new();
    let owner = Owner::new();
    for clones in 0..3 {
        let held = lock.write(0..10);
        let waker = Post::new(&Arc::default(), clones).waker();
        let mut request = lock.by(&owner).write_async(0..10);
        let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut request, &waker).is_pending()));
        assert_eq!(polled.is_ok(), clones == 2);
        drop(request);
        assert!(lock.snapshot().waiters.is_empty());
        drop(held);
    }
    assert_eq!(owner.asks_or_holds(), 0);
    assert_nothing_held(lock.raw());
}

/// A waker that panics when it wakes, and when it is dropped.
struct Panicking;

impl Panicking {
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |_| RawWaker::new(std::ptr::null(), &Self::TABLE),
        |_| panic!("it wakes"),
        |_| panic!("it wakes"),
        |_| panic!("it is dropped"),
    );

    fn waker() -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(std::ptr::null(), &Self::TABLE);
        // SAFETY: there is no data, and a panic is safe.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }
}

/// A request that waits for a limited time. Where this thread is stopped meanwhile, the time of one may be over before
/// its first poll, so there may be several before it.
fn waits<'a>(lock: &'a RangeLock, limit: Duration, waker: &Waker) -> impl Future + use<'a> {
    loop {
        let mut request = lock.try_write_async_for(0..10, limit);
        if poll(&mut request, waker).is_pending() {
            return request;
        }
    }
}

/// The timer wakes one task after another that panics, and drops the wakers of a lock that is gone.
#[test]
fn the_timer_outlives_wakers_that_panic() {
    for _ in 0..10 {
        let count = Arc::new(Count::default());
        let lock = RangeLock::new();
        let held = lock.write(0..10);
        let mut leaked = Vec::new();
        for ms in 1..4 {
            leaked.push(waits(&lock, Duration::from_millis(ms), &Panicking::waker()));
        }
        let counts = Waker::from(Arc::clone(&count));
        let last = waits(&lock, Duration::from_millis(5), &counts);
        super::common::until(|| count.woken() > 0);
        drop(last);
        for _ in 0..2 {
            leaked.push(waits(&lock, Duration::from_secs(1000), &Panicking::waker()));
        }
        std::mem::forget(leaked);
        drop(held);
    }
}

/// A waker that releases something when it is cloned. Its clones are those that panic.
struct Releasing<'a>(Cell<Option<WriteGuard<'a>>>);

impl Releasing<'_> {
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            // SAFETY: the data of a waker that is in use.
            let this = unsafe { &*data.cast::<Self>() };
            drop(this.0.take());
            RawWaker::new(std::ptr::null(), &Panicking::TABLE)
        },
        |_| {},
        |_| {},
        |_| {},
    );

    fn waker(&self) -> Waker {
        let raw = RawWaker::new((&raw const *self).cast(), &Self::TABLE);
        // SAFETY: who makes the waker uses it on this thread, while this lives.
        unsafe { Waker::from_raw(raw) }
    }
}

/// The waker was cloned for the queue, and is not needed.
#[test]
fn a_clone_that_panics_when_it_is_dropped_takes_no_range_along() {
    let lock = &RangeLock::new();
    let releasing = Releasing(Cell::new(Some(lock.write(0..10))));
    let mut request = lock.write_async(0..10);
    assert!(poll(&mut request, &releasing.waker()).is_ready());
    assert_nothing_held(lock.raw());
}

/// The owner has listed the task.
#[test]
fn a_listed_waker_that_panics_when_it_is_dropped_takes_no_range_along() {
    let lock = &RangeLock::new();
    let owner = Owner::new();
    let held = lock.write(0..10);
    let mut request = lock.by(&owner).write_async(0..10);
    for _ in 0..2 {
        assert!(poll(&mut request, &Panicking::waker()).is_pending());
        assert!(poll(&mut request, Waker::noop()).is_pending());
    }
    assert!(poll(&mut request, &Panicking::waker()).is_pending());
    drop(held);
    assert!(poll(&mut request, &Panicking::waker()).is_ready());
    assert_eq!(owner.asks_or_holds(), 0);
    assert_nothing_held(lock.raw());
}
