//! Files that many threads read and write: FxMark's kernels as P3 §VI uses them, and HACC-IO's.
//!
//! In FxMark each worker uses the first page of its own region for ever. P3's mixtures and random pages (Figures 12 and
//! 15) are the authors' changes of FxMark, which they have not published. What is here follows their text.
//!
//! Each page that is written begins and ends with a stamp: who wrote it, and which of his writes it was. A reader that
//! finds two different stamps has seen half of a write. In the end every page must have the stamps of one write, and
//! each thread's last write must be there, if the page is its own.

mod kernel;
#[cfg(target_os = "linux")]
pub mod stores;

pub use kernel::{Files, Kernel, Pages};

use crate::crew::{self, Keeper, Meter, Phase, Timekeeper};
use crate::workload::Workload;
use fastrand::Rng;
use prim::clock::Duration;
use prim::cost;
use serde::{Deserialize, Serialize};
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Found, Outcome, Throughput};
use spanlock_records::trial::settings::Settings;
use std::fmt;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// The most pages of a region: 1 GiB.
pub const MAX_PAGES: usize = 1 << 18;

/// Bytes before the first thread's data in HACC-IO's file.
pub const HEADER_BYTES: u64 = 24 << 20;

/// Bytes of an item of each of HACC-IO's arrays: seven of `f32`, one of `i64`, one of `u16`.
pub const ITEMS: [usize; 9] = [4, 4, 4, 4, 4, 4, 4, 8, 2];

/// Bytes of a particle: an item of each array.
const PARTICLE: usize = 38;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// What threads do.
    pub kernel: Kernel,
    /// Pages of each thread's region: from 1 to [`MAX_PAGES`].
    pub pages: usize,
}

impl Load {
    /// Particles of a thread's checkpoint, which fills about a region.
    #[must_use]
    pub const fn particles(self) -> usize {
        self.pages * PAGE_BYTES / PARTICLE
    }

    /// Where a thread's region begins in the file.
    #[must_use]
    pub const fn region(self, thread: usize) -> u64 {
        match self.kernel {
            // As there: regions begin in the middle of pages.
            Kernel::Hacc => HEADER_BYTES + (thread * self.particles() * PARTICLE) as u64,
            _ => match self.kernel.files() {
                Files::Shared => (thread * self.pages * PAGE_BYTES) as u64,
                Files::Private => 0,
            },
        }
    }

    /// The number of files, for so many threads.
    #[must_use]
    pub const fn files(self, threads: usize) -> usize {
        match self.kernel.files() {
            Files::Shared => 1,
            Files::Private => threads,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kernel.about())
    }
}

impl Settings for Load {
    const NAME: &'static str = "store";
    const KIND: Kind = Kind::Built;
}

impl Workload for Load {
    const ABOUT: &'static str = "Files that many threads read and write, in stores with each lock, \
        and plain files beside them";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::words(
            "kernel",
            Kernel::named,
            "dwom,dwol,drbm,drbl,mix-3-1,mix-1-3,random-write,random-read,overlap-write,overlap-mixed,hacc",
            "What threads do: dwom, dwol, drbm, drbl are FxMark's; mix-3-1 and mix-1-3 mix writes and reads of own \
             pages; random-write and random-read use random pages of own regions, overlap-write and overlap-mixed \
             those of all; hacc is HACC-IO",
        ),
        Argument::whole(
            "pages",
            1..=MAX_PAGES,
            "2048",
            "Pages of each thread's region, of 4 KiB",
        )
        .simulated("64"),
    ];
    /// Longer than it takes to write all regions first.
    const HANGS_AFTER: Option<Duration> = Some(Duration::from_secs(1));
}

/// One run.
pub type Trial = spanlock_records::trial::run::Trial<Load>;

/// A file that many threads use at a time.
pub trait File: Sync {
    /// Fills the buffer with what begins at `at`.
    ///
    /// # Errors
    /// When that fails, or the file ends before.
    fn read_at(&self, into: &mut [u8], at: u64) -> Result<(), String>;

    /// Writes all of it.
    ///
    /// # Errors
    /// When that fails.
    fn write_at(&self, data: &[u8], at: u64) -> Result<(), String>;
}

