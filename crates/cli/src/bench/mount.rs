//! `spanlock bench mount`.

use crate::options::{number, seconds};
use clap::Args;
use spanlock_records::trial::setting::MAX_THREADS;
use spanlock_workbench::store::Kernel;
use std::path::PathBuf;
use std::time::Duration;

/// Writers of one file: in a mounted store, in a mount that passes everything on to tmpfs, on tmpfs, and in a folder.
#[derive(Args)]
pub(super) struct Mount {
    /// A folder on a file system to compare with, such as ext4's.
    #[arg(long, default_value = ".", value_name = "PATH")]
    folder: PathBuf,
    /// Threads or processes that use the file.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,4,8",
        value_name = "N,..."
    )]
    #[arg(value_parser = number(1..=MAX_THREADS))]
    threads: Vec<usize>,
    /// What threads do, as in `bench store`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "dwom,mix-1-3,random-write,overlap-mixed",
        value_name = "NAME,..."
    )]
    kernel: Vec<Kernel>,
    /// The length of each measurement of threads.
    #[arg(long, value_parser = seconds, default_value = "0.5")]
    seconds: Duration,
    /// Mebibytes that each process of `dd` writes.
    #[arg(long, value_parser = number(1..=1024), default_value = "32", value_name = "N")]
    dd: usize,
    /// Transactions of each process of `sqlite3`.
    #[arg(long, value_parser = number(1..=10_000), default_value = "50", value_name = "N")]
    sqlite: usize,
}

#[cfg(not(feature = "fuse"))]
pub(super) fn run(arguments: &Mount) -> crate::failure::Result {
    use crate::failure::At;
    let Mount { folder, .. } = arguments;
    Err("to mount a store, build this command with `cargo build --release --features fuse`")
        .at(folder)
}

#[cfg(feature = "fuse")]
pub(super) use with_fuse::run;

