//! What locks cost beside throughput: memory, uncontended acquisitions, waiting.

use super::*;

/// The lines of a command that counts, and so reports the same each time.
fn counted(arguments: &str) -> Vec<Value> {
    let count = || {
        let mut lines = json_lines(arguments);
        lines.remove(0); // the time is in it
        lines
    };
    let lines = count();
    assert_eq!(lines, count());
    lines
}

/// A number in the line of a lock, in which another field has a value.
fn number(lines: &[Value], lock: &str, (key, value): (&str, usize), field: &str) -> Option<i64> {
    let is_it = |line: &&Value| line["lock"] == lock && line[key] == value;
    lines.iter().find(is_it).expect("it is there")[field].as_i64()
}

#[test]
fn many_locks_are_counted_and_the_same_each_time() {
    let arguments = "bench many-locks --locks list-rw,srl-tree,null --number 1000 --threads 1,2";
    let lines = counted(&format!("{arguments} --format json"));
    assert_eq!(lines.len(), 3 * 2);
    let bytes = |lock, threads, field| number(&lines, lock, ("threads", threads), field).unwrap();
    assert_eq!(bytes("list-rw", 1, "idle_bytes"), 64_000);
    assert_eq!(
        bytes("list-rw", 2, "touched_bytes"),
        0,
        "it keeps nothing for a thread"
    );
    assert!(bytes("srl-tree", 1, "touched_bytes") > 0, "it keeps a leaf");
    assert_eq!(bytes("null", 2, "thread_bytes"), 0);
    let table = written(arguments);
    has_all(
        &table,
        &["per lock and thread", "1000", "srl-tree", "machine: "],
    );
}

#[test]
fn memory_is_counted_and_the_same_each_time() {
    let arguments = "bench memory --locks list-rw,song,bitmap,bitmap:block=64,std-rwlock,null,srl-tree --format json";
    let lines = counted(arguments);
    assert_eq!(lines.len(), 7 * 3);
    let bytes = |lock, hold, field| number(&lines, lock, ("hold", hold), field);
    for line in &lines {
        assert_eq!(line["workload"], "memory");
        for field in [
            "idle_bytes",
            "held_bytes",
            "guard_bytes",
            "kept_bytes",
            "touched_bytes",
        ] {
            assert_eq!(
                line[field].is_null(),
                line.get("skipped").is_some(),
                "{line}"
            );
        }
    }
    assert_eq!(bytes("null", 256, "idle_bytes"), Some(0));
    assert_eq!(bytes("null", 256, "held_bytes"), Some(0));
    let rwlock = size_of::<std::sync::RwLock<()>>() as i64;
    assert_eq!(bytes("std-rwlock", 1, "idle_bytes"), Some(rwlock));
    assert_eq!(bytes("std-rwlock", 16, "held_bytes"), None, "it cannot");
    // A bit for each of 2048 positions, and nothing for holders.
    assert!(bytes("bitmap", 1, "idle_bytes") >= Some(2048 / 8));
    assert_eq!(bytes("bitmap", 256, "held_bytes"), Some(0));
    assert_eq!(
        bytes("bitmap:block=64", 256, "held_bytes"),
        None,
        "ranges share blocks"
    );
    // A pool of the thread, and no table of the process.
    assert!(bytes("list-rw", 1, "held_bytes") < Some(16 << 10));
    assert_eq!(bytes("list-rw", 256, "touched_bytes"), Some(0));
    assert!(bytes("srl-tree", 256, "touched_bytes") > bytes("srl-tree", 1, "touched_bytes"));
    // A node for each range, at least: two positions and a link.
    for lock in ["list-rw", "song"] {
        assert!(bytes(lock, 256, "held_bytes") >= Some(256 * 20), "{lock}");
    }
    let table = written("bench memory --locks list-rw,std-rwlock --hold 2");
    has_all(
        &table,
        &[
            "held",
            "once for the process",
            "locks the whole",
            "machine: ",
        ],
    );
}

#[test]
fn uncontended_covers_both_modes_and_the_floors() {
    let lines = json_lines("bench uncontended --repeat 2 --pairs 10 --format json");
    let has = |lock: &str, mode: &str| {
        let rounds = lines
            .iter()
            .filter(|line| line["lock"] == lock && line["mode"] == mode);
        rounds.count() == 2
    };
    assert!(has("list-rw", "read") && has("list-rw", "write") && has("floor-2rmw", "write"));
    let table = written("bench uncontended --locks parking-lot,floor --repeat 1 --pairs 10");
    assert!(table.contains("RMW (by reading)"), "{table}");
}

#[test]
fn waiting_among_others() {
    let case = "bench waiting --locks slots,parking-lot --among";
    // On a busy machine not all come to run in so short a time.
    let all_run = |hundredths: u32| {
        let seconds = f64::from(hundredths) / 100.0;
        let lines = json_lines(&format!(
            "{case} reader-of-all/4-writers --seconds {seconds} --format json"
        ));
        let locks: Vec<_> = lines[1..].iter().map(|line| &line["lock"]).collect();
        assert_eq!(locks, ["slots", "parking-lot"]);
        lines[1..].iter().all(|line| {
            assert_eq!(line["case"], "reader-of-all/4-writers");
            let (requests, others) = (line["requests"].as_u64(), line["others_per_sec"].as_f64());
            requests.expect("a number") > 0 && others.expect("a number") > 0.0
        })
    };
    assert!((5..100).any(all_run), "some wait for ever");
    let table = written(&format!("{case} all --seconds 0.001"));
    let rows = table.matches("┆ parking-lot ┆").count();
    // A table that is too wide is cut, and its rows are written again.
    assert!(rows > 0 && rows.is_multiple_of(10), "ten cases: {table}");
}

#[test]
fn tasks_are_measured_under_every_lock() {
    let briefly = "--seconds 0.005 --pairs 10 --crowd 50";
    let lines = json_lines(&format!(
        "bench async {briefly} --workers 1,2 --repeat 1 --format json"
    ));
    let of = |lock: &str| {
        lines[1..]
            .iter()
            .filter(|line| line["lock"] == lock)
            .count()
    };
    for lock in ["slots", "list-rw", "rw-lock", "tokio", "saa"] {
        assert_eq!(of(lock), 4 + 3 * 2 + 1, "{lock}");
    }
    for line in &lines[1..] {
        assert!(line["workload"] == "async" && line["ops_per_sec"].as_f64() > Some(0.0));
        let is_timed = line["load"] == "crowd";
        assert_eq!(line["task_ns"].is_object(), is_timed, "{line}");
        assert_eq!(line["thread_ns"].is_object(), is_timed, "{line}");
    }
    let table = written(&format!(
        "bench async {briefly} --locks tokio --load crowd read-async"
    ));
    has_all(
        &table,
        &["waits in the crowd", "threads", "read-async", "machine: "],
    );
}

#[test]
fn waiting_reports_processor_time() {
    let lines =
        json_lines("bench waiting --locks list-rw --threads 2 --seconds 0.01 --format json");
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["workload"], "waiting");
    assert!(lines[1].get("sleeper_cpu_ms").is_some());
}
