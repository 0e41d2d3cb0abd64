//! The program, from outside.

mod arguments;
mod costs;
mod set;
#[cfg(target_os = "linux")]
mod store;
mod text;

use serde_json::Value;
use std::process::{Command, Output, Stdio};

fn spanlock(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command.args(arguments.split(' ')).env_remove("COLUMNS");
    command
}

fn run(arguments: &str) -> Output {
    spanlock(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What it wrote, when all went well.
fn written(arguments: &str) -> String {
    let output = run(arguments);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {errors}");
    assert_eq!(errors, "", "{arguments}");
    text(&output.stdout).to_owned()
}

/// What it wrote on a terminal of so many columns.
fn written_at(columns: &str, arguments: &str) -> String {
    let mut command = spanlock(arguments);
    let output = command.env("COLUMNS", columns).output().unwrap();
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {errors}");
    text(&output.stdout).to_owned()
}

fn json_lines(arguments: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap();
    written(arguments).lines().map(parse).collect()
}

#[track_caller]
fn has_all(table: &str, parts: &[&str]) {
    for part in parts {
        assert!(table.contains(part), "{part} not in {table}");
    }
}

#[test]
fn locks_are_listed_one_per_line() {
    let list = written("bench --list");
    for name in [
        "list-rw",
        "list-ex-nofast",
        "kernel-rw",
        "lustre-ex",
        "null",
    ] {
        let lines = list
            .lines()
            .filter(|line| line.split_whitespace().next() == Some(name));
        assert_eq!(lines.count(), 1, "{name} in {list}");
    }
}

/// The lines of a workload.
fn of<'a>(lines: &'a [Value], workload: &str) -> Vec<&'a Value> {
    lines
        .iter()
        .filter(|line| line["workload"] == workload)
        .collect()
}

#[test]
fn locks_are_listed_with_when_to_use_them() {
    let (list, lines) = (
        written("bench --list"),
        json_lines("bench --list --format json"),
    );
    for what in ["use when", "avoid when", "cost", "memory", "source"] {
        let told = list
            .lines()
            .filter(|line| line.trim_start().starts_with(what));
        assert_eq!(told.count(), lines.len(), "{what}");
    }
    for line in lines {
        assert_eq!(line["workload"], "lock");
        for field in [
            "lock",
            "family",
            "about",
            "use_when",
            "avoid_when",
            "cost",
            "memory",
            "source",
        ] {
            assert!(
                line[field].as_str().is_some_and(|text| !text.is_empty()),
                "{field}: {line}"
            );
        }
    }
}