#[cfg(feature = "fuse")]
mod with_fuse {
    use super::Mount;
    use crate::failure::{At, Failure, Result};
    use crate::output::print;
    use rustix::fs::statfs;
    use spanlock_bench::store::in_folder;
    use spanlock_mount::{Mounted, Passthrough, detach, what_is_missing};
    use spanlock_records::trial::run::Schedule;
    use spanlock_structures::store::{Geometry, Mapped, Options, Store, make};
    use spanlock_workbench::store::{Load, Trial};
    use std::fmt::Write as _;
    use std::fs;
    use std::io::Write as _;
    use std::num::NonZeroUsize;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};
    use tempfile::TempDir;

    /// A file system in memory.
    const MEMORY: &str = "/dev/shm";

    /// Pages of each thread's region.
    const PAGES: usize = 256;

    /// Bytes of the store.
    const STORE: u64 = 1 << 30;

    /// Where files are.
    struct Place {
        name: String,
        folder: PathBuf,
        /// Ends when the folder is unmounted.
        server: Option<thread::JoinHandle<std::result::Result<(), spanlock_mount::Error>>>,
        _kept: Vec<TempDir>,
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let Some(server) = self.server.take() else {
                return;
            };
            let ended = match detach(&self.folder) {
                Ok(()) => server
                    .join()
                    .map(|ended| ended.err().map(|why| why.to_string())),
                Err(why) => Ok(Some(why.to_string())),
            };
            if let Ok(Some(why)) = ended {
                eprintln!("{}: {why}", self.name);
            }
        }
    }

    fn fresh(folder: &Path) -> Result<TempDir> {
        tempfile::tempdir_in(folder).at(folder)
    }

    fn mounted_store(threads: NonZeroUsize) -> Result<Place> {
        let (below, folder) = (fresh(Path::new(MEMORY))?, fresh(Path::new(MEMORY))?);
        let path = below.path().join("store");
        let medium = Mapped::create(&path, STORE).at(&path)?;
        make(&medium, &Geometry::default()).at(&path)?;
        let (store, _) = Store::open(medium, Options::default()).at(&path)?;
        let mounted = Mounted::new(store, "measured", folder.path(), threads);
        let mounted = mounted.at(folder.path())?;
        Ok(Place {
            name: "mounted store".to_owned(),
            folder: folder.path().to_owned(),
            server: Some(thread::spawn(move || mounted.serve())),
            _kept: vec![folder, below],
        })
    }

    fn passthrough(threads: NonZeroUsize) -> Result<Place> {
        let (below, folder) = (fresh(Path::new(MEMORY))?, fresh(Path::new(MEMORY))?);
        let mounted = Passthrough::new(below.path().to_owned(), folder.path(), threads);
        let mounted = mounted.at(folder.path())?;
        Ok(Place {
            name: "passthrough".to_owned(),
            folder: folder.path().to_owned(),
            server: Some(thread::spawn(move || mounted.serve())),
            _kept: vec![folder, below],
        })
    }

    fn plain(folder: &Path) -> Result<Place> {
        /// As `statfs(2)` has them.
        const KNOWN: [(u64, &str); 4] = [
            (0x0102_1994, "tmpfs"),
            (0xEF53, "ext4"),
            (0x5846_5342, "xfs"),
            (0x9123_683E, "btrfs"),
        ];
        let kind = statfs(folder)
            .map_err(std::io::Error::from)
            .at(folder)?
            .f_type as u64;
        let known = KNOWN.iter().find(|(number, _)| *number == kind);
        let own = fresh(folder)?;
        Ok(Place {
            name: known.map_or_else(|| folder.display().to_string(), |known| known.1.to_owned()),
            folder: own.path().to_owned(),
            server: None,
            _kept: vec![own],
        })
    }

    /// Processor time of this process and its children so far: in their own code, and in the kernel.
    fn processor_time() -> [Duration; 2] {
        let of = |who| {
            // SAFETY: `rusage` is plain data, for which all zeros is a valid value.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: the value is live, and the call writes no more.
            unsafe { libc::getrusage(who, &raw mut usage) };
            [usage.ru_utime, usage.ru_stime].map(|time| {
                let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
                let micros = u64::try_from(time.tv_usec).unwrap_or(0);
                Duration::from_secs(seconds) + Duration::from_micros(micros)
            })
        };
        let (own, children) = (of(libc::RUSAGE_SELF), of(libc::RUSAGE_CHILDREN));
        [own[0] + children[0], own[1] + children[1]]
    }

    /// What was done, how long it took, and which processor time.
    struct Done {
        operations: u64,
        elapsed: Duration,
        processor: [Duration; 2],
    }

    fn timed(
        work: impl FnOnce() -> std::result::Result<u64, String>,
    ) -> std::result::Result<Done, String> {
        let (begin, before) = (Instant::now(), processor_time());
        let operations = work()?;
        let (elapsed, after) = (begin.elapsed(), processor_time());
        let processor = [0, 1].map(|part| after[part].saturating_sub(before[part]));
        Ok(Done {
            operations,
            elapsed,
            processor,
        })
    }

    /// Runs so many processes, with a script on their standard input each, and waits for all.
    fn processes(
        command: impl Fn(usize) -> Command,
        script: &str,
        count: usize,
    ) -> std::result::Result<(), String> {
        let start = |number| {
            let mut command = command(number);
            let quiet = command
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut child = quiet.spawn()?;
            child
                .stdin
                .take()
                .expect("it is piped")
                .write_all(script.as_bytes())?;
            Ok(child)
        };
        let children: std::io::Result<Vec<_>> = (0..count).map(start).collect();
        for mut child in children.map_err(|why| why.to_string())? {
            match child.wait() {
                Ok(status) if status.success() => {}
                Ok(status) => return Err(status.to_string()),
                Err(why) => return Err(why.to_string()),
            }
        }
        Ok(())
    }

    fn dd(folder: &Path, count: usize, mebibytes: usize) -> std::result::Result<u64, String> {
        let file = folder.join("dd");
        fs::write(&file, b"").map_err(|why| why.to_string())?;
        let command = |number: usize| {
            let mut command = Command::new("dd");
            command.args(["if=/dev/zero", "bs=1M", "conv=notrunc"]);
            command.arg(format!("of={}", file.display()));
            command.arg(format!("count={mebibytes}"));
            command.arg(format!("seek={}", number * mebibytes));
            command
        };
        processes(command, "", count)?;
        let _ = fs::remove_file(&file);
        Ok((count * mebibytes) as u64)
    }

    fn sqlite(folder: &Path, count: usize, each: usize) -> std::result::Result<u64, String> {
        let file = folder.join("database");
        let command = |_| {
            let mut command = Command::new("sqlite3");
            command.arg("-bail").arg(&file);
            command
        };
        let patient = ".timeout 60000\n";
        processes(
            command,
            &format!("{patient}CREATE TABLE lines (number INTEGER, text TEXT);\n"),
            1,
        )?;
        let insert = "INSERT INTO lines VALUES (7, 'a line of a table');\n";
        processes(command, &(patient.to_owned() + &insert.repeat(each)), count)?;
        let _ = fs::remove_file(&file);
        Ok((count * each) as u64)
    }

    fn line(
        what: &str,
        threads: usize,
        place: &str,
        done: std::result::Result<Done, String>,
    ) -> String {
        let mut line = format!("{what:<14} {threads:>3}  {place:<14}");
        let Done {
            operations,
            elapsed,
            processor,
        } = match done {
            Ok(done) => done,
            Err(why) => return line + " " + &why + "\n",
        };
        let each = |time: Duration| time.as_secs_f64() * 1e6 / operations.max(1) as f64;
        let rate = operations as f64 / elapsed.as_secs_f64();
        let [user, system] = processor.map(each);
        let all = each(elapsed) * threads as f64;
        let waits = (all - user - system).max(0.0);
        let _ = writeln!(
            line,
            " {rate:>10.0} {all:>9.1} {user:>9.1} {system:>9.1} {waits:>9.1}"
        );
        line
    }

    pub(in super::super) fn run(arguments: &Mount) -> Result {
        if let Some(missing) = what_is_missing() {
            return Err(Failure::Input(format!("FUSE: {missing}")));
        }
        print(
            "microseconds of an operation: all, in programs and servers, in the kernel, and neither.\n\
             An operation is a page of a file, a mebibyte of dd, or a transaction of sqlite3.\n\n\
             what           by   where             a second       all   program    kernel     waits\n",
        )?;
        let most = arguments.threads.iter().max().copied().unwrap_or(1).max(2);
        let servers = NonZeroUsize::new(most).expect("at least two");
        let has = |program: &str| {
            Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .status()
                .is_ok()
        };
        let skipped: Vec<_> = ["dd", "sqlite3"]
            .into_iter()
            .filter(|name| !has(name))
            .collect();
        let places: [&dyn Fn() -> Result<Place>; 4] = [
            &|| mounted_store(servers),
            &|| passthrough(servers),
            &|| plain(Path::new(MEMORY)),
            &|| plain(&arguments.folder),
        ];
        for place in places {
            let place = place()?;
            for &threads in &arguments.threads {
                for &kernel in &arguments.kernel {
                    let schedule = Schedule::even(arguments.seconds);
                    let load = Load {
                        kernel,
                        pages: PAGES,
                    };
                    let trial = Trial {
                        load,
                        threads,
                        schedule,
                        events: &[],
                        seed: 1,
                        repeat: 0,
                    };
                    let done = timed(|| {
                        let outcome = in_folder(&place.folder, &trial)?;
                        // Of the whole time the second half counts, as for the processor time.
                        Ok(outcome.work.ops.iter().sum::<u64>() * 2)
                    });
                    print(&line(&kernel.to_string(), threads, &place.name, done))?;
                }
                if !skipped.contains(&"dd") {
                    let done = timed(|| dd(&place.folder, threads, arguments.dd));
                    print(&line("dd", threads, &place.name, done))?;
                }
                if !skipped.contains(&"sqlite3") {
                    let done = timed(|| sqlite(&place.folder, threads, arguments.sqlite));
                    print(&line("sqlite3", threads, &place.name, done))?;
                }
            }
        }
        let note = |name: &&str| format!("skipped: {name}, which is not installed\n");
        print(&skipped.iter().map(note).collect::<String>())
    }
}
