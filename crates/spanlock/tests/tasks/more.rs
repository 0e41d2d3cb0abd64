//! Tasks that lock several ranges, convert, borrow, and wait for a limited time.

use super::common::{assert_nothing_held, await_sleepers, until, watched};
use super::pool::{Count, Pool, block_on};
use spanlock::range::raw::Mode::{Exclusive, Shared};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Limited, Owner, RangeLock, RangeLocked, RangeMutex, Refusal, Span};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(5);
const LATE: Duration = Duration::from_secs(1000);

/// Polls a future once, which has to wait.
macro_rules! is_pending {
    ($future:expr, $waker:expr) => {
        assert!(
            $future
                .as_mut()
                .poll(&mut Context::from_waker($waker))
                .is_pending()
        )
    };
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let lock = Arc::new(RangeLock::new());
    watched(lock.raw(), || {
        let held = lock.write(0..10);
        assert!(block_on(lock.try_read_async_for(0..10, SOON)).is_none());
        assert!(block_on(lock.try_write_owned_async_for(0..10, SOON)).is_none());
        let owner = Owner::new();
        let refused = block_on(lock.by(&owner).try_lock_async_for(0..10, Shared, SOON));
        assert_eq!(refused.err(), Some(Refusal::Busy));
        assert_eq!(owner.asks_or_holds(), 0);
        await_sleepers(lock.raw(), 0);
        drop(held);
        assert!(block_on(lock.try_write_async_for(0..10, LATE)).is_some());
    });
    assert_nothing_held(lock.raw());
}

/// What one task of an owner holds, that task releases: another one waits for it.
#[test]
fn tasks_of_one_owner_wait_for_each_other() {
    let lock = Arc::new(RangeLock::new());
    let connection = Owner::new();
    let inside = Arc::new(AtomicUsize::new(0));
    let pool = Pool::default();
    for _ in 0..4 {
        let (lock, connection, inside) =
            (Arc::clone(&lock), connection.clone(), Arc::clone(&inside));
        pool.spawn(async move {
            let held = lock.by(&connection).write_async(0..10).await;
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
            // The others are polled meanwhile.
            let mut polls = 0;
            poll_fn(|context| {
                polls += 1;
                context.waker().wake_by_ref();
                (polls > 2).then_some(()).map_or(Poll::Pending, Poll::Ready)
            })
            .await;
            inside.fetch_sub(1, Ordering::Relaxed);
            drop(held.expect("nobody cancels it"));
        });
    }
    watched(lock.raw(), || pool.run(1));
    assert_nothing_held(lock.raw());
}

/// A request that gives up leaves the place to who is behind it.
#[test]
fn a_reader_goes_on_when_the_time_of_a_writer_is_over() {
    let lock = &RangeLock::new();
    watched(lock.raw(), || {
        let held = lock.read(0..10);
        thread::scope(|scope| {
            let writer =
                scope.spawn(|| assert!(block_on(lock.try_write_async_for(0..10, SOON)).is_none()));
            // Where this thread is stopped meanwhile, the writer's time is over before it is seen to sleep.
            until(|| writer.is_finished() || lock.snapshot().waiters.len() == 1);
            drop(block_on(lock.read_async(5..6)));
        });
        drop(held);
    });
    assert_nothing_held(lock.raw());
}

#[test]
fn several_ranges_are_locked_together() {
    let lock = RangeLock::new();
    let owner = Owner::new();
    let wishes = [(20..30, Exclusive), (0..10, Shared), (25..40, Shared)];
    let held = block_on(lock.by(&owner).lock_many_async(wishes.clone())).expect("it is free");
    assert_eq!(held.pieces().count(), 3);
    assert_eq!(owner.asks_or_holds(), 3);
    assert!(lock.try_read(0..10).is_some() && lock.try_write(9..10).is_none());
    let other = Owner::new();
    let refused = block_on(lock.by(&other).try_lock_many_async_for(wishes, SOON));
    assert_eq!(refused.err(), Some(Refusal::Busy));
    let write_many = |ranges| lock.by(&other).try_write_many_async_for(ranges, SOON);
    assert_eq!(
        block_on(write_many([50..60, 0..10])).err(),
        Some(Refusal::Busy)
    );
    let written = block_on(write_many([50..60, 40..45])).expect("they are free");
    assert_eq!(written.pieces().count(), 2);
    drop(written);
    drop(held);
    assert_eq!((owner.asks_or_holds(), other.asks_or_holds()), (0, 0));
    assert_nothing_held(lock.raw());
}

