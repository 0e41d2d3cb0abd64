//! Tasks, case by case.

use super::common::{assert_nothing_held, await_sleepers, watched};
use super::pool::{Count, Pool, block_on, poll};
use spanlock::range::raw::Mode;
use spanlock::range::{Holding, Lock, LockBy, Owner, RangeLock, Refusal};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

fn is_send<T: Send + Unpin>() {}

#[test]
fn futures_and_what_they_yield_are_sent() {
    is_send::<Lock<&RangeLock>>();
    is_send::<LockBy<Arc<RangeLock>>>();
    is_send::<Holding<Arc<RangeLock>>>();
}

#[test]
fn a_future_does_nothing_until_it_is_polled() {
    let lock = RangeLock::new();
    let request = lock.write_async(..);
    assert!(lock.try_write(..).is_some());
    let held = block_on(request);
    assert!(lock.try_read(..).is_none());
    drop(held);
    drop(block_on(lock.read_async(7..7)));
    assert_nothing_held(lock.raw());
}

#[test]
#[should_panic(expected = "9..3")]
fn a_reversed_range_panics_where_it_is_asked_for() {
    #[expect(clippy::reversed_empty_ranges)]
    drop(RangeLock::new().write_async(9..3));
}

/// Tasks and threads in one queue, first come first.
#[test]
fn tasks_and_threads_go_in_order() {
    let lock = &RangeLock::new();
    let counts: [Arc<Count>; 2] = Default::default();
    let wakers = counts.clone().map(Waker::from);
    watched(lock.raw(), || {
        let held = lock.write(0..10);
        let mut first = lock.write_async(0..10);
        assert!(poll(&mut first, &wakers[0]).is_pending());
        thread::scope(|scope| {
            let second = scope.spawn(|| drop(lock.write(0..10)));
            await_sleepers(lock.raw(), 2);
            let mut third = lock.write_async(0..10);
            assert!(poll(&mut third, &wakers[1]).is_pending());
            let released = Instant::now();
            drop(held);
            let [first_woken, third_woken] = counts.each_ref().map(|count| count.woken());
            // Where this thread is stopped meanwhile, the first's turn ends, and the others may go before it.
            let is_turn_over = released.elapsed() >= Duration::from_millis(1);
            assert!(first_woken == 1 && (third_woken == 0 || is_turn_over));
            drop(block_on(first));
            second.join().expect("it got its range");
            drop(block_on(third));
        });
    });
    assert_nothing_held(lock.raw());
}

/// A future that is woken and kept somewhere where nobody polls it.
#[test]
fn a_task_that_is_not_polled_makes_way() {
    let lock = &RangeLock::new();
    let waker = Waker::from(Arc::new(Count::default()));
    watched(lock.raw(), || {
        let held = lock.write(0..10);
        let mut dead: Vec<_> = (0..5).map(|_| lock.write_async(0..10)).collect();
        dead.iter_mut()
            .for_each(|request| assert!(poll(request, &waker).is_pending()));
        thread::scope(|scope| {
            let other = scope.spawn(|| drop(lock.write(0..10)));
            await_sleepers(lock.raw(), 6);
            drop(held);
            other.join().expect("it got its range");
        });
        // They have kept their places.
        dead.into_iter().for_each(|request| drop(block_on(request)));
    });
    assert_nothing_held(lock.raw());
}

/// A lock may be gone while the turns of its tasks end, and with it what they have left.
#[test]
fn a_leaked_future_does_not_keep_its_lock() {
    let (count, owner) = (Arc::new(Count::default()), Owner::new());
    for _ in 0..10 {
        let lock = RangeLock::new();
        let held = lock.write(0..10);
        for _ in 0..3 {
            let mut leaked = lock.by(&owner).write_async(0..10);
            assert!(poll(&mut leaked, &Waker::from(Arc::clone(&count))).is_pending());
            std::mem::forget(leaked);
        }
        drop(held);
    }
    // So that the owner forgets them.
    owner.cancel();
    // Their wakers are gone, but for those that the timer has in hand.
    super::common::until(|| Arc::strong_count(&count) == 1);
}

/// A waker whose every function asks for a range, and one that panics.
struct Wild {
    lock: Arc<RangeLock>,
    woken: AtomicUsize,
    panics: bool,
}

impl Wake for Wild {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        drop(self.lock.write(20..30));
        assert!(!self.panics, "a waker panics");
    }
}

