//! `spanlock report`, from outside.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn spanlock(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command.current_dir(folder).args(arguments.split(' '));
    command.output().unwrap()
}

#[track_caller]
fn refused(folder: &Path, arguments: &str, code: i32, said: &[&str]) {
    let output = spanlock(folder, arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments}: {errors}");
    for said in said {
        assert!(errors.contains(said), "{arguments}: {errors}");
    }
}

#[test]
fn what_bench_and_sim_print_becomes_a_page_and_lines() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (file, arguments) in [
        (
            "arr.jsonl",
            "bench arr --locks list-rw,kernel-rw --variant full --reads 60 --threads 1 --seconds 0.001 --warmup 0 --repeat 2 --format json",
        ),
        (
            "rw.jsonl",
            "bench rw alternator --locks pf-q --threads 1 --seconds 0.001 --warmup 0 --repeat 2 --format json",
        ),
        (
            "sim.jsonl",
            "sim arr --machine small-1x2x1 --locks list-rw --variant full --reads 60 --threads 1 --seconds 0.0001 --seeds 2 --format json",
        ),
        (
            "locks.jsonl",
            "bench uncontended --locks list-rw --pairs 10 --repeat 1 --format json",
        ),
    ] {
        let output = spanlock(folder.path(), arguments);
        assert!(output.status.success(), "{arguments}");
        fs::write(at(file), output.stdout).unwrap();
    }
    let files = "report arr.jsonl rw.jsonl sim.jsonl locks.jsonl";
    let output = spanlock(folder.path(), &format!("{files} --html out.html"));
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(at("out.html")).unwrap();
    for wanted in ["arr.jsonl", "bench rw alternator"] {
        assert!(page.contains(wanted), "{wanted}");
    }
    let lines = String::from_utf8(spanlock(folder.path(), files).stdout).unwrap();
    for wanted in ["small-1x2x1", "full range, 60 % reads"] {
        assert!(page.contains(wanted) && lines.contains(wanted), "{wanted}");
    }
    assert_eq!(page.matches("<svg").count(), 3);
    assert!(page.contains("acquisition and release of one range"));
}

#[test]
fn wrong_inputs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    refused(here, "report --html out.html", 2, &["FILE"]);
    fs::write(here.join("text.jsonl"), "\nno line of ours\n").unwrap();
    refused(here, "report text.jsonl", 1, &["text.jsonl, line 2"]);
    refused(
        here,
        "report none.jsonl --html out.html",
        1,
        &["none.jsonl", "No such file"],
    );
    refused(
        here,
        "report text.jsonl --html out.html",
        1,
        &["text.jsonl, line 2"],
    );
    assert!(!here.join("out.html").exists());
    let alone = r#"{"workload":"meta","machine":"one","cores":1,"kernel":"linux","commit":"c0ffee","command":"none"}"#;
    fs::write(here.join("empty.jsonl"), alone).unwrap();
    refused(
        here,
        "report empty.jsonl --picture out.svg",
        1,
        &["the default range lock met no other one"],
    );
}
