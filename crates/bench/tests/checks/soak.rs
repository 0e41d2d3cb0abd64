//! Soaks: random work on all locks, and the faults that it finds.

use super::*;
use spanlock_bench::soak::{self, Fault, Meeting, Plan, Several, Soak, Soaked, Soaking};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

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
            let record = soak.round(round, Duration::from_millis(20), &|| 0);
            let record = record.unwrap_or_else(|fault| panic!("{}: {fault}", lock.name));
            assert!(record.acquired > 0 && record.most_held >= 1);
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
    let allocated = Cell::new(0);
    let mut soak = Soak::new(find("list-rw").unwrap(), 2, PLAN.stall, 1);
    // Before and after each round, a third of the bound more.
    let grows = || {
        allocated.set(allocated.get() + soak::MAX_GROWTH / 3);
        allocated.get()
    };
    let mut round = |number| soak.round(number, Duration::from_millis(1), &grows);
    assert_eq!(round(0).unwrap().grown_bytes, 0, "the first may allocate");
    assert_eq!(round(1).unwrap().grown_bytes, soak::MAX_GROWTH / 3);
    assert!(round(2).is_ok() && round(3).is_ok());
    assert_eq!(
        round(4).unwrap_err(),
        Fault::Grown(soak::MAX_GROWTH / 3 * 4)
    );
}
