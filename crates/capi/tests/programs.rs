//! Programs in C, which check themselves. `scripts/c-suites` runs them with other compilers and under sanitizers, too.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The static library, as cargo has built it for this test.
fn library() -> PathBuf {
    let test = env::current_exe().expect("it runs");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("it is in `deps`");
    let library = folder.join("libspanlock_capi.a");
    let library = if library.exists() {
        library
    } else {
        test.with_file_name("libspanlock_capi.a")
    };
    assert!(library.exists(), "{} is not there", library.display());
    library
}

/// Compiles a program and runs it; says why not, where there is no compiler.
fn passes(name: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiled = Command::new(&compiler)
        .args([
            "-std=gnu11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-I",
        ])
        .arg(here.join("include"))
        .arg(here.join(format!("tests/programs/{name}.c")))
        .arg(library())
        .args(["-lm", "-ldl", "-o"])
        .arg(&program)
        .status();
    match compiled {
        Ok(status) => assert!(status.success(), "{name}.c does not compile"),
        Err(error) => {
            println!("skipped: no C compiler: {}: {error}", compiler.display());
            return;
        }
    }
    // The programs end by themselves if they hang: they set an alarm.
    let status = Command::new(&program).status().expect("it can be run");
    assert!(status.success(), "{name}: {status}");
}

/// Compiles a header alone, with the warnings that strict programs ask for.
fn compiles_strictly(compiler: &str, header: &str, options: &[&str]) {
    let warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"];
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join(header);
    let compiled = Command::new(compiler)
        .args(options)
        .args(warnings)
        .args(["-pedantic-errors", "-fsyntax-only", "-include"])
        .arg(&header)
        .arg("/dev/null")
        .status();
    match compiled {
        Ok(status) => assert!(status.success(), "{} {options:?}", header.display()),
        Err(error) => println!("skipped: no compiler: {compiler}: {error}"),
    }
}

#[test]
fn the_headers_compile_without_a_warning() {
    for standard in ["-std=c99", "-std=gnu17"] {
        compiles_strictly("cc", "include/spanlock.h", &["-x", "c", standard]);
    }
    for (header, standard) in [
        ("include/spanlock.h", "-std=c++11"),
        ("include/spanlock.hpp", "-std=c++17"),
        ("include/spanlock.hpp", "-std=c++20"),
    ] {
        compiles_strictly("c++", header, &["-x", "c++", standard]);
    }
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                passes(stringify!($name));
            }
        )*
    };
}

programs! { range holders rwlock misuse owners keys submit life cancelled loader signals }
