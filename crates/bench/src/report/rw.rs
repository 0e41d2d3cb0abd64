//! Reader-writer locks: throughput, ratios to the floor, and what a bias does to the lock it is made of.

use super::panel::{Point, legend, panel};
use super::{SPREADS, Table, Width, measured, or_dash, source, wrapped};
use crate::compare::{distinct, plural};
use crate::provenance::Provenance;
use crate::rw::locks::{FLOOR, NULL, PRELOADED, PTHREAD, exclusion, families, is_control};
use crate::rw::{Load, Record};
use crate::rw::{revocation, uncontended};
use crate::stats::Summary;
use std::fmt::Write;

/// A biased lock below this part of its underlying lock does harm.
const HARM: f64 = 0.95;

/// Tables: one per workload, a row for each lock, a column for each number of threads; of locks in a pool one per
/// number of threads, with a column for each size of the pool.
#[must_use]
pub fn rw(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let mut text = String::new();
    for title in distinct(records.iter().map(|record| place(record).0)) {
        let here: Vec<_> = records
            .iter()
            .filter(|record| place(record).0 == title)
            .collect();
        let points: Vec<_> = here
            .iter()
            .map(|record| Point {
                lock: &record.lock,
                exclusion: exclusion(&record.lock),
                column: place(record).1,
                ops_per_sec: Ok(record.ops_per_sec),
            })
            .collect();
        let _ = writeln!(text, "{title}\n{}", panel(&points, width));
        if let Some(ratios) = of_floor(&here, width) {
            let _ = writeln!(text, "the same, as parts of {FLOOR}\n{ratios}");
        }
    }
    wrapped(
        &format!("{text}{}\n{}", legend(), source(provenance)),
        width,
    )
}

/// The table that a run belongs to, and its column there.
fn place(record: &Record) -> (String, usize) {
    const UNIT: &str = "million operations per second";
    match record.load {
        Load::Interference { pool } => {
            let threads = plural(record.threads);
            let title = format!("interference, {threads}: {UNIT} by locks in the pool");
            (title, pool)
        }
        load => (format!("{load}: {UNIT} by threads"), record.threads),
    }
}

/// Ratios to the floor within each repeat, if it was measured: in the middle of all repeats.
fn of_floor(here: &[&Record], width: Width) -> Option<String> {
    here.iter().find(|record| record.lock == FLOOR)?;
    let columns = distinct(here.iter().map(|record| place(record).1));
    let header = std::iter::once("lock".to_owned()).chain(columns.iter().map(usize::to_string));
    let mut table = Table::new(1, header);
    for lock in distinct(here.iter().map(|record| &record.lock)) {
        let cells = columns.iter().map(|&column| {
            let there = here.iter().copied();
            let there = there.filter(|record| place(record).1 == column);
            let ratio = ratio(&pairs(there, lock, FLOOR));
            or_dash(ratio.map(|ratio| format!("{:.2}", ratio.median)))
        });
        table.add_row(std::iter::once(lock.clone()).chain(cells));
    }
    Some(table.text(width))
}

/// A run and the one that it is compared with.
type Pair<'a> = (&'a Record, &'a Record);

/// Runs of a lock beside those of another in the same repeat that were nearest, so that a machine that drifts does to
/// both the same.
fn pairs<'a>(records: impl Iterator<Item = &'a Record>, lock: &str, other: &str) -> Vec<Pair<'a>> {
    let records: Vec<_> = records.enumerate().collect();
    let of = |name: &str| {
        let runs = records.iter().filter(move |(_, run)| run.lock == name);
        runs.copied().collect::<Vec<_>>()
    };
    let runs = of(lock);
    let beside = |(at, other): (usize, &'a Record)| {
        let same = runs.iter().filter(|(_, run)| run.repeat == other.repeat);
        let (_, run) = same.min_by_key(|(place, _)| place.abs_diff(at))?;
        Some((*run, other))
    };
    of(other).into_iter().filter_map(beside).collect()
}

