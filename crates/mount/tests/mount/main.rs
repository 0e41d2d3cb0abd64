//! A mounted store, used by system calls. Where nothing can be mounted, each test prints why and passes.
#![cfg(target_os = "linux")]

mod files;
mod locks;
mod threads;

use spanlock_mount::{Error, Mounted, detach, what_is_missing};
use spanlock_structures::store::{Geometry, Mapped, Options, Store, check, make};
use std::fs;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use tempfile::TempDir;

/// Threads of the server: more than the processors of a small machine.
const SERVERS: NonZeroUsize = NonZeroUsize::new(4).expect("four");

/// Unmounts also when a test fails.
struct Detached<'a>(&'a Path);

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        // If it is not mounted any more, there is nothing to do.
        let _ = detach(self.0);
    }
}

fn paths() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let [store, mount] = ["store", "mount"].map(|name| folder.path().join(name));
    fs::create_dir(&mount).expect("a folder");
    (folder, store, mount)
}

fn open(path: &Path) -> Store {
    let medium = Mapped::open(path).expect("it is there");
    Store::open(medium, Options::default())
        .expect("it is sound")
        .0
}

/// Mounts an empty store of so many bytes, and uses it. Returns what `then` makes of the store after it was closed;
/// `None` if nothing can be mounted here.
fn on_mount<T>(bytes: u64, test: impl FnOnce(&Path), then: impl FnOnce(&Store) -> T) -> Option<T> {
    let (_folder, path, mount) = paths();
    let medium = Mapped::create(&path, bytes).expect("room");
    make(&medium, &Geometry::default()).expect("it fits");
    drop(medium);
    let mounted = match Mounted::new(open(&path), &mount, SERVERS) {
        Ok(mounted) => mounted,
        Err(Error::Missing(what)) => {
            eprintln!("skipped: {what}");
            return None;
        }
        Err(Error::Mount(error)) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("skipped: this process may not mount: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    thread::scope(|scope| {
        let server = scope.spawn(|| mounted.serve());
        {
            let _detached = Detached(&mount);
            test(&mount);
        }
        server.join().expect("no panic").expect("closed properly");
    });
    let report = check(&Mapped::open_read_only(&path).expect("closed")).expect("a store");
    assert!(report.closed && report.findings.is_empty(), "{report:?}");
    Some(then(&open(&path)))
}

#[test]
fn a_mount_that_is_refused_leaves_a_closed_store() {
    let (_folder, path, mount) = paths();
    make(
        &Mapped::create(&path, 1 << 20).expect("room"),
        &Geometry::default(),
    )
    .expect("it fits");
    let refused = Mounted::new(open(&path), &mount.join("nothing"), SERVERS);
    match (refused, what_is_missing()) {
        (Err(Error::Missing(what)), Some(missing)) => assert_eq!(what, missing),
        (Err(Error::Mount(error)), None) => assert_eq!(error.kind(), ErrorKind::NotFound),
        (other, _) => panic!("{other:?}"),
    }
    let report = check(&Mapped::open_read_only(&path).expect("closed")).expect("a store");
    assert!(report.closed);
    assert!(detach(&mount).is_err(), "nothing is mounted there");
}
