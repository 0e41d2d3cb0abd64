//! `spanlock store ls` and `cat`: what is in a store, without copying all of it.

use super::copy_bytes_whole;
use crate::failure::{At, Result};
use spanlock_structures::store::{Ino, Kind, ROOT, Store};
use std::fmt::Write;
use std::io::{self, Write as _};
use std::path::Path;

/// One line for each name in a directory, or for the file: kind, permissions, size and name.
pub(super) fn list(store: &Store, path: &Path) -> Result<String> {
    let stat = store.stat(path).at(path)?;
    let mut named = match stat.kind {
        Kind::Directory => {
            let entries = store.entries(stat.ino, b"").at(path)?;
            let named = entries.into_iter();
            named.map(|entry| (entry.name, entry.ino)).collect()
        }
        _ => vec![(path.as_os_str().as_encoded_bytes().to_vec(), stat.ino)],
    };
    named.sort();
    let mut lines = String::new();
    for (name, ino) in named {
        let stat = store.stat_of(ino).at(path)?;
        let name = String::from_utf8_lossy(&name);
        let (kind, permissions) = (kind(stat.kind), stat.attributes.mode & 0o7777);
        let size = stat.size;
        let _ = write!(lines, "{kind} {permissions:04o} {size:>12} {name}");
        if stat.kind == Kind::Symlink {
            let target = store.target(ino).at(path)?;
            let _ = write!(lines, " -> {}", String::from_utf8_lossy(&target));
        }
        lines.push('\n');
    }
    Ok(lines)
}

fn kind(kind: Kind) -> char {
    match kind {
        Kind::Directory => 'd',
        Kind::File => '-',
        Kind::Symlink => 'l',
        Kind::Special => 's',
    }
}

/// Writes a file's content to the standard output.
pub(super) fn cat(store: &Store, path: &Path) -> Result {
    let file = store.open_file(path).at(path)?;
    let mut out = io::stdout().lock();
    copy_bytes_whole(
        |into, at| file.read_at(into, at).at(path),
        |data, _| Ok(out.write_all(data)?),
    )?;
    Ok(out.flush()?)
}

/// The directory of that path, or an error that names it.
pub(super) fn directory(store: &Store, path: &Path) -> Result<Ino> {
    if path.as_os_str().is_empty() {
        return Ok(ROOT);
    }
    let stat = store.stat(path).at(path)?;
    // Of what is no directory, the store says so.
    store.entries(stat.ino, b"").at(path)?;
    Ok(stat.ino)
}
