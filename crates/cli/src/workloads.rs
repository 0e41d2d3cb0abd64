//! The numbers of each workload, as users choose them: the same on hardware and on simulated machines.

use crate::options::{number, part};
use clap::{Args, Subcommand};
use spanlock_bench::arr::{self, Pauses, Percent, Timing, Variant};
use spanlock_bench::batch::{self, MAX_HOLD, MAX_RANGES, RANGES};
use spanlock_bench::blob::{self, Draw, MAX_CACHE, MAX_RECORDS, Payload, RECORDS};
use spanlock_bench::latency::{MAX_PARTS, PARTS};
use spanlock_bench::micro;
use spanlock_bench::pattern::{self, MAX_BYSTANDERS, Pattern};
use spanlock_bench::run::Trial;
use spanlock_bench::rw::{
    ENTRIES, INSIDE, Load, MAX_ENTRIES, MAX_PAUSE, MAX_POOL, MAX_WORK, OUTSIDE, PAUSE, WRITES,
};
use spanlock_bench::sets::{self, Chosen, KEYS, MAX_KEYS, MAX_STALL, Mix};
#[cfg(target_os = "linux")]
use spanlock_bench::store;
use spanlock_bench::vm::{self, Name, Pace, Traffic};
use spanlock_judge::record::plural;
use spanlock_judge::stats::distinct;
use spanlock_vm_trace::metis::{GROWTHS, MAX_GROWTHS, Program};
use spanlock_vm_trace::{samples, text};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

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

    /// Why its numbers contradict each other.
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
    #[arg(
        long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_value = "full,disjoint,random"
    )]
    variant: Vec<Variant>,
    /// The percentage of operations that read.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "PERCENT,...", default_value = "100,80,60")]
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
    #[arg(
        long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_values_t = Pattern::ALL,
        hide_default_value = true
    )]
    pattern: Vec<Pattern>,
    /// The percentage of operations that read. It does not apply to appends, sweeps and writes of everything.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "PERCENT,...", default_value = "100,90,50")]
    reads: Vec<Percent>,
    /// Further threads, which sleep meanwhile. Each has used another lock of the same kind once.
    #[arg(
        long, num_args = 1.., value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(..=i64::from(MAX_BYSTANDERS)),
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
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = number(1..=MAX_HOLD), default_value = "1,16", value_name = "N,...")]
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
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_values_t = Draw::ALL)]
    draw: Vec<Draw>,
    /// How much of a record is read: whole, or one word, which shows the cost of the alias alone.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_values_t = [Payload::Whole])]
    payload: Vec<Payload>,
}

#[derive(Args)]
pub(crate) struct StoredBlob {
    #[command(flatten)]
    blob: Blob,
    /// Aliases that each thread keeps.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = number(0..=MAX_CACHE), default_value = "0,8", value_name = "N,...")]
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
}

#[cfg(target_os = "linux")]
#[derive(Args)]
#[group(skip)] // the command has this name
pub(crate) struct Files {
    /// What threads do: dwom, dwol, drbm, drbl are FxMark's; mix-3-1 and mix-1-3 mix writes and reads of own pages;
    /// random-write and random-read use random pages of own regions, overlap-write and overlap-mixed those of all;
    /// hacc is HACC-IO.
    #[arg(
        long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_values_t = store::Kernel::ALL,
        hide_default_value = true
    )]
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
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_value = "uniform")]
    chosen: Vec<Chosen>,
    /// What threads do: updates (80 % search, 10 % insert, 10 % remove), scans (10 % scan 100 keys, 70 % search).
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_value = "updates")]
    mix: Vec<Mix>,
}

impl Workload for Sets {
    type Load = sets::Load;

    fn loads(&self) -> Vec<sets::Load> {
        self.with(0)
    }
}

/// On a simulated machine.
#[derive(Args)]
pub(crate) struct SimulatedSets {
    #[command(flatten)]
    sets: Sets,
    /// Cycles that each operation takes in addition. The machine's caches have no limit: this stands for the misses of
    /// a set that exceeds them, such as P1's of 8 M keys.
    #[arg(long, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_STALL)), default_value_t = 0, value_name = "CYCLES")]
    stall: u32,
}

impl Workload for SimulatedSets {
    type Load = sets::Load;

    fn loads(&self) -> Vec<sets::Load> {
        self.sets.with(self.stall)
    }
}

impl Sets {
    /// Each combination, with this.
    fn with(&self, stall: u32) -> Vec<sets::Load> {
        let keys = self.keys;
        let load = |(chosen, mix)| sets::Load {
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

/// The workloads of reader-writer locks. Besides its own numbers each has those of `R`.
#[derive(Subcommand)]
pub(crate) enum Loads<R: Args> {
    /// Threads read random locks of a pool: do locks get in each other's way?
    #[command(mut_arg("threads", |threads| threads.default_value("64")))] // the paper's
    Interference(With<Pool, R>),
    /// Threads read one after the other, in a ring.
    Alternator(R),
    /// Readers without a pause, and one writer.
    #[command(name = "test_rwlock")]
    TestRwlock(With<Pause, R>),
    /// Threads that read or write by chance.
    Rwbench(With<Writes, R>),
    /// Lookups in a hash table, with an inserter and an eraser.
    #[command(name = "hash_table")]
    HashTable(With<Entries, R>),
    /// Nothing but reading.
    Readers(R),
}

/// A workload's own numbers, and what it has in common with others.
#[derive(Args)]
pub(crate) struct With<W: Args, R: Args> {
    #[command(flatten)]
    own: W,
    #[command(flatten)]
    common: R,
}

#[derive(Args)]
pub(crate) struct Pool {
    /// Locks in the pool.
    #[arg(
        long, num_args = 1.., value_delimiter = ',', value_parser = number(1..=MAX_POOL), value_name = "N,...",
        default_value = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192"
    )]
    pool: Vec<usize>,
}

#[derive(Args)]
pub(crate) struct Pause {
    /// Work of the writer between its writes.
    #[arg(
        long, num_args = 1.., value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_PAUSE)),
        default_values_t = [PAUSE], value_name = "N,..."
    )]
    pause: Vec<u32>,
}

