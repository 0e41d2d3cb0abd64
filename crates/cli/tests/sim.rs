//! `spanlock sim`, from outside.

use spanlock_records::record::Line;
use spanlock_testkit::on_all_processors;
use std::process::{Command, Output};

/// Nothing is taken from what earlier runs have kept, unless a test says where that is.
fn run(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command.env("XDG_CACHE_HOME", "/dev/null");
    command.args(arguments.split_whitespace()).output().unwrap()
}

fn written(arguments: &str) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn machines_are_listed() {
    let listed = written("sim --list-machines");
    for name in ["xeon-2x10x2", "xeon-2x18x2", "xeon-4x18x2", "small-1x2x1"] {
        assert!(listed.contains(name), "{name} in {listed}");
    }
}

#[test]
fn the_same_command_writes_the_same_bytes() {
    let commands = [
        "sim arr --threads 1,12,40 --seconds 0.0001",
        "sim arr --locks list-rw,list-ex --threads 1,20,40 --seconds 0.0002 --format json --no-cache",
        "sim batch --threads 1,20,40 --seconds 0.00002 --no-cache",
        "sim latency --threads 1,20 --parts 256 --no-cache",
        "sim blob --payload whole,word --draw zipfian --locks list-rw,song --threads 1,40 --seconds 0.0005 --no-cache",
        "sim pattern --locks list-rw,srl-tree --pattern files,append,churn,everything --reads 50 --threads 1,20 \
         --seconds 0.00005 --no-cache",
        "sim pattern --locks list-rw --pattern sweep --reads 50 --threads 2 --bystanders 100 --seconds 0.00005 \
         --no-cache",
        "sim arr --machine xeon-4x18x2 --placement compact --locks list-rw --threads 144 --variant disjoint --reads 60 \
         --seconds 0.0001",
    ];
    on_all_processors(commands.into_iter(), |command| {
        let first = written(command);
        assert_eq!(first, written(command), "{command}");
        assert!(first.contains("list-rw"), "{first}");
    });
}

#[test]
fn locks_over_keys_are_simulated_with_zipfian_keys_of_both_lengths() {
    let command = "sim keys --keys 64 --length 16,100 --chosen zipfian --writes 0,50 --access points,scans \
                   --locks keys,lock-table --threads 1,4 --seconds 0.00005 --no-cache";
    let first = written(command);
    assert_eq!(first, written(command), "{command}");
    for said in [
        "points, zipfian, of 64 keys of 16 bytes, 0 % writes",
        "scans, zipfian, of 64 keys of 100 bytes, 50 % writes",
    ] {
        assert!(first.contains(said), "{first}");
    }
}

#[test]
fn reader_writer_locks_and_kernels_are_simulated_alike_each_time() {
    for (command, said) in [
        (
            "sim rw rwbench --writes 0.1 --threads 1,10 --seconds 0.00005 --format json",
            "\"lock\":\"bravo-per-cpu-paper\"",
        ),
        (
            "sim rw interference --locks bravo-pf-t,bravo-pf-t-paper --pool 2,64 --seconds 0.00005",
            "interference, 64 locks",
        ),
        (
            "sim rw hash_table --locks futex --entries 64 --threads 2 --seconds 0.00005",
            "hash_table, 64 entries",
        ),
        (
            "sim micro --threads 1,20,40 --seconds 0.00005 --seeds 2 --format json",
            "\"lock\":\"mcs\"",
        ),
    ] {
        let first = written(command);
        assert_eq!(first, written(command), "{command}");
        assert!(first.contains(said), "{first}");
    }
}

#[test]
fn a_missing_fence_in_a_biased_lock_is_found() {
    for edge in ["bias-reader", "bias-writer"] {
        let command = format!("sim fuzz --lock bravo-futex --runs 300 --mutant {edge}");
        let found = run(&command);
        assert_eq!(found.status.code(), Some(1), "{edge}");
        let told = String::from_utf8(found.stderr).unwrap();
        assert!(told.contains("a writer"), "{edge}: {told}");
    }
    assert!(written("sim fuzz --lock bravo-futex --runs 20").contains("nothing found"));
}

#[test]
fn lines_of_json_tell_where_they_come_from_and_are_read_back() {
    // The seed after the largest is zero.
    let command = "sim arr --locks list-rw,list-ex --threads 1,3 --variant full --reads 60 --seeds 2 \
                   --seed 18446744073709551615 --seconds 0.0001 --format json";
    let text = written(command);
    let lines: Vec<Line> = text.lines().map(|line| line.parse().unwrap()).collect();
    let again: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(text, again);
    assert!(matches!(&lines[0], Line::Meta(meta) if meta.time.is_none()));
    assert!(matches!(&lines[1], Line::SimMachine(machine) if machine.name == "xeon-2x10x2"));
    let runs = lines.iter().filter_map(|line| match line {
        Line::Run(run) => Some(run),
        _ => None,
    });
    let runs: Vec<_> = runs
        .map(|run| (run.seed, run.threads, run.lock.name.as_str()))
        .collect();
    assert_eq!(runs.len(), 8);
    assert_eq!(runs[0], (u64::MAX, 1, "list-rw"));
    assert_eq!(runs[7], (0, 3, "list-ex"));
}

