//! The header is what the sources say.
//!
//! `SPANLOCK_WRITE_HEADER=1 cargo test -p spanlock-capi --test header` renews it.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn text(file: &str) -> String {
    let text = fs::read_to_string(here(file)).expect("it is there");
    let [major, minor, patch] = ["MAJOR", "MINOR", "PATCH"];
    text.replace(&format!("@{major}@"), env!("CARGO_PKG_VERSION_MAJOR"))
        .replace(&format!("@{minor}@"), env!("CARGO_PKG_VERSION_MINOR"))
        .replace(&format!("@{patch}@"), env!("CARGO_PKG_VERSION_PATCH"))
}

/// Leaves out the sections `# Safety` of comments, which speak to Rust alone.
fn without_safety(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut skips = false;
    for line in header.lines() {
        let ends = line.trim() == "*/";
        if line.trim() == "* # Safety" {
            skips = true;
            kept.pop_if(|last| last.trim() == "*");
        }
        if !skips || ends {
            kept.push(line);
        }
        skips &= !ends;
    }
    kept.join("\n") + "\n"
}

fn made() -> String {
    let mut config = cbindgen::Config::from_file(here("cbindgen.toml")).expect("it is well formed");
    config.header = Some(text("header/top.h"));
    config.after_includes = Some(text("header/before.h"));
    config.trailer = Some(text("header/after.h"));
    let mut made = Vec::new();
    let builder = cbindgen::Builder::new().with_config(config);
    let sections = [
        "version",
        "types",
        "range_lock",
        "range_lock_many",
        "range_lock_holders",
        "owner",
        "owner_holding",
        "key_lock",
        "key_lock_holding",
        "range_lock_submit",
        "rwlock",
    ];
    sections
        .iter()
        .fold(builder, |builder, section| {
            builder.with_src(here(&format!("src/exports/{section}.rs")))
        })
        .generate()
        .expect("the sources are well formed")
        .write(&mut made);
    without_safety(&String::from_utf8(made).expect("it is text"))
}

#[test]
fn it_is_current() {
    let header = here("include/spanlock.h");
    let made = made();
    if env::var_os("SPANLOCK_WRITE_HEADER").is_some() {
        fs::write(&header, &made).expect("it can be written");
    }
    let is = fs::read_to_string(&header).unwrap_or_default();
    assert!(
        is == made,
        "{} is not what the sources say: see the head of tests/header.rs",
        header.display()
    );
}
