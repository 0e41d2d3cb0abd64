//! Rules that hold for all sources and documents of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folders of packages.
const SOURCES: [&str; 4] = ["crates", "leases", "platforms", "vendor"];

/// The text files with this extension in a folder, and in the folders in it. Links to files are left out, as is what
/// cargo has built.
fn files(folder: &Path, extension: &str, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let entry = entry.expect("it can be listed");
        let (path, kind) = (entry.path(), entry.file_type().expect("it has a type"));
        if kind.is_dir() && !path.ends_with("target") {
            files(&path, extension, found);
        } else if kind.is_file() && path.extension().is_some_and(|found| found == extension) {
            let text = fs::read_to_string(&path).expect("a text file");
            found.push((path, text));
        }
    }
}

fn documents() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&root().join("docs"), "md", &mut found);
    files(&root().join("leases/docs"), "md", &mut found);
    let readme = root().join("README.md");
    let text = fs::read_to_string(&readme).expect("it is there");
    found.push((readme, text));
    found
}

/// The most columns of a line.
const COLUMNS: usize = 120;

/// Whether a line may be longer: a row of a table, or a link or text in quotes, which has no place to break.
fn may_be_long(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!']);
    text.trim_start().starts_with('|') || line.contains("https://") || line.contains('"')
}

fn long_lines(path: &Path, text: &str) -> Vec<String> {
    let lines = (1..).zip(text.lines());
    let long = lines.filter(|(_, line)| line.chars().count() > COLUMNS && !may_be_long(line));
    long.map(|(at, _)| format!("{}:{at}", path.display()))
        .collect()
}

/// Packages that keep marks in addresses, or allocate memory themselves.
const ON_THE_EXACT_ALLOCATOR: [&str; 2] = ["spanlock", "structures"];

/// A test that ran on another allocator would not notice that memory is aligned less than it needs.
#[test]
fn their_tests_run_on_the_exact_allocator() {
    for package in ON_THE_EXACT_ALLOCATOR {
        let folder = root().join("crates").join(package).join("tests");
        let mut all = Vec::new();
        files(&folder, "rs", &mut all);
        let is_root = |path: &Path| path.parent() == Some(&folder) || path.ends_with("main.rs");
        all.retain(|(path, _)| is_root(path));
        assert!(!all.is_empty(), "{package} has no tests");
        for (path, text) in all {
            let has = text.contains("#[global_allocator]") && text.contains("exact::Exact");
            assert!(has, "{} is without it", path.display());
        }
    }
}

#[test]
fn lines_fit() {
    let mut all = documents();
    for folder in SOURCES {
        files(&root().join(folder), "rs", &mut all);
    }
    assert!(all.len() > 200, "the sources were not found");
    let long: Vec<_> = all
        .iter()
        .flat_map(|(path, text)| long_lines(path, text))
        .collect();
    assert!(
        long.is_empty(),
        "more than {COLUMNS} columns:\n{}",
        long.join("\n")
    );
}

#[test]
fn a_long_line_is_found_and_a_row_of_a_table_is_not() {
    let (wide, fits) = ("x".repeat(COLUMNS + 1), "é".repeat(COLUMNS));
    let text = format!("{fits}\n{wide}\n|{wide}\n//! |{wide}\n// {wide}");
    assert_eq!(long_lines(Path::new("a.rs"), &text), ["a.rs:2", "a.rs:5"]);
}

/// A document with an example that nothing compiles would go out of date.
#[test]
fn every_document_with_an_example_is_a_doctest() {
    let named = root().join("crates/testkit/src/documents.rs");
    let named = fs::read_to_string(named).expect("it is there");
    let mut examples = 0;
    for (path, text) in documents() {
        if text
            .lines()
            .any(|line| line.trim_start().starts_with("```rust"))
        {
            let file = path.file_name().expect("a file").to_string_lossy();
            assert!(
                named.contains(&format!("{file}\"")),
                "{file} is not in documents.rs"
            );
            examples += 1;
        }
    }
    assert!(examples > 0);
}

/// The pictures of a document that show a path through the files: their lines name a file, and what is called there.
fn paths(document: &str) -> impl Iterator<Item = &str> {
    let pictures = document.split("```").skip(1).step_by(2);
    pictures.filter(|picture| picture.contains(".rs ") && picture.contains("()"))
}

/// A path through the files is of no use if a function on it has another name by now.
#[test]
fn functions_on_the_paths_of_documents_exist() {
    let mut sources = Vec::new();
    for folder in SOURCES {
        files(&root().join(folder), "rs", &mut sources);
    }
    let documents = documents();
    let pictures = documents.iter().flat_map(|(_, text)| paths(text));
    let calls: Vec<&str> = pictures
        .flat_map(|picture| {
            let mut calls: Vec<&str> = picture.split("()").collect();
            calls.pop();
            calls
        })
        .collect();
    assert!(calls.len() > 5, "the paths were not found");
    for call in calls {
        let letters = |c: char| c.is_alphanumeric() || c == '_';
        let name = &call[call.trim_end_matches(letters).len()..];
        let definition = format!("fn {name}");
        let defines = |(_, source): &&(PathBuf, String)| {
            let mut after = source.split(&definition).skip(1);
            after.any(|rest| rest.starts_with(['(', '<']))
        };
        assert!(
            sources.iter().any(|all| defines(&all)),
            "there is no function {name}"
        );
    }
}
