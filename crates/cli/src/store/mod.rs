//! `spanlock store`.

mod cost;
mod export;
mod import;
mod look;
mod mount;

use crate::failure::{At, Failure, Result};
use crate::output::print;
use clap::{Args, Subcommand};
use spanlock_structures::store::{
    Error, Geometry, Mapped, Options, PAGE, Report, Store, check, inspect, make,
};
use std::fmt::Display;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Make an empty store in a new file.
    Make {
        /// The file.
        path: PathBuf,
        /// Its size, in bytes or with one of K, M, G, T.
        #[arg(long, value_parser = size)]
        size: u64,
        /// How many files and directories it has room for, at least. By default, one for each four pages.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        inodes: Option<u64>,
    },
    /// Read all of a store, and name everything that is wrong with it. Changes nothing.
    ///
    /// The exit code is 1 if there is damage. What a crash explains is not damage: the next opening drops it, and says
    /// so again.
    Check {
        /// The file or device.
        path: PathBuf,
    },
    /// Show what a store contains, and what does not fit, without reading all data.
    Info {
        /// The file or device.
        path: PathBuf,
    },
    /// Measure the memory that a store needs, and the time to open it after a crash.
    Cost {
        /// A new file for the store, which is removed at the end.
        path: PathBuf,
        /// Bytes of data in the store, or with one of K, M, G, T.
        #[arg(long, value_parser = size, default_value = "256M")]
        size: u64,
    },
    /// List a directory of a store: kind, permissions, size and name.
    Ls {
        /// The file or device.
        path: PathBuf,
        /// The directory, or a file.
        #[arg(default_value = "/")]
        directory: PathBuf,
    },
    /// Write a file of a store to the standard output.
    Cat {
        /// The file or device.
        path: PathBuf,
        /// The file in the store.
        file: PathBuf,
    },
    /// Copy the content of a folder into a store.
    ///
    /// The folder itself is not copied, as by `rsync FOLDER/`. If that fails, because the store is full for instance,
    /// what was copied by then stays.
    Import {
        /// The file or device.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
        /// A directory of the store that gets the content.
        #[arg(long, value_name = "DIRECTORY", default_value = "/")]
        to: PathBuf,
    },
    /// Copy the content of a store into a new folder.
    Export {
        /// The file or device.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// Mount a store on a folder until the folder is unmounted, or a signal ends this command.
    ///
    /// A signal (Ctrl-C, SIGTERM, SIGHUP) unmounts the folder. The command ends when nobody has a file open there any
    /// more, and closes the store. A second signal ends it at once; the next opening then recovers the store.
    Mount(mount::Arguments),
}

/// A number of bytes.
fn size(text: &str) -> std::result::Result<u64, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("expected a number of bytes, or one with K, M, G or T".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|error| format!("{error}"))?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "too large".to_owned())
}

pub(crate) fn run(command: &Command) -> Result {
    match &command.what {
        What::Make { path, size, inodes } => {
            let geometry = Geometry {
                inodes: *inodes,
                id: None,
            };
            make_file(path, *size, &geometry).at(path)
        }
        What::Check { path } => run_check(path),
        What::Info { path } => {
            let medium = look(path)?;
            let report = inspect(&medium).at(path)?;
            print(&(list(&report) + &describe(&report)))
        }
        What::Cost { path, size } => {
            if *size < 1 << 20 {
                let what = format!("--size {size}: expected 1M or more");
                return Err(Failure::Arguments(what));
            }
            print(&cost::measure(path, *size)?.to_string())
        }
        What::Ls { path, directory } => {
            let lines = with_store(path, |store| look::list(store, directory))?;
            print(&lines)
        }
        What::Cat { path, file } => with_store(path, |store| look::cat(store, file)),
        What::Import { path, folder, to } => {
            let copied = with_store(path, |store| import::import(store, folder, to))?;
            print(&format!("{copied}\n"))
        }
        What::Export { path, folder } => {
            let copied = with_store(path, |store| export::export(store, folder))?;
            print(&format!("{copied}\n"))
        }
        What::Mount(arguments) => mount::run(arguments),
    }
}

