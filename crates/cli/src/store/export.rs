//! From a store into a folder.

use super::{Copied, copy_bytes};
use crate::failure::{At, Result};
use spanlock_structures::store::{Ino, Kind, ROOT, Stat, Store};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Copies everything, with permissions, times and links. Owners become those of this process.
pub(super) fn export(store: &Store, folder: &Path) -> Result<Copied> {
    let mut copied = Copied::default();
    fs::create_dir(folder).at(folder)?;
    let mut several = HashMap::new();
    let mut waiting = vec![(folder.to_owned(), ROOT)];
    let mut directories = Vec::new();
    while let Some((folder, ino)) = waiting.pop() {
        let entries = store.entries(ino, b"").at(&folder)?;
        for entry in entries {
            let path = folder.join(OsStr::from_bytes(&entry.name));
            if let Some(first) = several.get(&entry.ino) {
                fs::hard_link(first, &path).at(&path)?;
                copied.others += 1;
                continue;
            }
            let stat = store.stat_of(entry.ino).at(&path)?;
            export_one(store, &path, &stat, &mut copied)?;
            match entry.kind {
                Kind::Directory => {
                    waiting.push((path.clone(), entry.ino));
                    directories.push((path, stat));
                }
                Kind::File if stat.links > 1 => drop(several.insert(entry.ino, path)),
                _ => {}
            }
        }
    }
    // At the end, and those inside first: what is copied into a directory changes its time, and it may be read-only.
    for (path, stat) in directories.iter().rev() {
        attributes(path, stat)?;
    }
    Ok(copied)
}

fn export_one(store: &Store, path: &Path, stat: &Stat, copied: &mut Copied) -> Result {
    match stat.kind {
        Kind::Directory => {
            fs::create_dir(path).at(path)?;
            copied.directories += 1;
        }
        Kind::File => {
            copy(store, path, stat.ino)?;
            attributes(path, stat)?;
            copied.files += 1;
            copied.bytes += stat.size;
        }
        Kind::Symlink => {
            let target = store.target(stat.ino).at(path)?;
            symlink(OsStr::from_bytes(&target), path).at(path)?;
            copied.others += 1;
        }
        Kind::Special => copied
            .left_out
            .push(format!("{}: a pipe, socket or device", path.display())),
    }
    Ok(())
}

fn copy(store: &Store, path: &Path, ino: Ino) -> Result {
    let from = store.open_node(ino).at(path)?;
    let to = fs::File::create_new(path).at(path)?;
    let read = |into: &mut [u8], at| from.read_at(into, at);
    let write = |data: &[u8], at| to.write_all_at(data, at);
    let done = copy_bytes(path, read, write)?;
    to.set_len(done).at(path)
}

fn attributes(path: &Path, stat: &Stat) -> Result {
    let permissions = fs::Permissions::from_mode(stat.attributes.mode & 0o7777);
    let times = |time: i64| match u64::try_from(time) {
        Ok(after) => UNIX_EPOCH + Duration::from_nanos(after),
        Err(_) => UNIX_EPOCH - Duration::from_nanos(time.unsigned_abs()),
    };
    let set = fs::FileTimes::new()
        .set_modified(times(stat.attributes.modified))
        .set_accessed(times(stat.attributes.accessed));
    let opened = fs::File::open(path).and_then(|file| file.set_times(set));
    opened
        .and_then(|()| fs::set_permissions(path, permissions))
        .at(path)
}
