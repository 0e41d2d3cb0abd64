//! Programs in C, alone and with the library preloaded.
//!
//! Each program checks itself. Alone it shows that it expects of glibc what glibc does.
//!
//! `SPANLOCK_SANITIZER=thread` or `=address` builds the programs with that sanitizer of the C compiler. The library has
//! to be built with the same sanitizer of rustc: `.ci/run` does both.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::env;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
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

/// The sanitizer that the programs are built with, if any.
fn sanitizer() -> Option<String> {
    env::var("SPANLOCK_SANITIZER").ok()
}

/// The settings that a program runs with.
fn locks() -> &'static [&'static str] {
    match sanitizer().as_deref() {
        // In the other settings the thread sanitizer reports races that do not exist, because it does not see what
        // orders critical sections. glibc's code is not instrumented. A fast reader departs by the compare-exchange
        // `prim::atomic::compare_exchange_by_owner`, which on x86-64 is inline assembly, and that is not instrumented
        // either.
        Some("thread") => &["futex"],
        _ => &["glibc", "bravo", "bravo-eager", "futex"],
    }
}

/// The library, and before it the sanitizer's runtime if that has to come first.
fn preloaded() -> String {
    let library = library().display().to_string();
    if sanitizer().as_deref() != Some("address") {
        return library;
    }
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    let output = command.arg("-print-file-name=libasan.so").output().unwrap();
    let runtime = String::from_utf8(output.stdout).unwrap();
    format!("{}:{library}", runtime.trim())
}

/// Compiles a program for one test; `None`, with a word why, where there is no compiler.
fn compile(name: &str, test: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{test}"));
    compile_to(&program, name, &[]).then_some(program)
}

/// The same, with further options; `false` where there is no compiler.
fn compile_to(output: &Path, name: &str, options: &[&str]) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    if let Some(sanitizer) = sanitizer() {
        let runtime = source.with_file_name("../sanitized/memory.c");
        let sanitize = format!("-fsanitize={sanitizer}");
        command.args([&sanitize, "-g", "-rdynamic"]).arg(runtime);
    }
    command.arg("-o").arg(output).arg(&source).args(options);
    match command.status() {
        Ok(status) => assert!(status.success(), "{name}.c does not compile"),
        Err(error) => {
            println!("skipped: no C compiler: {}: {error}", compiler.display());
            return false;
        }
    }
    true
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
    if let Some(program) = compile(name, "passes") {
        passes_compiled(name, &program);
    }
}

fn passes_compiled(name: &str, program: &Path) {
    // Alone under a sanitizer a program would test the sanitizer's own locks.
    if sanitizer().is_none() {
        let alone = run(Command::new(program).env_remove("LD_PRELOAD"));
        assert!(alone.success(), "{name} alone: {alone}");
    }
    for lock in locks() {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", preloaded())
            .env("SPANLOCK_LOCK", lock);
        let status = run(&mut command);
        assert!(status.success(), "{name} with {lock}: {status}");
    }
}

