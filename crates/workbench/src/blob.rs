//! Reads of large objects (P4 §4.4): threads read random records of 1 MB, each of which lies in nine extents.
//!
//! From the thesis: "exclusively read operations", each "a straightforward `memcpy()`", of 1000 records of 1 MB. In
//! LeanStore a reader makes an alias of the record in an area that all threads share, copies the record from there, and
//! hides the alias. A range lock gives out the ranges of the area.
//!
//! How a record is read is a [`Reader`]: on hardware by system calls, in `bench`; on a simulated machine by
//! priced pages.
//!
//! # What the thesis' figure shows
//! In LeanStore's code a record that fits into a worker's own area takes no range of the shared one, and no lock. By
//! default that area has 1 GB. The thesis does not say how it was set. If it was the default, its figure shows no range
//! lock at all.

use crate::crew::{self, Keeper, Meter, Phase, Timekeeper};
use crate::target::{AnyLock, Held};
use crate::workload::{Makes, Workload};
use fastrand::Rng;
use prim::clock::Duration;
use prim::cost;
use serde::{Deserialize, Serialize};
use spanlock_records::by_name;
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::{Argument, On};
use spanlock_records::trial::run::{Found, Outcome, Parts, Throughput};
use spanlock_records::trial::setting::Resource;
use spanlock_records::trial::settings::Settings;
use std::fmt;
use std::ops::Range;
use structures::blob::Error;
use structures::blob::raw::{Piece, Ranges, Space, Window};

/// The bytes of a record (P4 §4.4.2: "a payload size of 1 MB").
pub const RECORD_BYTES: usize = 1 << 20;

/// The page size of the extents below.
pub const PAGE_BYTES: usize = 4096;

/// The pages of a record's extents: LeanStore's tiers, of which each is twice the one before, and the rest.
pub const EXTENTS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 1];

/// The most records: 64 GiB.
pub const MAX_RECORDS: usize = 1 << 16;

/// The largest cache of a thread.
pub const MAX_CACHE: usize = 64;

/// The area: 4 GiB of addresses, so that threads with full caches find a place at once.
pub const RESOURCE: Resource = Resource {
    units: 4 << 30,
    grain: RECORD_BYTES as u64,
};

/// How often each record is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// All alike.
    #[default]
    Uniform,
    /// As YCSB has it: the n-th most frequent one `n^-0.99` times as often as the first.
    Zipfian,
}

impl Draw {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Zipfian];
}

by_name!(Draw);

/// How much of a record a read reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// All of it, which is copied to the thread's own memory.
    #[default]
    Whole,
    /// Its first word: what is left is the cost of an alias.
    Word,
}

impl Payload {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Word];
}

by_name!(Payload);

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// How often each record is read.
    pub draw: Draw,
    /// How much of it.
    pub payload: Payload,
    /// Aliases that each thread keeps: up to [`MAX_CACHE`].
    pub cache: usize,
    /// Records: from 1 to [`MAX_RECORDS`].
    pub records: usize,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            draw,
            payload,
            cache,
            ..
        } = self;
        write!(f, "BLOBs, {draw}, {payload} read, ")?;
        match cache {
            0 => f.write_str("no cache"),
            cache => write!(f, "caches of {cache}"),
        }
    }
}

impl Settings for Load {
    const NAME: &'static str = "blob";
    const KIND: Kind = Kind::Ranges;
}

impl Workload for Load {
    const ABOUT: &'static str = "Large objects read from an aliasing area, whose ranges a lock gives out, \
        beside copies without aliases";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::words(
            "draw",
            Draw::named,
            "uniform,zipfian",
            "How often each record is read: uniform, zipfian",
        ),
        Argument::words(
            "payload",
            Payload::named,
            "whole",
            "How much of a record is read: whole, or one word, which shows the cost of the alias alone",
        ),
        Argument::whole(
            "cache",
            0..=MAX_CACHE,
            "0,8",
            "Aliases that each thread keeps",
        )
        .simulated("0")
        .only(On::Hardware),
        Argument::whole(
            "records",
            1..=MAX_RECORDS,
            "1000",
            "Records, of 1 MB of memory each",
        )
        .only(On::Hardware),
    ];
    /// A read takes long.
    const SECONDS: [&'static str; 2] = ["0.2", "0.02"];
    const HANGS_AFTER: Option<Duration> = Some(Duration::ZERO);
}

