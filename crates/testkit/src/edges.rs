//! The names of protocol edges, and where comments cite them. Also part of build scripts.
//!
//! The code names an edge by `intact!("name")` or `order!("name", …)`. A comment cites an edge in brackets, as
//! `[name]`. The header of a module (lines that begin with `//!`) explains an edge in bold, as `**name**`.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The edges that the source files of a folder name, and those of the folders in it.
///
/// # Errors
/// When a file cannot be read.
pub fn named_in(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut edges = BTreeSet::new();
    for_each_file(folder, &mut |_, text| edges.append(&mut named(text)))?;
    Ok(edges)
}

/// The citations in the source files of a folder, and of the folders in it.
///
/// # Errors
/// When a file cannot be read.
pub fn cited_in(folder: &Path) -> io::Result<Vec<Citation>> {
    let mut all = Vec::new();
    for_each_file(folder, &mut |path, text| {
        let cited = citations(text);
        all.extend(cited.into_iter().map(|citation| Citation {
            file: path.to_owned(),
            ..citation
        }));
    })?;
    Ok(all)
}

fn for_each_file(folder: &Path, f: &mut impl FnMut(&Path, &str)) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            for_each_file(&path, f)?;
        } else {
            f(&path, &fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// The edges that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let openings = ["intact!(", "order!("];
    let arguments = openings
        .iter()
        .flat_map(|opening| text.split(opening).skip(1));
    let names = arguments.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    names.map(str::to_owned).collect()
}

/// How a comment cites an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `**name**` in the header of a module: the explanation.
    Explained,
    /// `[name]`: the code beside the comment is one end of the edge.
    Cited,
    /// `pairs with [name]`: the code beside the comment is the other end.
    Paired,
}

/// A place where a comment cites an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The source file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// What is cited.
    pub name: String,
    /// How.
    pub form: Form,
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.name)
    }
}

/// The citations in the comments of a text, whose file has no name.
#[must_use]
pub fn citations(text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut cite = |name: &str, form| {
            let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
            if !name.is_empty() && name.chars().all(is_name) {
                let (file, line, name) = (PathBuf::new(), at + 1, name.to_owned());
                #[rustfmt::skip]
                found.push(Citation { file, line, name, form });
            }
        };
        let Some((code, comment)) = line.split_once("//") else {
            continue;
        };
        if let Some(header) = comment.strip_prefix('!') {
            let bold = header.split("**").skip(1).step_by(2);
            let names = bold.flat_map(|bold| bold.split(" / "));
            names.for_each(|name| cite(name, Form::Explained));
        }
        if code.contains('"') || comment.starts_with('!') {
            continue;
        }
        let mut before = "";
        for piece in comment.split('[') {
            if let Some((name, after)) = piece.split_once(']')
                && !after.starts_with(['(', '['])
            {
                let pairs = before.trim_end().ends_with("pairs with");
                cite(name, if pairs { Form::Paired } else { Form::Cited });
            }
            before = piece;
        }
    }
    found
}

/// The faults of citations, where these edges have mutants: citations of other names, edges that no header explains,
/// and edges that no comment beside code cites.
#[must_use]
pub fn faults(citations: &[Citation], edges: &[&str]) -> Vec<String> {
    let is_edge = |citation: &&Citation| edges.contains(&&*citation.name);
    let unknown = citations.iter().filter(|citation| !is_edge(citation));
    let unknown = unknown.map(|citation| format!("{citation} is no edge"));
    let has = |form, edge| {
        let mut all = citations.iter();
        all.any(|citation| citation.form == form && citation.name == edge)
    };
    let unexplained = edges.iter().filter(|edge| !has(Form::Explained, **edge));
    let unexplained = unexplained.map(|edge| format!("no header explains {edge}"));
    let uncited = edges.iter().filter(|edge| !has(Form::Cited, **edge));
    let uncited = uncited.map(|edge| format!("no comment beside code cites {edge}"));
    unknown.chain(unexplained).chain(uncited).collect()
}

#[cfg(test)]
mod tests {
    use super::{Form, citations, faults, named};

    #[test]
    fn edges_are_named_by_two_macros() {
        let text = r#"if prim::intact!("roll-back") { x.load(prim::order!(
            "acquire", Acquire)) } // intact! and order! are macros"#;
        assert!(named(text).iter().eq(["acquire", "roll-back"]));
    }

    #[test]
    fn comments_cite_in_brackets_and_headers_explain_in_bold() {
        let text = "//! - **leave** / **await**: both fence, *so* one sees the other, see [`Vec`].\n\
            let slice = &all[first];\n\
            // [leave] Release: pairs with [await], as [this](page) says.\n\
            x.store(1); // [wake]";
        let found = citations(text);
        let found: Vec<_> = found.iter().map(|c| (c.line, &*c.name, c.form)).collect();
        let expected = [
            (1, "leave", Form::Explained),
            (1, "await", Form::Explained),
            (3, "leave", Form::Cited),
            (3, "await", Form::Paired),
            (4, "wake", Form::Cited),
        ];
        assert_eq!(found, expected);
    }

    const HEADER: &str = "//! - **await** / **leave**: both fence.\n";

    #[test]
    fn a_made_up_citation_is_found() {
        let edges = ["await", "leave"];
        let right = format!("{HEADER}// [leave] Release: pairs with [await].\n// [await]");
        assert_eq!(faults(&citations(&right), &edges), Vec::<String>::new());
        let made_up = format!("{right}\n// [leaves]");
        assert_eq!(
            faults(&citations(&made_up), &edges),
            [":4: leaves is no edge"]
        );
    }

    #[test]
    fn an_edge_that_is_cited_at_one_end_only_is_found() {
        let edges = ["await", "leave"];
        let one_end = format!("{HEADER}// [leave] Release: pairs with [await].");
        let found = faults(&citations(&one_end), &edges);
        assert_eq!(found, ["no comment beside code cites await"]);
        let found = faults(&citations("// [await]\n// [leave]"), &edges);
        assert_eq!(
            found,
            ["no header explains await", "no header explains leave"]
        );
    }
}
