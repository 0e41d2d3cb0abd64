//! Soaks: random work on all locks, and the faults that it finds.

use super::*;
use spanlock_bench::soak::{
    self, Fault, Plan, RESOURCE, Several, Slots, Soak, Soaked, Soaking, Watch,
};

use spanlock_records::record::Meeting;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Instant;

const PLAN: Plan = Plan {
    threads: 4,
    several: Several::Waiting,
    stall: Duration::from_secs(60),
    seed: 3,
};

#[test]
fn every_lock_that_promises_exclusion_is_soaked_by_all_it_can_do() {
    let promises = |lock: &&Lock| lock.exclusion == Exclusion::Promised;
    for lock in LOCKS.iter().filter(promises) {
        let mut soak = Soak::new(lock, 4, PLAN.stall, 3);
        for round in 0..2 {
            // On a busy machine no thread may run in so short a round.
            let record = (0..100).find_map(|_| {
                let record = soak.round(round, Duration::from_millis(20), &|| 0);
                let record = record.unwrap_or_else(|fault| panic!("{}: {fault}", lock.name));
                (record.acquired > 0).then_some(record)
            });
            let record = record.expect("nothing is acquired in 100 rounds");
            assert!(record.most_held >= 1);
            let whole = ["std-rwlock", "parking-lot"].contains(&lock.name);
            assert_eq!(record.meetings.contains(&Meeting::Neighbours), !whole);
            assert_eq!(
                record.meetings.contains(&Meeting::Readers),
                record.readers_share
            );
            assert!(whole == (record.several == "locks the whole"), "{record:?}");
            assert_ne!(record.gives_up, "never");
            let fields = [
                "lock",
                "round",
                "acquired",
                "gave_up",
                "longest_wait_ms",
                "grown_bytes",
            ];
            assert_has(&json(&Line::Soak(record)), "soak", &fields);
        }
    }
}

#[test]
fn a_soak_catches_a_lock_that_does_not_exclude() {
    let mut soaking = Soaking::new(Broken, PLAN);
    let met = (0..200).find_map(|round| soaking.round(round, Duration::from_millis(20)).err());
    let met = met.expect("200 rounds without a lock and nobody met");
    assert!(matches!(met, Fault::Met(_)), "{met}");
    assert!(met.to_string().contains("met that exclude each other"));
}

/// Grants one request after so many others, and no more: nothing is ever released.
struct Leaky(AtomicBool);

impl Target for Leaky {
    const READERS: Readers = Readers::Exclude;
    type Read<'a> = Granted;
    type Write<'a> = Granted;

    fn read(&self, range: Range<u64>) -> Granted {
        self.write(range)
    }

    fn write(&self, _: Range<u64>) -> Granted {
        while self.0.swap(true, Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_secs(1));
        }
        Granted
    }

    fn snapshot(&self) -> Option<String> {
        Some("held by one that is gone".to_owned())
    }
}

#[test]
fn a_soak_does_not_wait_for_a_lock_that_never_releases() {
    let soaking = |several| {
        let plan = Plan {
            several,
            stall: Duration::from_millis(50),
            ..PLAN
        };
        Soaking::new(Leaky(AtomicBool::new(false)), plan)
    };
    let long = Duration::from_secs(3600);
    let stuck = soaking(Several::Never("it is broken"))
        .round(0, long)
        .unwrap_err();
    assert!(matches!(stuck, Fault::Stuck { .. }), "{stuck}");
    let told = stuck.to_string();
    assert!(
        told.contains("got nowhere") && told.contains("one that is gone"),
        "{told}"
    );
    // One that claims to let neighbours in together does not even get as far.
    let apart = soaking(Several::Waiting).round(0, long).unwrap_err();
    assert_eq!(apart, Fault::Apart(Meeting::Neighbours));
}

#[test]
fn a_soak_tells_growth_after_the_first_round_and_ends_beyond_a_bound() {
    let allocated = AtomicI64::new(0);
    let mut soak = Soak::new(find("list-rw").unwrap(), 2, PLAN.stall, 1);
    // Before and after each round, a third of the bound more.
    let grows =
        || allocated.fetch_add(soak::MAX_GROWTH / 3, Ordering::Relaxed) + soak::MAX_GROWTH / 3;
    let mut round = |number| soak.round(number, Duration::from_millis(1), &grows);
    assert_eq!(round(0).unwrap().grown_bytes, 0, "the first may allocate");
    assert_eq!(round(1).unwrap().grown_bytes, soak::MAX_GROWTH / 3);
    assert!(round(2).is_ok() && round(3).is_ok());
    assert_eq!(
        round(4).unwrap_err(),
        Fault::Grown(soak::MAX_GROWTH / 3 * 4)
    );
}

#[test]
fn meetings_are_named() {
    let slots = Slots::new(RESOURCE);
    let met = |thread, range, mode| match slots.enter(thread, &range, mode) {
        Err(Fault::Met(what)) => what,
        other => panic!("{other:?}"),
    };
    slots.enter(4, &(0..4), Mode::Shared).unwrap();
    slots.enter(5, &(2..8), Mode::Shared).unwrap();
    slots.enter(6, &(8..9), Mode::Exclusive).unwrap();
    let what = met(7, 3..4, Mode::Exclusive);
    assert_eq!(what, "thread 7 writes 3..4, and in 3 2 readers are");
    let what = met(7, 8..20, Mode::Shared);
    assert_eq!(
        what,
        "thread 7 reads 8..20, and in 8 thread 6 is, which writes"
    );
}

#[test]
fn holders_that_left_are_in_nobodys_way() {
    let slots = Slots::new(RESOURCE);
    for mode in [Mode::Exclusive, Mode::Shared, Mode::Exclusive] {
        slots.enter(0, &(0..256), mode).unwrap();
        slots.leave(0, &(0..256), mode);
    }
}

#[test]
fn what_is_half_written_is_seen() {
    let slots = Slots::new(RESOURCE);
    slots.write(&(3..5), || {
        assert_eq!(slots.total(), 2);
        assert_eq!(slots.read(&(0..3)), Ok(()));
        assert!(slots.read(&(0..4)).is_err());
    });
    assert_eq!(slots.read(&(0..256)), Ok(()));
    assert_eq!(slots.total(), 4);
}

#[test]
fn a_thread_without_progress_is_named_unless_it_is_done() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut watch = Watch::new(3, Duration::from_secs(30), start);
    assert_eq!(watch.stuck([1, 1, 1], at(1)), None);
    assert_eq!(watch.stuck([2, 1, Watch::DONE], at(20)), None);
    assert_eq!(watch.stuck([3, 1, Watch::DONE], at(31)), None);
    let stuck = Some((1, Duration::from_secs(31)));
    assert_eq!(watch.stuck([4, 1, Watch::DONE], at(32)), stuck);
    assert_eq!(watch.stuck([4, 2, Watch::DONE], at(33)), None, "it got on");
    let stuck = Some((0, Duration::from_secs(31)));
    assert_eq!(watch.stuck([4, 2, Watch::DONE], at(63)), stuck);
    let mut never_began = Watch::new(1, Duration::from_secs(30), start);
    assert!(never_began.stuck([0], at(31)).is_some());
}
