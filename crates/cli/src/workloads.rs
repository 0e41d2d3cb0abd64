//! The numbers of each workload, as users choose them: the same on hardware and on simulated machines.

use crate::options::number;
use clap::Args;
use spanlock_bench::provenance::available_memory;
use spanlock_records::stats::distinct;
use spanlock_records::trial::arr::{self, Pauses, Percent, Timing, Variant};
use spanlock_records::trial::batch::{self, MAX_HOLD, MAX_RANGES, RANGES};
use spanlock_records::trial::blob::{
    self, Draw, MAX_CACHE, MAX_RECORDS, Payload, RECORD_BYTES, RECORDS,
};
use spanlock_records::trial::keys::{self, Access};
use spanlock_records::trial::latency::{MAX_PARTS, PARTS};
use spanlock_records::trial::micro;
use spanlock_records::trial::pattern::{self, MAX_BYSTANDERS, Pattern};
use spanlock_records::trial::run::Trial;
use spanlock_records::trial::set::{self, Chosen, KEYS, MAX_KEYS, Mix};
#[cfg(target_os = "linux")]
use spanlock_records::trial::store;

mod rw;
mod vm;

pub(crate) use rw::Loads;
pub(crate) use vm::Space;

/// A workload of which users have chosen the numbers.
pub(crate) trait Workload {
    type Load: Copy;

    /// Each combination of its numbers.
    fn loads(&self) -> Vec<Self::Load>;

    /// A trial for each of them, and for each number of threads.
    fn trials(&self, threads: &[usize], run: Trial<()>) -> Vec<Trial<Self::Load>> {
        let each = turns(self.loads(), threads);
        all(each, |(threads, load)| run.with(load, threads))
    }

    /// Why its numbers contradict each other, or ask for what this machine does not have.
    fn contradiction(&self, _threads: &[usize]) -> Option<String> {
        None
    }
}

/// Every trial with every lock: locks inside, so that a drift of the machine hits all of them alike.
pub(crate) fn turns<T: Copy, L: Copy>(
    trials: impl IntoIterator<Item = T>,
    locks: &[L],
) -> Vec<(L, T)> {
    let turn = |trial| locks.iter().map(move |&lock| (lock, trial));
    trials.into_iter().flat_map(turn).collect()
}

/// The values named, each once.
fn each<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    distinct(values.iter().copied())
}

/// What follows from each.
fn all<T, L>(each: Vec<T>, load: impl FnMut(T) -> L) -> Vec<L> {
    each.into_iter().map(load).collect()
}

#[derive(Args)]
pub(crate) struct Arr {
    /// Ranges: full, disjoint, random.
    #[arg(long, value_name = "NAME,...", default_value = "full,disjoint,random")]
    variant: Vec<Variant>,
    /// The percentage of operations that read.
    #[arg(long, value_name = "PERCENT,...", default_value = "100,80,60")]
    reads: Vec<Percent>,
    /// Time each acquisition, which costs two readings of the clock.
    #[arg(long)]
    latency: bool,
}

impl Workload for Arr {
    type Load = arr::Load;

    fn loads(&self) -> Vec<arr::Load> {
        let timing = timing(self.latency);
        let load = |(reads, variant)| arr::Load {
            variant,
            reads,
            pauses: Pauses::P1,
            timing,
        };
        all(turns(each(&self.variant), &each(&self.reads)), load)
    }
}

const fn timing(is_timed: bool) -> Timing {
    if is_timed { Timing::On } else { Timing::Off }
}

#[derive(Args)]
pub(crate) struct Patterns {
    /// What threads do: files, pages, append, phases are users' loads; restless, alternate, owners, sweep, everything,
    /// churn, once are meant to hurt a lock that adapts.
    #[arg(long, value_name = "NAME,...", default_values_t = Pattern::ALL, hide_default_value = true)]
    pattern: Vec<Pattern>,
    /// The percentage of operations that read. It does not apply to appends, sweeps and writes of everything.
    #[arg(long, value_name = "PERCENT,...", default_value = "100,90,50")]
    reads: Vec<Percent>,
    /// Further threads, which sleep meanwhile. Each has used another lock of the same kind once.
    #[arg(
        long, value_parser = clap::value_parser!(u16).range(..=i64::from(MAX_BYSTANDERS)),
        value_name = "N,...", default_value = "0"
    )]
    bystanders: Vec<u16>,
    /// Time each acquisition, which costs two readings of the clock. Where one writer writes everything, its
    /// acquisitions alone are timed, also without this option.
    #[arg(long)]
    latency: bool,
}

