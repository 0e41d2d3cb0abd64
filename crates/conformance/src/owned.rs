//! What owners hold: it goes to other threads, and is converted, cut and split, all or nothing.

use crate::suite::Scenario;
use crate::support::{Shared, await_sleepers, elsewhere};
use spanlock::range::raw::Mode::{self, Exclusive};
use spanlock::range::raw::RawOwned;
use spanlock::range::{Holding, Owner, RangeLock, Refusal};
use std::ops::Range;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// A lock that owners may ask, shared by threads.
pub trait Owned: RawOwned + Shared {}
impl<L: RawOwned + Shared> Owned for L {}

fn may_read<L: Owned>(lock: &RangeLock<L>, range: Range<u64>) -> bool {
    elsewhere(|| lock.try_read(range).is_some())
}

fn may_write<L: Owned>(lock: &RangeLock<L>, range: Range<u64>) -> bool {
    elsewhere(|| lock.try_write(range).is_some())
}

/// What is held, as half-open ranges. Pieces that touch count as one.
fn pieces<L: Owned>(holding: &Holding<&RangeLock<L>>) -> Vec<(Range<u64>, Mode)> {
    let mut joined: Vec<(Range<u64>, Mode)> = Vec::new();
    for (span, mode) in holding.pieces() {
        match joined.last_mut() {
            Some((range, same)) if *same == mode && range.end == span.start() => {
                range.end = span.last() + 1;
            }
            _ => joined.push((span.start()..span.last() + 1, mode)),
        }
    }
    joined
}

fn held<L: Owned>(lock: &RangeLock<L>, range: Range<u64>, mode: Mode) -> Holding<&RangeLock<L>> {
    let owner = Owner::new();
    lock.by(&owner).lock(range, mode).expect("it is free")
}

fn another_thread_releases<L: Owned>(lock: &RangeLock<L>) {
    let holding = held(lock, 0..10, Exclusive);
    assert!(!may_read(lock, 9..10) && may_write(lock, 10..20));
    elsewhere(move || drop(holding));
    assert!(may_write(lock, 0..10));
}

/// What one thread locks and another releases, again and again, while a third wants it.
fn holdings_go_round<L: Owned>(lock: &RangeLock<L>) {
    thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::sync_channel::<Holding<&RangeLock<L>>>(4);
        scope.spawn(move || receive.into_iter().for_each(drop));
        scope.spawn(|| (0..500).for_each(|at| drop(lock.write(at % 7..10))));
        for at in 0..500 {
            let owner = Owner::new();
            let (start, by) = (at % 8, lock.by(&owner));
            let mode = if at % 3 == 0 { Exclusive } else { Mode::Shared };
            let holding = by.lock(start..start + 2, mode).expect("nobody cancels it");
            send.send(holding).expect("it is received");
        }
    });
}

fn a_conversion_is_all_or_nothing<L: Owned>(lock: &RangeLock<L>) {
    let mut mine = held(lock, 0..10, Mode::Shared);
    let theirs = held(lock, 8..9, Mode::Shared);
    let before = pieces(&mine);
    assert_eq!(mine.try_upgrade(), Err(Refusal::Busy));
    assert_eq!(mine.try_convert(5..20, Exclusive), Err(Refusal::Busy));
    let soon = Duration::from_millis(2);
    assert_eq!(
        mine.try_convert_for(0..9, Exclusive, soon),
        Err(Refusal::Busy)
    );
    assert_eq!(pieces(&mine), before);
    assert!(may_read(lock, 0..20) && may_write(lock, 10..20));
    assert_eq!(mine.try_convert(9..12, Exclusive), Ok(()));
    assert_eq!(pieces(&mine), [(0..9, Mode::Shared), (9..12, Exclusive)]);
    drop(theirs);
    assert_eq!(mine.upgrade(), Ok(()));
    assert!(!may_read(lock, 0..1) && !may_read(lock, 8..9) && may_write(lock, 12..13));
}

