//! `spanlock run`, from outside.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod compiler;

use compiler::compiled;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn spanlock_run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command.arg("run").args(arguments).env_remove("LD_PRELOAD");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A file in a folder of this test's own.
fn file(name: &str, contents: &[u8], mode: u32) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path); // Of a run before this.
    fs::write(&path, contents).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// The copy is made by its own process. A file that this process has open to write cannot be run while a child that
/// another test starts has a copy of the descriptor.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-p").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn refused(program: &str, code: i32, said: &str) {
    let output = spanlock_run(&["--", program]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{program}: {errors}");
    assert!(
        errors.contains(program) && errors.contains(said),
        "{errors}"
    );
}

/// An executable of this machine's, as far as anybody looks, with that loader.
fn elf(loader: Option<&str>) -> Vec<u8> {
    let machine: u16 = if cfg!(target_arch = "x86_64") {
        62
    } else {
        183
    };
    let headers = u16::from(loader.is_some());
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([2_u16, machine].map(u16::to_le_bytes).concat()); // An executable.
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend([0_u64, 64, 0].map(u64::to_le_bytes).concat()); // The program headers follow this one.
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(
        [64_u16, 56, headers, 64, 0, 0]
            .map(u16::to_le_bytes)
            .concat(),
    );
    if let Some(loader) = loader {
        let size = loader.len() as u64 + 1;
        bytes.extend([3_u32, 4].map(u32::to_le_bytes).concat()); // The loader's name, to be read.
        bytes.extend(
            [120_u64, 120, 120, size, size, 1]
                .map(u64::to_le_bytes)
                .concat(),
        );
        bytes.extend(loader.as_bytes());
        bytes.push(0);
    }
    bytes
}

#[test]
fn what_cannot_be_run_is_told_why() {
    refused("no-such-program", 127, "PATH");
    refused("./no-such-program", 127, "there is no");
    refused("/", 126, "not a file");
    let refused_file = |name: &str, contents: &[u8], mode, said: &str| {
        refused(file(name, contents, mode).to_str().unwrap(), 126, said);
    };
    refused_file("plain", b"text", 0o644, "not executable");
    refused_file("text", b"text", 0o755, "not a 64-bit program");
    refused_file("static", &elf(None), 0o755, "linked statically");
    refused_file(
        "musl",
        &elf(Some("/lib/ld-musl-x86_64.so.1")),
        0o755,
        "ld-musl",
    );
    refused_file("cut", &elf(Some("x"))[..100], 0o755, "not a 64-bit program");
}

#[test]
fn a_setuid_program_is_told_why() {
    let program = file("setuid", &elf(Some("/lib64/ld-linux-x86-64.so.2")), 0o4755);
    // Another's: only the superuser can give it away.
    if std::os::unix::fs::chown(&program, Some(65534), None).is_err() {
        println!("skipped: only the superuser can make such a file");
        return;
    }
    // Giving it away takes the bit off.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    refused(program.to_str().unwrap(), 126, "setuid");
}