/// One run.
pub type Trial = spanlock_records::trial::run::Trial<Load>;

/// Runs a trial with such pages, on a lock that excludes.
///
/// # Errors
/// Why the lock cannot do this.
///
/// # Safety
/// Holders of overlapping ranges exclude each other.
///
/// # Panics
/// As of [`run`].
pub unsafe fn priced(lock: &dyn Makes, trial: &Trial) -> Result<Outcome, &'static str> {
    if let Some(why) = lock.holds_one_because(RESOURCE) {
        return Err(why);
    }
    // SAFETY: the caller's.
    let lock = unsafe { Tried::new(lock.make(RESOURCE)) };
    let (space, payload) = (&Space::new(lock, Priced), trial.load.payload);
    let outcome = run(trial, &mut (), || PricedReader { space, payload });
    Ok(outcome.expect("such pages are never refused"))
}

/// Reads records, for one thread.
pub trait Reader {
    /// Reads a record.
    ///
    /// # Errors
    /// When the area or the platform refuses.
    fn read(&mut self, record: usize) -> Result<Read, Error>;
}

/// A record was read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Read {
    /// Whether its bytes were those that were written. All that were read are checked.
    pub is_right: bool,
    /// In the lock, for the alias without the lock, for the copy, and for the check.
    pub took: [Duration; 4],
}

/// Runs a trial. Each thread makes a reader of its own.
///
/// # Errors
/// The first that a reader had.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run<R: Reader>(
    trial: &Trial,
    meter: &mut dyn Meter,
    reader: impl Fn() -> R + Sync,
) -> Result<Outcome, Error> {
    let Load { draw, records, .. } = trial.load;
    assert!((1..=MAX_RECORDS).contains(&records));
    let records = Records::new(draw, records);
    let run = crew::run_trial(trial, meter, |_, rng, keeper: &Keeper| {
        work(&records, reader(), rng, keeper)
    });
    if let Some(error) = run.workers.iter().find_map(|tally| tally.failed) {
        return Err(error);
    }
    let all = || run.workers.iter();
    let ops = run.sum(|tally| tally.ops);
    let mean = |part: usize| {
        let sum: Duration = all().map(|tally| tally.took[part]).sum();
        sum.as_nanos() as f64 / ops.max(1) as f64
    };
    Ok(Outcome {
        work: Throughput::of(&run, |tally| tally.ops),
        found: Found::Data {
            lost: 0,
            torn: run.sum(|tally| tally.wrong),
        },
        parts: (ops > 0 && all().any(|tally| !tally.took[2].is_zero())).then(|| Parts {
            lock: mean(0),
            alias: mean(1),
            copy: mean(2),
            check: mean(3),
        }),
        ..Outcome::default()
    })
}

/// The work of one thread.
#[derive(Default)]
struct Tally {
    /// Reads in the measured time, and where their time went.
    ops: u64,
    took: [Duration; 4],
    /// Reads of wrong bytes, from start to end.
    wrong: u64,
    failed: Option<Error>,
}

fn work(
    records: &Records,
    mut reader: impl Reader,
    mut rng: Rng,
    keeper: &impl Timekeeper,
) -> Tally {
    let mut tally = Tally::default();
    loop {
        let phase = keeper.phase();
        if phase == Phase::Stop {
            return tally;
        }
        let record = records.draw(&mut rng);
        cost::work(DRAW);
        match reader.read(record) {
            Ok(Read { is_right, took }) => {
                tally.wrong += u64::from(!is_right);
                if phase == Phase::Measured {
                    tally.ops += 1;
                    for (sum, part) in tally.took.iter_mut().zip(took) {
                        *sum += part;
                    }
                }
            }
            // Others hold every place, but not for long.
            Err(Error::AreaFull) => prim::thread::nap(),
            Err(error) => {
                tally.failed = Some(error);
                return tally;
            }
        }
    }
}

/// Cycles of drawing a record on a simulated machine. An assumption: a search in a small table.
const DRAW: u64 = 50;

/// Random records.
struct Records {
    count: usize,
    /// For each record, the share of reads that are of it or of one before; none if all are alike.
    shares: Vec<f64>,
}

/// YCSB's exponent.
const ZIPFIAN: f64 = 0.99;

