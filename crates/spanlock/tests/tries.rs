//! A try for a range that nobody holds is granted, beside tries that somebody refuses for as long as they last.
//!
//! These are not announced, so it does not matter when their threads run. What is refused is counted, and printed.

#[macro_use]
mod common;

use common::{Shared, shared};
use spanlock::range::raw::{Mode, RawOwned};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock};
use spanlock_testkit::exact::Exact;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

/// Tries so often.
const TRIES: usize = 5000;

/// Tries beside three threads that do nothing but try in vain, each time for a range that begins elsewhere.
fn beside_three(refused: impl Fn(u64) -> bool + Sync, mut tries: impl FnMut() -> bool) {
    let is_over = AtomicBool::new(false);
    let in_vain = AtomicUsize::new(0);
    let count = thread::scope(|scope| {
        for first in 0..3 {
            let (is_over, in_vain, refused) = (&is_over, &in_vain, &refused);
            scope.spawn(move || {
                for start in (0..15).cycle().skip(first) {
                    assert!(refused(start), "somebody holds some of it");
                    in_vain.fetch_add(1, Relaxed);
                    if is_over.load(Relaxed) {
                        break;
                    }
                }
            });
        }
        common::until(|| in_vain.load(Relaxed) > 100);
        let count = (0..TRIES).filter(|_| !tries()).count();
        is_over.store(true, Relaxed);
        count
    });
    let in_vain = in_vain.into_inner();
    println!("{count} of {TRIES} tries were refused beside {in_vain} in vain");
    assert_eq!(count, 0, "nobody holds the range");
}

fn one_range<L: Shared>(lock: &RangeLock<L>) {
    let _held = (lock.write(15..16), lock.read(12..13));
    let writes = |start| lock.try_write(start..20).is_none();
    let reads = |start| lock.try_read(start..20).is_none();
    beside_three(writes, || lock.try_write(0..10).is_some());
    beside_three(writes, || lock.try_read(0..10).is_some());
    beside_three(reads, || lock.try_write(0..10).is_some());
    let mut at = 0;
    beside_three(writes, || {
        at = (at + 1) % 8;
        lock.try_write(at..at + 2).is_some()
    });
}

fn several_ranges<L: Shared>(lock: &RangeLock<L>) {
    let _held = lock.write(15..16);
    let many = |start| lock.try_write_many([start..start + 1, 15..20]).is_none();
    beside_three(many, || lock.try_write(0..10).is_some());
    let one = |start| lock.try_write(start..20).is_none();
    beside_three(one, || lock.try_write_many([0..3, 5..10]).is_some());
}

in_every_shared_configuration!(crate::common::shared: one_range, several_ranges);

fn of_owners<L: Shared + RawOwned>(lock: &RangeLock<L>) {
    let held = lock.write(15..16);
    let somebody = Owner::new();
    let by_thread = |start| lock.try_write(start..20).is_none();
    let by_owner = |start| lock.by(&Owner::new()).try_write(start..20).is_err();
    let reads = |start| lock.by(&Owner::new()).try_read(start..20).is_err();
    let extends = |start| {
        let owner = Owner::new();
        let lone = lock.by(&owner).write(100 + start..101 + start);
        lone.expect("nobody else locks it for long")
            .try_extend(start..20)
            .is_err()
    };
    beside_three(by_thread, || lock.by(&somebody).try_write(0..10).is_ok());
    beside_three(by_owner, || lock.try_write(0..10).is_some());
    beside_three(reads, || lock.try_write(0..10).is_some());
    beside_three(extends, || lock.try_write(0..10).is_some());
    let mut mine = lock.by(&somebody).read(0..10).expect("nobody holds it");
    let mut upgrades = || {
        let upgraded = mine.try_convert(0..10, Mode::Exclusive).is_ok();
        mine.convert(0..10, Mode::Shared).expect("it is held");
        upgraded
    };
    beside_three(by_thread, &mut upgrades);
    beside_three(by_owner, &mut upgrades);
    drop(mine);
    let mut mine = lock.by(&somebody).write(4..5).expect("nobody holds it");
    beside_three(by_thread, || {
        let extended = mine.try_extend(0..10).is_ok();
        mine.shrink_to(4..5);
        extended
    });
    drop((mine, held));
}

macro_rules! on_each_lock {
    ($($lock:ident)+) => {
        mod by_owners {
            $(
                #[test]
                fn $lock() {
                    super::shared(crate::common::$lock, super::of_owners);
                }
            )+
        }
    };
}

on_each_lock! { standard skip_standard slots slots_at_once slots_buckets }

/// A thread's first request may be refused before it is announced. What the thread holds next bears its name.
#[test]
fn who_was_refused_first_is_named_later() {
    let builders = [
        RawSlots::builder().slots_at_once(),
        RawSlots::builder().buckets_at_once(4),
    ];
    for builder in builders {
        let (lock, other) = (RangeLock::from_raw(builder.build()), RangeLock::new());
        let held = lock.write(0..8);
        thread::scope(|scope| {
            scope.spawn(|| {
                let elsewhere = other.write(..);
                let name = other.snapshot().holders[0].owner;
                assert!(lock.try_write(0..8).is_none(), "it is held");
                let own = lock.write(8..16);
                let names = lock.snapshot().holders.into_iter().map(|held| held.owner);
                assert!(names.clone().any(|owner| owner == name), "{names:?}");
                drop((own, elsewhere));
            });
        });
        drop(held);
    }
}
