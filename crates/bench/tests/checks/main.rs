//! Runs of ArrBench are checked, and what they report can be read back.

mod claims;
mod counters;
mod locks;
mod memory;
#[cfg(target_os = "linux")]
mod objects;

use serde_json::Value;
use spanlock::range::raw::Mode;
use spanlock_bench::blob::Subject;
use spanlock_bench::costs;
use spanlock_bench::known::Known;
use spanlock_bench::many_locks::Many;
use spanlock_bench::owners::OWNED;
use spanlock_bench::peers::{Readers, Target};
use spanlock_bench::provenance;
use spanlock_bench::registry::{LOCKS, Lock, Make, find};
use spanlock_bench::workload::{Subject as _, measure, of};
use spanlock_records::record::{Line, Panel};
use spanlock_records::trial::counters::Event;
use spanlock_records::trial::lock::{Described, Exclusion};
use spanlock_records::trial::run::{Found, Outcome, Schedule, Trial};
use spanlock_records::trial::setting::{Setting, Values};
use spanlock_records::trial::settings::Settings;
use spanlock_report::compare::{Dataset, standings};
use spanlock_workbench::arr::{self, Variant};
use spanlock_workbench::blob::{self, Draw, Payload};
use spanlock_workbench::{batch, latency, pattern};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;
use std::time::Duration;

const SHORT: Schedule = Schedule {
    warmup: Duration::from_millis(1),
    measured: Duration::from_millis(4),
};

const AT_ONCE: Schedule = Schedule {
    warmup: Duration::ZERO,
    measured: Duration::from_millis(20),
};

/// Half of whose operations read.
fn half(variant: Variant) -> arr::Load {
    arr::Load {
        variant,
        reads: 50,
        pauses: 2048,
        latency: false,
    }
}

fn trial(variant: Variant, threads: usize) -> Trial<Panel> {
    Trial::new(SHORT, 7).with(half(variant).panel(), threads)
}

#[test]
fn every_lock_passes() {
    for lock in LOCKS.iter() {
        for variant in Variant::ALL {
            let record = measure(trial(variant, 3), lock);
            let record = record.unwrap_or_else(|lost| panic!("{} {variant}: {lost}", lock.name));
            assert!(record.min_ops_per_thread <= record.max_ops_per_thread);
            if lock.exclusion == Exclusion::Promised {
                assert_eq!(record.lost_updates, 0);
            }
        }
    }
}

#[test]
fn a_count_that_is_off_by_one_fails_unless_nothing_was_promised() {
    let outcome = |added, found| Outcome {
        found: Found::Array { added, found },
        ..Outcome::default()
    };
    assert!(outcome(256, 256).check(Exclusion::Promised).is_ok());
    assert!(outcome(256, 255).check(Exclusion::None).is_ok());
    for found in [255, 257, 0] {
        let lost = outcome(256, found).check(Exclusion::Promised).unwrap_err();
        assert_eq!(lost, Found::Array { added: 256, found });
        assert!(lost.to_string().contains("256"), "{lost}");
    }
}

/// Grants everything at once, and yet claims to exclude.
struct Broken;

struct Granted;

impl Target for Broken {
    const READERS: Readers = Readers::Share;
    type Read<'a> = Granted;
    type Write<'a> = Granted;

    fn read(&self, _: Range<u64>) -> Granted {
        Granted
    }

    fn write(&self, _: Range<u64>) -> Granted {
        Granted
    }
}

fn broken() -> &'static Lock {
    static LOCK: LazyLock<Lock> = LazyLock::new(|| Lock {
        described: Described {
            name: "broken",
            ..Described::default()
        },
        values: Values::NONE,
        measure: &Make(|_: &Setting| Broken),
    });
    &LOCK
}

#[test]
fn a_lock_that_does_not_exclude_is_caught() {
    let broken = broken();
    // Writers without pauses: they meet nearly always, even when they share one core.
    let load = arr::Load {
        reads: 0,
        pauses: 0,
        ..half(Variant::Full)
    };
    let trial = Trial::new(AT_ONCE, 7).with(load.panel(), 4);
    let caught = (0..200).any(|_| measure(trial, broken).is_err());
    assert!(caught, "200 runs without a lock lost no update");
}

