//! Programs in C, alone and with the library preloaded.
//!
//! Each program checks itself. Alone it shows that it expects of glibc what glibc does.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// No program runs for so long: it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The library, as cargo has built it for this test.
fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    let library = test.with_file_name("libspanlock_pthread.so");
    assert!(library.exists(), "{} is not there", library.display());
    library
}

/// Compiles a program for one test; `None`, with a word why, where there is no compiler.
fn compile(name: &str, test: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{test}"));
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
    match command.arg(&program).arg(&source).status() {
        Ok(status) => {
            assert!(status.success(), "{name}.c does not compile");
            Some(program)
        }
        Err(error) => {
            println!("skipped: no C compiler: {}: {error}", compiler.display());
            None
        }
    }
}

/// Runs a command; panics if it does not end.
fn run(command: &mut Command) -> ExitStatus {
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{command:?} hangs");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn passes(name: &str) {
    let Some(program) = compile(name, "passes") else {
        return;
    };
    let alone = run(Command::new(&program).env_remove("LD_PRELOAD"));
    assert!(alone.success(), "{name} alone: {alone}");
    for lock in ["glibc", "bravo", "bravo-eager", "futex"] {
        let mut command = Command::new(&program);
        command
            .env("LD_PRELOAD", library())
            .env("SPANLOCK_LOCK", lock);
        let status = run(&mut command);
        assert!(status.success(), "{name} with {lock}: {status}");
    }
}

macro_rules! programs {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                passes(stringify!($name));
            }
        )*

        #[test]
        fn none_is_forgotten() {
            let named = [$(concat!(stringify!($name), ".c")),*];
            let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
            for entry in programs.read_dir().unwrap() {
                let file = entry.unwrap().file_name().into_string().unwrap();
                assert!(file == "check.h" || named.contains(&file.as_str()), "{file} is not run");
            }
        }
    };
}

programs![
    errors,
    exclusion,
    forks,
    handover,
    initialisers,
    lifetime,
    preference,
    recursion,
    reuse,
    sandbox,
    signals
];

/// What is written at exit, of one program under one lock.
fn statistics(lock: &str) -> Option<String> {
    let program = compile("recursion", lock)?;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("statistics-{lock}"));
    let _ = std::fs::remove_file(&file); // Of a run before this.
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", library())
        .env("SPANLOCK_LOCK", lock)
        .env("SPANLOCK_STATS", &file);
    assert!(run(&mut command).success());
    Some(std::fs::read_to_string(file).unwrap())
}

#[test]
fn readers_take_the_fast_path_and_are_counted() {
    for lock in ["bravo", "bravo-eager"] {
        let Some(lines) = statistics(lock) else {
            return;
        };
        assert_eq!(lines.lines().count(), 1, "{lines}");
        assert!(!lines.contains("\"fast_reads\":0,"), "{lock}: {lines}");
        assert!(lines.contains("\"writes\":2000,"), "{lock}: {lines}");
        assert!(lines.contains("recursion"), "{lock}: {lines}");
    }
}

#[test]
fn without_a_bias_no_reader_does() {
    for lock in ["glibc", "futex"] {
        if let Some(lines) = statistics(lock) {
            assert!(lines.contains("\"fast_reads\":0,"), "{lock}: {lines}");
        }
    }
}

#[test]
fn nothing_is_said_unasked() {
    let Some(program) = compile("preference", "says-nothing") else {
        return;
    };
    let mut command = Command::new(program);
    let output = command.env("LD_PRELOAD", library()).output().unwrap();
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}