/// Runs a trial on files that are empty: as many as [`Load::files`] says.
///
/// # Errors
/// The first that a file had.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run(files: &[impl File], trial: &Trial, meter: &mut dyn Meter) -> Result<Outcome, String> {
    let (load, threads) = (trial.load, trial.threads);
    assert!((1..=MAX_PAGES).contains(&load.pages) && files.len() == load.files(threads));
    if load.kernel != Kernel::Hacc {
        fill(files, load, threads)?;
    }
    let run = crew::run_trial(trial, meter, |thread, rng, keeper: &Keeper| {
        let mut worker = Worker::new(&files[thread % files.len()], load, thread, threads, rng);
        worker.done.failed = worker.work(keeper).err();
        worker.done
    });
    if let Some(error) = run.workers.iter().find_map(|done| done.failed.clone()) {
        return Err(error);
    }
    let mut found = match load.kernel {
        Kernel::Hacc => check_arrays(&files[0], load, &run.workers)?,
        _ => check_pages(files, load, &run.workers)?,
    };
    found.torn += run.sum(|done| done.torn);
    let Errors { lost, torn } = found;
    Ok(Outcome {
        work: Throughput::of(&run, |done| done.ops),
        found: Found::Data { lost, torn },
        ..Outcome::default()
    })
}

/// Writes all regions, as FxMark does first.
fn fill(files: &[impl File], load: Load, threads: usize) -> Result<(), String> {
    /// Pages that are written at a time.
    const CHUNK: usize = 256;
    let mut bytes = vec![0; CHUNK * PAGE_BYTES];
    for thread in 0..threads {
        bytes
            .chunks_exact_mut(PAGE_BYTES)
            .for_each(|page| put(page, stamp(thread, 0)));
        for first in (0..load.pages).step_by(CHUNK) {
            let length = CHUNK.min(load.pages - first) * PAGE_BYTES;
            let at = load.region(thread) + (first * PAGE_BYTES) as u64;
            files[thread % files.len()].write_at(&bytes[..length], at)?;
        }
    }
    Ok(())
}

/// The number of a write: no other write of any thread has the same.
fn stamp(thread: usize, write: u64) -> u64 {
    (thread as u64 + 1) << 40 | write
}

const WORD: usize = 8;

/// Writes a stamp at both ends.
fn put(bytes: &mut [u8], stamp: u64) {
    let end = bytes.len() - WORD;
    bytes[..WORD].copy_from_slice(&stamp.to_le_bytes());
    bytes[end..].copy_from_slice(&stamp.to_le_bytes());
}

/// The stamps at both ends.
fn ends(bytes: &[u8]) -> [u64; 2] {
    let word = |at| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    [word(0), word(bytes.len() - WORD)]
}

/// Cycles of a call and of drawing a page on a simulated machine. An assumption.
const CALL: u64 = 50;

/// A thread at its work.
struct Worker<'a, F> {
    file: &'a F,
    load: Load,
    thread: usize,
    threads: usize,
    rng: Rng,
    /// What it writes, and where it reads to.
    buffer: Vec<u8>,
    done: Done,
}

/// What is left of it.
#[derive(Default)]
struct Done {
    /// Operations that counted.
    ops: u64,
    /// All writes.
    writes: u64,
    /// Where its last write was.
    last: Option<u64>,
    torn: u64,
    failed: Option<String>,
}

impl<'a, F: File> Worker<'a, F> {
    fn new(file: &'a F, load: Load, thread: usize, threads: usize, rng: Rng) -> Self {
        let bytes = match load.kernel {
            Kernel::Hacc => load.particles() * ITEMS.into_iter().max().expect("there are some"),
            _ => PAGE_BYTES,
        };
        Self {
            file,
            load,
            thread,
            threads,
            rng,
            buffer: vec![filling(thread); bytes],
            done: Done::default(),
        }
    }

    fn work(&mut self, keeper: &impl Timekeeper) -> Result<(), String> {
        let reads = self.load.kernel.reads_of_four();
        loop {
            let phase = keeper.phase();
            if phase == Phase::Stop {
                return Ok(());
            }
            cost::work(CALL);
            if self.load.kernel == Kernel::Hacc {
                self.checkpoint()?;
            } else if reads == 4 || (reads > 0 && self.rng.u8(..4) < reads) {
                self.read()?;
            } else {
                self.write()?;
            }
            self.done.ops += phase.counts();
        }
    }

    /// The beginning of the page of an operation.
    fn place(&mut self) -> u64 {
        let Load { kernel, pages, .. } = self.load;
        let (begin, page) = match kernel.pages() {
            Pages::First => (self.load.region(self.thread), 0),
            Pages::Own => (self.load.region(self.thread), self.rng.usize(..pages)),
            Pages::Any => (0, self.rng.usize(..pages * self.threads)),
        };
        begin + (page * PAGE_BYTES) as u64
    }