impl Drop for Wild {
    fn drop(&mut self) {
        drop(self.lock.write(20..30));
    }
}

#[test]
fn wakers_are_foreign_code() {
    let lock = Arc::new(RangeLock::new());
    let wild = |panics| {
        let (lock, woken) = (Arc::clone(&lock), AtomicUsize::new(0));
        Arc::new(Wild {
            lock,
            woken,
            panics,
        })
    };
    watched(lock.raw(), || {
        let held = lock.write(0..10);
        let wakers = [wild(true), wild(false)];
        let mut requests = [lock.read_async(0..10), lock.read_async(0..10)];
        for (request, wild) in requests.iter_mut().zip(&wakers) {
            assert!(poll(request, &Waker::from(Arc::clone(wild))).is_pending());
            // Another waker takes its place, and is dropped when this one does.
            assert!(poll(request, &Waker::from(Arc::new(Count::default()))).is_pending());
            assert!(poll(request, &Waker::from(Arc::clone(wild))).is_pending());
        }
        let mut last = lock.write_async(0..10);
        assert!(poll(&mut last, &Waker::from(wild(false))).is_pending());
        // Its waker has no other owner.
        drop(last);
        drop(held);
        assert_eq!(
            wakers
                .each_ref()
                .map(|wild| wild.woken.load(Ordering::SeqCst)),
            [1, 1]
        );
        requests
            .into_iter()
            .for_each(|request| drop(block_on(request)));
    });
    assert_nothing_held(lock.raw());
}

#[test]
fn an_owner_cancels_the_waits_of_its_tasks() {
    let lock = RangeLock::new();
    let owner = Owner::with_limit(2);
    let held = lock.write(0..10);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut requests: Vec<_> = (0..2)
        .map(|_| lock.by(&owner).lock_async(0..10, Mode::Shared))
        .collect();
    requests
        .iter_mut()
        .for_each(|request| assert!(poll(request, &waker).is_pending()));
    let third = block_on(lock.by(&owner).read_async(20..30));
    assert_eq!(third.err(), Some(Refusal::TooMany));
    owner.cancel();
    assert_eq!(count.woken(), 2);
    for request in requests {
        assert_eq!(block_on(request).err(), Some(Refusal::Cancelled));
    }
    assert_eq!(owner.asks_or_holds(), 0);
    drop(held);
    // What need not wait is granted as before.
    drop(block_on(lock.by(&owner).write_async(0..10)).expect("it need not wait"));
    assert_nothing_held(lock.raw());
}

/// A request that waits is dropped, and with it all that it has left.
#[test]
fn a_dropped_future_leaves_nothing() {
    let lock = RangeLock::new();
    let count = Arc::new(Count::default());
    let held = lock.read(0..10);
    let mut request = lock.write_async(0..10);
    assert!(poll(&mut request, &Waker::from(Arc::clone(&count))).is_pending());
    await_sleepers(lock.raw(), 1);
    drop(request);
    await_sleepers(lock.raw(), 0);
    assert_eq!((Arc::strong_count(&count), count.woken()), (1, 0));
    drop(held);
    assert_nothing_held(lock.raw());
}

#[test]
fn ten_thousand_tasks_on_two_threads() {
    let lock = Arc::new(RangeLock::new());
    let [sum, asked] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let pool = Pool::default();
    let count = super::common::setting("SPANLOCK_TASKS", 10_000);
    let held = lock.write(..);
    for number in 0..count {
        let (lock, sum, asked) = (Arc::clone(&lock), Arc::clone(&sum), Arc::clone(&asked));
        pool.spawn(async move {
            let first = number % 100;
            asked.fetch_add(1, Ordering::Relaxed);
            let _all = lock.read_owned_async(1000..1001).await;
            let _held = lock.write_owned_async(first..first + 2).await;
            sum.fetch_add(1, Ordering::Relaxed);
        });
    }
    watched(lock.raw(), || {
        thread::scope(|scope| {
            let runs = scope.spawn(|| pool.run(2));
            super::common::until(|| asked.load(Ordering::Relaxed) as u64 == count);
            drop(held);
            runs.join().expect("all tasks have ended");
        });
    });
    assert_eq!(sum.load(Ordering::Relaxed) as u64, count);
    assert_nothing_held(lock.raw());
}
