//! `docs/conformance.md` says what is so.

use spanlock_conformance::{Declared, Need, Suite};
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;

const DOCUMENT: &str = "../../docs/conformance.md";

/// Adds the document's own tests.
pub fn register(suite: &mut Suite) {
    let locks = suite.locks().to_vec();
    let names = locks.iter().map(|lock| lock.name().to_owned()).collect();
    suite.also("document::tells_what_each_lock_lacks", move || {
        tells_what_each_lock_lacks(&locks)
    });
    suite.also("document::names_tests_that_exist", || {
        names_tests_that_exist(names)
    });
}

fn tells_what_each_lock_lacks(locks: &[Declared]) -> Result<(), Box<dyn Error>> {
    let table = lacks(locks);
    if fs::read_to_string(DOCUMENT)?.contains(&table) {
        return Ok(());
    }
    Err(format!("{DOCUMENT} should have this table:\n\n{table}").into())
}

/// The table of what each lock lacks.
fn lacks(locks: &[Declared]) -> String {
    let row = |lock: &Declared| {
        let lacking = Need::ALL.into_iter().filter(|&need| lock.lacks(need));
        let lacking: Vec<_> = lacking.map(|need| need.to_string()).collect();
        format!("| `{}` | {} |\n", lock.name(), lacking.join("; "))
    };
    let rows: String = locks.iter().map(row).collect();
    format!("| lock | lacks |\n|---|---|\n{rows}")
}

/// From the lacks on, the document names locks and tests.
fn names_tests_that_exist(mut existing: BTreeSet<String>) -> Result<(), Box<dyn Error>> {
    for sources in ["..", "../../platforms"] {
        collect_functions(Path::new(sources), &mut existing)?;
    }
    let text = fs::read_to_string(DOCUMENT)?;
    let (_, tables) = text
        .split_once("\n## What locks lack")
        .ok_or("no section on lacks")?;
    let named = tables.split('`').skip(1).step_by(2);
    let unknown: Vec<_> = named
        .filter_map(|name| name.rsplit("::").next())
        .filter(|name| !existing.contains(*name))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(format!("{DOCUMENT} names no tests: {unknown:?}").into())
}

fn collect_functions(folder: &Path, names: &mut BTreeSet<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_functions(&path, names)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path)?;
            names.extend(text.split("fn ").skip(1).filter_map(|rest| {
                let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric())?;
                Some(rest[..end].to_owned())
            }));
        }
    }
    Ok(())
}