    fn read(&mut self) -> Result<(), String> {
        let at = self.place();
        self.file.read_at(&mut self.buffer, at)?;
        let [begin, end] = ends(&self.buffer);
        self.done.torn += u64::from(begin != end);
        Ok(())
    }

    fn write(&mut self) -> Result<(), String> {
        let at = self.place();
        self.done.writes += 1;
        put(&mut self.buffer, stamp(self.thread, self.done.writes));
        self.done.last = Some(at);
        self.file.write_at(&self.buffer, at)
    }

    /// The arrays, one after the other.
    fn checkpoint(&mut self) -> Result<(), String> {
        self.done.writes += 1;
        for (array, at, bytes) in arrays(self.load, self.thread) {
            let data = &mut self.buffer[..bytes];
            put(data, stamp(self.thread, self.done.writes * 16 + array));
            self.file.write_at(data, at)?;
            data[bytes - WORD..].fill(filling(self.thread));
        }
        Ok(())
    }
}

/// The bytes between a thread's stamps.
fn filling(thread: usize) -> u8 {
    (thread % 251) as u8 + 1
}

/// A thread's arrays: their numbers, where they begin in the file, and their lengths in bytes.
fn arrays(load: Load, thread: usize) -> impl Iterator<Item = (u64, u64, usize)> {
    let lengths = ITEMS.into_iter().map(move |item| item * load.particles());
    let begin = load.region(thread);
    (0..).zip(lengths).scan(begin, |at, (array, bytes)| {
        let begin = *at;
        *at += bytes as u64;
        Some((array, begin, bytes))
    })
}

/// What is wrong.
#[derive(Default)]
struct Errors {
    lost: u64,
    torn: u64,
}

/// Compares every page with what was written.
fn check_pages(files: &[impl File], load: Load, all: &[Done]) -> Result<Errors, String> {
    let mut errors = Errors::default();
    let mut page = vec![0; PAGE_BYTES];
    for (thread, done) in all.iter().enumerate() {
        let file = &files[thread % files.len()];
        for number in 0..load.pages {
            let at = load.region(thread) + (number * PAGE_BYTES) as u64;
            file.read_at(&mut page, at)?;
            let [begin, end] = ends(&page);
            errors.torn += u64::from(begin != end);
            let writer = usize::try_from((begin >> 40).wrapping_sub(1)).unwrap_or(usize::MAX);
            let is_possible = all
                .get(writer)
                .is_some_and(|by| begin <= stamp(writer, by.writes));
            let is_own = load.kernel.pages() != Pages::Any;
            let is_last = is_own && done.last == Some(at);
            let is_right = is_possible
                && (!is_own || writer == thread)
                && (!is_last || begin == stamp(thread, done.writes));
            errors.lost += u64::from(!is_right);
        }
    }
    Ok(errors)
}

/// Compares every array with the last checkpoint, as HACC-IO does.
fn check_arrays(file: &impl File, load: Load, all: &[Done]) -> Result<Errors, String> {
    let mut errors = Errors::default();
    for (thread, done) in all.iter().enumerate().filter(|(_, done)| done.writes > 0) {
        for (array, at, bytes) in arrays(load, thread) {
            let mut data = vec![0; bytes];
            file.read_at(&mut data, at)?;
            let is_whole = data[WORD..bytes - WORD]
                .iter()
                .all(|byte| *byte == filling(thread));
            let [begin, end] = ends(&data);
            errors.torn += u64::from(begin != end || !is_whole);
            errors.lost += u64::from(begin != stamp(thread, done.writes * 16 + array));
        }
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::{ITEMS, Kernel, Load, PARTICLE};

    #[test]
    fn a_particle_is_an_item_of_each_array() {
        assert_eq!(ITEMS.iter().sum::<usize>(), PARTICLE);
    }

    #[test]
    fn regions_of_one_file_follow_each_other_and_private_ones_begin_their_file() {
        for kernel in Kernel::ALL {
            let load = Load { kernel, pages: 10 };
            let bytes = load.region(2) - load.region(1);
            match kernel {
                Kernel::Dwol | Kernel::Drbl => assert_eq!(bytes, 0),
                Kernel::Hacc => assert!(bytes <= 40_960 && bytes > 40_000),
                _ => assert_eq!((load.region(0), bytes), (0, 40_960)),
            }
        }
    }
}