/// Nobody gets in between.
fn an_upgrade_waits_and_keeps_what_it_shares<L: Owned>(lock: &RangeLock<L>) {
    let reader = lock.read(5..6);
    thread::scope(|scope| {
        let upgrades = scope.spawn(|| {
            let mut mine = held(lock, 0..10, Mode::Shared);
            mine.upgrade().map(|()| !may_read(lock, 0..1))
        });
        await_sleepers(lock.raw(), 1);
        assert!(!may_write(lock, 0..5));
        drop(reader);
        assert_eq!(upgrades.join().expect("it is granted"), Ok(true));
    });
}

fn of_two_upgrades_one_is_refused<L: Owned>(lock: &RangeLock<L>) {
    let mut mine = held(lock, 0..10, Mode::Shared);
    thread::scope(|scope| {
        let other = scope.spawn(|| held(lock, 5..15, Mode::Shared).upgrade());
        await_sleepers(lock.raw(), 1);
        assert_eq!(mine.upgrade(), Err(Refusal::OtherUpgrade));
        mine.release(..);
        assert_eq!(other.join().expect("it is granted"), Ok(()));
    });
}

/// Readers of the part come in at once, and nobody else comes in meanwhile.
fn a_part_is_shared<L: Owned>(lock: &RangeLock<L>) {
    let mut mine = held(lock, 0..30, Exclusive);
    thread::scope(|scope| {
        let reader = scope.spawn(|| drop(lock.read(12..15)));
        await_sleepers(lock.raw(), 1);
        assert_eq!(mine.convert(10..20, Mode::Shared), Ok(()));
        reader.join().expect("it is granted");
    });
    assert!(!may_read(lock, 9..10) && !may_read(lock, 20..21));
    assert!(may_read(lock, 10..20) && !may_write(lock, 10..11));
}

fn a_part_is_released<L: Owned>(lock: &RangeLock<L>) {
    for mode in [Exclusive, Mode::Shared] {
        let mut mine = held(lock, 0..30, mode);
        thread::scope(|scope| {
            let writer = scope.spawn(|| drop(lock.write(10..20)));
            await_sleepers(lock.raw(), 1);
            mine.release(10..20);
            writer.join().expect("it is granted");
        });
        assert!(!may_write(lock, 9..10) && !may_write(lock, 20..21));
        mine.shrink_to(25..40);
        assert_eq!(pieces(&mine), [(25..30, mode)]);
        assert!(may_write(lock, 0..25) && !may_write(lock, 25..26));
    }
}

/// Each half has what it holds, and is converted and released by itself.
fn halves_go_their_ways<L: Owned>(lock: &RangeLock<L>) {
    let mut first = held(lock, 0..20, Exclusive);
    let mut second = first.split_off(10);
    thread::scope(|scope| {
        let converts = scope.spawn(move || {
            second.downgrade();
            assert!(may_read(lock, 10..20) && !may_write(lock, 10..20));
            second.upgrade()
        });
        assert_eq!(converts.join().expect("it is granted"), Ok(()));
    });
    assert!(may_write(lock, 10..20) && !may_read(lock, 9..10));
    assert_eq!(first.convert(5..15, Mode::Shared), Ok(()));
    assert_eq!(pieces(&first), [(0..5, Exclusive), (5..15, Mode::Shared)]);
}

fn many_ranges_in_their_modes<L: Owned>(lock: &RangeLock<L>) {
    let owner = Owner::new();
    let reader = lock.read(20..30);
    let by = lock.by(&owner);
    let wanted = |mode| [(40..50, Exclusive), (20..30, mode), (0..10, Exclusive)];
    assert_eq!(
        by.try_lock_many(wanted(Exclusive)).map(drop),
        Err(Refusal::Busy)
    );
    assert!(may_write(lock, 0..10) && may_write(lock, 40..50));
    let held = by
        .lock_many(wanted(Mode::Shared))
        .expect("nobody cancels it");
    assert_eq!(held.pieces().count(), 3);
    drop(reader);
    assert!(may_read(lock, 20..30) && !may_write(lock, 20..30) && !may_read(lock, 45..46));
}

