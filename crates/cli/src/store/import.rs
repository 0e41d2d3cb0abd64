//! From a folder into a store.

use super::look::directory;
use super::{Copied, copy_bytes};
use crate::failure::{At, Failure, Result};
use crate::progress::Progress;
use spanlock_structures::store::{Error, Ino, Kind, NewNode, Store};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Copies what is in a folder into a directory of the store, with permissions, owners, times, links and holes. What was
/// copied before a failure stays, and the failure says how much that is.
pub(super) fn import(store: &Store, folder: &Path, to: &Path) -> Result<Copied> {
    let mut copied = Copied::default();
    let progress = Progress::new(0);
    let done = import_all(store, folder, to, &mut copied, &progress);
    drop(progress);
    match done {
        Ok(()) => Ok(copied),
        Err(Failure::Input(why)) if copied.directories + copied.files + copied.others > 0 => {
            Err(Failure::Input(format!(
                "{why}. What was copied stays, the file named in part: {copied}"
            )))
        }
        Err(failure) => Err(failure),
    }
}

fn import_all(
    store: &Store,
    folder: &Path,
    to: &Path,
    copied: &mut Copied,
    progress: &Progress,
) -> Result {
    // Files with several names, by device and number.
    let mut several = HashMap::new();
    let mut waiting = vec![(folder.to_owned(), directory(store, to)?)];
    let mut times = Vec::new();
    while let Some((folder, parent)) = waiting.pop() {
        let entries = fs::read_dir(&folder).at(&folder)?;
        for entry in entries {
            let path = entry.at(&folder)?.path();
            progress.more(path.display());
            let metadata = fs::symlink_metadata(&path).at(&path)?;
            let key = (metadata.dev(), metadata.ino());
            if let Some(&ino) = several.get(&key) {
                let name = name(&path);
                store.link_node(ino, parent, name).at(&path)?;
                copied.others += 1;
                continue;
            }
            let ino = import_one(store, &path, &metadata, parent, copied)?;
            if metadata.is_dir() {
                waiting.push((path.clone(), ino));
            } else if metadata.nlink() > 1 {
                several.insert(key, ino);
            }
            times.push((ino, path, metadata));
        }
    }
    // At the end: what is copied into a directory changes its time.
    for (ino, path, metadata) in times {
        let set = store.set_attributes(ino, |set| {
            set.modified = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
            set.accessed = nanoseconds(metadata.atime(), metadata.atime_nsec());
        });
        set.at(&path)?;
    }
    Ok(())
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

fn name(path: &Path) -> &[u8] {
    path.file_name().map_or(b"", OsStrExt::as_bytes)
}

fn import_one(
    store: &Store,
    path: &Path,
    metadata: &Metadata,
    parent: Ino,
    copied: &mut Copied,
) -> Result<Ino> {
    let kind = match metadata.file_type() {
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_file() => Kind::File,
        kind if kind.is_symlink() => Kind::Symlink,
        _ => Kind::Special,
    };
    let target = match kind {
        Kind::Symlink => fs::read_link(path).at(path)?,
        _ => PathBuf::new(),
    };
    let mode = match kind {
        Kind::Special => metadata.mode(),
        _ => metadata.mode() & 0o7777,
    };
    let node = NewNode {
        kind,
        mode,
        uid: metadata.uid(),
        gid: metadata.gid(),
        device: u32::try_from(metadata.rdev()).unwrap_or_default(),
        target: target.as_os_str().as_bytes().to_vec(),
    };
    let made = store.make_node(parent, name(path), node);
    let ino = match made {
        // The store's name, and not the file that is copied.
        Err(Error::Exists) => {
            let what = format!("{}: the store has that name already", path.display());
            return Err(Failure::Input(what));
        }
        made => made.at(path)?.ino,
    };
    match kind {
        Kind::Directory => copied.directories += 1,
        Kind::File => {
            copied.bytes += copy(store, path, ino)?;
            copied.files += 1;
        }
        Kind::Symlink | Kind::Special => copied.others += 1,
    }
    Ok(ino)
}

fn copy(store: &Store, path: &Path, ino: Ino) -> Result<u64> {
    let from = fs::File::open(path).at(path)?;
    let to = store.open_node(ino).at(path)?;
    let read = |into: &mut [u8], at| from.read_at(into, at);
    let write = |data: &[u8], at| to.write_at(data, at).map(drop);
    let done = copy_bytes(path, read, write)?;
    to.truncate(done).at(path)?;
    Ok(done)
}
