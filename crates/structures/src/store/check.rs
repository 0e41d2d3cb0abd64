//! Checking a store: everything that is wrong with it, by name. It changes nothing.

use crate::store::error::Result;
use crate::store::finding::{Cause, Finding};
use crate::store::load::{self, Loaded};
use crate::store::medium::Medium;
use crate::store::tree::Kind;

/// What a check has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Everything that does not fit.
    pub findings: Vec<Finding>,
    /// Whether the store was closed properly.
    pub closed: bool,
    /// Files.
    pub files: u64,
    /// Directories, the root included.
    pub directories: u64,
    /// Pages of data.
    pub pages: u64,
    /// Pages of logs.
    pub log_pages: u64,
    /// Pages of the store.
    pub all_pages: u64,
    /// Files and directories that the store has room for.
    pub inodes: u64,
    /// The version of its format.
    pub version: u32,
    /// How often it was opened for writing.
    pub openings: u32,
    /// When it was made, in seconds since 1970.
    pub made: i64,
}

impl Report {
    /// Whether no damage was found.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(Finding::is_damage)
    }
}

/// Reads all of a store, data included, and reports everything that does not fit.
///
/// # Errors
/// When the medium contains no store of this version, or cannot be read. All other damage is in the report.
pub fn check(medium: &impl Medium) -> Result<Report> {
    let loaded = load::load(medium)?;
    let mut report = report(&loaded);
    let mut inodes: Vec<_> = loaded.files.iter().collect();
    inodes.sort_by_key(|(ino, _)| **ino);
    for (ino, file) in inodes {
        for (page, &item) in &file.state.pages {
            let what = match load::matches(medium, item) {
                Ok(true) => continue,
                Ok(false) => "does not match its checksum".to_owned(),
                Err(error) => error.to_string(),
            };
            let path = path_of(&loaded, *ino);
            report.findings.push(Finding {
                what: format!("{path}: page {page}: {what}"),
                cause: Cause::Damage,
            });
        }
    }
    Ok(report)
}

/// As [`check`], without reading data.
///
/// # Errors
/// As [`check`].
pub fn inspect(medium: &impl Medium) -> Result<Report> {
    load::load(medium).map(|loaded| report(&loaded))
}

fn report(loaded: &Loaded) -> Report {
    let nodes = loaded.tree.nodes.len() as u64;
    let directories = loaded
        .tree
        .nodes
        .values()
        .filter(|node| node.kind == Kind::Directory);
    let directories = directories.count() as u64;
    let logs = loaded
        .files
        .values()
        .flat_map(|file| std::iter::once(&file.log).chain(&file.branches));
    let pages = loaded
        .files
        .values()
        .map(|file| file.state.pages.len() as u64);
    Report {
        findings: loaded.findings.clone(),
        closed: loaded.superblock.is_clean(),
        files: nodes - directories,
        directories,
        pages: pages.sum(),
        log_pages: logs
            .chain([&loaded.tree_log])
            .map(|log| log.pages.len() as u64)
            .sum(),
        all_pages: loaded.superblock.blocks,
        inodes: loaded.superblock.inodes,
        version: loaded.superblock.version,
        openings: loaded.superblock.epoch,
        made: loaded.superblock.made,
    }
}

/// A path to a node, for people.
fn path_of(loaded: &Loaded, ino: u64) -> String {
    let nodes = &loaded.tree.nodes;
    let mut path = String::new();
    let mut below = ino;
    // The walk ends at the root, which is its own parent.
    loop {
        let named = nodes.iter().find_map(|(parent, node)| {
            let mut entries = node.entries.iter();
            let name = entries.find(|(_, ino)| **ino == below)?.0;
            Some((*parent, name))
        });
        let Some((parent, name)) = named else {
            return format!("{path} (inode {ino})");
        };
        path = format!("/{}{path}", String::from_utf8_lossy(name));
        below = parent;
    }
}
