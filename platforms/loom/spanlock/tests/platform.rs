//! The library's source says `prim`, so that it can be compiled for another platform: it names no platform, no build
//! mode, and nothing of the standard library that a platform provides. The same holds for the blocks of leases.

use std::path::Path;
use std::{fs, io};

/// What a platform provides.
const PROVIDED: &[&str] = &[
    "std::sync",
    "std::thread",
    "std::time",
    "core::sync",
    "core::hint",
    "core::arch",
];

/// The conditions that the source may ask about: for tests, and features that add to the interface.
const CONDITIONS: &[&str] = &[
    "test",
    "feature = \"rw\"",
    "feature = \"metrics\"",
    "feature = \"tracing\"",
];

/// An attribute that changes the reports of debug builds alone.
const REPORTS: &str = "cfg_attr(debug_assertions, track_caller)";

/// What a line of code says that it should not.
fn offences(line: &str) -> Vec<&str> {
    let code = line.trim_start();
    if code.starts_with("//") || code.contains(REPORTS) {
        return Vec::new();
    }
    let provided = PROVIDED.iter().copied().filter(|name| code.contains(name));
    let openings = ["cfg(", "cfg!(", "cfg_attr("];
    let asks = openings
        .iter()
        .flat_map(|opening| code.split(opening).skip(1));
    let conditions = asks.map(|rest| {
        let rest = rest.strip_prefix("not(").unwrap_or(rest);
        &rest[..rest.find([',', ')']).unwrap_or(rest.len())]
    });
    provided
        .chain(conditions.filter(|condition| !CONDITIONS.contains(condition)))
        .collect()
}

/// Checks the files of a folder and of the folders in it, each up to its tests.
fn check(folder: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            check(&path, found)?;
        } else if path.file_name().is_some_and(|name| name != "tests.rs") {
            let text = fs::read_to_string(&path)?;
            let source = text.split("#[cfg(test)]\nmod tests {").next();
            for (line, code) in source.unwrap_or_default().lines().enumerate() {
                let offences = offences(code);
                found.extend(
                    offences
                        .iter()
                        .map(|what| format!("{}:{}: {what}", path.display(), line + 1)),
                );
            }
        }
    }
    Ok(())
}

#[test]
fn the_library_names_no_platform() {
    let mut found = Vec::new();
    for folder in ["crates/spanlock/src", "leases/lease/src/blocks"] {
        check(&Path::new("../../..").join(folder), &mut found).unwrap();
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_names_a_platform_is_found() {
    assert_eq!(offences("use std::sync::Arc;"), ["std::sync"]);
    assert_eq!(offences("#[cfg(loom)]"), ["loom"]);
    assert_eq!(
        offences("if cfg!(target_os = \"linux\") {"),
        ["target_os = \"linux\""]
    );
    assert_eq!(
        offences("const ON: bool = cfg!(debug_assertions);"),
        ["debug_assertions"]
    );
    assert!(offences("    // As in `std::sync`.").is_empty());
    assert!(offences("#[cfg(not(feature = \"rw\"))]").is_empty());
    assert!(offences("    #[cfg_attr(debug_assertions, track_caller)]").is_empty());
}
