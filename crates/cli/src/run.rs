//! `spanlock run`.

use crate::Failure;
use crate::args::{Run, Underlying};
use clap::ValueEnum;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use tempfile::NamedTempFile;

mod program;
mod stats;

pub(crate) use program::Refused;

const LIBRARY: &str = "libspanlock_pthread.so";

pub(crate) fn run(args: Run) -> Result<ExitCode, Failure> {
    let (program, arguments) = args.program.split_first().expect("clap demands one");
    let path = program::find(program)?;
    program::check(&path)?;
    let mut command = Command::new(&path);
    command
        .args(arguments)
        .env("LD_PRELOAD", preload(library()?)?)
        .env("SPANLOCK_LOCK", name(args.lock));
    let statistics = if args.stats {
        let file = NamedTempFile::new()?;
        command.env("SPANLOCK_STATS", file.path());
        Some(file)
    } else {
        None
    };
    let cannot = |error| Refused::unfit(&path, error);
    // Before it starts, so that none is missed.
    let signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let mut child = command.spawn().map_err(cannot)?;
    pass_on(signals, &child);
    let status = child.wait()?;
    if let Some(file) = statistics {
        let text = std::fs::read_to_string(file.path())?;
        stats::print(&stats::read(&text), args.format)?;
    }
    Ok(code(status))
}

/// As the arguments have it, which is as the library has it.
fn name(lock: Underlying) -> String {
    let value = lock.to_possible_value();
    value.expect("none is skipped").get_name().to_owned()
}

/// Beside this program, or where cargo has put it.
fn library() -> Result<PathBuf, Refused> {
    let here = env::current_exe().unwrap_or_default();
    let places = [LIBRARY.into(), format!("deps/{LIBRARY}")];
    let found = places
        .iter()
        .map(|place| here.with_file_name(place))
        .find(|path| path.exists());
    found.ok_or_else(|| {
        Refused::no_library(format!(
            "{LIBRARY} is not beside {}: `cargo build --release` puts it there",
            here.display()
        ))
    })
}

/// What is preloaded already stays, after ours.
fn preload(library: PathBuf) -> Result<OsString, Refused> {
    // What the loader takes for the end of a name.
    let ends = |byte: &u8| b": ".contains(byte);
    if library.as_os_str().as_bytes().iter().any(ends) {
        return Err(Refused::no_library(format!(
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

/// Signals for this process are for the program. The terminal's go to both anyway.
fn pass_on(mut signals: Signals, child: &Child) {
    let child = Pid::from_child(child);
    thread::spawn(move || {
        for signal in &mut signals {
            let passed_on = match signal {
                SIGHUP => Signal::HUP,
                SIGTERM => Signal::TERM,
                _ => continue,
            };
            // It fails if the program is gone.
            let _ = kill_process(child, passed_on);
        }
    });
}

/// The program's own, or what shells say of a signal.
fn code(status: ExitStatus) -> ExitCode {
    let signal = || status.signal().map_or(1, |signal| 128 + signal);
    let code = status.code().unwrap_or_else(signal);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Program(refused)
    }
}

impl Refused {
    fn unfit(path: &std::path::Path, error: io::Error) -> Self {
        Self::cannot(path, &error.to_string())
    }
}
