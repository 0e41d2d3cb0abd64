//! Tables of reader-writer locks: from fixed records.

use spanlock_records::record::lock::{CONTROL, FLOOR, Lock, NULL};
use spanlock_records::record::provenance::Provenance;
use spanlock_records::record::{Kind, Panel, Record};
use spanlock_report::table::{self, Width};

/// Lines are whole.
const WIDE: Width = Width::of(1000);

fn provenance() -> Provenance {
    let unknown = || "unknown".to_owned();
    Provenance {
        machine: unknown(),
        cores: 2,
        kernel: unknown(),
        commit: unknown(),
        command: "spanlock bench".to_owned(),
        time: None,
    }
}

/// The lock as the harness records it.
fn lock_named(name: &str) -> Lock {
    let policy = match name {
        "bravo-futex" => "bravo",
        "bravo-futex-off" => "off",
        "futex-again" => CONTROL,
        _ => return Lock::named(name),
    };
    Lock {
        family: "futex".to_owned(),
        policy: Some(policy.to_owned()),
        ..Lock::named(name)
    }
}

fn record(lock: &str, repeat: u32, ops_per_sec: f64) -> Record {
    Record {
        repeat,
        seconds: 1.0,
        ops_per_sec: Some(ops_per_sec),
        reads_per_sec: ops_per_sec,
        ..Record::new(
            Panel::new("alternator", Kind::Whole, "alternator", &()),
            lock_named(lock),
            2,
            1,
        )
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
    let runs = drifting("futex", [1.0; 3])
        .chain(drifting("futex-again", [0.7, 0.6, 1.8]))
        .chain(drifting("bravo-futex", [0.9, 0.8, 2.0]))
        .chain(drifting("bravo-futex-off", [0.96, 0.1, 1.5]));
    let text = table::harm(&runs.collect::<Vec<_>>(), &provenance(), WIDE);
    let named = "alternator, 2 threads: bravo-futex is 0.90 of futex; a second: reads 2000000 -> 2000000, writes 0 -> 0\n";
    assert!(
        text.contains(named) && text.contains("0.90 ±67%!"),
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
    let run = |lock: &str, repeat, ops, handoff_ns| Record {
        handoff_ns: Some(handoff_ns),
        ..record(lock, repeat, ops)
    };
    let text = |handoffs: [[f64; 2]; 2]| {
        let runs = [
            run("futex", 0, 4e6, [24.0, 30.0]),
            run("bravo-futex", 0, 3e6, handoffs[0]),
            run(NULL, 0, 5e6, [24.0, 24.0]),
            run("futex", 1, 4e6, [200.0, 24.0]),
            run("bravo-futex", 1, 4e6, handoffs[1]),
        ];
        table::harm(&runs, &provenance(), WIDE)
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
    let text = table::runs(&runs.collect::<Vec<_>>(), "", &provenance(), WIDE);
    assert!(text.contains("0.50"), "{text}");
}
