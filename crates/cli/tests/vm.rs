//! `spanlock vm` and `spanlock sim vm`.

use std::process::{Command, Output};

fn spanlock(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn text(arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = spanlock(arguments);
    let errors = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{arguments:?}: {errors}");
    String::from_utf8(stdout).unwrap()
}

fn refused(arguments: &[&str], code: i32, why: &str) {
    let Output { status, stderr, .. } = spanlock(arguments);
    let errors = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{arguments:?}: {errors}");
    assert!(errors.contains(why), "{arguments:?}: {errors}");
}

#[test]
fn traces_and_variants_are_listed() {
    let list = text(&["vm", "list"]);
    for name in ["wrmem-16", "java", "list-refined", "ours"] {
        assert!(list.contains(name), "{list}");
    }
}

#[test]
fn a_recorded_trace_is_replayed() {
    let replay = [
        "vm",
        "replay",
        "wc-2",
        "--locks",
        "stock,ours",
        "--threads",
        "1,2",
        "--repeat",
        "1",
    ];
    let table = text(&replay);
    assert!(
        table.contains("traffic of wc-2, flat-out")
            && table.contains("outcomes per hundred mprotect"),
        "{table}"
    );
    let lines = text(&[&replay[..], &["--format", "json"]].concat());
    let runs: Vec<_> = lines
        .lines()
        .filter(|line| line.contains(r#""workload":"vm""#))
        .collect();
    assert_eq!(runs.len(), 4, "{lines}");
    for field in [
        r#""traffic":"wc-2""#,
        r#""pace":"flat-out""#,
        r#""protects":"#,
        r#""in_place":"#,
        r#""operation":"fault""#,
    ] {
        assert!(
            runs.iter().all(|run| run.contains(field)),
            "{field}: {lines}"
        );
    }
}

#[test]
fn patterns_run_on_a_simulated_machine_with_any_number_of_threads() {
    let table = text(&[
        "sim",
        "vm",
        "wrmem",
        "--growths",
        "40",
        "--lock",
        "list-refined",
        "--threads",
        "1,20",
        "--pace",
        "recorded",
        "--no-cache",
    ]);
    assert!(
        table.contains("pattern of wrmem, 40 growths, recorded"),
        "{table}"
    );
    assert!(table.contains("xeon-4x18x2"), "{table}");
}

#[test]
fn a_file_is_replayed() {
    let traces = concat!(env!("CARGO_MANIFEST_DIR"), "/../records/traces");
    let trace = format!("{traces}/wc-2.gz");
    let replayed = text(&["vm", "replay", &trace, "--locks", "ours", "--threads", "1"]);
    assert!(replayed.contains("traffic of wc-2, flat-out"), "{replayed}");
    let no_trace = format!("{traces}/programs/h.rs");
    refused(&["vm", "replay", &no_trace], 2, "gzip");
}

#[test]
fn wrong_arguments_are_refused() {
    refused(&["vm", "replay"], 2, "TRACE");
    refused(&["vm", "replay", "nothing"], 2, "vm list");
    refused(
        &["vm", "replay", "wc-2", "--threads", "4"],
        2,
        "the trace has 2 threads",
    );
    refused(
        &["vm", "replay", "wc-2", "--locks", "list-rw"],
        2,
        "expected one of stock",
    );
    refused(&["vm", "replay", "wc-2", "--pace", "slow"], 2, "flat-out");
    refused(&["vm", "replay", "wc", "--growths", "0"], 2, "from 1");
    refused(
        &["sim", "vm", "wc-2", "--threads", "4"],
        2,
        "the trace has 2 threads",
    );
    refused(&["sim", "vm", "wc", "--threads", "145"], 2, "at most 144");
}