macro_rules! programs {
    ($($name:ident),*; and by themselves: $($special:ident),*) => {
        $(
            #[test]
            fn $name() {
                passes(stringify!($name));
            }
        )*

        #[test]
        fn none_is_forgotten() {
            let named = [$(concat!(stringify!($name), ".c"),)* $(concat!(stringify!($special), ".c")),*];
            $(let _: fn() = $special;)*
            let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
            for entry in programs.read_dir().unwrap() {
                let file = entry.unwrap().file_name().into_string().unwrap();
                assert!(file.ends_with(".h") || named.contains(&file.as_str()), "{file} is not run");
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
    signals,
    small;
    and by themselves: allocator, cancelled, counted, deepbind, killed, loading, title, unloaded
];

/// It has an allocator of its own.
#[test]
fn allocator() {
    if sanitizer().is_none() {
        passes("allocator");
    }
}

/// What the library writes is no point where a thread may be cancelled.
#[test]
fn cancelled() {
    if sanitizer().is_some() {
        return; // They write themselves when a library is loaded.
    }
    let Some(program) = compile("cancelled", "passes") else {
        return;
    };
    let file = program.with_extension("statistics");
    let _ = std::fs::remove_file(&file); // Of a run before this.
    let mut command = Command::new(program);
    command
        .arg(library())
        .env_remove("LD_PRELOAD")
        .env("SPANLOCK_LOCK", "glibcc")
        .env("SPANLOCK_STATS", &file);
    let status = run(&mut command);
    assert_eq!(status.code(), Some(3), "{status}");
    let lines = std::fs::read_to_string(file).unwrap();
    assert!(lines.ends_with("\"exited\":true}\n"), "{lines}");
}

/// What a process counts is written also if it may not open the file any more, or has closed all its descriptors. Its
/// own files stay as they are.
#[test]
fn counted() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(program) = compile("counted", "passes") else {
        return;
    };
    for how in ["user", "closed"] {
        let file = folder.join(format!("statistics-{how}"));
        let own = folder.join("own-file");
        let _ = std::fs::remove_file(&file); // Of a run before this.
        let mut command = Command::new(&program);
        command
            .arg(how)
            .arg(if how == "user" { &file } else { &own })
            .env("LD_PRELOAD", preloaded())
            .env("SPANLOCK_STATS", &file);
        let status = run(&mut command);
        assert!(status.success(), "{how}: {status}");
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let lines = std::fs::read_to_string(file).unwrap();
        assert!(lines.contains("\"writes\":1,"), "{how}: {lines}");
        assert!(lines.ends_with("\"exited\":true}\n"), "{how}: {lines}");
    }
    assert_eq!(folder.join("own-file").metadata().unwrap().len(), 0);
}

/// The library that it loads lies in a folder that the program's file names.
#[test]
fn deepbind() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deepbind-plugins");
    std::fs::create_dir_all(&folder).unwrap();
    let plugin = folder.join("libspanlock-deepbind.so");
    if compile_to(&plugin, "deepbind", &["-shared", "-fPIC", "-DPLUGIN"]) {
        let program = folder.with_file_name("deepbind-passes");
        let path = format!("-Wl,--enable-new-dtags,-rpath,{}", folder.display());
        compile_to(&program, "deepbind", &[&path, "-ldl"]);
        passes_compiled("deepbind", &program);
    }
}

/// By the setting the library makes no system call that glibc's locks do not make.
#[test]
fn killed() {
    let Some(program) = compile("killed", "passes") else {
        return;
    };
    let alone = run(Command::new(&program).env_remove("LD_PRELOAD"));
    if alone.code() == Some(77) {
        println!("skipped: no sandbox is to be had");
        return;
    }
    assert!(alone.success(), "alone: {alone}");
    let with = |lock: &str, membarrier: &str| {
        let mut command = Command::new(&program);
        command
            .env("LD_PRELOAD", preloaded())
            .env("SPANLOCK_LOCK", lock)
            .env("SPANLOCK_MEMBARRIER", membarrier);
        run(&mut command)
    };
    let killed = with("bravo-eager", "");
    assert_eq!(killed.signal(), Some(libc::SIGSYS), "{killed}");
    for lock in ["glibc", "bravo", "bravo-eager", "futex"] {
        let status = with(lock, "off");
        assert!(status.success(), "{lock}: {status}");
    }
}

/// A thread that holds a lock does not wait for the loader, in which another waits for the lock: neither to count that,
/// nor to find glibc's functions.
#[test]
fn loading() {
    let plugin = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libspanlock-loading.so");
    if !compile_to(&plugin, "loading", &["-shared", "-fPIC", "-DPLUGIN"]) {
        return;
    }
    let program = plugin.with_file_name("loading-passes");
    compile_to(&program, "loading", &["-rdynamic", "-ldl"]);
    for lock in locks() {
        for statistics in ["", "/dev/null"] {
            let mut command = Command::new(&program);
            command
                .arg(&plugin)
                .env("LD_PRELOAD", preloaded())
                .env("SPANLOCK_LOCK", lock)
                .env("SPANLOCK_STATS", statistics);
            let status = run(&mut command);
            assert!(status.success(), "{lock}, {statistics:?}: {status}");
        }
    }
}

/// The counts go where they were asked for, though the program has overwritten its environment.
#[test]
fn title() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("title-writes");
    let _ = std::fs::remove_dir_all(&folder); // Of a run before this.
    std::fs::create_dir_all(&folder).unwrap();
    let Some(program) = compile("title", "passes") else {
        return;
    };
    let file = folder.join("statistics");
    let mut command = Command::new(&program);
    command
        .current_dir(&folder)
        .env("LD_PRELOAD", preloaded())
        .env("SPANLOCK_STATS", &file);
    assert!(run(&mut command).success());
    let lines = std::fs::read_to_string(file).unwrap();
    assert!(lines.ends_with("\"exited\":true}\n"), "{lines}");
    assert_eq!(folder.read_dir().unwrap().count(), 1);
}

/// A program that loads the library by itself may close it.
#[test]
fn unloaded() {
    if sanitizer().is_some() {
        return; // The sanitizers keep libraries loaded.
    }
    if let Some(program) = compile("unloaded", "passes") {
        let mut command = Command::new(program);
        command.arg(library()).env_remove("LD_PRELOAD");
        let status = run(&mut command);
        assert!(status.success(), "{status}");
    }
}

/// What is written at exit, of one program under one lock.
fn statistics(lock: &str) -> Option<String> {
    let program = compile("recursion", lock)?;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("statistics-{lock}"));
    let _ = std::fs::remove_file(&file); // Of a run before this.
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", preloaded())
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
        let lines: Vec<_> = lines.lines().collect();
        let [begun, lines, ended] = lines[..] else {
            panic!("{lines:?}");
        };
        assert!(begun.contains("\"program\":\"/"), "{begun}");
        assert!(ended.ends_with("\"exited\":true}"), "{ended}");
        assert!(!lines.contains("\"fast_reads\":0,"), "{lock}: {lines}");
        assert!(lines.contains("\"offset\":"), "{lock}: {lines}");
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

/// What a program writes to the standard error by itself that uses locks, with a variable set.
fn complaints(program: &Path, variable: &str, value: &str) -> String {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", preloaded()).env(variable, value);
    let output = command.output().unwrap();
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn nothing_is_said_unasked() {
    let Some(program) = compile("preference", "says-nothing") else {
        return;
    };
    for lock in ["", "bravo", "bravo-eager", "futex", "glibc"] {
        assert_eq!(complaints(&program, "SPANLOCK_LOCK", lock), "");
    }
    for membarrier in ["", "off"] {
        assert_eq!(complaints(&program, "SPANLOCK_MEMBARRIER", membarrier), "");
    }
}

#[test]
fn a_value_that_is_not_known_is_told_once() {
    let Some(program) = compile("preference", "complains") else {
        return;
    };
    for (variable, value, expected) in [
        (
            "SPANLOCK_LOCK",
            "glibcc",
            "bravo, bravo-eager, futex or glibc",
        ),
        ("SPANLOCK_MEMBARRIER", "no", "off"),
    ] {
        let said = complaints(&program, variable, value);
        assert_eq!(said.lines().count(), 1, "{said}");
        for word in [variable, value, expected] {
            assert!(said.contains(word), "{said}");
        }
    }
}