#[derive(Args)]
pub(crate) struct Writes {
    /// The part of operations that write, from 0 to 1.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = part, default_values_t = WRITES, value_name = "PART,...")]
    writes: Vec<f64>,
    /// Steps of work in the critical section.
    #[arg(long, value_parser = work(), default_value_t = INSIDE, value_name = "N")]
    inside: u32,
    /// The largest number of steps of work between critical sections; the number is drawn for each operation.
    #[arg(long, value_parser = work(), default_value_t = OUTSIDE, value_name = "N")]
    outside: u32,
}

fn work() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(..=i64::from(MAX_WORK))
}

#[derive(Args)]
pub(crate) struct Entries {
    /// Elements to begin with.
    #[arg(long, value_parser = number(1..=MAX_ENTRIES), default_value_t = ENTRIES, value_name = "N")]
    entries: usize,
}

impl<R: Args> Loads<R> {
    /// The workload with each of its numbers, and what it has in common with others.
    pub(crate) fn split(self) -> (Vec<Load>, R) {
        match self {
            Self::Interference(With { own, common }) => (
                all(each(&own.pool), |pool| Load::Interference { pool }),
                common,
            ),
            Self::Alternator(common) => (vec![Load::Alternator], common),
            Self::TestRwlock(With { own, common }) => (
                all(each(&own.pause), |pause| Load::TestRwlock { pause }),
                common,
            ),
            Self::Rwbench(With { own, common }) => {
                let load = |writes| Load::Rwbench {
                    writes,
                    inside: own.inside,
                    outside: own.outside,
                };
                (all(each(&own.writes), load), common)
            }
            Self::HashTable(With { own, common }) => {
                let entries = own.entries;
                (vec![Load::HashTable { entries }], common)
            }
            Self::Readers(common) => (vec![Load::Readers], common),
        }
    }
}

#[derive(Args)]
pub(crate) struct Space {
    /// What to replay: wc, wr or wrmem (the patterns of these Metis programs, for any number of threads), a recorded
    /// trace (`vm list` names them), or the file of a trace.
    #[arg(required = true, value_parser = traffic, value_name = "TRACE")]
    traffic: Vec<Traffic>,
    /// What threads do between calls and faults.
    #[arg(long, num_args = 1.., value_delimiter = ',', default_values_t = [Pace::FlatOut], value_name = "NAME,...")]
    pace: Vec<Pace>,
    /// How often the heaps in a pattern grow, all threads together.
    #[arg(long, value_parser = number(1..=MAX_GROWTHS), default_value_t = GROWTHS, value_name = "N")]
    growths: usize,
}

/// A trace or a pattern. Traces are kept: the command runs once.
fn traffic(text: &str) -> Result<Traffic, String> {
    if let Ok(program) = text.parse::<Program>() {
        return Ok(Traffic::Pattern(program, GROWTHS));
    }
    let recorded = |name: &str, trace| {
        let trace: &'static _ = Box::leak(Box::new(trace));
        Traffic::Recorded(Name::new(name), trace)
    };
    let sample = samples::ALL.iter().find(|sample| sample.name == text);
    if let Some(sample) = sample {
        let trace = sample.read().map_err(|error| error.to_string())?;
        return Ok(recorded(text, trace));
    }
    let file = File::open(text).map_err(|error| {
        format!("{error}, and no recorded trace has that name: `spanlock vm list` lists them")
    })?;
    let trace = text::read(BufReader::new(file)).map_err(|error| error.to_string())?;
    if trace.events.is_empty() {
        return Err("the trace has no events".to_owned());
    }
    let name = Path::new(text)
        .file_stem()
        .map_or(text.into(), |name| name.to_string_lossy());
    Ok(recorded(&name, trace))
}

impl Workload for Space {
    type Load = vm::Load;

    fn loads(&self) -> Vec<vm::Load> {
        let traffic = self.traffic.iter().map(|&traffic| match traffic {
            Traffic::Pattern(program, _) => Traffic::Pattern(program, self.growths),
            recorded @ Traffic::Recorded(..) => recorded,
        });
        let loads = turns(traffic, &each(&self.pace));
        all(loads, |(pace, traffic)| vm::Load { traffic, pace })
    }

    /// Why some of these numbers of threads are too many.
    fn contradiction(&self, threads: &[usize]) -> Option<String> {
        let most = threads.iter().max()?;
        let short = self
            .traffic
            .iter()
            .find(|traffic| traffic.most_threads() < *most)?;
        Some(format!(
            "{} on {most}: the trace has {}; the patterns wc, wr and wrmem have as many as are asked for",
            short.name(),
            plural(short.most_threads())
        ))
    }
}

impl<L: Copy> Workload for Vec<L> {
    type Load = L;

    fn loads(&self) -> Self {
        self.clone()
    }
}