#[test]
fn all_range_locks_of_bench_are_simulated() {
    let command =
        "sim arr --threads 2 --variant random --reads 60 --seconds 0.0001 --format json --no-cache";
    let simulated = written(command);
    for lock in spanlock_bench::registry::LOCKS.iter() {
        let is_here = simulated.contains(&format!("\"lock\":\"{}\"", lock.name));
        let elsewhere = ["c-slots", "slots-tasks", "null"];
        assert_ne!(is_here, elsewhere.contains(&lock.name), "{}", lock.name);
    }
}

#[test]
fn a_sweep_tells_what_survives_which_change() {
    let command = "sim arr --locks list-rw,kernel-rw --threads 8 --variant full --reads 60 --seconds 0.0001 --sweep \
                   --no-cache";
    let text = written(command);
    assert!(text.contains("pairs keep their order on"), "{text}");
    let json = written(&format!("{command} --format json"));
    let ranking = json.lines().last().map(str::parse::<Line>);
    let Some(Ok(Line::SimRanking(ranking))) = ranking else {
        panic!("{json}");
    };
    assert_eq!((ranking.threads, ranking.order.len()), (8, 2));
    assert!(
        ranking.machines > 20 && json.contains("xeon-2x10x2:favour=0"),
        "{ranking}"
    );
}

#[test]
fn a_lock_that_never_lets_go_ends_in_a_report() {
    // No store leaves its buffer: the second thread sees the lock taken for ever.
    let command = "sim arr --machine small-1x2x1:own_local=4000000000 --locks kernel-rw --threads 2 --seconds 0.00001";
    let output = run(&format!("{command} --no-cache"));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("still running after"), "{errors}");
}

#[test]
fn a_mutant_is_found_and_its_seed_replays_it() {
    let found = run("sim fuzz --lock list-rw --runs 500 --mutant writer-validation");
    assert_eq!(found.status.code(), Some(1));
    let told = String::from_utf8(found.stderr).unwrap();
    let seed = told.split_once("seed ").unwrap().1;
    let seed = seed.split_whitespace().next().unwrap();
    let command =
        format!("sim fuzz --lock list-rw --runs 1 --mutant writer-validation --seed {seed}");
    let replayed = run(&command);
    assert_eq!(replayed.status.code(), Some(1));
    assert!(
        String::from_utf8(replayed.stderr)
            .unwrap()
            .contains("asks for")
    );
    assert!(written("sim fuzz --lock list-rw --runs 20").contains("nothing found"));
}

#[test]
fn a_mutant_does_not_bring_down_the_command() {
    for edge in ["cut-off", "fresh-node", "wake"] {
        let found = run(&format!(
            "sim fuzz --lock list-rw --runs 300 --mutant {edge}"
        ));
        let errors = String::from_utf8(found.stderr).unwrap();
        assert_eq!(found.status.code(), Some(1), "{edge}: {errors}");
        assert!(errors.contains("list-rw: "), "{edge}: {errors}");
    }
}

#[test]
fn wrong_arguments_are_named_with_what_was_expected() {
    for (arguments, said) in [
        ("sim fuzz --lock lsit", "list-rw"),
        ("sim fuzz --lock lsit", "bravo-futex-readers"),
        ("sim rw readers --locks futex-readers", "bravo-futex-paper"),
        (
            "sim rw hash_table --machine small-1x2x1 --threads 1",
            "1 thread on small-1x2x1: expected at most 0",
        ),
        ("sim micro --kernels ad", "rw-counter"),
        (
            "sim fuzz --lock list-rw --mutant reader",
            "reader-handshake",
        ),
        ("sim arr --machine abacus", "xeon-2x10x2"),
        ("sim arr --machine xeon-2x10x2:favor=0", "favour"),
        ("sim arr --seeds 0", "from 1 to 1000"),
        ("sim fuzz --lock list-rw --runs 0", "0 is not in 1.."),
        ("sim arr --threads -1", "1 <= a <= b"),
        ("sim arr --placement dense", "compact, scatter"),
        ("sim arr --no-cache --cache x", "cannot be used with"),
        ("sim batch --hold 2 --ranges 1", "--hold 2 is more"),
        ("sim latency --parts 0", "from 1 to"),
        ("sim pattern --pattern page", "files, pages"),
        ("sim pattern --bystanders 1001", "1001"),
        (
            "sim arr --machine small-1x2x1 --threads 3",
            "3 threads on small-1x2x1: expected at most 2",
        ),
        ("sim arr --locks srl-aray", "srl-array"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(said), "{arguments}: {errors}");
    }
}