#[test]
fn counters_are_there_or_said_to_be_absent() {
    let arguments =
        "bench batch --locks list-ex --hold 1 --threads 2 --seconds 0.005 --repeat 1 --counters";
    let lines = json_lines(&format!("{arguments} --format json"));
    let counters = of(&lines, "batch")[0]["counters"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(counters.len(), 3);
    let table = written(arguments);
    for (counter, name) in counters
        .iter()
        .zip(["cycles", "instructions", "L1d misses"])
    {
        assert_eq!(
            counter["per_op"].is_null(),
            counter["absent"].is_string(),
            "{counter}"
        );
        assert_eq!(
            table.contains(&format!("no {name}: ")),
            counter["per_op"].is_null(),
            "{table}"
        );
    }
}

#[test]
fn arr_writes_a_line_for_each_run() {
    let lines = json_lines(
        "bench arr --locks list-rw,null,list-rw --variant full,random --reads 100,0 --threads 1:2,2 \
         --seconds 0.002 --warmup 0 --repeat 2 --seed 9 --latency --format json",
    );
    assert_eq!(lines[0]["workload"], "meta");
    let command = lines[0]["command"].as_str().unwrap();
    assert!(
        command.starts_with("spanlock bench arr --locks"),
        "{command}"
    );
    let runs = of(&lines, "arr");
    assert_eq!(
        runs.len(),
        2 * 2 * 2 * 2 * 2,
        "locks, variants, reads, threads, repeats"
    );
    for run in &runs {
        assert_eq!(run["seed"], 9);
        assert!(run["ops_per_sec"].as_f64().is_some(), "{run}");
        assert!(run["acquire_ns"]["p999"].as_u64().is_some(), "{run}");
    }
    // Locks take turns.
    let locks: Vec<_> = runs
        .iter()
        .map(|run| run["lock"].as_str().unwrap())
        .collect();
    assert_eq!(locks[..4], ["list-rw", "null", "list-rw", "null"]);
}

#[test]
fn arr_writes_a_table_and_compares() {
    let table = written(
        "bench arr --locks slots,kernel-rw,range-lock --variant disjoint --reads 80 --threads 1,2 \
         --seconds 0.005 --warmup 0 --repeat 1",
    );
    has_all(
        &table,
        &[
            "disjoint range, 80 % reads",
            "kernel-rw",
            "what to use, by these runs",
            "how sure: all runs are single",
            "machine: ",
            "commit: ",
            "command: ",
        ],
    );
    assert!(!table.contains('\u{1b}'), "no colours: {table}");
}

#[test]
fn batch_writes_a_line_for_each_run_and_for_what_cannot_run() {
    let lines = json_lines(
        "bench batch --locks list-rw,std-rwlock --hold 1,16 --threads 1:2 --seconds 0.002 --warmup 0 \
         --repeat 2 --seed 9 --format json",
    );
    let runs = of(&lines, "batch");
    assert_eq!(runs.len(), 2 * 2 * 2 * 2, "locks, holds, threads, repeats");
    for run in &runs {
        assert_eq!(run["seed"], 9);
        assert!(run.get("torn_ranges").is_none(), "{run}");
        let cannot = run["lock"] == "std-rwlock" && run["hold"] == 16;
        assert_eq!(run["ops_per_sec"].is_null(), cannot, "{run}");
        assert_eq!(run.get("skipped").is_some(), cannot, "{run}");
    }
    let locks: Vec<_> = runs.iter().map(|run| &run["lock"]).collect();
    assert_eq!(
        locks[..3],
        ["list-rw", "std-rwlock", "list-rw"],
        "they take turns"
    );
}

#[test]
fn keys_of_all_lengths_and_draws_are_locked_with_and_without_writes() {
    let lines = json_lines(
        "bench keys --keys 64 --length 16,100 --chosen uniform,zipfian --writes 0,5,50 --access points,scans \
         --locks keys,keys-split,lock-table,stripes --threads 2 --seconds 0.002 --warmup 0 --repeat 1 --format json",
    );
    let runs = of(&lines, "keys");
    assert_eq!(runs.len(), 2 * 2 * 3 * 2 * 4, "each load by each lock");
    for run in &runs {
        let cannot = run["access"] == "scans" && run["lock"] == "stripes";
        assert_eq!(run.get("skipped").is_some(), cannot, "{run}");
        if !cannot {
            assert!(run.get("lost_updates").is_none(), "{run}");
        }
    }
    let has = |length: u64, chosen: &str, writes: u64| {
        runs.iter().any(|run| {
            run["length"] == length && run["chosen"] == chosen && run["writes"] == writes
        })
    };
    assert!(has(16, "zipfian", 0) && has(100, "zipfian", 50) && has(100, "uniform", 50));
}

#[test]
fn blob_writes_where_the_time_of_a_read_went_and_what_did_not_run() {
    let lines = json_lines(
        "bench blob --locks copy,own-area,bitmap,std-rwlock,null --cache 0,2 --draw zipfian --records 3 --threads 2 \
         --seconds 0.01 --repeat 2 --format json",
    );
    let runs = of(&lines, "blob");
    assert_eq!(runs.len(), 5 * 2 * 2, "who reads, caches, repeats");
    for run in &runs {
        assert!(run.get("torn_reads").is_none(), "{run}");
        let by = run["lock"].as_str().unwrap();
        let has_cache = run["cache"] == 2;
        let cannot = ["std-rwlock", "null"].contains(&by) || (has_cache && by == "own-area");
        assert_eq!(run.get("skipped").is_some(), cannot, "{run}");
        // On a machine that does other work too, a run this short may end before the first read does.
        let has_read = run["ops_per_sec"].as_f64().is_some_and(|ops| ops > 0.0);
        assert_eq!(run["read_ns"].is_null(), !has_read, "{run}");
        if has_read {
            let part = |part: &str| run["read_ns"][part].as_f64().unwrap();
            assert!(part("copy") > 0.0 && part("check") > 0.0, "{run}");
            // All reads of a run this short may find their alias in the cache.
            if !has_cache {
                assert_eq!(part("lock") > 0.0, by != "copy", "{run}");
            }
        }
    }
    let table = written(
        "bench blob --locks null,song --cache 0 --draw uniform --records 1 --threads 1 --seconds 0.01 --repeat 1",
    );
    has_all(
        &table,
        &["null is not in BLOBs, uniform", "does not exclude"],
    );
    let has_read_nothing = table.contains("song leads, 0.000000"); // As above.
    assert!(
        table.contains("lock's share") || has_read_nothing,
        "{table}"
    );
}

#[test]
fn patterns_write_a_line_for_each_run_and_tables() {
    let arguments = "bench pattern --locks list-rw,std-rwlock --pattern files,everything,files --reads 100,50 \
                     --bystanders 0,5 --threads 2 --seconds 0.002 --warmup 0 --repeat 1";
    let lines = json_lines(&format!("{arguments} --format json"));
    let runs = of(&lines, "pattern");
    assert_eq!(
        runs.len(),
        2 * 2 * 2 * 2,
        "locks, patterns, reads, bystanders"
    );
    for run in &runs {
        assert!(run.get("lost_updates").is_none(), "{run}");
        assert!(run.get("torn_reads").is_none(), "{run}");
    }
    let table = written(arguments);
    has_all(
        &table,
        &[
            "files, 50 % reads: ",
            "everything, 100 % reads, beside 5 threads",
            "acquisition in ns",
            "machine: ",
        ],
    );
}

#[test]
fn locks_take_parameters_and_are_reported_by_them() {
    let lines = json_lines(
        "bench batch --locks song:h=1,12,song bitmap:block=2048 --hold 1,2 --threads 2 --seconds 0.002 \
         --repeat 1 --format json",
    );
    let lines = of(&lines, "batch");
    let named = |name: &'static str| lines.iter().filter(move |line| line["lock"] == name);
    for name in ["song:h=1", "song:h=12", "song", "bitmap:block=2048"] {
        assert_eq!(named(name).count(), 2, "{name}");
    }
    // Two ranges of 1 KB may share one of its blocks, and a thread would wait for itself.
    let skipped = named("bitmap:block=2048").filter(|line| line.get("skipped").is_some());
    assert_eq!(skipped.count(), 1);
    assert!(written("bench --list").contains("song:h="));
}

#[test]
fn batch_writes_tables_that_say_what_did_not_run() {
    let table = written(
        "bench batch --locks list-ex parking-lot --threads 2 --seconds 0.002 --warmup 0 --repeat 1",
    );
    has_all(
        &table,
        &[
            "W1, ranges held one at a time",
            "W2, 16 ranges held together",
            "locks the whole",
            "parking-lot is not in W2, 16 ranges held together",
            "machine: ",
        ],
    );
    assert!(!table.contains("list-ex is not"), "{table}");
}

#[test]
fn latency_reports_first_and_later_acquisitions_apart() {
    let lines = json_lines(
        "bench latency --locks list-rw,song:h=2,bitmap --threads 1,3 --parts 50 --repeat 2 --format json",
    );
    assert_eq!(lines.len(), 1 + 3 * 2 * 2);
    for line in &lines[1..] {
        assert_eq!(line["workload"], "latency");
        for phase in ["first", "again"] {
            assert_eq!(line[format!("{phase}_count")], 50, "{line}");
            let times = &line[format!("{phase}_ns")];
            let times = ["p50", "p90", "p99", "p999", "max"].map(|p| times[p].as_u64());
            assert!(
                times.iter().all(Option::is_some) && times.is_sorted(),
                "{line}"
            );
        }
    }
    let table = written("bench latency --locks list-rw --threads 2 --parts 50 --repeat 1");
    has_all(&table, &["first", "again", "p99.9", "machine: "]);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = spanlock("bench arr --locks null --threads 1 --seconds 0.001 --format json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn rw_workloads_write_a_line_for_each_run() {
    let common = "--locks futex,bravo-futex,futex --threads 1,2 --seconds 0.002 --warmup 0 --repeat 2 --format json";
    for (load, loads) in [
        ("interference --pool 1,3", 2),
        ("alternator", 1),
        ("test_rwlock --pause 0,100", 2),
        ("rwbench --writes 0,0.5,1 --inside 0 --outside 5", 3),
        ("hash_table --entries 16", 1),
        ("readers", 1),
    ] {
        let lines = json_lines(&format!("bench rw {load} {common}"));
        assert_eq!(lines[0]["workload"], "meta");
        let runs = &lines[1..];
        assert_eq!(runs.len(), 2 * 2 * 2 * loads, "{load}");
        let name = load.split(' ').next().unwrap();
        assert!(runs.iter().all(|run| run["workload"] == name));
        assert_eq!(
            (&runs[0]["lock"], &runs[1]["lock"]),
            (&"futex".into(), &"bravo-futex".into())
        );
    }
}

#[test]
fn rw_tables_have_floors_policies_and_sources() {
    let runs = "--seconds 0.001 --warmup 0 --repeat 1";
    let readers = written(&format!(
        "bench rw readers --locks futex,floor-private --threads 1 {runs}"
    ));
    assert!(readers.contains("as parts of floor-private"), "{readers}");
    let pools = written(&format!(
        "bench rw interference --locks futex --threads 2 --pool 1,2 {runs}"
    ));
    assert!(pools.contains("interference, 2 threads"), "{pools}");
    let harm = written(&format!("bench rw harm --locks futex --threads 1 {runs}"));
    for word in [
        "bravo",
        "off",
        "paper",
        "again",
        "no lock",
        "a cache line took", // Or it is not known how long.
        "rwbench, 0.01 %",   // The rest may be on the next line.
        "hash_table",
        "commit:",
    ] {
        assert!(harm.contains(word), "{word} not in {harm}");
    }
    assert!(!harm.contains("pf-t"), "{harm}");
    let pairs = written("bench rw uncontended --pairs 10 --repeat 1");
    for word in ["floor-shared", "bravo-futex", "of floor"] {
        assert!(pairs.contains(word), "{word} not in {pairs}");
    }
    assert!(written("bench rw --list").contains("bravo-futex-paper"));
}
