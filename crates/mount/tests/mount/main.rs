//! A mounted store, used by system calls. Where nothing can be mounted, each test prints why and passes.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
mod files;
mod locks;
mod threads;

use common::{SERVERS, on_mount, open, paths};
use spanlock_mount::{Error, Mounted, detach, what_is_missing};
use spanlock_structures::store::{Geometry, Mapped, check, make};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

#[test]
fn a_mount_that_is_refused_leaves_a_closed_store() {
    let (_folder, path, mount) = paths();
    make(
        &Mapped::create(&path, 1 << 20).expect("room"),
        &Geometry::default(),
    )
    .expect("it fits");
    let refused = Mounted::new(open(&path), "", &mount.join("nothing"), SERVERS);
    match (refused, what_is_missing()) {
        (Err(Error::Missing(what)), Some(missing)) => assert_eq!(what, missing),
        (Err(Error::Mount(error)), None) => assert_eq!(error.kind(), ErrorKind::NotFound),
        (other, _) => panic!("{other:?}"),
    }
    let report = check(&Mapped::open_read_only(&path).expect("closed")).expect("a store");
    assert!(report.closed);
    assert!(detach(&mount).is_err(), "nothing is mounted there");
}

#[test]
fn the_table_of_mounts_names_the_store() {
    let listed = |mount: &Path| {
        let table = fs::read_to_string("/proc/self/mounts").expect("a table");
        // The kernel writes a space as its octal number.
        let line = format!(
            "{} {} fuse",
            "a store_ _ and a comma".replace(' ', "\\040"),
            mount.display()
        );
        assert!(table.contains(&line), "{line:?} is not in\n{table}");
    };
    on_mount(1 << 20, listed, |_| ());
}
