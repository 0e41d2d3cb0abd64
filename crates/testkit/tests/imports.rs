//! The library's modules import each other in one direction.
//!
//! A *part* is a folder or a file at the top of the library, and one of `range`. No file imports, by way of others, one
//! that imports it, if the two are of different parts. An import is a `use` that is not public; paths within code and
//! macros are not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The names in a path, such as `range`, `list`, `node`.
type Names = Vec<String>;

fn names(path: &str) -> Names {
    path.split("::")
        .map(|name| name.trim().to_owned())
        .collect()
}

/// The files of the library without their tests, by module.
fn modules(folder: &Path, module: &Names, found: &mut BTreeMap<Names, String>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let mut inner = module.clone();
        match &*name {
            "tests" => continue,
            "mod" | "lib" => {}
            _ => inner.push(name),
        }
        if path.is_dir() {
            modules(&path, &inner, found);
        } else {
            let text = fs::read_to_string(&path).expect("a text file");
            let text = text
                .split("\n#[cfg(test)]\nmod ")
                .next()
                .expect("at least one piece");
            found.insert(inner, text.to_owned());
        }
    }
}

/// The paths in a tree of imports, each with the name that it has here.
fn expand(prefix: &str, tree: &str, found: &mut Vec<(String, String)>) {
    let tree = tree.trim();
    let Some((path, inner)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let whole = format!("{prefix}{path}");
        let whole = whole.trim_end_matches("::self").to_owned();
        let last = whole.rsplit("::").next().unwrap_or_default();
        let name = if alias.is_empty() { last } else { alias }.to_owned();
        found.push((whole, name));
        return;
    };
    let prefix = format!("{prefix}{}", path.trim());
    let inner = inner.trim_end().trim_end_matches('}');
    let (mut depth, mut begin) = (0, 0);
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[begin..at].trim().is_empty() {
                    expand(&prefix, &inner[begin..at], found);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// What a module imports and what it passes on, as paths within the library, by the names that they have there.
fn imports(module: &Names, text: &str, all: &BTreeMap<Names, String>) -> [Vec<(Names, String)>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    for statement in code.split(';') {
        let statement = statement.rsplit("\n\n").next().expect("at least one piece");
        let statement = statement
            .rsplit(']')
            .next()
            .expect("at least one piece")
            .trim();
        let Some((before, tree)) = statement.split_once("use ") else {
            continue;
        };
        let is_passed_on = before.trim_start().starts_with("pub");
        let mut paths = Vec::new();
        expand("", tree, &mut paths);
        for (path, name) in paths {
            let mut path = names(&path);
            let mut whole = module.clone();
            match &*path[0] {
                "crate" => whole.clear(),
                "super" => {
                    while path[0] == "super" {
                        path.remove(0);
                        whole.pop();
                    }
                    path.insert(0, String::new());
                }
                "self" => {}
                _ => {
                    whole.push(path[0].clone());
                    if !all.contains_key(&whole) {
                        continue; // Another package.
                    }
                }
            }
            whole.extend(path.split_off(1));
            found[usize::from(is_passed_on)].push((whole, name));
        }
    }
    found
}

/// The file that defines what a path names.
fn definer(mut path: Names, passed_on: &BTreeMap<Names, Vec<(Names, String)>>) -> Names {
    loop {
        let is_module = |&len: &usize| passed_on.contains_key(&path[..len]);
        let len = (0..=path.len())
            .rev()
            .find(is_module)
            .expect("the root is one");
        let rest = path.split_off(len);
        let passed = &passed_on[&path];
        match rest
            .first()
            .and_then(|name| passed.iter().find(|(_, passed)| passed == name))
        {
            Some((whole, _)) if *whole != [&path[..], &rest[..1]].concat() => {
                path = [&whole[..], &rest[1..]].concat();
            }
            _ => return path,
        }
    }
}

fn part(module: &Names) -> &[String] {
    let len = if module.first().is_some_and(|first| first == "range") {
        2
    } else {
        1
    };
    &module[..len.min(module.len())]
}

#[test]
fn no_circle_leads_through_two_parts() {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spanlock/src");
    let mut all = BTreeMap::new();
    modules(&root, &Names::new(), &mut all);
    let each = all
        .iter()
        .map(|(module, text)| (module.clone(), imports(module, text, &all)));
    let each: BTreeMap<_, _> = each.collect();
    let passed_on = each
        .iter()
        .map(|(module, [_, passed])| (module.clone(), passed.clone()));
    let passed_on: BTreeMap<_, _> = passed_on.collect();
    let of = |(module, [used, _]): (&Names, &[Vec<(Names, String)>; 2])| {
        let files = used
            .iter()
            .map(|(path, _)| definer(path.clone(), &passed_on));
        let files: BTreeSet<Names> = files.filter(|file| file != module).collect();
        (module.clone(), files)
    };
    let graph: BTreeMap<Names, BTreeSet<Names>> = each.iter().map(of).collect();
    let arrows: usize = graph.values().map(BTreeSet::len).sum();
    assert!(arrows > 500, "the imports were not found: {arrows}");
    for (module, imported) in &graph {
        for first in imported.iter().filter(|first| part(first) != part(module)) {
            let (mut reached, mut ahead) = (BTreeSet::new(), vec![first]);
            while let Some(next) = ahead.pop() {
                assert!(
                    next != module,
                    "{} imports {}, which imports it, by way of {:?}",
                    module.join("::"),
                    first.join("::"),
                    reached
                        .iter()
                        .map(|names: &&Names| names.join("::"))
                        .collect::<Vec<_>>()
                );
                if reached.insert(next) {
                    ahead.extend(&graph[next]);
                }
            }
        }
    }
}
