//! Reader-writer locks: throughput, ratios to the floor, and the effect of a bias on the lock below it.

use super::grid::{grid, idle, legend};
use super::layout::Table;
use super::{Width, groups, measured, or_dash, report};
use spanlock_records::record::lock::{FLOOR, Lock, NULL, PRELOADED, PTHREAD};
use spanlock_records::record::provenance::Provenance;
use spanlock_records::record::{Record, plural};
use spanlock_records::stats::{Summary, distinct, ends};
use std::fmt::Write;

/// A biased lock below this fraction of its underlying lock does harm.
const HARM: f64 = 0.95;

/// A table for each workload, with a column for each number of threads; of locks in a pool a table for each number of
/// threads, with a column for each size of the pool.
#[must_use]
pub fn rw(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let mut text = String::new();
    let column = |run: &Record| place(run).1;
    for runs in groups(records, |run| place(run).0) {
        let table = grid(runs.iter().copied(), column, width);
        let _ = writeln!(text, "{}\n{table}", place(runs[0]).0);
        if runs.iter().any(|run| run.lock.name == FLOOR) {
            let columns = distinct(runs.iter().map(|run| column(run)));
            let mut table = Table::new(1, ["lock"], &columns);
            for lock in distinct(runs.iter().map(|run| &run.lock.name)) {
                let cells = columns.iter().map(|&number| {
                    let here = runs.iter().copied();
                    let here = here.filter(|run| column(run) == number);
                    let ratio = ratio(&pairs(here, lock, FLOOR));
                    or_dash(ratio.map(|ratio| format!("{:.2}", ratio.median)))
                });
                table.add_row([lock], cells);
            }
            let ratios = table.text(width);
            let _ = writeln!(text, "the same, as parts of {FLOOR}\n{ratios}");
        }
    }
    report(&format!("{text}{}\n", legend(records)), provenance, width)
}

/// The table that a run belongs to, and its column there.
fn place(run: &Record) -> (String, usize) {
    const UNIT: &str = "million operations per second";
    match (run.panel, run.panel.number("pool")) {
        (panel, Some(pool)) => {
            let threads = plural(run.threads);
            let workload = panel.workload();
            let title = format!("{workload}, {threads}: {UNIT} by locks in the pool");
            (title, pool)
        }
        (panel, None) => (format!("{panel}: {UNIT} by threads"), run.threads),
    }
}

/// A run and the run that it is compared with.
type Pair<'a> = (&'a Record, &'a Record);

