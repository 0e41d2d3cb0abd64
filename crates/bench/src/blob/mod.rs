//! Reads of large objects from an aliasing area, on hardware: beside a copy without an alias, and beside areas that no
//! two threads share.
//!
//! The workload is in `spanlock-workbench`; here are its readers, which ask the kernel for aliases.

#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod readers;
#[cfg(target_os = "linux")]
mod stored;

#[cfg(target_os = "linux")]
use stored::Stored;

use crate::known::Known;
use crate::registry::{self, Lock};
use spanlock_records::record::lock::Lock as Recorded;
use spanlock_records::trial::lock::Exclusion;
use spanlock_records::trial::run::Outcome;
#[cfg(target_os = "linux")]
use spanlock_records::trial::setting::Holds;
use spanlock_workbench::blob::Trial;
#[cfg(target_os = "linux")]
use spanlock_workbench::blob::{PAGE_BYTES, RESOURCE, Tried};
use spanlock_workbench::crew::Meter;

/// How records are read.
#[derive(Clone, Copy)]
pub enum Subject {
    /// Extent by extent, without an alias. There is nothing to keep in a cache.
    Copy,
    /// By aliases in an area of the thread's own, without a lock and without a cache.
    Own,
    /// By aliases in an area that all threads share, whose ranges this lock gives out.
    Shared(&'static Lock),
}

/// The name of [`Subject::Copy`].
const COPY: &str = "copy";

/// The name of [`Subject::Own`].
const OWN: &str = "own-area";

impl Subject {
    /// Runs a trial.
    ///
    /// # Errors
    /// Why it cannot be run.
    #[cfg(target_os = "linux")]
    pub fn run(self, trial: &Trial, meter: &mut dyn Meter) -> Result<Outcome, &'static str> {
        let why = |error: spanlock_structures::blob::Error| &*error.to_string().leak();
        if spanlock_structures::blob::Pool::page() != PAGE_BYTES {
            return Err("a page has not 4096 bytes here");
        }
        let refused = match self {
            Self::Own if trial.load.cache > 0 => "no cache",
            Self::Shared(lock) if lock.exclusion == Exclusion::None => "does not exclude",
            Self::Shared(lock) if lock.holds == Holds::One => "locks the whole",
            _ => "",
        };
        if !refused.is_empty() {
            return Err(refused);
        }
        let stored = Stored::of(trial.load.records).map_err(why)?;
        let outcome = match self {
            Self::Copy => readers::copied(trial, &stored, meter),
            Self::Own => readers::own(trial, &stored, meter),
            Self::Shared(lock) => {
                // SAFETY: the lock promises to exclude.
                let lock = unsafe { Tried::new(lock.make(RESOURCE)) };
                readers::shared(lock, trial, &stored, meter)
            }
        };
        outcome.map_err(why)
    }

    /// Runs nothing.
    ///
    /// # Errors
    /// Always: aliases are made on Linux only.
    #[cfg(not(target_os = "linux"))]
    pub fn run(self, _: &Trial, _: &mut dyn Meter) -> Result<Outcome, &'static str> {
        Err("aliases are made on Linux only")
    }
}

impl Known for Subject {
    const ABOUT: &'static str = "Who reads, by name: copy (extent by extent, without an alias), own-area (an area for \
        each thread, without a lock), and range locks that give out ranges of a shared area. By default these two, the \
        thesis' locks, a bitmap with several bits for each record, and the library's defaults";

    fn known(self) -> Recorded {
        let name = match self {
            Self::Shared(lock) => return lock.known(),
            Self::Copy => COPY,
            Self::Own => OWN,
        };
        Recorded {
            exclusion: Exclusion::None,
            ..Recorded::named(name)
        }
    }

    fn all() -> Vec<Self> {
        let locks = registry::LOCKS.iter().map(Self::Shared);
        [Self::Copy, Self::Own].into_iter().chain(locks).collect()
    }

    /// Those of P4 §4.4.1, the bitmap also with more than one bit for a record, then the library's defaults, and what
    /// all of them are compared with.
    fn usual() -> Vec<Self> {
        const NAMES: &str =
            "copy,own-area,bitmap,bitmap:block=65536,4096,song,skip-ex,list-ex,list-rw";
        Self::parse(NAMES).expect("there are such")
    }

    /// `copy`, `own-area`, and all range locks.
    fn parse(text: &str) -> Result<Vec<Self>, String> {
        let mut subjects = Vec::new();
        let mut locks = Vec::new();
        for part in text.split(',') {
            match part {
                COPY => subjects.push(Self::Copy),
                OWN => subjects.push(Self::Own),
                lock => locks.push(lock),
            }
        }
        if !locks.is_empty() {
            let parsed = <&Lock>::parse(&locks.join(","));
            let parsed = parsed.map_err(|error| format!("{error}, {COPY}, {OWN}"))?;
            subjects.extend(parsed.into_iter().map(Self::Shared));
        }
        Ok(subjects)
    }
}
