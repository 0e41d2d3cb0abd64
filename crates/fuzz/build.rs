//! Collects the names of the edges that a run can weaken.

use spanlock_testkit::edges;
use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

const SOURCES: [&str; 4] = [
    "../spanlock/src",
    "../workbench/src/baseline",
    "../structures/src/vm",
    "../structures/src/ordered",
];

fn main() {
    let mut all = BTreeSet::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        all.append(&mut edges::named_in(Path::new(source)).expect("the source is there"));
    }
    let out = env::var_os("OUT_DIR").expect("cargo says where");
    let list = format!("&{:?}", all.iter().collect::<Vec<_>>());
    fs::write(Path::new(&out).join("edges.rs"), list).expect("cargo's folder can be written");
}