/// Owners that lock many, and threads that do, never wait for each other in a ring.
fn many_do_not_deadlock<L: Owned>(lock: &RangeLock<L>) {
    thread::scope(|scope| {
        for number in 0..4_u64 {
            scope.spawn(move || {
                let owner = Owner::new();
                for turn in 0..200 {
                    let ranges = [0, 1, 2].map(|part| (number * 7 + turn * 3 + part * 11) % 20);
                    let ranges = ranges.map(|at| at..at + 2);
                    if number == 0 {
                        drop(lock.write_many(ranges));
                    } else {
                        let modes = [Exclusive, Mode::Shared, Exclusive];
                        let wanted = ranges.into_iter().zip(modes);
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
}

/// The wait ends at once, and whom it held up goes on.
fn a_cancelled_wait_holds_nobody_up<L: Owned>(lock: &RangeLock<L>) {
    let owner = Owner::new();
    let (early, reader) = (lock.write(0..10), lock.read(20..30));
    thread::scope(|scope| {
        let waits = scope.spawn(|| lock.by(&owner).write(0..30).map(drop));
        await_sleepers(lock.raw(), 1);
        let behind = scope.spawn(|| drop(lock.read(25..28)));
        owner.cancel();
        assert_eq!(waits.join().expect("it ends"), Err(Refusal::Cancelled));
        behind.join().expect("it is granted");
        drop((early, reader));
    });
    assert_eq!(owner.asks_or_holds(), 0);
}

fn a_cancelled_conversion_keeps_what_it_has<L: Owned>(lock: &RangeLock<L>) {
    let owner = Owner::new();
    let reader = lock.read(5..6);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut mine = lock.by(&owner).read(0..10).expect("readers share");
            let outcome = mine.upgrade();
            assert!(!may_write(lock, 0..1) && may_read(lock, 0..10));
            outcome
        });
        await_sleepers(lock.raw(), 1);
        owner.cancel();
        assert_eq!(waits.join().expect("it ends"), Err(Refusal::Cancelled));
    });
    drop(reader);
}

/// An owner that holds some of what another waits for does not give way to it, whatever threads ask for it.
fn owners_bypass_what_waits_for_them<L: Owned>(lock: &RangeLock<L>) {
    let owner = Owner::new();
    let mut mine = lock.by(&owner).write(0..10).expect("it is free");
    let all_asleep = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(0..60)));
        await_sleepers(lock.raw(), 1);
        scope.spawn(|| {
            all_asleep.wait();
            drop(lock.by(&owner).write(50..60).expect("nobody holds it"));
        });
        all_asleep.wait();
        assert_eq!(mine.extend(20..30), Ok(()));
        mine.release(..);
    });
}

/// Owned guards name no owner, and are converted all the same.
fn guards_without_a_name<L: Owned>(lock: &RangeLock<L>) {
    let somebody = Owner::anonymous();
    let (by, mut reads) = (lock.by(&somebody), held(lock, 0..5, Mode::Shared));
    let mut mine = by.read(0..10).expect("readers share");
    assert_eq!(by.try_write(9..12).map(drop), Err(Refusal::Busy));
    assert_eq!(mine.try_convert(5..10, Exclusive), Ok(()));
    reads.release(..);
    assert_eq!(mine.upgrade(), Ok(()));
    let rest = mine.split_off(4);
    elsewhere(move || drop(rest));
    assert!(may_write(lock, 4..10) && !may_read(lock, 3..4));
}

pub fn scenarios<L: Owned>() -> Vec<Scenario<RangeLock<L>>> {
    scenarios![
        another_thread_releases needs Owners,
        holdings_go_round needs Owners,
        a_conversion_is_all_or_nothing needs Owners,
        an_upgrade_waits_and_keeps_what_it_shares needs Owners,
        of_two_upgrades_one_is_refused needs Owners,
        a_part_is_shared needs Owners,
        a_part_is_released needs Owners,
        halves_go_their_ways needs Owners,
        many_ranges_in_their_modes needs Owners,
        many_do_not_deadlock needs Owners,
        a_cancelled_wait_holds_nobody_up needs Owners,
        a_cancelled_conversion_keeps_what_it_has needs Owners,
        owners_bypass_what_waits_for_them needs Owners,
        guards_without_a_name needs Owners,
    ]
}