/// Throughput of a lock as a part of another's.
fn ratio(pairs: &[Pair<'_>]) -> Option<Summary> {
    let ratios = pairs.iter();
    Summary::of(ratios.map(|(run, other)| run.ops_per_sec / other.ops_per_sec))
}

/// What readers and writers have of two locks: a lock that lets writers in may do less in sum than one that starves them.
fn shares(pairs: &[Pair<'_>]) -> String {
    type Rate = fn(&Record) -> f64;
    let rates: [(&str, Rate); 2] = [
        ("reads", |record| record.reads_per_sec),
        ("writes", |record| record.writes_per_sec),
    ];
    let told = rates.map(|(what, rate)| {
        let middle =
            |rates: Vec<f64>| or_dash(Summary::of(rates).map(|rate| format!("{:.0}", rate.median)));
        let ours = middle(pairs.iter().map(|(run, _)| rate(run)).collect());
        let theirs = middle(pairs.iter().map(|(_, run)| rate(run)).collect());
        format!("{what} {theirs} -> {ours}")
    });
    format!("a second: {}", told.join(", "))
}

/// Pairs of runs that are worth comparing, and how many were not.
#[derive(Default)]
struct Comparison {
    compared: usize,
    left_out: usize,
    /// How many ratios were held to the limit, and a line for each below it.
    judged: usize,
    harmed: String,
}

impl Comparison {
    /// Those during which handoffs did not change.
    fn keep<'a>(&mut self, mut pairs: Vec<Pair<'a>>) -> Vec<Pair<'a>> {
        let all = pairs.len();
        pairs.retain(|(run, other)| run.is_comparable(other));
        self.compared += pairs.len();
        self.left_out += all - pairs.len();
        pairs
    }

    /// Holds a ratio to the limit: whether it is below.
    fn judge(&mut self, ratio: Summary) -> bool {
        self.judged += 1;
        ratio.median < HARM
    }

    fn verdict(&self, than: &str) -> String {
        match self {
            Self { judged: 0, .. } => "nothing could be compared\n".to_owned(),
            Self { harmed, .. } if harmed.is_empty() => {
                format!("none is below {HARM} of {than}\n")
            }
            Self { harmed, .. } => format!("below {HARM} of {than}:\n{harmed}"),
        }
    }

    /// How long a handoff took meanwhile.
    fn handoffs(&self, records: &[Record]) -> String {
        let took = records.iter().filter_map(|record| record.handoff_ns);
        let took: Vec<_> = took.flatten().collect();
        let shortest = took.iter().copied().min_by(f64::total_cmp);
        let longest = took.iter().copied().max_by(f64::total_cmp);
        let told = shortest.zip(longest).map(|(shortest, longest)| {
            let Self {
                compared, left_out, ..
            } = self;
            format!(
                "a cache line took {shortest:.0} to {longest:.0} ns from one processor to another; \
                 {left_out} of {} pairs of runs are left out because that changed by more than a factor of two\n",
                compared + left_out
            )
        });
        told.unwrap_or_else(|| {
            "how long a cache line took from one processor to another is not known\n".to_owned()
        })
    }
}

/// A table of what each biased lock does as a part of its underlying lock, and a line for each that does harm.
#[must_use]
pub fn harm(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let families = families();
    let over = families.iter().flat_map(|(_, made)| made);
    let policies = distinct(over.filter_map(|lock| Some(lock.over?.policy)));
    let header = ["workload", "threads", "lock"].map(str::to_owned);
    let header = header.into_iter();
    let columns = policies.iter().copied().chain(["no lock"]);
    let mut table = Table::new(3, header.chain(columns.map(str::to_owned)));
    let mut comparison = Comparison::default();
    let place = |record: &Record| (record.load, record.threads);
    for (load, threads) in distinct(records.iter().map(place)) {
        let here = records
            .iter()
            .filter(|record| place(record) == (load, threads));
        let measured_here = families
            .iter()
            .filter(|(base, _)| here.clone().any(|run| run.lock == base.name));
        for (base, made) in measured_here {
            let mut cells = vec![load.to_string(), threads.to_string(), base.name.to_owned()];
            for &policy in &policies {
                let lock = made
                    .iter()
                    .find(|lock| lock.over.is_some_and(|over| over.policy == policy));
                let name = lock.map_or("", |lock| lock.name);
                let pairs = comparison.keep(pairs(here.clone(), name, base.name));
                let part = ratio(&pairs);
                let harm = part.filter(|&part| !is_control(name) && comparison.judge(part));
                let mark = if harm.is_some() { "!" } else { " " };
                cells.push(or_dash(part.map(|part| measured(part, 1.0, 2) + mark)));
                if let Some(part) = harm {
                    let (base, median, shares) = (base.name, part.median, shares(&pairs));
                    let threads = plural(threads);
                    let _ = writeln!(
                        comparison.harmed,
                        "  {load}, {threads}: {name} is {median:.2} of {base}; {shares}"
                    );
                }
            }
            let no_lock = comparison.keep(pairs(here.clone(), NULL, base.name));
            cells.push(or_dash(ratio(&no_lock).map(|part| measured(part, 1.0, 2))));
            table.add_row(cells);
        }
    }
    let text = format!(
        "throughput of biased locks as parts of their underlying lock's, by policy\n{}\
         median of the ratios in each repeat ±half the distance between extremes; ! below {HARM}\n\
         again: the underlying lock itself, as large and compiled once more: what chance makes of a ratio\n\
         no lock: the same without any; below 1 even that is slower, and where code and data lie decides\n\
         each run is a process of its own, so that where code and data lie is drawn anew\n{}\n{}\n{}",
        table.text(width),
        comparison.handoffs(records),
        comparison.verdict("its underlying lock"),
        source(provenance)
    );
    wrapped(&text, width)
}

