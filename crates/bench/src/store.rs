//! Files that many threads read and write: in stores on tmpfs with each lock, and as plain files beside them; and in
//! stores on simulated machines.

use crate::known::{Known, known};
use crate::meter::Meter;
use crate::registry;
use crate::run::Outcome;
use spanlock_judge::record::lock::{Exclusion, Lock as Recorded};
use spanlock_store::Mapped;
pub use spanlock_trial::store::*;
use spanlock_workloads::crew::Signal;
use spanlock_workloads::store::stores::{INODE, Table, WIDE, all, room, run};
use spanlock_workloads::store::{self as workload, File};
use spanlock_workloads_sim::crew::Clock;
use spanlock_workloads_sim::store::stores as simulated;
use std::fs::{OpenOptions, remove_file};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A file system in memory.
const FOLDER: &str = "/dev/shm";

/// The name of plain files.
const PLAIN: &str = "plain-file";

type Run = Box<dyn Fn(&Trial) -> Result<Outcome, String> + Send + Sync>;

/// What has the files.
pub struct Subject {
    name: &'static str,
    run: Run,
}

/// Plain files, and stores with each lock.
static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let mut stores = Stores(vec![Subject {
        name: PLAIN,
        run: Box::new(plain),
    }]);
    all(&mut stores);
    stores.0
});

struct Stores(Vec<Subject>);

impl Table for Stores {
    fn lock<L>(&mut self, name: &'static str, make: fn() -> L)
    where
        L: spanlock::range::raw::RawRangeLock + Send + Sync + 'static,
    {
        let on_tmpfs = move |trial: &Trial| {
            let path = fresh();
            let medium = Mapped::create(&path, room(trial.load, trial.threads));
            let medium = medium.map_err(|error| error.to_string())?;
            remove_file(path).map_err(|error| error.to_string())?;
            run::<Signal, L>(medium, make, trial, &mut Meter::of(trial.events))
        };
        self.0.push(Subject {
            name,
            run: Box::new(on_tmpfs),
        });
    }
}

/// A path that nobody has. The file has no name for longer than it takes to open it.
fn fresh() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    PathBuf::from(format!("{FOLDER}/spanlock-bench-{process}-{count}"))
}

/// A file of the kernel's.
struct Plain(std::fs::File);

impl File for Plain {
    fn read_at(&self, into: &mut [u8], at: u64) -> Result<(), String> {
        self.0
            .read_exact_at(into, at)
            .map_err(|error| error.to_string())
    }

    fn write_at(&self, data: &[u8], at: u64) -> Result<(), String> {
        self.0
            .write_all_at(data, at)
            .map_err(|error| error.to_string())
    }
}

/// Runs a trial on plain files.
fn plain(trial: &Trial) -> Result<Outcome, String> {
    let open = |_| {
        let path = fresh();
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        remove_file(path)?;
        Ok(Plain(file))
    };
    let files = (0..trial.load.files(trial.threads)).map(open);
    let files: std::io::Result<Vec<_>> = files.collect();
    let files = files.map_err(|error| format!("{FOLDER}: {error}"))?;
    workload::run::<Signal>(&files, trial, &mut Meter::of(trial.events))
}

impl Subject {
    /// Runs a trial on fresh files.
    ///
    /// # Errors
    /// Why it cannot be run.
    pub fn run(&self, trial: &Trial) -> Result<Outcome, &'static str> {
        (self.run)(trial).map_err(|why| &*why.leak())
    }
}

/// A lock of files in a store on a simulated machine.
pub struct Simulated {
    name: &'static str,
    run: Run,
}

/// All of them.
static SIMULATED: LazyLock<Vec<Simulated>> = LazyLock::new(|| {
    let mut rows = Rows(Vec::new());
    simulated::all(&mut rows);
    rows.0
});

struct Rows(Vec<Simulated>);

impl simulated::Table for Rows {
    fn lock<L>(&mut self, name: &'static str, make: fn() -> L)
    where
        L: spanlock_sim::range::raw::RawRangeLock + Send + Sync + 'static,
    {
        let in_memory = move |trial: &Trial| {
            let medium = simulated::Priced::new(simulated::room(trial.load, trial.threads));
            simulated::run::<Clock, L>(medium, make, trial, &mut ())
        };
        self.0.push(Simulated {
            name,
            run: Box::new(in_memory),
        });
    }
}

impl Simulated {
    /// Runs a trial within a run of a simulated machine.
    ///
    /// # Panics
    /// When the store fails, which has room for it.
    pub(crate) fn run(&self, trial: &Trial) -> Outcome {
        (self.run)(trial).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// As records have it: a range lock is the one that is measured by its name elsewhere.
fn recorded(name: &'static str) -> Recorded {
    match registry::LOCKS.iter().find(|lock| lock.name == name) {
        Some(lock) => lock.known(),
        None => Recorded {
            family: family(name).to_owned(),
            exclusion: exclusion(name),
            ..Recorded::named(name)
        },
    }
}

fn family(name: &str) -> &'static str {
    match name {
        INODE => "whole file",
        WIDE => "segment",
        _ => "none",
    }
}

/// Reads of a file on tmpfs take no lock, so they may meet writes.
fn exclusion(name: &str) -> Exclusion {
    match name {
        PLAIN => Exclusion::None,
        _ => Exclusion::Promised,
    }
}

known! {
    Subject: |row| recorded(row.name), SUBJECTS.iter();
        "locks" "Locks of the store's files, by name, and plain-file: files of the kernel's, on tmpfs as the store is. \
            All of them by default"
    Simulated: |row| recorded(row.name), SIMULATED.iter();
        "locks" "Locks of files, by name; all of them by default"
}
