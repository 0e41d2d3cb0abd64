//! Owners, case by case.

use super::common::{assert_nothing_held, panic_message, until, watched};
use spanlock::range::raw::Mode::{Exclusive, Shared};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Limited, Owner, RangeLock, RangeLocked, Refusal};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

type Lock = RangeLock;

fn lock() -> Arc<Lock> {
    Arc::new(RangeLock::new())
}

/// Until so many requests sleep.
fn until_asleep(lock: &Lock, count: usize) {
    let sleep = || lock.snapshot().waiters.len() >= count;
    watched(lock.raw(), || until(sleep));
}

#[test]
fn a_holding_is_sent_and_outlives_its_owner_and_its_thread() {
    let lock = lock();
    let holding = {
        let lock = Arc::clone(&lock);
        let locks = move || lock.by_arc(&Owner::new()).write(0..10).expect("it is free");
        thread::spawn(locks).join().expect("it is granted")
    };
    assert!(lock.try_read(9..).is_none());
    thread::spawn(|| drop(holding))
        .join()
        .expect("it is released");
    assert_nothing_held(lock.raw());
}

#[test]
fn an_empty_range_is_granted_and_conflicts_with_nothing() {
    let lock = lock();
    let owner = Owner::with_limit(0);
    let mut empty = lock.by(&owner).write(7..7).expect("it is empty");
    assert!(empty.is_empty() && empty.span().is_none() && empty.mode().is_none());
    assert_eq!(empty.convert(5..5, Shared), Ok(()));
    empty.release(3..3);
    empty.shrink_to(9..9);
    assert!(lock.try_write(..).is_some());
}

#[test]
fn a_reversed_range_panics_and_changes_nothing() {
    let lock = lock();
    let owner = Owner::new();
    let mut holding = lock.by(&owner).write(0..10).expect("it is free");
    #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
    let reversed = 8..3;
    let says = panic_message(|| holding.release(reversed.clone()));
    assert!(says.contains("8..3"), "{says}");
    let says = panic_message(|| _ = lock.by(&owner).write(reversed));
    assert!(says.contains("8..3"), "{says}");
    assert_eq!(holding.pieces().count(), 1);
}

#[test]
fn a_refused_conversion_leaves_what_was_held() {
    let lock = lock();
    let (mine, theirs) = (Owner::new(), Owner::new());
    let mut holding = lock.by(&mine).read(0..10).expect("it is free");
    let reader = lock.by(&theirs).read(5..6).expect("readers share");
    let before = format!("{:?}", lock.snapshot());
    assert_eq!(holding.try_upgrade(), Err(Refusal::Busy));
    assert_eq!(holding.try_convert(3..20, Exclusive), Err(Refusal::Busy));
    let soon = Duration::from_millis(1);
    assert_eq!(
        holding.try_convert_for(3..20, Exclusive, soon),
        Err(Refusal::Busy)
    );
    assert_eq!(format!("{:?}", lock.snapshot()), before);
    assert_eq!(holding.try_convert(6..20, Exclusive), Ok(()));
    drop(reader);
    assert_eq!(holding.upgrade(), Ok(()));
    assert_eq!(
        (holding.mode(), holding.span().map(|span| span.last())),
        (Some(Exclusive), Some(19))
    );
}

#[test]
fn an_owner_may_hold_so_many_ranges() {
    let lock = lock();
    let owner = Owner::with_limit(2);
    let by = lock.by(&owner);
    let mut holding = by.write(0..10).expect("it is free");
    let other = by.read(20..30).expect("it is free");
    assert_eq!(by.read(40..50).map(drop), Err(Refusal::TooMany));
    assert_eq!(holding.try_convert(5..15, Exclusive), Err(Refusal::TooMany));
    // Pieces count, and are never refused.
    holding.release(4..5);
    assert_eq!(owner.asks_or_holds(), 3);
    drop((holding, other));
    assert_eq!(owner.asks_or_holds(), 0);
    assert_eq!(
        by.lock_many([(0..1, Shared), (2..3, Shared), (4..5, Shared)])
            .map(drop),
        Err(Refusal::TooMany)
    );
    assert_eq!(owner.asks_or_holds(), 0);
    assert_nothing_held(lock.raw());
}

#[test]
fn a_cancelled_owner_waits_no_more() {
    let lock = lock();
    let (mine, theirs) = (Owner::new(), Owner::new());
    let holding = lock.by(&mine).write(0..10).expect("it is free");
    let waits = {
        let (lock, theirs) = (Arc::clone(&lock), theirs.clone());
        thread::spawn(move || lock.by(&theirs).read(5..6).map(drop))
    };
    let behind = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || drop(lock.write(5..6)))
    };
    until_asleep(&lock, 2);
    theirs.cancel();
    assert_eq!(waits.join().expect("it ends"), Err(Refusal::Cancelled));
    // It need not wait, or must not.
    assert!(theirs.is_cancelled());
    assert_eq!(lock.by(&theirs).write(20..30).map(drop), Ok(()));
    assert_eq!(
        lock.by(&theirs).write(0..30).map(drop),
        Err(Refusal::Cancelled)
    );
    drop(holding);
    behind.join().expect("it is granted");
    assert_nothing_held(lock.raw());
}