impl Workload for Patterns {
    type Load = pattern::Load;

    fn loads(&self) -> Vec<pattern::Load> {
        let load = |(bystanders, (reads, pattern))| pattern::Load {
            pattern,
            reads,
            bystanders: usize::from(bystanders),
            timing: timing(self.latency),
        };
        let reads = turns(each(&self.pattern), &each(&self.reads));
        all(turns(reads, &each(&self.bystanders)), load)
    }
}

#[derive(Args)]
pub(crate) struct Batch {
    /// Ranges held together: 1 is W1, 16 is W2.
    #[arg(long, value_parser = number(1..=MAX_HOLD), default_value = "1,16", value_name = "N,...")]
    hold: Vec<usize>,
    /// Ranges in the memory that is written, 1 KB each.
    #[arg(long, value_parser = number(1..=MAX_RANGES), default_value_t = RANGES, value_name = "N")]
    ranges: usize,
}

impl Workload for Batch {
    type Load = batch::Load;

    fn loads(&self) -> Vec<batch::Load> {
        let ranges = self.ranges;
        let load = |hold| batch::Load { hold, ranges };
        all(each(&self.hold), load)
    }

    fn contradiction(&self, _: &[usize]) -> Option<String> {
        let Self { hold, ranges } = self;
        let hold = hold.iter().find(|hold| *hold > ranges)?;
        Some(format!(
            "--hold {hold} is more than there are ranges: --ranges is {ranges}"
        ))
    }
}

#[derive(Args)]
#[group(skip)] // the command has this name
pub(crate) struct Blob {
    /// How often each record is read: uniform, zipfian.
    #[arg(long, value_name = "NAME,...", default_values_t = Draw::ALL)]
    draw: Vec<Draw>,
    /// How much of a record is read: whole, or one word, which shows the cost of the alias alone.
    #[arg(long, value_name = "NAME,...", default_values_t = [Payload::Whole])]
    payload: Vec<Payload>,
}

#[derive(Args)]
pub(crate) struct StoredBlob {
    #[command(flatten)]
    blob: Blob,
    /// Aliases that each thread keeps.
    #[arg(long, value_parser = number(0..=MAX_CACHE), default_value = "0,8", value_name = "N,...")]
    cache: Vec<usize>,
    /// Records, of 1 MB of memory each.
    #[arg(long, value_parser = number(1..=MAX_RECORDS), default_value_t = RECORDS, value_name = "N")]
    records: usize,
}

impl Blob {
    /// Each combination with these.
    fn with(&self, caches: &[usize], records: usize) -> Vec<blob::Load> {
        let draws = turns(each(&self.draw), &each(&self.payload));
        let load = |(cache, (payload, draw))| blob::Load {
            draw,
            payload,
            cache,
            records,
        };
        all(turns(draws, &each(caches)), load)
    }
}

impl Workload for Blob {
    type Load = blob::Load;

    fn loads(&self) -> Vec<blob::Load> {
        self.with(&[0], RECORDS)
    }
}

impl Workload for StoredBlob {
    type Load = blob::Load;

    fn loads(&self) -> Vec<blob::Load> {
        self.blob.with(&self.cache, self.records)
    }

    fn contradiction(&self, _: &[usize]) -> Option<String> {
        exceeding(self.records, available_memory()?)
    }
}

/// Why so many records do not fit into the available bytes of memory. The kernel would end the program.
fn exceeding(records: usize, available: usize) -> Option<String> {
    let room = available / RECORD_BYTES;
    (records > room).then(|| {
        format!(
            "--records {records}: the memory that is available has room for {room}, of 1 MB each"
        )
    })
}

#[cfg(target_os = "linux")]
#[derive(Args)]
#[group(skip)] // the command has this name
pub(crate) struct Files {
    /// What threads do: dwom, dwol, drbm, drbl are FxMark's; mix-3-1 and mix-1-3 mix writes and reads of own pages;
    /// random-write and random-read use random pages of own regions, overlap-write and overlap-mixed those of all;
    /// hacc is HACC-IO.
    #[arg(long, value_name = "NAME,...", default_values_t = store::Kernel::ALL, hide_default_value = true)]
    kernel: Vec<store::Kernel>,
    /// Pages of each thread's region, of 4 KiB.
    #[arg(long, value_parser = number(1..=store::MAX_PAGES), default_value_t = store::PAGES, value_name = "N")]
    pages: usize,
}

#[cfg(target_os = "linux")]
impl Workload for Files {
    type Load = store::Load;

    fn loads(&self) -> Vec<store::Load> {
        let pages = self.pages;
        let load = |kernel| store::Load { kernel, pages };
        all(each(&self.kernel), load)
    }
}