/// Tasks that lock the same ranges in whatever order do not wait for each other.
#[test]
fn many_tasks_lock_several_ranges() {
    let lock = Arc::new(RangeLock::new());
    let pool = Pool::default();
    let done = Arc::new(AtomicUsize::new(0));
    for number in 0..60_u64 {
        let (lock, done) = (Arc::clone(&lock), Arc::clone(&done));
        pool.spawn(async move {
            let owner = Owner::new();
            for turn in 0..20 {
                let at = |salt: u64| (number * 7 + turn * 5 + salt * 3) % 16;
                let wishes = [0, 1, 2].map(|salt| at(salt)..at(salt) + 2);
                let held = lock.by_arc(&owner).write_many_async(wishes).await;
                drop(held.expect("nobody cancels it"));
            }
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    watched(lock.raw(), || pool.run(3));
    assert_eq!(done.load(Ordering::Relaxed), 60);
    assert_nothing_held(lock.raw());
}

#[test]
fn what_is_dropped_while_it_waits_for_several_holds_nothing() {
    let lock = RangeLock::new();
    let owner = Owner::new();
    let waker = Waker::from(Arc::new(Count::default()));
    let taken = lock.write(20..30);
    let by = lock.by(&owner);
    {
        let mut request = pin!(by.write_many_async([0..10, 20..30]));
        is_pending!(request, &waker);
        assert!(lock.try_write(0..10).is_some(), "it waits with empty hands");
    }
    assert_eq!(owner.asks_or_holds(), 0);
    drop(taken);
    assert_nothing_held(lock.raw());
}

#[test]
fn a_conversion_keeps_what_is_held() {
    let lock = &RangeLock::new();
    let owner = Owner::new();
    let waker = Waker::from(Arc::new(Count::default()));
    let mut held = block_on(lock.by(&owner).read_async(0..100)).expect("it is free");
    let reader = block_on(lock.read_async(50..51));
    {
        let mut upgrade = pin!(held.convert_async(40..60, Exclusive));
        is_pending!(upgrade, &waker);
        assert!(lock.try_write(0..1).is_none() && lock.try_read(0..1).is_some());
    }
    // Dropped, it leaves all as it was.
    assert_eq!((held.pieces().count(), owner.asks_or_holds()), (1, 1));
    await_sleepers(lock.raw(), 0);
    let timed = block_on(held.try_convert_async_for(40..60, Exclusive, SOON));
    assert_eq!(timed, Err(Refusal::Busy));
    watched(lock.raw(), || {
        thread::scope(|scope| {
            scope.spawn(|| {
                await_sleepers(lock.raw(), 1);
                drop(reader);
            });
            block_on(held.convert_async(40..160, Exclusive)).expect("nobody cancels it");
        });
    });
    let pieces: Vec<_> = held
        .pieces()
        .map(|(span, mode)| (span.start(), span.last(), mode))
        .collect();
    let expected = [(0, 39, Shared), (40, 99, Exclusive), (100, 159, Exclusive)];
    assert_eq!(pieces, expected);
    block_on(held.convert_async(0..100, Shared)).expect("nobody cancels it");
    assert!(lock.try_read(50..60).is_some() && lock.try_read(100..160).is_none());
    drop(held);
    assert_eq!(owner.asks_or_holds(), 0);
    assert_nothing_held(lock.raw());
}

/// Each with a reader in its way, which leaves.
#[test]
fn an_extension_and_an_upgrade_keep_what_is_held() {
    let lock = &RangeLock::new();
    let waker = Waker::from(Arc::new(Count::default()));
    let mut held = block_on(lock.write_async(0..10));
    let mut both = block_on(lock.read_async(20..40));
    let reader = block_on(lock.read_async(10..30));
    {
        let mut extends = pin!(held.extend_async(5..15));
        is_pending!(extends, &waker);
        let mut upgrades = pin!(both.upgrade_async());
        is_pending!(upgrades, &waker);
        assert!(lock.try_read(0..1).is_none() && lock.try_write(39..40).is_none());
        drop(reader);
        let extended = watched(lock.raw(), || block_on(extends));
        assert_eq!((extended, block_on(upgrades)), (Ok(()), Ok(())));
    }
    assert_eq!(
        block_on(held.try_extend_async_for(15..21, SOON)),
        Err(Refusal::Busy)
    );
    assert_eq!(block_on(held.extend_async(8..8)), Ok(()));
    let modes = [&held, &both].map(|held| (held.span(), held.mode()));
    let expected = [Span::of(0..15), Span::of(20..40)].map(|span| (span, Some(Exclusive)));
    assert_eq!(modes, expected);
    drop((held, both));
    assert_nothing_held(lock.raw());
}

#[test]
fn a_mutex_and_a_slice_have_them_as_well() {
    let lock = &RangeMutex::new();
    let mut held = block_on(lock.lock_async(0..10));
    assert_eq!(block_on(held.extend_async(10..20)), Ok(()));
    assert!(lock.try_lock(19..20).is_none() && lock.try_lock(20..21).is_some());
    let pages = RangeLocked::from([1, 2, 3]);
    let shared = block_on(pages.read_async(1..));
    let mut alone = block_on(shared.upgrade_async()).expect("nobody else reads");
    alone[0] = 5;
    drop(alone);
    assert_eq!(pages.into_inner()[..], [1, 5, 3]);
}

/// All futures may go from thread to thread, if the lock may be shared.
#[test]
fn futures_are_sent() {
    fn is_send(_: &impl Send) {}
    let lock = Arc::new(RangeLock::new());
    let owner = Owner::new();
    is_send(&lock.by_arc(&owner).write_many_async([0..1, 2..3]));
    is_send(
        &lock
            .by(&owner)
            .try_lock_many_async_for([(0..1, Shared)], SOON),
    );
    is_send(&lock.by(&owner).nothing().convert_async(0..1, Shared));
    is_send(&lock.by(&owner).nothing().extend_async(0..1));
    is_send(&lock.by(&owner).nothing().upgrade_async());
    is_send(&RangeMutex::new().try_lock_async_for(0..1, SOON));
    let pages = Arc::new(RangeLocked::from([0_u8; 4]));
    is_send(&pages.write_owned_async(0..1));
    is_send(&pages.try_read_async_for(0..1, SOON));
    is_send(&block_on(pages.read_async(0..1)).upgrade_async());
    is_send(&pages.by(&owner).write_async(0..1));
}

#[test]
fn of_two_tasks_that_share_and_want_to_be_alone_one_is_refused() {
    let lock = &RangeLock::new();
    let (one, other) = (Owner::new(), Owner::new());
    let waker = Waker::from(Arc::new(Count::default()));
    let mut first = block_on(lock.by(&one).read_async(0..10)).expect("it is free");
    let mut second = block_on(lock.by(&other).read_async(0..10)).expect("it is shared");
    let mut upgrade = pin!(first.convert_async(0..10, Exclusive));
    is_pending!(upgrade, &waker);
    assert_eq!(
        block_on(second.convert_async(0..10, Exclusive)),
        Err(Refusal::OtherUpgrade)
    );
    drop(second);
    watched(lock.raw(), || block_on(upgrade)).expect("it is alone");
}

#[test]
fn mutexes_and_slices_have_tasks() {
    let blocks = RangeMutex::new();
    let waker = Waker::from(Arc::new(Count::default()));
    let held = block_on(blocks.lock_async(0..8));
    {
        let mut waits = pin!(blocks.lock_async(4..12));
        is_pending!(waits, &waker);
    }
    assert!(block_on(blocks.try_lock_async_for(4..12, SOON)).is_none());
    drop(held);
    assert_nothing_held(blocks.raw());

    let pages = Arc::new(RangeLocked::from(vec![0_u8; 64]));
    let mut mine = block_on(pages.write_owned_async(0..32));
    assert!(block_on(pages.try_read_async_for(31..33, SOON)).is_none());
    thread::spawn(move || mine.fill(1))
        .join()
        .expect("it fills them");
    assert_eq!(block_on(pages.read_async(31..33))[..], [1, 0]);
    let owner = Owner::new();
    let read = block_on(pages.by(&owner).read_async(..)).expect("nobody cancels it");
    assert_eq!(read.iter().map(|&page| u32::from(page)).sum::<u32>(), 32);
    drop(read);
}

#[test]
fn a_future_may_go_from_task_to_task() {
    let lock = Arc::new(RangeLock::new());
    let held = lock.write(0..4);
    let counts = [(); 2].map(|()| Arc::new(Count::default()));
    let mut request = Box::pin(lock.read_owned_async(0..4));
    for count in &counts {
        let waker = Waker::from(Arc::clone(count));
        is_pending!(request, &waker);
    }
    drop(held);
    assert_eq!(counts.map(|count| count.woken()), [0, 1]);
    let moved = thread::spawn(move || {
        match request
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(held) => drop(held),
            Poll::Pending => panic!("it is free"),
        }
    });
    moved.join().expect("it got its range");
    assert_nothing_held(lock.raw());
}

#[test]
fn a_lock_that_is_limited_counts_who_waits() {
    let lock = RangeLock::from_raw(Limited::new(Limited::new(RawSlots::new(), 3), 2));
    let owner = Owner::new();
    let waker = Waker::from(Arc::new(Count::default()));
    let held = lock.by(&owner).write(0..10).expect("it is free");
    {
        let mut waits = pin!(lock.by(&owner).try_lock_async_for(20..30, Shared, LATE));
        let other = lock.write(20..30);
        is_pending!(waits, &waker);
        is_pending!(waits, &waker);
        assert_eq!(lock.raw().held_or_awaited(), 2);
        let full = block_on(lock.by(&owner).read_async(40..50));
        assert_eq!(full.err(), Some(Refusal::LockFull));
        drop(other);
    }
    assert_eq!(lock.raw().held_or_awaited(), 1);
    drop(block_on(lock.by(&owner).read_async(20..30)).expect("there is room"));
    drop(held);
    assert_eq!(lock.raw().held_or_awaited(), 0);
    assert_nothing_held(lock.raw());
}

#[test]
fn a_task_writes_several_ranges_of_a_slice() {
    let pages = Arc::new(RangeLocked::from(vec![0_u8; 10]));
    let soon = Duration::from_millis(2);
    let reader = pages.read(7..8);
    assert!(block_on(pages.try_write_many_async_for([0..2, 5..9], soon)).is_none());
    {
        let mut waits = pin!(pages.write_many_async([0..2, 5..9]));
        let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        assert!(pages.try_write(0..2).is_some(), "it waits with empty hands");
    }
    drop(reader);
    let mut lent = block_on(pages.write_many_async([5..9, 0..2]));
    assert!(pages.try_read(8..9).is_none() && pages.try_write(2..5).is_some());
    thread::scope(|scope| {
        scope.spawn(move || {
            let [behind, before] = lent.slices_mut();
            (behind[0], before[1]) = (1, 2);
        });
    });
    let owner = Owner::new();
    let lent = block_on(pages.by(&owner).write_many_async([5..6, 1..2])).expect("it is free");
    assert_eq!(lent.slices(), [&[1][..], &[2][..]]);
    assert_eq!(owner.asks_or_holds(), 2);
    drop(lent);
    assert!(pages.try_write(..).is_some());
}

#[test]
#[should_panic(expected = "overlap")]
fn a_task_does_not_ask_twice_for_an_element() {
    let pages = RangeLocked::from(vec![0_u8; 10]);
    drop(pages.write_many_async([0..3, 2..4]));
}

#[test]
fn what_a_task_locks_again_is_released_in_the_end() {
    let lock = Arc::new(RangeLock::new());
    let owner = Owner::new();
    let mut held = lock.by_arc(&owner).reentrant();
    block_on(held.lock_async(0..20, Shared)).expect("it is free");
    let reader = lock.read(15..16);
    {
        let mut waits = pin!(held.lock_async(10..30, Exclusive));
        let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }
    assert!(
        lock.try_write(20..30).is_some(),
        "what it gained is released"
    );
    let refused = block_on(held.try_lock_async_for(10..30, Exclusive, SOON));
    assert_eq!(refused, Err(Refusal::Busy));
    drop(reader);
    block_on(held.lock_async(10..30, Exclusive)).expect("it is free");
    held.unlock(0..20, Shared);
    assert!(lock.try_write(0..10).is_some() && lock.try_read(10..11).is_none());
    held.unlock(10..30, Exclusive);
    assert_nothing_held(lock.raw());
}