/// Each run of `other`, and the nearest run of `lock` in the same repeat: a machine that drifts slows both alike.
fn pairs<'a>(records: impl Iterator<Item = &'a Record>, lock: &str, other: &str) -> Vec<Pair<'a>> {
    let records: Vec<_> = records.enumerate().collect();
    let of = |name: &str| {
        let runs = records.iter().filter(move |(_, run)| run.lock.name == name);
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

/// Throughput of a lock as a fraction of another's, over all pairs.
fn ratio(pairs: &[Pair<'_>]) -> Option<Summary> {
    let some = |of: &Record| of.ops_per_sec.filter(|&ops| ops > 0.0);
    let ratio = |(run, other): &Pair<'_>| Some(run.ops_per_sec? / some(other)?);
    Summary::of(pairs.iter().filter_map(ratio))
}

/// The reads and the writes of two locks: a lock that lets writers in may do less in sum than a lock that starves them.
fn shares(pairs: &[Pair<'_>]) -> String {
    type Rate = fn(&Record) -> f64;
    let rates: [(&str, Rate); 2] = [
        ("reads", |record| record.reads_per_sec),
        ("writes", |record| record.writes_per_sec),
    ];
    let shares = rates.map(|(what, rate)| {
        let middle =
            |rates: Vec<f64>| or_dash(Summary::of(rates).map(|rate| format!("{:.0}", rate.median)));
        let ours = middle(pairs.iter().map(|(run, _)| rate(run)).collect());
        let theirs = middle(pairs.iter().map(|(_, run)| rate(run)).collect());
        format!("{what} {theirs} -> {ours}")
    });
    format!("a second: {}", shares.join(", "))
}

/// Pairs of runs that are worth comparing, and the number of those that are not.
#[derive(Default)]
struct Comparison {
    compared: usize,
    left_out: usize,
    /// The number of ratios that were held to the limit, and a line for each below it.
    judged: usize,
    harmed: String,
}

impl Comparison {
    /// The pairs of a lock with another during which handoffs did not change.
    fn pairs<'a>(
        &mut self,
        records: impl Iterator<Item = &'a Record>,
        lock: &str,
        other: &str,
    ) -> Vec<Pair<'a>> {
        let mut pairs = pairs(records, lock, other);
        let all = pairs.len();
        pairs.retain(|(run, other)| run.is_comparable(other));
        self.compared += pairs.len();
        self.left_out += all - pairs.len();
        pairs
    }

    /// Holds a ratio to the limit. Below it, notes harm `at` this place and returns true.
    fn is_harm(&mut self, at: &str, ratio: Summary, of: &str, pairs: &[Pair<'_>]) -> bool {
        self.judged += 1;
        let is_harm = ratio.median < HARM;
        if is_harm {
            let (median, shares) = (ratio.median, shares(pairs));
            let _ = writeln!(self.harmed, "  {at} {median:.2}{of}; {shares}");
        }
        is_harm
    }

    /// The duration of handoffs meanwhile, and the harm.
    fn text(&self, records: &[Record], than: &str) -> String {
        let took = records.iter().filter_map(|record| record.handoff_ns);
        let handoffs = match ends(took.flatten()) {
            None => {
                "how long a cache line took from one processor to another is not known".to_owned()
            }
            Some((shortest, longest)) => format!(
                "a cache line took {shortest:.0} to {longest:.0} ns from one processor to another; \
                 {} of {} pairs of runs are left out because that changed by more than a factor of two",
                self.left_out,
                self.compared + self.left_out
            ),
        };
        let verdict = match self {
            Self { judged: 0, .. } => "nothing could be compared\n".to_owned(),
            Self { harmed, .. } if harmed.is_empty() => {
                format!("none is below {HARM} of {than}\n")
            }
            Self { harmed, .. } => format!("below {HARM} of {than}:\n{harmed}"),
        };
        format!("{handoffs}\n{}\n{verdict}\n", idle(records))
    }
}

/// Each biased lock as a fraction of its underlying lock, by policy, and a line for each that does harm.
#[must_use]
pub fn harm(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let locks = distinct(records.iter().map(|record| &record.lock)).into_iter();
    let made: Vec<&Lock> = locks.filter(|lock| lock.policy.is_some()).collect();
    let bases = distinct(made.iter().map(|lock| lock.family.as_str()));
    let policies = distinct(made.iter().filter_map(|lock| lock.policy.as_deref()));
    let columns = policies.iter().chain(&["no lock"]);
    let mut table = Table::new(3, ["workload", "threads", "lock"], columns);
    let mut comparison = Comparison::default();
    for runs in groups(records, |run| (run.panel, run.threads)) {
        let (panel, threads) = (runs[0].panel, runs[0].threads);
        for &base in &bases {
            if !runs.iter().any(|run| run.lock.name == base) {
                continue;
            }
            let mut cells = Vec::new();
            for &policy in &policies {
                let mut family = made.iter().filter(|lock| lock.family == base);
                let lock = family.find(|lock| lock.policy.as_deref() == Some(policy));
                let name = lock.map_or("", |lock| &lock.name);
                let is_control = lock.is_some_and(|lock| lock.is_control());
                let pairs = comparison.pairs(runs.iter().copied(), name, base);
                let part = ratio(&pairs);
                let at = format!("{panel}, {}: {name} is", plural(threads));
                let is_harm = part.is_some_and(|part| {
                    !is_control && comparison.is_harm(&at, part, &format!(" of {base}"), &pairs)
                });
                let mark = match part {
                    Some(_) if is_harm => "!",
                    Some(_) => " ",
                    None => "",
                };
                cells.push(measured(part, 1.0, 2) + mark);
            }
            let no_lock = comparison.pairs(runs.iter().copied(), NULL, base);
            cells.push(measured(ratio(&no_lock), 1.0, 2));
            let names = [panel.to_string(), threads.to_string(), base.to_owned()];
            table.add_row(names, cells);
        }
    }
    let text = format!(
        "throughput of biased locks as parts of their underlying lock's, by policy\n{}\
         median of the ratios in each repeat ±half the distance between extremes; ! below {HARM}\n\
         again: the underlying lock itself, of the same size and compiled once more: what chance does to a ratio\n\
         no lock: the same without a lock; where that is below 1, the placement of code and data decides\n\
         each run is a process of its own, with a new random placement of code and data\n{}",
        table.text(width),
        comparison.text(records, "its underlying lock"),
    );
    report(&text, provenance, width)
}

/// The C library's lock with the preload library as a fraction of the same lock without.
#[must_use]
pub fn preload(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let columns = distinct(records.iter().map(|record| record.threads));
    let mut table = Table::new(1, ["workload"], &columns);
    let mut comparison = Comparison::default();
    for runs in groups(records, |run| run.panel) {
        let panel = runs[0].panel;
        let cells = columns.iter().map(|&threads| {
            let here = runs.iter().copied();
            let here = here.filter(|run| run.threads == threads);
            let pairs = comparison.pairs(here, PRELOADED, PTHREAD);
            let part = ratio(&pairs);
            if let Some(part) = part {
                let at = format!("{panel}, {}:", plural(threads));
                comparison.is_harm(&at, part, "", &pairs);
            }
            measured(part, 1.0, 2)
        });
        table.add_row([panel], cells.collect::<Vec<_>>());
    }
    let text = format!(
        "throughput of {PTHREAD} with the preload library as a part of that without, by threads\n{}\
         median of the ratios in each repeat ±half the distance between extremes\n{}",
        table.text(width),
        comparison.text(records, "stock"),
    );
    report(&text, provenance, width)
}
