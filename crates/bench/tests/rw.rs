//! Runs of the workloads of reader-writer locks are checked, and what they report can be read back.

mod loads;

use loads::{loads, mixed};
use spanlock_bench::costs;
use spanlock_bench::peers::called::{Called, Calls};
use spanlock_bench::rw::locks::{LOCKS, Lock, Make};
use spanlock_bench::workload::measure;
use spanlock_records::record::{Line, Panel};
use spanlock_records::trial::lock::{Exclusion, RwDescribed};
use spanlock_records::trial::run::{Schedule, Trial};
use spanlock_records::trial::settings::Settings;
use spanlock_workbench::rw::{hash_table, test_rwlock};
use std::time::Duration;

fn trial(load: Panel, threads: usize, measured: Duration) -> Trial<Panel> {
    let schedule = Schedule {
        warmup: Duration::from_millis(1),
        measured,
    };
    Trial::new(schedule, 7).with(load, threads)
}

#[test]
fn every_lock_passes_every_workload() {
    for lock in LOCKS.iter() {
        for load in loads() {
            let record = measure(trial(load, 2, Duration::from_millis(3)), lock);
            let record = record.unwrap_or_else(|found| panic!("{} {load}: {found}", lock.name));
            assert!(record.min_ops_per_thread <= record.max_ops_per_thread);
            if lock.exclusion == Exclusion::Promised {
                assert_eq!((record.lost_updates, record.torn_reads), (0, 0));
            }
            let line = Line::from(record);
            assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
        }
    }
}

/// Lets everybody in, and yet claims to exclude.
#[derive(Default)]
struct Broken;

impl Calls for Broken {
    fn read_lock(&self) {}
    fn read_unlock(&self) {}
}

#[test]
fn a_lock_that_does_not_exclude_is_caught_by_every_check() {
    static BROKEN: Lock = Lock {
        described: RwDescribed {
            name: "broken",
            ..RwDescribed::ANY
        },
        measure: &Make(Called::<Broken>::default),
    };
    for load in [
        test_rwlock::Load { pause: 0 }.panel(),
        mixed(0.9),
        hash_table::Load { entries: 4 }.panel(),
    ] {
        let trial = trial(load, 4, Duration::from_millis(20));
        let caught = (0..200).any(|_| measure(trial, &BROKEN).is_err());
        assert!(
            caught,
            "{load}: 200 runs without a lock, and nothing was found"
        );
    }
}

#[test]
fn one_thread_is_timed_in_both_modes() {
    for lock in LOCKS.iter() {
        let record = costs::rw_uncontended(lock, 10, 0);
        assert!(record.read_ns >= 0.0 && record.write_ns >= 0.0);
        let line = Line::RwUncontended(record);
        assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
    }
}