#[test]
fn of_two_upgrades_the_second_is_refused() {
    let lock = lock();
    let (mine, theirs) = (Owner::new(), Owner::new());
    let mut holding = lock.by(&mine).read(0..10).expect("it is free");
    let waits = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || {
            let mut theirs = lock.by(&theirs).read(5..20).expect("readers share");
            theirs.upgrade()
        })
    };
    until_asleep(&lock, 1);
    assert_eq!(holding.upgrade(), Err(Refusal::OtherUpgrade));
    assert_eq!(holding.mode(), Some(Shared));
    // Not in a circle: the other does not wait for this part.
    assert_eq!(holding.convert(0..5, Exclusive), Ok(()));
    drop(holding);
    assert_eq!(waits.join().expect("it ends"), Ok(()));
    assert_nothing_held(lock.raw());
}

/// Each shares two ranges, and wants one of them alone.
#[test]
fn two_that_share_several_ranges_do_not_wait_for_each_other() {
    let lock = lock();
    let wanted = [(0..10, Shared), (20..30, Shared)];
    let (mine, theirs) = (Owner::new(), Owner::new());
    let mut holding = lock
        .by(&mine)
        .lock_many(wanted.clone())
        .expect("it is free");
    let waits = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || {
            let mut theirs = lock.by(&theirs).lock_many(wanted).expect("readers share");
            theirs.convert(0..10, Exclusive)
        })
    };
    until_asleep(&lock, 1);
    assert_eq!(
        holding.convert(20..30, Exclusive),
        Err(Refusal::OtherUpgrade)
    );
    drop(holding);
    assert_eq!(waits.join().expect("it ends"), Ok(()));
    assert_nothing_held(lock.raw());
}

#[test]
fn an_upgrade_needs_no_room() {
    let lock = lock();
    let owner = Owner::with_limit(1);
    let mut holding = lock.by(&owner).read(0..10).expect("it is free");
    assert_eq!(holding.upgrade(), Ok(()));
    assert_eq!(owner.asks_or_holds(), 1);
}

#[test]
#[cfg(debug_assertions)]
fn a_panic_leaves_the_count_right() {
    let lock = lock();
    let owner = Owner::new();
    let (mut one, other) = (lock.by(&owner).read(0..10), lock.by(&owner).read(0..10));
    let one = one.as_mut().expect("readers share");
    let says = panic_message(|| _ = one.upgrade());
    assert!(says.contains("the same owner holds"), "{says}");
    one.release(..);
    drop(other);
    assert_eq!(owner.asks_or_holds(), 0);
    assert_nothing_held(lock.raw());
}

#[test]
#[cfg(debug_assertions)]
fn a_thread_that_waits_for_itself_panics_at_its_line() {
    let lock = lock();
    let places = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&places);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if thread::current().name() == Some("waits for itself") {
            let place = info.location().expect("it has one").to_string();
            seen.lock().expect("no panic meanwhile").push(place);
        } else {
            usual(info);
        }
    }));
    let waits = move || {
        let _guard = lock.write(0..10);
        let (owner, other) = (Owner::new(), Owner::new());
        let held = lock.by(&owner).write(20..30).expect("it is free");
        let mut more = lock.by(&owner).read(40..50).expect("it is free");
        let twice = lock.by(&owner).read(40..50).expect("it is shared");
        panic_message(|| drop(lock.by(&other).read(5..6)));
        panic_message(|| drop(lock.by(&owner).read(25..26)));
        panic_message(|| {
            drop(
                lock.by(&owner)
                    .lock_many([(0..1, Shared), (60..70, Shared)]),
            )
        });
        panic_message(|| _ = more.extend(25..60));
        panic_message(|| _ = more.convert(5..60, Shared));
        panic_message(|| _ = more.upgrade());
        drop((held, more, twice));
    };
    let waits = thread::Builder::new()
        .name("waits for itself".into())
        .spawn(waits);
    waits.expect("a thread").join().expect("they are caught");
    let places = places.lock().expect("no panic meanwhile");
    assert_eq!(places.len(), 6);
    assert!(
        places.iter().all(|at| at.contains("cases.rs")),
        "{places:?}"
    );
}

#[test]
fn reports_name_owners() {
    let lock = lock();
    let owner = Owner::new();
    let holding = lock.by(&owner).write(0..10).expect("it is free");
    let guard = lock.write(10..20);
    let listed = lock.snapshot().to_string();
    assert!(
        listed.contains(&format!("{}: 0..=9 exclusive", owner.id())),
        "{listed}"
    );
    assert_eq!(lock.snapshot().holders[0].owner, owner.id());
    assert_eq!(owner.id().thread(), None);
    assert!(lock.snapshot().holders[1].owner.thread().is_some());
    assert_eq!(
        format!("{holding:?}"),
        format!("[\"{}: 0..=9 exclusive\"]", owner.id())
    );
    drop(guard);
}

