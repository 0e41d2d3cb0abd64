//! Reader-writer locks and microbenchmarks on simulated machines.

mod loads;

use loads::{loads, mixed};
use spanlock_bench::known::Known;
use spanlock_bench::rw;
use spanlock_bench::sim::{Machine, RwLock as Lock, Setup};
use spanlock_bench::workload::{name, simulate};
use spanlock_records::record::{Line, Panel, Record};
use spanlock_records::trial::run::{Schedule, Trial};
use spanlock_records::trial::settings::Settings;
use spanlock_testkit::assert_repeats;
use spanlock_workbench::rw::{readers, test_rwlock};
use spanlock_workbench_sim::micro::{self, Kernel};
use std::collections::HashSet;
use std::time::Duration;

#[global_allocator]
static HEAP: prim_sim::heap::OnLines = prim_sim::heap::OnLines;

const SEED: u64 = 5;

fn setup(machine: &str) -> Setup {
    Setup {
        seed: SEED,
        ..Setup::new(Machine::find(machine).unwrap())
    }
}

fn measure(lock: &'static Lock, load: Panel, threads: usize, machine: &str) -> Record {
    let schedule = Schedule::even(Duration::from_micros(50));
    let trial = Trial::new(schedule, SEED).with(load, threads);
    let record = simulate(trial, lock, &setup(machine));
    record.unwrap_or_else(|what| panic!("{}: {what}", name(&trial, lock)))
}

#[test]
fn every_lock_passes_every_workload() {
    for lock in Lock::simulated() {
        for load in loads() {
            let record = measure(lock, load, 4, "xeon-2x10x2");
            assert!(record.ops_per_sec > Some(0.0), "{} {load}", lock.name);
            assert_eq!(record.threads, 4);
            let line = Line::from(record);
            assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
        }
    }
}

#[test]
fn the_same_point_yields_the_same_record() {
    for lock in <&Lock>::all() {
        let record = || measure(lock, mixed(0.1), 5, "xeon-4x18x2");
        assert_repeats(lock.name, record);
    }
}

#[test]
fn hardware_has_the_same_locks() {
    let hardware: HashSet<_> = rw::locks::LOCKS.iter().map(|lock| lock.name).collect();
    for lock in <&Lock>::all() {
        assert!(hardware.contains(lock.name), "{}", lock.name);
    }
    let names: HashSet<_> = Lock::simulated().map(|lock| lock.name).collect();
    assert_eq!(names.len(), Lock::simulated().count());
}

/// Virtual time, and so the same each time.
#[test]
fn readers_scale_with_a_bias_and_not_without() {
    let gain = |name: &str| {
        let lock = <&Lock>::find(name).unwrap();
        let at = |threads| {
            let record = measure(lock, readers::Load.panel(), threads, "xeon-2x10x2");
            record.ops_per_sec.unwrap()
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
        let lock = <&Lock>::find(name).unwrap();
        let load = test_rwlock::Load { pause: 100 }.panel();
        measure(lock, load, 16, "xeon-2x10x2").writes_per_sec
    };
    let fair = writes("pf-t");
    for name in ["futex", "bravo-futex", "bravo-futex-off"] {
        let writes = writes(name);
        assert!(writes > fair / 4.0, "{name}: {writes} against {fair}");
    }
}

fn throughput(kernel: Kernel, threads: usize) -> f64 {
    let schedule = Schedule::even(Duration::from_micros(200));
    let trial = Trial::new(schedule, SEED).with(micro::Load.panel(), threads);
    let record = simulate(trial, kernel, &setup("xeon-2x10x2"));
    let record = record.unwrap_or_else(|what| panic!("{kernel}: {what}"));
    let line = Line::from(record.clone());
    assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
    record.ops_per_sec.unwrap()
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
