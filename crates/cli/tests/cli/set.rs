//! Ordered sets.

use super::*;

/// Sets of so few keys that the runs take no time.
const FEW: &str = "bench set --keys 64 --threads 2 --seconds 0.005 --warmup 0 --repeat 2";

#[test]
fn sets_write_a_line_for_each_run_and_their_bytes() {
    let lines = json_lines(&format!(
        "{FEW} --sets range-slots,orig,dashmap,crossbeam-skiplist --chosen uniform,zipfian --mix updates,scans \
         --format json"
    ));
    let runs = of(&lines, "set");
    assert_eq!(runs.len(), 4 * 2 * 2 * 2, "sets, chosen, mixes, repeats");
    for run in &runs {
        let cannot = run["lock"] == "dashmap" && run["mix"] == "scans";
        assert_eq!(
            run.get("skipped").is_some(),
            cannot,
            "it has no order: {run}"
        );
        assert_eq!(run["ops_per_sec"].is_null(), cannot, "{run}");
    }
    let memory = of(&lines, "set_memory");
    let bytes = |name: &str| {
        let line = memory.iter().find(|line| line["lock"] == name).unwrap();
        line["bytes"].as_f64().unwrap() / line["keys"].as_f64().unwrap()
    };
    // P1 §7.1: it has no lock in each node. A node has a key and two links on average.
    assert!((24.0..26.0).contains(&bytes("range-slots")));
    assert!(bytes("range-slots") + 7.0 < bytes("orig"));
    // A node of the peer has its key, a word of its own, and a link at least.
    assert!(bytes("crossbeam-skiplist") >= 24.0);
}

#[test]
fn bytes_are_counted_alike_before_any_run() {
    let count = |seconds: &str| {
        let run = format!("{FEW} --sets crossbeam-skiplist --seconds {seconds} --format json");
        let run = run.replace("--seconds 0.005 ", "");
        of(&json_lines(&run), "set_memory").remove(0)["bytes"].clone()
    };
    assert_eq!(count("0.001"), count("0.05"));
}

#[test]
fn a_table_of_sets_says_who_is_left_out() {
    let table = written(&format!("{FEW} --sets dashmap,btree-rwlock --mix scans"));
    for part in ["it has no order", "bytes for each key", "machine: "] {
        assert!(table.contains(part), "{part} not in {table}");
    }
}

#[test]
fn simulated_sets_take_a_stall_for_each_operation() {
    let ops = |stall: &str| {
        let command = "sim set --keys 64 --sets orig --threads 1 --seconds 0.0001 --seeds 1 --no-cache --format json";
        let lines = json_lines(&format!("{command} --stall {stall}"));
        of(&lines, "set")[0]["ops_per_sec"].as_f64().unwrap()
    };
    assert!(ops("20000") < ops("0") / 5.0);
}