#[test]
fn a_script_is_what_its_interpreter_is() {
    let draft = file("script-draft", b"#!/bin/sh -e\nexit 5\n", 0o755);
    let script = draft.with_file_name("script");
    copy(&draft, &script);
    let output = spanlock_run(&["--", script.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let lost = file("lost", b"#!/no/such/interpreter\n", 0o755);
    let output = spanlock_run(&["--", lost.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(126));
    assert!(text(&output.stderr).contains("/no/such/interpreter"));
}

#[test]
fn the_exit_status_is_the_programs() {
    for (script, code, signal) in [
        ("exit 0", Some(0), None),
        ("exit 7", Some(7), None),
        ("kill -9 $$", None, Some(9)),
        ("kill -15 $$", None, Some(15)),
    ] {
        let output = spanlock_run(&["--", "sh", "-c", script]);
        let status = output.status;
        assert_eq!((status.code(), status.signal()), (code, signal), "{script}");
        assert!(
            output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
        let output = spanlock_run(&["--stats", "--", "sh", "-c", script]);
        let code = code.or(signal.map(|signal| 128 + signal));
        assert_eq!(output.status.code(), code, "{script}: {output:?}");
    }
}

#[test]
fn the_environment_is_set_and_what_was_preloaded_stays() {
    let output = Command::new(env!("CARGO_BIN_EXE_spanlock"))
        .args(["run", "--lock", "bravo-eager", "--", "sh", "-c"])
        .arg("echo $LD_PRELOAD; echo $SPANLOCK_LOCK")
        .env("LD_PRELOAD", "libc.so.6")
        .output()
        .unwrap();
    let lines: Vec<_> = text(&output.stdout).lines().collect();
    assert!(
        lines[0].ends_with("libspanlock_pthread.so:libc.so.6"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "bravo-eager");
}

/// As `scripts/install` lays it out, and as `cargo install` does.
#[test]
fn an_installed_program_finds_its_library_or_says_how_to_install_it() {
    let prefix = tempfile::tempdir().unwrap();
    let place = |folder: &str, file: &Path| {
        let folder = prefix.path().join(folder);
        fs::create_dir(&folder).unwrap();
        let placed = folder.join(file.file_name().unwrap());
        copy(file, &placed);
        placed
    };
    let built = Path::new(env!("CARGO_BIN_EXE_spanlock"));
    let installed = place("bin", built);
    let run = || {
        let mut command = Command::new(&installed);
        command.args(["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
        command.env_remove("LD_PRELOAD").current_dir("/");
        command.output().unwrap()
    };
    let refused = run();
    assert_eq!(refused.status.code(), Some(126));
    assert!(
        text(&refused.stderr).contains("scripts/install"),
        "{refused:?}"
    );
    let library = built.with_file_name("deps/libspanlock_pthread.so");
    let library = place("lib", &library);
    let found = run();
    assert!(found.stderr.is_empty(), "{found:?}");
    assert_eq!(text(&found.stdout).trim_end(), library.to_str().unwrap());
}

#[test]
fn statistics_are_printed_when_asked_for() {
    let output = spanlock_run(&["--stats", "--", "sh", "-c", "echo out; exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "out\n");
    assert!(!output.stderr.is_empty(), "{output:?}");

    let output = spanlock_run(&["--stats", "--format", "json", "--", "sh", "-c", "echo out"]);
    assert_eq!(text(&output.stdout), "out\n");
    let lines = text(&output.stderr).lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // Nothing on any machine is sure to use a lock, so there may be none to show.
    let is_lock = |line: &Value| line["fast_reads"].is_u64();
    let is_process = |line: &Value| line["counted"].is_boolean();
    assert!(lines.iter().all(|line| is_lock(line) || is_process(line)));
    assert!(lines.iter().any(is_process), "{lines:?}");
}

/// A program that uses a lock; `None`, with a word why, where there is no compiler.
fn program_with_locks(name: &str, options: &[&str]) -> Option<PathBuf> {
    compiled("locks.c", name, &["-O1", "-pthread"], options)
}

/// What is said of a program, in the end.
fn statistics(program: &Path, argument: &str) -> String {
    let output = spanlock_run(&["--stats", "--", program.to_str().unwrap(), argument]);
    assert!(output.stdout.is_empty(), "{output:?}");
    text(&output.stderr).to_owned()
}

#[test]
fn the_acquirer_of_a_lock_is_named_as_far_as_its_file_shows() {
    for (name, options, said) in [
        (
            "debug-information",
            &["-g"][..],
            &["store::get()", "locks.c:1"][..],
        ),
        (
            "not-at-zero",
            &["-g", "-no-pie"],
            &["store::get()", "locks.c:1"],
        ),
        ("symbols", &[], &["store::get(), in ", "symbols"]),
        (
            "exported",
            &["-s", "-rdynamic"],
            &["store::get(), in ", "exported"],
        ),
        ("stripped", &["-s"], &["stripped+0x", "addr2line -Cfe "]),
    ] {
        let Some(program) = program_with_locks(&format!("locks-{name}"), options) else {
            return;
        };
        let statistics = statistics(&program, "");
        for word in said {
            assert!(
                statistics.contains(word),
                "{name}: {word} is not in {statistics}"
            );
        }
    }
}

#[test]
fn why_there_are_no_statistics_is_told() {
    let Some(program) = program_with_locks("locks-ends", &[]) else {
        return;
    };
    for (end, said) in [
        ("unused", "No pthread_rwlock was used"),
        ("_exit", "Nothing is known of process"),
        ("killed", "signal 9 killed process"),
    ] {
        let statistics = statistics(&program, end);
        assert!(statistics.contains(said), "{end}: {statistics}");
        assert!(!statistics.contains("hottest"), "{end}: {statistics}");
    }
}

#[test]
fn the_table_fits_a_terminal_of_80_columns() {
    let Some(program) = program_with_locks("locks-table", &[]) else {
        return;
    };
    let statistics = statistics(&program, "");
    let is_name = |line: &&str| line.starts_with("    ");
    let widest = statistics
        .lines()
        .filter(|line| !is_name(line))
        .map(str::len)
        .max();
    assert!(widest.is_some_and(|columns| columns <= 80), "{statistics}");
}

#[test]
fn the_program_is_called_as_it_was_named() {
    let output = spanlock_run(&["--", "sh", "-c", "echo $0"]);
    assert_eq!(text(&output.stdout), "sh\n");
}

#[test]
fn wrong_arguments_are_named_with_what_was_expected() {
    for (arguments, said) in [
        (
            &["--lock", "bravado", "--", "true"][..],
            ["bravado", "bravo-eager"],
        ),
        (&["--format", "json", "--", "true"], ["--stats", "--format"]),
        (&[], ["PROGRAM", "required"]),
    ] {
        let output = spanlock_run(arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        for word in said {
            assert!(errors.contains(word), "{arguments:?}: {errors}");
        }
    }
}

#[test]
fn revocation_is_measured_by_rows() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command.args([
        "bench",
        "rw",
        "revocation",
        "--threads",
        "4,1",
        "--repeat",
        "1",
    ]);
    let output = command.args(["--format", "json"]).output().unwrap();
    let lines = text(&output.stdout).lines().skip(1);
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let rows: Vec<_> = lines.iter().map(|line| line["rows"].as_u64()).collect();
    assert_eq!(rows, [Some(1), Some(4)]);
    assert!(
        lines
            .iter()
            .all(|line| line["scan_ns"].as_f64() > Some(0.0))
    );
}

#[test]
fn preloading_is_compared_with_stock() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command.args(["bench", "rw", "preload", "--threads", "1", "--repeat", "1"]);
    let output = command
        .args(["--seconds", "0.001", "--warmup", "0"])
        .output();
    let output = output.unwrap();
    let (table, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{errors}");
    for word in ["readers", "hash_table", "of stock", "commit:"] {
        assert!(table.contains(word), "{word} not in {table}");
    }
}
