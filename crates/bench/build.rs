//! Tells the library from which commit it is built, so that measurements can name it; collects the names of the edges
//! that a fuzzed run can weaken; compiles the shim of peers in C and C++ if asked to.

use std::process::Command;

/// The sources whose named edges a fuzzed run can weaken.
#[cfg(feature = "sim")]
const FUZZED: [&str; 4] = [
    "../spanlock/src",
    "../workbench/src/baseline",
    "../structures/src/vm",
    "../structures/src/ordered",
];

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    // Another commit, or other sources in any crate.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-changed=../../platforms");
    let commit = git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ]);
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=SPANLOCK_COMMIT={commit}");
    #[cfg(feature = "sim")]
    name_edges();
    #[cfg(feature = "cpp-peers")]
    cpp_peers();
}

#[cfg(feature = "sim")]
fn name_edges() {
    use spanlock_testkit::edges;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::{env, fs};

    let mut all = BTreeSet::new();
    for source in FUZZED {
        all.append(&mut edges::named_in(Path::new(source)).expect("the source is there"));
    }
    let out = env::var_os("OUT_DIR").expect("cargo says where");
    let list = format!("&{:?}", all.iter().collect::<Vec<_>>());
    fs::write(Path::new(&out).join("edges.rs"), list).expect("cargo's folder can be written");
}

#[cfg(feature = "cpp-peers")]
fn cpp_peers() {
    for (header, package) in [
        ("oneapi/tbb/rw_mutex.h", "libtbb-dev"),
        ("absl/synchronization/mutex.h", "libabsl-dev"),
        ("ck_pflock.h", "libck-dev"),
    ] {
        let found = cc::Build::new()
            .cpp(true)
            .get_compiler()
            .to_command()
            .args(["-E", "-x", "c++", "-include", header, "/dev/null"])
            .output()
            .is_ok_and(|output| output.status.success());
        assert!(
            found,
            "feature cpp-peers: no C++ compiler that finds <{header}>, of Debian's package {package}; \
             `scripts/cpp-peers` installs what is needed"
        );
    }
    cc::Build::new().file("cpp/ck.c").compile("spanlock_ck");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("cpp/peers.cpp")
        .compile("spanlock_peers");
    println!("cargo::rustc-link-lib=tbb");
    println!("cargo::rustc-link-lib=absl_synchronization");
}
