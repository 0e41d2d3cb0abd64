//! Runs of the workloads of reader-writer locks are checked, and what they report can be read back.

use spanlock_bench::crew::Schedule;
use spanlock_bench::provenance::Provenance;
use spanlock_bench::registry::Exclusion;
use spanlock_bench::report::{self, Line, Width};
use spanlock_bench::rw::locks::{FLOOR, LOCKS, Lock, Make, NULL, families, find};
use spanlock_bench::rw::target::{Called, Calls};
use spanlock_bench::rw::{Load, Record, Trial, uncontended};
use std::time::Duration;

/// Lines are whole.
const WIDE: Width = Width::of(1000);

fn trial(load: Load, threads: usize, measured: Duration) -> Trial {
    Trial {
        load,
        threads,
        schedule: Schedule {
            warmup: Duration::from_millis(1),
            measured,
        },
        seed: 7,
        repeat: 0,
    }
}

/// One of each, small.
const LOADS: [Load; 6] = [
    Load::Interference { pool: 3 },
    Load::Alternator,
    Load::TestRwlock { pause: 100 },
    Load::Rwbench { writes: 0.5 },
    Load::HashTable { entries: 64 },
    Load::Readers,
];

#[test]
fn every_lock_passes_every_workload() {
    for lock in LOCKS {
        for load in LOADS {
            let record = Record::measure(lock, &trial(load, 2, Duration::from_millis(3)));
            let record = record.unwrap_or_else(|found| panic!("{} {load}: {found}", lock.name));
            assert!(record.min_ops_per_thread <= record.max_ops_per_thread);
            if lock.exclusion == Exclusion::Promised {
                assert_eq!((record.lost_updates, record.torn_reads), (0, 0));
            }
            let line = Line::Rw(record);
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
    let broken = Lock {
        name: "broken",
        exclusion: Exclusion::Promised,
        measure: &Make(Called::<Broken>::default),
        ..*find("null").unwrap()
    };
    for load in [
        Load::TestRwlock { pause: 0 },
        Load::Rwbench { writes: 0.9 },
        Load::HashTable { entries: 4 },
    ] {
        let trial = trial(load, 4, Duration::from_millis(20));
        let caught = (0..200).any(|_| Record::measure(&broken, &trial).is_err());
        assert!(
            caught,
            "{load}: 200 runs without a lock, and nothing was found"
        );
    }
}

fn record(lock: &str, repeat: u32, ops_per_sec: f64) -> Record {
    Record {
        load: Load::Alternator,
        lock: lock.to_owned(),
        threads: 2,
        repeat,
        seed: 1,
        seconds: 1.0,
        ops_per_sec,
        reads_per_sec: ops_per_sec,
        writes_per_sec: 0.0,
        min_ops_per_thread: 1,
        max_ops_per_thread: 1,
        cpu_seconds: None,
        handoff_ns: None,
        lost_updates: 0,
        torn_reads: 0,
    }
}

/// The machine was half as fast in each repeat as in the one before: only ratios within one tell the truth.
fn drifting(lock: &str, speeds: [f64; 3]) -> impl Iterator<Item = Record> {
    let runs = speeds.into_iter().zip([4e6, 2e6, 1e6]).zip(0..);
    let runs = runs.map(|((speed, machine), repeat)| (speed * machine, repeat));
    let lock = lock.to_owned();
    runs.map(move |(ops, repeat)| record(&lock, repeat, ops))
}

#[test]
fn harm_is_the_median_of_the_ratios_in_each_repeat_and_is_flagged() {
    let (base, made) = families().remove(0);
    let (control, made) = made.split_first().expect("a control");
    let runs = drifting(base.name, [1.0; 3])
        .chain(drifting(control.name, [0.7, 0.6, 1.8]))
        .chain(drifting(made[0].name, [0.9, 0.8, 2.0]))
        .chain(drifting(made[1].name, [0.96, 0.1, 1.5]));
    let text = report::harm(&runs.collect::<Vec<_>>(), &Provenance::here([]), WIDE);
    let named = format!(
        "alternator, 2 threads: {} is 0.90 of {}; a second: reads 2000000 -> 2000000, writes 0 -> 0\n",
        made[0].name, base.name
    );
    assert!(
        text.contains(&named) && text.contains("0.90 ±67%!"),
        "{text}"
    );
    assert!(text.contains("0.96 ±73% "), "{text}");
    // Shown, and not held to it.
    assert!(text.contains("0.70 ±86% "), "{text}");
    let slower = text.lines().filter(|line| line.contains(" is 0."));
    assert_eq!(slower.count(), 1, "{text}");
}

#[test]
fn runs_between_which_handoffs_changed_are_not_compared() {
    let (base, made) = families().remove(0);
    let run = |lock: &str, repeat, ops, handoff_ns| Record {
        handoff_ns: Some(handoff_ns),
        ..record(lock, repeat, ops)
    };
    let text = |handoffs: [[f64; 2]; 2]| {
        let runs = [
            run(base.name, 0, 4e6, [24.0, 30.0]),
            run(made[1].name, 0, 3e6, handoffs[0]),
            run(NULL, 0, 5e6, [24.0, 24.0]),
            run(base.name, 1, 4e6, [200.0, 24.0]),
            run(made[1].name, 1, 4e6, handoffs[1]),
        ];
        report::harm(&runs, &Provenance::here([]), WIDE)
    };
    let one = text([[25.0, 40.0], [24.0, 24.0]]);
    for told in ["0.75!", "1.25", "took 24 to 200 ns", "1 of 3 pairs"] {
        assert!(one.contains(told), "{told} not in {one}");
    }
    let none = text([[24.0, 50.0], [200.0, 200.0]]);
    assert!(
        !none.contains("0.75 ±") && !none.contains("1.00 ±"),
        "{none}"
    );
    for told in ["nothing could be compared", "2 of 3 pairs"] {
        assert!(none.contains(told), "{told} not in {none}");
    }
}

#[test]
fn readers_are_compared_with_the_floor_within_each_repeat() {
    let runs = drifting("futex", [0.5, 0.25, 2.0]).chain(drifting(FLOOR, [1.0; 3]));
    let text = report::rw(&runs.collect::<Vec<_>>(), &Provenance::here([]), WIDE);
    assert!(text.contains("0.50"), "{text}");
}

#[test]
fn one_thread_is_timed_in_both_modes() {
    for lock in LOCKS {
        let record = uncontended::Record::measure(lock, 10, 0);
        assert!(record.read_ns >= 0.0 && record.write_ns >= 0.0);
        let line = Line::RwUncontended(record);
        assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
    }
}