fn batch_trial(hold: usize, ranges: usize) -> Trial<Panel> {
    Trial::new(SHORT, 7).with(batch::Load { hold, ranges }.panel(), 3)
}

#[test]
fn every_lock_passes_in_batches_or_says_why_not() {
    for lock in LOCKS.iter() {
        for trial in [batch_trial(1, 8), batch_trial(3, 8), batch_trial(16, 64)] {
            let record = measure(trial, lock);
            let record = record.unwrap_or_else(|torn| panic!("{} {trial:?}: {torn}", lock.name));
            let hold = trial.load.number("hold").unwrap();
            let must_run = hold == 1 || !["std-rwlock", "parking-lot"].contains(&lock.name);
            assert_eq!(record.skipped.is_none(), must_run, "{}", lock.name);
            assert_eq!(record.ops_per_sec.is_some(), must_run, "{}", lock.name);
            assert!(record.min_ops_per_thread <= record.max_ops_per_thread);
            assert_eq!(record.max_ops_per_thread % hold as u64, 0);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn every_lock_gives_out_the_ranges_of_an_area_or_says_why_not() {
    for subject in ["copy", "own-area"]
        .iter()
        .copied()
        .chain(LOCKS.iter().map(|lock| lock.name))
    {
        let load = blob::Load {
            draw: Draw::Zipfian,
            payload: Payload::Whole,
            cache: 0,
            records: 2,
        };
        let trial = Trial::new(SHORT, 7).with(load.panel(), 3);
        let [read_by] = Subject::parse(subject).unwrap()[..] else {
            panic!("{subject} is one")
        };
        let record = measure(trial, read_by).unwrap();
        let must_run = !["std-rwlock", "parking-lot", "null"].contains(&subject);
        assert_eq!(
            record.skipped.is_none(),
            must_run,
            "{subject}: {:?}",
            record.skipped
        );
        assert_eq!(record.ops_per_sec.is_some(), must_run, "{subject}");
    }
}

#[test]
fn torn_ranges_are_caught_one_at_a_time_and_in_batches() {
    let broken = broken();
    for hold in [1, 4] {
        let trial = Trial {
            schedule: AT_ONCE,
            ..batch_trial(hold, 4)
        };
        let caught = (0..200).find_map(|_| measure(trial, broken).err());
        let torn = caught.expect("200 runs without a lock tore no range");
        assert!(
            torn.contains("foreign") && !torn.starts_with("0 "),
            "{torn}"
        );
    }
}

fn in_pattern(pattern: pattern::Pattern) -> pattern::Load {
    pattern::Load {
        pattern,
        reads: 50,
        bystanders: 2,
        latency: false,
    }
}

fn pattern_trial(pattern: pattern::Pattern, threads: usize) -> Trial<Panel> {
    Trial::new(SHORT, 7).with(in_pattern(pattern).panel(), threads)
}

#[test]
fn every_lock_passes_in_every_pattern() {
    let fields = ["pattern", "reads", "bystanders"];
    for lock in LOCKS.iter() {
        for pattern in pattern::Pattern::ALL {
            let record = measure(pattern_trial(pattern, 3), lock);
            let record = record.unwrap_or_else(|lost| panic!("{} {pattern}: {lost}", lock.name));
            assert!(record.min_ops_per_thread <= record.max_ops_per_thread);
            let timed = record.acquire_ns.is_some();
            assert!(
                !timed || pattern == pattern::Pattern::Everything,
                "{pattern}"
            );
            assert_has(&json(&Line::from(record)), "pattern", &fields);
        }
    }
}

#[test]
fn a_lock_that_does_not_exclude_is_caught_in_a_pattern() {
    let broken = broken();
    for pattern in [pattern::Pattern::Sweep, pattern::Pattern::Everything] {
        let trial = Trial {
            schedule: AT_ONCE,
            ..pattern_trial(pattern, 4)
        };
        let caught = (0..200).find_map(|_| measure(trial, broken).err());
        let lost = caught.expect("200 runs without a lock lost no update");
        assert!(lost.contains("lost updates"), "{lost}");
    }
}

#[test]
fn only_who_writes_everything_is_timed_unless_all_are() {
    let lock = find("list-rw").unwrap();
    let timed = |pattern, latency| {
        let load = pattern::Load {
            latency,
            ..in_pattern(pattern)
        };
        Trial::new(SHORT, 7).with(load.panel(), 2)
    };
    let record = measure(timed(pattern::Pattern::Pages, true), lock);
    assert!(record.unwrap().acquire_ns.is_some());
    for latency in [true, false] {
        let trial = timed(pattern::Pattern::Everything, latency);
        let outcome = lock.run(of(trial.load), &trial).unwrap();
        let timed = outcome.acquire.map_or(0, |times| times.count());
        assert_eq!(timed, outcome.work.ops[0], "the first thread's");
    }
}

#[test]
fn memory_of_many_locks_is_taken_of_every_lock() {
    for lock in LOCKS.iter() {
        let (locks, threads) = (3, 2);
        let record = costs::many_locks(lock, Many { locks, threads }, &|| 0);
        assert_eq!((record.locks, record.threads), (3, 2));
        let fields = ["lock", "idle_bytes", "touched_bytes", "kept_bytes"];
        assert_has(&json(&Line::ManyLocks(record)), "many_locks", &fields);
    }
}

#[test]
fn every_lock_is_timed_on_every_part_once_and_then_as_often_again() {
    let trial = Trial::new(Schedule::NONE, 5).with(latency::Load { parts: 40 }.panel(), 3);
    for lock in LOCKS.iter() {
        let record = measure(trial, lock).unwrap();
        let counts = (record.first_count, record.again_count);
        assert_eq!(counts, (40, 40), "{}", lock.name);
        let line = json(&Line::from(record));
        let fields = ["lock", "threads", "parts", "seed", "first_ns", "again_ns"];
        assert_has(&line, "latency", &fields);
    }
}

#[test]
fn memory_of_every_lock_is_taken_or_it_says_why_not() {
    let nothing = || 0;
    for lock in LOCKS.iter() {
        for hold in [1, 16] {
            let record = costs::memory(lock, hold, &nothing);
            assert_eq!(record.idle_bytes.is_none(), record.skipped.is_some());
            let must_run = hold == 1 || !["std-rwlock", "parking-lot"].contains(&lock.name);
            assert_eq!(record.skipped.is_none(), must_run, "{}", lock.name);
            let line = Line::Memory(record);
            assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
        }
    }
}

/// The line as JSON, after it was read back and found the same.
fn json(line: &Line) -> Value {
    let text = line.to_string();
    assert!(!text.contains('\n'), "{text}");
    assert_eq!(text.parse::<Line>().unwrap(), *line);
    serde_json::from_str(&text).unwrap()
}

fn assert_has(json: &Value, workload: &str, fields: &[&str]) {
    assert_eq!(json["workload"], workload);
    for field in fields {
        assert!(json.get(field).is_some(), "{field} is missing in {json}");
    }
}

const RUN_FIELDS: [&str; 6] = ["panel", "threads", "lock", "ops_per_sec", "seed", "seconds"];

#[test]
fn lines_of_json_have_all_fields_and_are_read_back() {
    let lock = find("list-rw").unwrap();

    let meta = json(&Line::Meta(provenance::here(["bench".to_owned()])));
    let fields = ["machine", "cores", "kernel", "commit", "command", "time"];
    assert_has(&meta, "meta", &fields);
    assert_eq!(meta["command"], "spanlock bench");

    let untimed = measure(trial(Variant::Random, 2), lock).unwrap();
    let untimed = json(&Line::from(untimed));
    assert_has(&untimed, "arr", &RUN_FIELDS);
    assert_has(&untimed, "arr", &["variant", "reads"]);
    assert!(untimed.get("acquire_ns").is_none());

    let timed = arr::Load {
        latency: true,
        ..half(Variant::Random)
    };
    let timed = Trial::new(SHORT, 7).with(timed.panel(), 2);
    let timed = json(&Line::from(measure(timed, lock).unwrap()));
    let percentiles = ["p50", "p90", "p99", "p999", "max"].map(|p| timed["acquire_ns"][p].as_u64());
    assert!(percentiles.iter().all(Option::is_some), "{timed}");
    assert!(percentiles.is_sorted(), "{timed}");

    for hold in [1, 2] {
        let run = measure(batch_trial(hold, 8), lock).unwrap();
        assert_has(&json(&Line::from(run)), "batch", &["hold", "ranges"]);
    }

    let usage = costs::Usage::Thread(Mode::Shared);
    let subject = costs::Subject { lock, usage };
    let round = json(&Line::Uncontended(subject.measure(100, 0)));
    let fields = [
        "lock",
        "mode",
        "round",
        "pairs",
        "ns_per_pair",
        "rmw_by_reading",
    ];
    assert_has(&round, "uncontended", &fields);

    let waits = costs::waiting(lock, costs::contention(2, SHORT, 1)).unwrap();
    let waits = json(&Line::from(waits));
    assert_has(&waits, "waiting", &RUN_FIELDS);
    assert_has(
        &waits,
        "waiting",
        &["cpu_share", "sleeper_cpu_ms", "acquire_ns"],
    );
}

#[test]
fn locks_that_know_owners_have_a_row_for_each_case() {
    let subjects = LOCKS.iter().flat_map(costs::Subject::all_of);
    let by_owners = subjects.filter(|subject| matches!(subject.usage, costs::Usage::Owner(..)));
    let rows: Vec<_> = by_owners.map(|subject| subject.measure(10, 0)).collect();
    assert!(rows.iter().all(|row| row.ns_per_pair > 0.0), "{rows:?}");
    let names: HashSet<_> = rows.iter().map(|row| (&row.lock, &row.mode)).collect();
    assert_eq!(names.len(), rows.len(), "{names:?}");
    let cases: usize = OWNED.iter().map(|owned| owned.cases.len()).sum();
    assert_eq!(rows.len(), cases, "{names:?}");
}

#[test]
fn exclusive_locks_have_one_mode_and_others_two() {
    let by_threads = |subject: &costs::Subject| !matches!(subject.usage, costs::Usage::Owner(..));
    let modes = |name| {
        let subjects = costs::Subject::all_of(find(name).unwrap());
        subjects.filter(by_threads).count()
    };
    assert_eq!(
        [modes("list-ex"), modes("range-lock"), modes("floor")],
        [1; 3]
    );
    assert_eq!(
        [modes("list-rw"), modes("parking-lot"), modes("null")],
        [2; 3]
    );
}

#[test]
fn runs_count_what_they_are_told_to() {
    let lock = find("list-rw").unwrap();
    let events = &[Event::PageFaults, Event::Cycles];
    let arr = Trial {
        events,
        ..trial(Variant::Full, 2)
    };
    let batch = Trial {
        events,
        ..batch_trial(2, 8)
    };
    let arr = measure(arr, lock).unwrap();
    let batch = measure(batch, lock).unwrap();
    for rates in [&arr.counters, &batch.counters] {
        assert_eq!(
            rates.iter().map(|rate| rate.event).collect::<Vec<_>>(),
            events
        );
        for rate in rates {
            assert_ne!(rate.per_op.is_some(), rate.absent.is_some(), "{rate:?}");
        }
    }
    json(&Line::from(arr));
    json(&Line::from(batch));
}

#[test]
fn standings_are_read_back() {
    let runs = ["list-rw", "kernel-rw"].map(|name| {
        let lock = find(name).unwrap();
        measure(batch_trial(1, 8), lock).unwrap()
    });
    let all = standings(&Dataset::of(&runs));
    let [standing] = &all[..] else {
        panic!("{all:?}")
    };
    let line = json(&Line::Standing(standing.clone()));
    assert_has(&line, "standing", &["panel", "threads", "families"]);
    assert_eq!(line["families"].as_array().unwrap().len(), 2);
}
