//! Files that many threads read and write: in stores on tmpfs with each lock, and as plain files beside them; and in
//! stores on simulated machines.

use crate::known::{self, Known, Row, known};
use crate::meter::Meter;
use crate::registry;
use spanlock_records::record::lock::Lock as Recorded;
use spanlock_records::trial::lock::Exclusion;
use spanlock_records::trial::run::Outcome;
use spanlock_structures::store::Mapped;
use spanlock_workbench::crew;
use spanlock_workbench::store::stores::{INODE, ROWS, WIDE, room, run};
use spanlock_workbench::store::{self as workload, File, Load, Trial};
use std::fs::{OpenOptions, remove_file};
use std::iter;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A file system in memory.
const FOLDER: &str = "/dev/shm";

/// The name of plain files.
const PLAIN: &str = "plain-file";

/// What has the files.
pub type Subject = known::Measured<Load>;

/// A row for what has files. Why it cannot be run is told once, at the end of the program.
fn on_files(
    name: &'static str,
    run: impl Fn(&Trial, &mut dyn crew::Meter) -> Result<Outcome, String> + Send + Sync + 'static,
) -> Subject {
    let run = move |trial: &Trial, meter: &mut dyn crew::Meter| {
        run(trial, meter).map_err(|why| &*why.leak())
    };
    Row::new(name, "", Box::new(run))
}

/// Plain files, and stores with each lock.
static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let stores = ROWS.iter().map(|&(name, make)| {
        let on_tmpfs = move |trial: &Trial, meter: &mut dyn crew::Meter| {
            let path = fresh();
            let medium = Mapped::create(&path, room(trial.load, trial.threads));
            let medium = medium.map_err(|error| error.to_string())?;
            remove_file(path).map_err(|error| error.to_string())?;
            run(medium, make, trial, meter)
        };
        on_files(name, on_tmpfs)
    });
    iter::once(on_files(PLAIN, plain)).chain(stores).collect()
});

/// A path in memory that nobody has. The file has no name for longer than it takes to open it.
fn fresh() -> PathBuf {
    fresh_in(Path::new(FOLDER))
}

fn fresh_in(folder: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    folder.join(format!("spanlock-bench-{process}-{count}"))
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

/// Runs a trial on plain files in memory.
fn plain(trial: &Trial, meter: &mut dyn crew::Meter) -> Result<Outcome, String> {
    on_files_in(Path::new(FOLDER), trial, meter)
}

/// Runs a trial on files in a folder of any file system.
///
/// # Errors
/// The file system's.
pub fn in_folder(folder: &Path, trial: &Trial) -> Result<Outcome, String> {
    on_files_in(folder, trial, &mut Meter::of(trial.events))
}

fn on_files_in(
    folder: &Path,
    trial: &Trial,
    meter: &mut dyn crew::Meter,
) -> Result<Outcome, String> {
    let open = |_| {
        let path = fresh_in(folder);
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
    let files = files.map_err(|error| format!("{}: {error}", folder.display()))?;
    workload::run(&files, trial, meter)
}

/// As records have it: a range lock is the one that is measured by its name elsewhere.
fn recorded(name: &str) -> Recorded {
    let (family, exclusion) = match name {
        INODE => ("whole file", Exclusion::Promised),
        WIDE => ("segment", Exclusion::Promised),
        // Reads of a file on tmpfs take no lock, so they may meet writes.
        PLAIN => ("none", Exclusion::None),
        _ => return registry::find(name).map_or_else(|| Recorded::named(name), Known::known),
    };
    Recorded {
        family: family.to_owned(),
        exclusion,
        ..Recorded::named(name)
    }
}

known! {
    Subject: |row| recorded(row.name), SUBJECTS.iter();
        "locks" "Locks of the store's files, by name, and plain-file: files of the kernel's, on tmpfs as the store is. \
            All of them by default"
}

#[cfg(feature = "sim")]
pub use self::simulated::Simulated;

#[cfg(feature = "sim")]
mod simulated {
    use super::recorded;
    use crate::known::{self, known};
    use prim_sim::Machine;
    use spanlock_workbench_sim::store::{Load, Trial, stores};
    use std::sync::LazyLock;

    /// A lock of files in a store on a simulated machine.
    pub type Simulated = known::Simulated<Load>;

    /// All of them.
    static SIMULATED: LazyLock<Vec<Simulated>> = LazyLock::new(|| {
        let rows = stores::ROWS.iter().map(|&(name, make)| {
            let in_memory = move |trial: &Trial, _: &Machine| {
                let medium = stores::Priced::new(stores::room(trial.load, trial.threads));
                let ran = stores::run(medium, make, trial, &mut ());
                ran.expect("it has room")
            };
            Simulated::new(name, "", Box::new(in_memory))
        });
        rows.collect()
    });

    known! {
        Simulated: |row| recorded(row.name), SIMULATED.iter();
            "locks" "Locks of files, by name; all of them by default"
    }
}