impl Records {
    fn new(draw: Draw, count: usize) -> Self {
        let weight = |record: usize| (record as f64 + 1.0).powf(-ZIPFIAN);
        let ranks = match draw {
            Draw::Uniform => 0..0,
            Draw::Zipfian => 0..count,
        };
        let sums = ranks.scan(0.0, |sum, record| {
            *sum += weight(record);
            Some(*sum)
        });
        let mut shares: Vec<_> = sums.collect();
        let all = shares.last().copied().unwrap_or(1.0);
        shares.iter_mut().for_each(|share| *share /= all);
        Self { count, shares }
    }

    fn draw(&self, rng: &mut Rng) -> usize {
        if self.shares.is_empty() {
            return rng.usize(..self.count);
        }
        let drawn = rng.f64();
        let record = self.shares.partition_point(|share| *share <= drawn);
        record.min(self.count - 1)
    }
}

/// A lock under measurement, of which an area tries to take ranges. If the lock cannot try, the area waits.
pub struct Tried(Box<dyn AnyLock>);

impl Tried {
    /// For an area.
    ///
    /// # Safety
    /// Holders of overlapping ranges exclude each other.
    pub unsafe fn new(lock: Box<dyn AnyLock>) -> Self {
        Self(lock)
    }
}

// SAFETY: it excludes, as the caller of `new` said.
unsafe impl Ranges for Tried {
    type Held<'a> = Held<'a>;

    #[inline]
    fn try_take(&self, range: Range<u64>) -> Option<Held<'_>> {
        self.0.try_write(range)
    }
}

/// Pages that cost time to show and to hide, and are not there: for simulated machines.
///
/// The kernel serialises changes of mappings, and memory has a bandwidth. Neither is simulated: what remains is the
/// lock of the area, under the load that threads make which nothing else holds up.
#[derive(Debug)]
struct Priced;

/// Cycles of writing or clearing the entry of a page. An assumption, of 20 ns.
const ENTRY: u64 = 50;

/// Cycles of copying a page. An assumption: 10 GB a second.
const COPY: u64 = 1000;

const PAGES: u64 = (RECORD_BYTES / PAGE_BYTES) as u64;

impl Window for Priced {
    fn bytes(&self) -> usize {
        RESOURCE.units as usize
    }

    unsafe fn show(&self, _: usize, _: impl Iterator<Item = Piece>) -> Result<(), Error> {
        cost::work(PAGES * ENTRY);
        Ok(())
    }

    unsafe fn hide(&self, _: usize, _: usize) -> Result<(), Error> {
        cost::work(PAGES * ENTRY);
        Ok(())
    }
}

/// Reads of such pages.
struct PricedReader<'a> {
    space: &'a Space<Tried, Priced>,
    payload: Payload,
}

impl Reader for PricedReader<'_> {
    fn read(&mut self, record: usize) -> Result<Read, Error> {
        let pages = EXTENTS.iter().scan(record * RECORD_BYTES, |offset, pages| {
            let piece = Piece {
                offset: *offset,
                bytes: pages * PAGE_BYTES,
            };
            *offset += piece.bytes;
            Some(piece)
        });
        let shown = self.space.take(pages)?;
        if self.payload == Payload::Whole {
            cost::work(PAGES * COPY);
        }
        drop(shown);
        Ok(Read {
            is_right: true,
            took: [Duration::ZERO; 4],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Draw, EXTENTS, PAGE_BYTES, RECORD_BYTES, Records};
    use fastrand::Rng;

    #[test]
    fn the_extents_are_a_record() {
        assert_eq!(EXTENTS.iter().sum::<usize>() * PAGE_BYTES, RECORD_BYTES);
    }

    #[test]
    fn every_record_is_drawn_and_zipfian_ones_in_order() {
        for draw in Draw::ALL {
            let records = Records::new(draw, 8);
            let mut rng = Rng::with_seed(3);
            let mut seen = [0_u32; 8];
            (0..40_000).for_each(|_| seen[records.draw(&mut rng)] += 1);
            match draw {
                Draw::Uniform => assert!(seen.iter().all(|times| times.abs_diff(5000) < 500)),
                Draw::Zipfian => {
                    assert!(seen.is_sorted_by(|a, b| a > b), "{seen:?}");
                    // The first is drawn about twice as often as the second.
                    let ratio = f64::from(seen[0]) / f64::from(seen[1]);
                    assert!((1.8..2.2).contains(&ratio), "{seen:?}");
                }
            }
            assert_eq!(Records::new(draw, 1).draw(&mut rng), 0);
        }
    }
}