/// A row for each workload, a column for each number of threads: what preloading makes of the C library's lock.
#[must_use]
pub fn preload(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let columns = distinct(records.iter().map(|record| record.threads));
    let header = std::iter::once("workload".to_owned()).chain(columns.iter().map(usize::to_string));
    let mut table = Table::new(1, header);
    let mut comparison = Comparison::default();
    for load in distinct(records.iter().map(|record| record.load)) {
        let cells = columns.iter().map(|&threads| {
            let here = records.iter();
            let here = here.filter(|record| (record.load, record.threads) == (load, threads));
            let pairs = comparison.keep(pairs(here, PRELOADED, PTHREAD));
            let part = ratio(&pairs)?;
            if comparison.judge(part) {
                let (median, shares) = (part.median, shares(&pairs));
                let _ = writeln!(
                    comparison.harmed,
                    "  {load}, {}: {median:.2}; {shares}",
                    plural(threads)
                );
            }
            Some(measured(part, 1.0, 2))
        });
        let cells: Vec<_> = cells.map(or_dash).collect();
        table.add_row(std::iter::once(load.to_string()).chain(cells));
    }
    let text = format!(
        "throughput of {PTHREAD} with the preload library as part of the same without, by threads\n{}\
         median of the ratios in each repeat ±half the distance between extremes\n{}\n{}\n{}",
        table.text(width),
        comparison.handoffs(records),
        comparison.verdict("stock"),
        source(provenance)
    );
    wrapped(&text, width)
}

/// A table with a row for each size of the table of visible readers.
#[must_use]
pub fn rw_revocation(
    records: &[revocation::Record],
    provenance: &Provenance,
    width: Width,
) -> String {
    let mut table = Table::new(1, ["rows in use", "fence ns", "scan ns"]);
    for rows in distinct(records.iter().map(|record| record.rows)) {
        let here = records.iter().filter(|record| record.rows == rows);
        let fence = Summary::of(here.clone().map(|record| record.fence_ns));
        let scan = Summary::of(here.map(|record| record.scan_ns));
        let cells = [fence, scan].map(|cost| or_dash(cost.map(|cost| measured(cost, 1.0, 0))));
        table.add_row(std::iter::once(rows.to_string()).chain(cells));
    }
    let text = format!(
        "what a writer that revokes a bias pays\n{}\
         {SPREADS}\n\n{}",
        table.text(width),
        source(provenance)
    );
    wrapped(&text, width)
}

/// A table with a row for each lock.
#[must_use]
pub fn rw_uncontended(
    records: &[uncontended::Record],
    provenance: &Provenance,
    width: Width,
) -> String {
    type Cost = fn(&uncontended::Record) -> f64;
    let modes: [Cost; 2] = [|record| record.read_ns, |record| record.write_ns];
    let cost = |lock: &str, mode: Cost| {
        let rounds = records.iter().filter(|record| record.lock == lock);
        Summary::of(rounds.map(mode))
    };
    let header = ["lock", "read ns", "of floor", "write ns", "of floor"];
    let mut table = Table::new(1, header);
    for lock in distinct(records.iter().map(|record| &record.lock)) {
        let cells = modes.iter().flat_map(|&mode| {
            let cost_here = cost(lock, mode);
            let floor = cost(FLOOR, mode);
            let part = cost_here.zip(floor);
            let part = part.map(|(cost, floor)| format!("{:.2}", cost.median / floor.median));
            [
                or_dash(cost_here.map(|cost| measured(cost, 1.0, 1))),
                or_dash(part),
            ]
        });
        table.add_row(std::iter::once(lock.clone()).chain(cells));
    }
    let text = format!(
        "one thread, acquisition and release; floor: {FLOOR}\n{}\
         {SPREADS}\n\n{}",
        table.text(width),
        source(provenance)
    );
    wrapped(&text, width)
}
