//! Mounting, serving, unmounting.

use crate::server::Server;
use fuser::{Config, Filesystem, MountOption, Session, SessionACL};
use rustix::fs::Access;
use rustix::mount::UnmountFlags;
use spanlock_structures::store::Store;
use std::env;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Why a store cannot be mounted, or was not closed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Something is missing on this machine: what, and how to get it.
    Missing(&'static str),
    /// The kernel or `fusermount3` refuses.
    Mount(io::Error),
    /// The store cannot be closed. The next opening recovers it.
    Store(spanlock_structures::store::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) => f.write_str(what),
            Self::Mount(error) => write!(f, "cannot mount: {error}"),
            Self::Store(error) => write!(f, "the store was not closed properly: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Missing(_) => None,
            Self::Mount(error) => Some(error),
            Self::Store(error) => Some(error),
        }
    }
}

/// What is missing on this machine for a mount, if anything, and how to get it.
#[must_use]
pub fn what_is_missing() -> Option<&'static str> {
    if !Path::new("/dev/fuse").exists() {
        return Some("there is no /dev/fuse: load the kernel's module with `modprobe fuse`");
    }
    if rustix::fs::access("/dev/fuse", Access::READ_OK | Access::WRITE_OK).is_err() {
        return Some(
            "this user may not open /dev/fuse: it is to be readable and writable for all (0666)",
        );
    }
    let is_there = |folder: &Path| folder.join("fusermount3").exists();
    let path = env::var_os("PATH").unwrap_or_default();
    if !is_root() && !env::split_paths(&path).any(|folder| is_there(&folder)) {
        return Some("there is no fusermount3: install Debian's package `fuse3`");
    }
    None
}

/// How a file system is mounted: its source and kind, as `mount` and `df` list them, and how many threads serve it.
pub(crate) fn configured(source: &str, kind: &str, threads: NonZeroUsize) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        // For `fusermount3`, a comma ends the source.
        MountOption::FSName(source.replace([',', '\\'], "_")),
        MountOption::Subtype(kind.to_owned()),
    ];
    if is_root() {
        config.mount_options.push(MountOption::DefaultPermissions);
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(threads.get());
    config.clone_fd = true; // Each thread then has a descriptor of its own, and they compete less.
    config
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A mounted store.
pub struct Mounted {
    session: Session<Server>,
    store: Arc<Store>,
}

impl Mounted {
    /// Mounts a store on a folder. `source` is what `mount` and `df` list as its source: the path of the store, say.
    /// They show `_` for a comma or a backslash. Each of the threads serves one request at a time.
    ///
    /// A mount of root's is for all users, and the kernel checks permissions. Another user's is for that user alone,
    /// who has all permissions.
    ///
    /// # Errors
    /// When something is missing, the folder is no directory, or the kernel refuses. The store is then closed.
    pub fn new(
        store: Store,
        source: &str,
        folder: &Path,
        threads: NonZeroUsize,
    ) -> Result<Self, Error> {
        let store = Arc::new(store);
        match Self::start(&store, source, folder, threads) {
            Ok(session) => Ok(Self { session, store }),
            Err(error) => {
                close(store)?;
                Err(error)
            }
        }
    }

    fn start(
        store: &Arc<Store>,
        source: &str,
        folder: &Path,
        threads: NonZeroUsize,
    ) -> Result<Session<Server>, Error> {
        if let Some(missing) = what_is_missing() {
            return Err(Error::Missing(missing));
        }
        let config = configured(source, "spanlock", threads);
        let server = Server::new(Arc::clone(store), threads).map_err(Error::Mount)?;
        let kernel = Arc::clone(&server.kernel);
        let session = Session::new(server, folder, &config).map_err(Error::Mount)?;
        kernel.get_or_init(|| session.notifier());
        Ok(session)
    }

    /// Serves until the folder is unmounted, and then closes the store.
    ///
    /// # Errors
    /// When the kernel's messages cannot be read any more, or the store cannot be closed. In both cases the next
    /// opening recovers it.
    pub fn serve(self) -> Result<(), Error> {
        let ended = run(self.session);
        close(self.store).and(ended)
    }
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounted").finish_non_exhaustive()
    }
}

/// Serves until the folder is unmounted.
pub(crate) fn run<F: Filesystem>(session: Session<F>) -> Result<(), Error> {
    match session.run() {
        // Linux says so to a thread that had just taken a request when the last file was closed.
        Err(why) if why.raw_os_error() == Some(libc::ECONNABORTED) => Ok(()),
        ended => ended.map_err(Error::Mount),
    }
}

fn close(store: Arc<Store>) -> Result<(), Error> {
    let store =
        Arc::into_inner(store).ok_or(Error::Store(spanlock_structures::store::Error::Busy))?;
    store.close().map_err(Error::Store)
}

/// Unmounts a folder. Who has files open there keeps them, and the server ends when the last is closed.
///
/// # Errors
/// When nothing is mounted there, or it is another user's.
pub fn detach(folder: &Path) -> io::Result<()> {
    if is_root() {
        return Ok(rustix::mount::unmount(folder, UnmountFlags::DETACH)?);
    }
    let mut command = Command::new("fusermount3");
    let output = command.args(["-u", "-z", "--"]).arg(folder).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}
