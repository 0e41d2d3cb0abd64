//! Reader-writer locks and microbenchmarks on simulated machines.

use spanlock_bench::micro::Kernel;
use spanlock_bench::report::Line;
use spanlock_bench::rw;
use spanlock_bench::rw::Load;
use spanlock_bench::sim::rw::{FUZZED, LOCKS, Lock, Point, Record};
use spanlock_bench::sim::{Machine, Point as _, Setup, micro};
use std::collections::HashSet;
use std::time::Duration;

#[global_allocator]
static HEAP: prim_sim::heap::OnLines = prim_sim::heap::OnLines;

fn setup(machine: &str) -> Setup {
    Setup {
        seed: 5,
        ..Setup::new(Machine::find(machine).unwrap())
    }
}

fn measure(lock: &'static Lock, load: Load, threads: usize, machine: &str) -> Record {
    let point = Point {
        lock,
        load,
        threads,
        measured: Duration::from_micros(50),
    };
    let record = point.measure(&setup(machine));
    record.unwrap_or_else(|what| panic!("{}: {what}", point.name()))
}

/// One of each, small.
const LOADS: [Load; 6] = [
    Load::Interference { pool: 3 },
    Load::Alternator,
    Load::TestRwlock { pause: 100 },
    Load::Rwbench { writes: 0.2 },
    Load::HashTable { entries: 64 },
    Load::Readers,
];

#[test]
fn every_lock_passes_every_workload() {
    for lock in LOCKS.iter().chain(FUZZED) {
        for load in LOADS {
            let record = measure(lock, load, 4, "xeon-2x10x2");
            assert!(record.run.ops_per_sec > 0.0, "{} {load}", lock.name);
            assert_eq!(record.run.threads, 4);
            let line = Line::SimRw(record);
            assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
        }
    }
}

#[test]
fn the_same_point_yields_the_same_record() {
    for lock in LOCKS {
        let record = || measure(lock, Load::Rwbench { writes: 0.1 }, 5, "xeon-4x18x2");
        let first = record();
        let disturbance: Vec<_> = (1..50).map(|size| vec![0_u8; size * 16]).collect();
        assert_eq!(first, record(), "{}", lock.name);
        drop(disturbance);
    }
}

#[test]
fn hardware_has_the_same_locks() {
    let hardware: HashSet<_> = rw::locks::LOCKS.iter().map(|lock| lock.name).collect();
    for lock in LOCKS {
        assert!(hardware.contains(lock.name), "{}", lock.name);
    }
    let names: HashSet<_> = LOCKS.iter().chain(FUZZED).map(|lock| lock.name).collect();
    assert_eq!(names.len(), LOCKS.len() + FUZZED.len());
}

/// Virtual time, and so the same each time.
#[test]
fn readers_scale_with_a_bias_and_not_without() {
    let gain = |name: &str| {
        let lock = Lock::find(name, LOCKS.iter()).unwrap();
        let at = |threads| {
            let record = measure(lock, Load::Readers, threads, "xeon-2x10x2");
            record.run.ops_per_sec
        };
        at(16) / at(1)
    };
    for name in ["bravo-futex-paper", "per-cpu"] {
        assert!(gain(name) > 12.0, "{name}: {}", gain(name));
    }
    for name in ["futex", "pf-t", "pf-q", "mutex", "bravo-futex-off"] {
        assert!(gain(name) < 2.0, "{name}: {}", gain(name));
    }
}

/// Readers who give way do so until the writer is inside, and not until it is woken. The phase-fair lock lets it in
/// after the readers it met.
#[test]
fn many_readers_do_not_starve_a_writer() {
    let writes = |name: &str| {
        let lock = Lock::find(name, LOCKS.iter()).unwrap();
        let load = Load::TestRwlock { pause: 100 };
        measure(lock, load, 16, "xeon-2x10x2").writes_per_sec
    };
    let fair = writes("pf-t");
    for name in ["futex", "bravo-futex", "bravo-futex-off"] {
        let writes = writes(name);
        assert!(writes > fair / 4.0, "{name}: {writes} against {fair}");
    }
}

fn throughput(kernel: Kernel, threads: usize) -> f64 {
    let point = micro::Point {
        kernel,
        threads,
        measured: Duration::from_micros(200),
    };
    let record = point.measure(&setup("xeon-2x10x2"));
    let record = record.unwrap_or_else(|what| panic!("{kernel}: {what}"));
    let line = Line::SimMicro(record.clone());
    assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
    record.run.ops_per_sec
}

/// What is published of real machines: see `docs/simulator.md`.
#[test]
fn contended_words_behave_as_published() {
    for kernel in Kernel::ALL {
        let (one, two, many) = (
            throughput(kernel, 1),
            throughput(kernel, 2),
            throughput(kernel, 20),
        );
        assert!(two < one, "{kernel}: a cliff, from {one} to {two}");
        assert!(many < one, "{kernel}: no gain, from {one} to {many}");
    }
    let at_20 = |kernel| throughput(kernel, 20);
    assert!(at_20(Kernel::CompareExchange) < at_20(Kernel::Add) / 2.0);
}