/// Does something with a store, and closes it, also where that failed.
fn with_store<R>(path: &Path, act: impl FnOnce(&Store) -> Result<R>) -> Result<R> {
    let store = open(path)?;
    let done = act(&store);
    let closed = store.close().at(path);
    done.and_then(|done| closed.map(|()| done))
}

/// Bytes that are copied at a time: as many as an entry of a log has room for, nearly.
const CHUNK: usize = 1 << 20;

/// Copies a file from its beginning until nothing more is read, and leaves out what is zero, which may be a hole.
/// Returns the number of bytes.
fn copy_bytes<R: Display, W: Display>(
    path: &Path,
    read: impl Fn(&mut [u8], u64) -> std::result::Result<usize, R>,
    write: impl Fn(&[u8], u64) -> std::result::Result<(), W>,
) -> Result<u64> {
    let write = |data: &[u8], at| match data.iter().any(|&byte| byte != 0) {
        true => write(data, at).at(path),
        false => Ok(()),
    };
    copy_bytes_whole(|into, at| read(into, at).at(path), write)
}

/// The same with what is zero.
fn copy_bytes_whole(
    read: impl Fn(&mut [u8], u64) -> Result<usize>,
    mut write: impl FnMut(&[u8], u64) -> Result,
) -> Result<u64> {
    let mut buffer = vec![0; CHUNK];
    let mut done = 0;
    loop {
        let length = read(&mut buffer, done)?;
        if length == 0 {
            return Ok(done);
        }
        write(&buffer[..length], done)?;
        done += length as u64;
    }
}

/// Makes a store in a new file. The file is gone again if there is no store in it.
fn make_file(
    path: &Path,
    size: u64,
    geometry: &Geometry,
) -> spanlock_structures::store::Result<()> {
    if size == 0 {
        return Err(Error::Invalid("a store of no bytes"));
    }
    let medium = Mapped::create(path, size)?;
    make(&medium, geometry).inspect_err(|_| {
        // If it cannot be removed, the error that there was says more.
        let _ = std::fs::remove_file(path);
    })
}

fn look(path: &Path) -> Result<Mapped> {
    Mapped::open_read_only(path).at(path)
}

/// Says on the standard error what was recovered, if the store was not closed.
fn open(path: &Path) -> Result<Store> {
    let opened = Mapped::open(path).and_then(|medium| Store::open(medium, Options::default()));
    let (store, recovered) = opened.at(path)?;
    if !recovered.closed {
        eprintln!("{}: {recovered}", path.display());
    }
    Ok(store)
}

fn run_check(path: &Path) -> Result {
    let medium = look(path)?;
    medium.read_through().at(path)?;
    let report = check(&medium).at(path)?;
    print(&(list(&report) + &describe(&report)))?;
    let damages = report.findings.iter().filter(|finding| finding.is_damage());
    match damages.count() {
        0 => Ok(()),
        1 => Err(Failure::check("1 place is damaged")),
        many => Err(Failure::check(format!("{many} places are damaged"))),
    }
}

/// Everything that does not fit, in lines.
fn list(report: &Report) -> String {
    let findings = report.findings.iter();
    findings.map(|finding| format!("{finding}\n")).collect()
}

fn describe(report: &Report) -> String {
    let state = match report.closed {
        true => "closed properly",
        false => "not closed: the next opening recovers it",
    };
    format!(
        "{state}\n{} files, {} directories, room for {}\n{} pages of {PAGE} bytes: {} of data, {} of logs\nopened {} times\n",
        report.files,
        report.directories,
        report.inodes,
        report.all_pages,
        report.pages,
        report.log_pages,
        report.openings
    )
}

/// What was copied.
#[derive(Debug, Default)]
struct Copied {
    directories: u64,
    files: u64,
    others: u64,
    bytes: u64,
    /// What could not be copied, and why.
    left_out: Vec<String>,
}

impl Display for Copied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for what in &self.left_out {
            writeln!(f, "left out: {what}")?;
        }
        let Self {
            directories,
            files,
            others,
            bytes,
            ..
        } = self;
        write!(
            f,
            "{directories} directories, {files} files of {bytes} bytes, {others} links and special files"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64M"), Ok(64 << 20));
        assert!(
            size("64m").is_err()
                && size("M").is_err()
                && size("99999999T").is_err()
                && size("").is_err()
        );
    }
}