#[derive(Args)]
pub(crate) struct Sets {
    /// Keys from which threads choose; half of them are in the set.
    #[arg(long, value_parser = number(1..=MAX_KEYS), default_value_t = KEYS, value_name = "N")]
    keys: usize,
    /// How often each key is chosen: uniform, zipfian.
    #[arg(long, value_name = "NAME,...", default_value = "uniform")]
    chosen: Vec<Chosen>,
    /// What threads do: updates (80 % search, 10 % insert, 10 % remove), scans (10 % scan 100 keys, 70 % search).
    #[arg(long, value_name = "NAME,...", default_value = "updates")]
    mix: Vec<Mix>,
}

impl Workload for Sets {
    type Load = set::Load;

    fn loads(&self) -> Vec<set::Load> {
        self.with(0)
    }
}

/// Locks over keys.
#[derive(Args)]
pub(crate) struct Keyed {
    /// Keys from which threads choose.
    #[arg(long, value_parser = number(1..=keys::MAX_KEYS), default_value_t = keys::KEYS, value_name = "N")]
    keys: usize,
    /// Bytes of a key, which is some letters and a number.
    #[arg(long, value_parser = number(keys::MIN_LENGTH..=keys::MAX_LENGTH), value_name = "N,...", value_delimiter = ',', default_value = "16")]
    length: Vec<usize>,
    /// How often each key is chosen: uniform, zipfian.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "uniform"
    )]
    chosen: Vec<Chosen>,
    /// What is locked: points, scans (up to 16 keys in a row), own (points of a part for each thread), apart (scans in
    /// such parts).
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "own,apart,points,scans"
    )]
    access: Vec<Access>,
    /// Of a hundred operations, those that lock alone.
    #[arg(long, value_parser = clap::value_parser!(u8).range(..=100), value_name = "N,...", value_delimiter = ',', default_value = "5")]
    writes: Vec<u8>,
}

impl Workload for Keyed {
    type Load = keys::Load;

    fn loads(&self) -> Vec<keys::Load> {
        let keys = self.keys;
        let mut loads = Vec::new();
        for &access in &self.access {
            for &length in &self.length {
                for &chosen in &self.chosen {
                    loads.extend(self.writes.iter().map(|&writes| keys::Load {
                        keys,
                        length,
                        chosen,
                        access,
                        writes,
                    }));
                }
            }
        }
        loads
    }
}

/// On a simulated machine.
#[cfg(feature = "sim")]
#[derive(Args)]
pub(crate) struct SimulatedSets {
    #[command(flatten)]
    sets: Sets,
    /// Cycles that each operation takes in addition. The machine's caches have no limit: this stands for the misses of
    /// a set that exceeds them, such as P1's of 8 M keys.
    #[arg(long, value_parser = clap::value_parser!(u32).range(..=i64::from(set::MAX_STALL)), default_value_t = 0, value_name = "CYCLES")]
    stall: u32,
}

#[cfg(feature = "sim")]
impl Workload for SimulatedSets {
    type Load = set::Load;

    fn loads(&self) -> Vec<set::Load> {
        self.sets.with(self.stall)
    }
}

impl Sets {
    /// Each combination, with this.
    fn with(&self, stall: u32) -> Vec<set::Load> {
        let keys = self.keys;
        let load = |(chosen, mix)| set::Load {
            keys,
            chosen,
            mix,
            stall,
        };
        all(turns(each(&self.mix), &each(&self.chosen)), load)
    }
}

#[derive(Args)]
pub(crate) struct Parts {
    /// Parts of the resource; each thread locks its share of them, and then as many again.
    #[arg(long, value_parser = number(1..=MAX_PARTS), default_value_t = PARTS, value_name = "N")]
    pub(crate) parts: usize,
}

/// Microbenchmarks have no numbers: their kernels take the place of locks.
#[derive(Args)]
pub(crate) struct Micro;

impl Workload for Micro {
    type Load = micro::Load;

    fn loads(&self) -> Vec<micro::Load> {
        vec![micro::Load]
    }
}

impl<L: Copy> Workload for Vec<L> {
    type Load = L;

    fn loads(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{RECORD_BYTES, exceeding};

    #[test]
    fn more_records_than_fit_into_the_memory_are_refused() {
        assert_eq!(exceeding(3, 3 * RECORD_BYTES), None);
        let told = exceeding(4, 4 * RECORD_BYTES - 1).unwrap();
        assert!(
            told.contains("--records 4") && told.contains("room for 3,"),
            "{told}"
        );
    }
}