#[test]
#[cfg(debug_assertions)]
fn an_owner_that_waits_for_itself_panics() {
    let lock = lock();
    let owner = Owner::new();
    let holding = lock.by(&owner).write(0..10).expect("it is free");
    let says = panic_message(|| drop(lock.by(&owner).read(5..6)));
    assert!(
        says.contains("the same owner holds") && says.contains("cases.rs"),
        "{says}"
    );
    drop(holding);
    assert_nothing_held(lock.raw());
}

/// What one thread of an owner has locked, that thread releases: another one waits for it.
#[test]
fn threads_of_one_owner_wait_for_each_other() {
    let lock = lock();
    let owner = Owner::new();
    let holding = lock.by(&owner).write(0..10).expect("it is free");
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut held = lock.by(&owner).read(20..30).expect("it is free");
            held.convert(5..6, Exclusive).expect("nobody refuses it");
            held.pieces().count()
        });
        until_asleep(&lock, 1);
        drop(holding);
        assert_eq!(other.join().expect("it does not panic"), 2);
    });
    assert_nothing_held(lock.raw());
}

#[test]
fn a_leaked_holding_leaves_its_range_locked_and_harms_nothing_else() {
    let lock = lock();
    let owner = Owner::new();
    std::mem::forget(lock.by(&owner).write(0..10));
    assert!(lock.try_read(0..1).is_none());
    assert!(lock.try_write(10..).is_some());
    assert_eq!(owner.asks_or_holds(), 1);
}

#[test]
fn a_panic_releases() {
    let lock = lock();
    let panics = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || {
            let _holding = lock.by_arc(&Owner::new()).write(0..10);
            std::panic::resume_unwind(Box::new("on purpose"));
        })
    };
    assert!(panics.join().is_err());
    assert_nothing_held(lock.raw());
}

/// Calls that lock many do not deadlock, whatever their order, and whether owners or threads make them.
#[test]
fn calls_that_lock_many_do_not_wait_for_each_other() {
    let lock = lock();
    thread::scope(|scope| {
        for number in 0..4_u64 {
            let lock = &lock;
            scope.spawn(move || {
                let owner = Owner::new();
                for turn in 0..2000 {
                    let ranges = [0, 1, 2].map(|part| (number * 7 + turn * 3 + part * 11) % 20);
                    if number == 0 {
                        drop(lock.write_many(ranges.map(|at| at..at + 2)));
                    } else {
                        let modes = [Exclusive, Shared, Exclusive];
                        let wanted = ranges.map(|at| at..at + 2).into_iter().zip(modes);
                        drop(
                            lock.by(&owner)
                                .lock_many(wanted)
                                .expect("nobody cancels it"),
                        );
                    }
                }
            });
        }
    });
    assert_nothing_held(lock.raw());
}

#[test]
fn a_lock_may_be_full() {
    let lock = RangeLock::from_raw(Limited::new(RawSlots::new(), 2));
    let (mine, theirs) = (Owner::new(), Owner::new());
    let mut holding = lock.by(&mine).read(0..10).expect("it is free");
    let other = lock.by(&theirs).read(5..6).expect("readers share");
    let full = Err(Refusal::LockFull);
    assert_eq!(lock.by(&theirs).write(20..30).map(drop), full);
    assert_eq!(holding.try_convert(7..15, Exclusive), full);
    let ranges = [(30..40, Shared), (50..60, Shared)];
    assert_eq!(lock.by(&theirs).lock_many(ranges).map(drop), full);
    assert_eq!(lock.raw().held_or_awaited(), 2);
    // What is held may be cut and converted, and threads lock what they want.
    assert_eq!(holding.try_convert(7..10, Exclusive), Ok(()));
    assert!(lock.try_write(20..30).is_some());
    assert_eq!(lock.raw().held_or_awaited(), 3);
    assert_eq!(holding.try_upgrade(), Err(Refusal::Busy));
    drop((holding, other));
    assert_eq!(lock.raw().held_or_awaited(), 0);
    assert_eq!(mine.asks_or_holds() + theirs.asks_or_holds(), 0);
    assert_nothing_held(lock.raw());
}

/// Tries for nobody in particular have no refusal to name.
#[test]
fn a_full_lock_refuses_tries_without_a_name() {
    let full = || RangeLock::from_raw(Limited::new(RawSlots::new(), 0));
    let lock = Arc::new(full());
    assert!(lock.try_read_owned(0..1).is_none());
    assert!(lock.try_write_owned(0..1).is_none());
    let pages = Arc::new(RangeLocked::with_lock(Box::new([0; 8]), full()));
    assert!(pages.try_read_owned(0..1).is_none());
    assert!(pages.try_write_owned(0..1).is_none());
    assert_nothing_held(lock.raw());
}
