//! `spanlock store mount`.

#[cfg(not(feature = "fuse"))]
use crate::failure::At;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The file or device.
    path: PathBuf,
    /// An empty folder.
    folder: PathBuf,
    /// Threads that serve it. By default, as many as there are processors, and at least two.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
}

#[cfg(not(feature = "fuse"))]
pub(crate) fn run(arguments: &Arguments) -> crate::failure::Result {
    let Arguments { path, folder, .. } = arguments;
    Err(format!(
        "to mount it on {}, build this command with `cargo build --release --features fuse`, and install Debian's \
         package `fuse3`. `spanlock store export` copies its files",
        folder.display()
    ))
    .at(path)
}

#[cfg(feature = "fuse")]
pub(crate) use with_fuse::run;

#[cfg(feature = "fuse")]
mod with_fuse {
    use super::Arguments;
    use crate::failure::{At, Failure, Result};
    use crate::output::print;
    use crate::store::open;
    use spanlock_child::signals::{self, set_mask};
    use spanlock_mount::{Mounted, detach, what_is_missing};
    use std::num::NonZeroUsize;
    use std::path::{Path, PathBuf};
    use std::thread;

    /// What a terminal, a service manager and a person send to end a command.
    const ENDS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

    pub(crate) fn run(arguments: &Arguments) -> Result {
        let folder = mount_point(&arguments.folder)?;
        if let Some(missing) = what_is_missing() {
            return Err(Failure::Input(format!("FUSE: {missing}")));
        }
        // Before any thread starts, so that all have it.
        let ends = signals::set_of(&ENDS);
        set_mask(libc::SIG_BLOCK, &ends);
        let store = open(&arguments.path)?;
        let source = arguments.path.canonicalize().at(&arguments.path)?;
        let source = source.to_string_lossy();
        let mounted = Mounted::new(store, &source, &folder, threads(arguments));
        let mounted = mounted.at(&folder)?;
        print(&format!(
            "mounted on {}: unmount it, or press Ctrl-C, to end\n",
            folder.display()
        ))?;
        let named = thread::Builder::new().name("signals".to_owned());
        named.spawn(move || detach_at_a_signal(&ends, &folder))?;
        let served = mounted.serve();
        served.at(&arguments.path)
    }

    /// The folder. A mount whose server was killed is still there, and nothing can be mounted over it.
    fn mount_point(folder: &Path) -> Result<PathBuf> {
        match folder.metadata() {
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Err(format!(
                "a mount is still there whose server has ended: `fusermount3 -u {}` removes it",
                folder.display()
            ))
            .at(folder),
            Ok(metadata) if !metadata.is_dir() => Err("it is no folder").at(folder),
            _ => folder.canonicalize().at(folder),
        }
    }

    fn threads(arguments: &Arguments) -> NonZeroUsize {
        let two = NonZeroUsize::MIN.saturating_add(1);
        let processors = || thread::available_parallelism().unwrap_or(two).max(two);
        arguments.threads.unwrap_or_else(processors)
    }

    fn detach_at_a_signal(ends: &libc::sigset_t, folder: &Path) {
        signals::wait(ends);
        if let Err(error) = detach(folder) {
            eprintln!("cannot unmount {}: {error}", folder.display());
        }
        // The next one ends the process.
        set_mask(libc::SIG_UNBLOCK, ends);
        loop {
            thread::park();
        }
    }
}
