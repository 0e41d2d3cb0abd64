//! A program started with the preload library.

use super::{Run, Underlying, program, stats};
use crate::failure::{Failure, Result};
use clap::ValueEnum;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode};

const LIBRARY: &str = "libspanlock_pthread.so";

pub(super) fn run(args: Run) -> Result<ExitCode> {
    let (program, arguments) = args.program.split_first().expect("clap demands one");
    let path = program::find(program)?;
    program::check(&path)?;
    let mut command = Command::new(&path);
    command
        .arg0(program)
        .args(arguments)
        .env("LD_PRELOAD", preload(library()?)?)
        .env("SPANLOCK_LOCK", name(args.lock));
    let cannot = |error: io::Error| program::cannot_run(&path, &error);
    if !args.stats {
        // Nothing is left to do when the program ends, so it takes this process's place.
        return Err(cannot(command.exec()));
    }
    let mut statistics = Statistics::new()?;
    command.env("SPANLOCK_STATS", statistics.path());
    let (process, status) = spanlock_child::wait_for(command, Vec::new).map_err(cannot)?;
    stats::print(&statistics.read()?, args.format, process, status)?;
    Ok(spanlock_child::code(status))
}

/// Where the library writes: memory that has no name in any folder, and is gone when this process is.
struct Statistics(File);

impl Statistics {
    fn new() -> io::Result<Self> {
        let create = |flags| memfd_create(c"spanlock-statistics", MemfdFlags::CLOEXEC | flags);
        let memory = match create(MemfdFlags::NOEXEC_SEAL) {
            // The kernel is older than 6.3.
            Err(Errno::INVAL) => create(MemfdFlags::empty()),
            memory => memory,
        };
        Ok(Self(memory?.into()))
    }

    /// A name by which other processes can open it, while this one lives.
    fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd()).into()
    }

    fn read(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.0.rewind()?;
        self.0.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// As the arguments have it, which is as the library has it.
fn name(lock: Underlying) -> String {
    let value = lock.to_possible_value();
    value.expect("none is skipped").get_name().to_owned()
}

/// Where cargo puts it, be it built for itself or for a test; beside this program; or where `scripts/install` puts it.
fn library() -> Result<PathBuf> {
    let here = env::current_exe().unwrap_or_default();
    let folder = here.parent().unwrap_or(Path::new(""));
    let above = folder.parent().unwrap_or(folder);
    let places = [folder.join("deps"), folder.to_owned(), above.join("lib")];
    let found = places
        .iter()
        .map(|place| place.join(LIBRARY))
        .find(|path| path.exists());
    found.ok_or_else(|| {
        Failure::cannot_preload(format!(
            "{LIBRARY} is neither in {} nor in {}: `scripts/install PREFIX`, in Spanlock's sources, installs this \
             program and the library together, which `cargo install` does not",
            folder.display(),
            above.join("lib").display()
        ))
    })
}

/// Other preloaded libraries stay, after ours.
fn preload(library: PathBuf) -> Result<OsString> {
    // What the loader takes for the end of a name.
    let ends = |byte: &u8| b": ".contains(byte);
    if library.as_os_str().as_bytes().iter().any(ends) {
        return Err(Failure::cannot_preload(format!(
            "{} has a blank or a colon in its path, which the loader does not take",
            library.display()
        )));
    }
    let mut preload = library.into_os_string();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(OsStr::new(":"));
        preload.push(others);
    }
    Ok(preload)
}
