//! Mounted stores, and `fcntl`.

use libc::c_int;
use rustix::mount::{MountFlags, UnmountFlags, unmount};
use spanlock_mount::{Error, Mounted, detach};
use spanlock_structures::store::{Geometry, Mapped, Options, Store, check, make};
use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use tempfile::TempDir;

/// Threads of the server: more than the processors of a small machine.
pub const SERVERS: NonZeroUsize = NonZeroUsize::new(4).expect("four");

/// A comma and a backslash would end a source.
const SOURCE: &str = "a store, \\ and a comma";

/// Unmounts also when a test fails.
struct Detached<'a>(&'a Path);

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        // If it is not mounted any more, there is nothing to do.
        let _ = detach(self.0);
    }
}

pub fn paths() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let [store, mount] = ["store", "mount"].map(|name| folder.path().join(name));
    fs::create_dir(&mount).expect("a folder");
    (folder, store, mount)
}

pub fn open(path: &Path) -> Store {
    let medium = Mapped::open(path).expect("it is there");
    Store::open(medium, Options::default())
        .expect("it is sound")
        .0
}

/// Whether the kernel certainly lets this process mount through FUSE: it mounts something else, and the device can be
/// opened. Who is not root needs a program that may, and whether that one does cannot be told.
fn may_mount(folder: &Path) -> bool {
    let device = File::options().read(true).write(true).open("/dev/fuse");
    let mounted = rustix::mount::mount("none", folder, "tmpfs", MountFlags::empty(), None);
    mounted.is_ok_and(|()| {
        unmount(folder, UnmountFlags::empty()).expect("it is mounted");
        device.is_ok()
    })
}

/// Mounts an empty store of so many bytes, and uses it. Returns what `then` makes of the store after it was closed;
/// `None` if nothing can be mounted here.
pub fn on_mount<T>(
    bytes: u64,
    test: impl FnOnce(&Path),
    then: impl FnOnce(&Store) -> T,
) -> Option<T> {
    let (_folder, path, mount) = paths();
    let medium = Mapped::create(&path, bytes).expect("room");
    make(&medium, &Geometry::default()).expect("it fits");
    drop(medium);
    let mounted = match Mounted::new(open(&path), SOURCE, &mount, SERVERS) {
        Ok(mounted) => mounted,
        Err(Error::Missing(what)) => {
            eprintln!("skipped: {what}");
            return None;
        }
        // Without permission the way to the error is as long as fuser's, and so is the list of its kinds.
        Err(Error::Mount(error)) if !may_mount(&mount) => {
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

/// `length` 0 reaches to the end, wherever that is.
pub fn flock(kind: c_int, (start, length): (i64, i64)) -> libc::flock {
    libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

pub fn fcntl(file: &File, command: c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the command takes a lock, which is live.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, lock) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
