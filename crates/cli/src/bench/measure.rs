//! Measurements step by step, and how often and how long each is.

use crate::failure::{Failure, Result};
use crate::options::{Format, Output, Seed, Threads, seconds, seconds_or_none, times};
use crate::output::{print, print_lines, provenance, width};
use crate::progress::Progress;
use crate::workloads::{trials, turns};
use clap::Args;
use spanlock_bench::processor;
use spanlock_bench::provenance;
use spanlock_bench::workload::{Subject, measure, name, refused};
use spanlock_records::record::provenance::Provenance;
use spanlock_records::record::{Line, Panel, SetMemory};
use spanlock_records::trial::counters::Event;
use spanlock_records::trial::run::{Schedule, Trial};
use spanlock_report::compare::busy;
use spanlock_report::table::{self, Width};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// How a workload is sampled, and how the results are written.
#[derive(Args)]
pub(crate) struct Sampling {
    #[command(flatten)]
    threads: Threads,
    /// Measurements of each point; they take turns over the locks.
    #[arg(long, value_parser = times(), default_value_t = 3, value_name = "N")]
    repeat: u32,
    #[command(flatten)]
    seed: Seed,
    /// Length of each measurement.
    #[arg(long, value_parser = seconds, default_value = "0.05")]
    seconds: Option<Duration>,
    /// Time that threads already work before each measurement.
    #[arg(long, value_parser = seconds_or_none, default_value = "0.01", value_name = "SECONDS")]
    warmup: Duration,
    #[command(flatten)]
    pub(super) output: Output,
}

impl Sampling {
    /// All trials of these panels: repeats outside, numbers and threads inside.
    pub(super) fn trials(&self, panels: &[Panel]) -> Vec<Trial<Panel>> {
        self.counting(panels, &[])
    }

    fn counting(&self, panels: &[Panel], events: &'static [Event]) -> Vec<Trial<Panel>> {
        let schedule = self.seconds.map_or(Schedule::NONE, |measured| Schedule {
            warmup: self.warmup,
            measured,
        });
        let threads = self.threads.numbers();
        let trials = (0..self.repeat).flat_map(|repeat| {
            let run = Trial {
                events,
                repeat,
                ..Trial::new(schedule, self.seed.seed)
            };
            trials(panels, &threads, run)
        });
        trials.collect()
    }
}

/// The same, and whether hardware events are counted.
#[derive(Args)]
pub(crate) struct Counted {
    /// Count cycles, instructions and L1 data misses per operation, if the machine can; this costs a little.
    #[arg(long)]
    counters: bool,
    #[command(flatten)]
    sampling: Sampling,
}

/// Takes all trials of some panels on all locks, and reports them beside the `memory` of some.
pub(crate) fn compared<S: Subject>(
    panels: &[Panel],
    locks: &[S],
    sampled: &Counted,
    memory: &[SetMemory],
) -> Result {
    let events = if sampled.counters {
        Event::HARDWARE
    } else {
        &[]
    };
    let trials = sampled.sampling.counting(panels, events);
    if let Some(what) = trials.iter().find_map(refused) {
        return Err(Failure::Arguments(what));
    }
    let output = &sampled.sampling.output;
    let beside = |width| match memory {
        [] => String::new(),
        memory => table::set_bytes(memory, width),
    };
    measured(
        output,
        turns(trials, locks),
        |(lock, trial)| name(trial, *lock),
        |(lock, trial)| measure(*trial, *lock).map_err(Failure::Check),
        Line::from,
        |records, provenance, width| table::runs(records, &beside(width), provenance, width),
    )?;
    match output.format {
        Format::Json => print_lines(memory.iter().cloned().map(Line::SetMemory)),
        Format::Table => Ok(()),
    }
}

/// Rounds of so many acquisitions and releases by one thread.
#[derive(Args)]
pub(super) struct Pairs {
    /// Rounds, in which locks take turns.
    #[arg(long, value_parser = times(), default_value_t = 5, value_name = "N")]
    pub(super) repeat: u32,
    /// Acquisitions and releases in each round.
    #[arg(long, value_parser = times(), default_value_t = 200_000, value_name = "N")]
    pub(super) pairs: u32,
    #[command(flatten)]
    pub(super) output: Output,
}

/// Enough time slices to see whether other programs run, and no wait for a person.
const LOOK: Duration = Duration::from_millis(100);

/// Takes all steps, and reports each as it is done (JSON) or all in the end (table). Returns what was measured.
pub(crate) fn measured<S, R: Clone>(
    output: &Output,
    steps: Vec<S>,
    describe: impl Fn(&S) -> String,
    mut take: impl FnMut(&S) -> Result<R>,
    line: impl Fn(R) -> Line,
    table: impl Fn(&[R], &Provenance, Width) -> String,
) -> Result<Vec<R>> {
    // Who reads the rest later finds it below the tables.
    if io::stderr().is_terminal()
        && let Some(busy) = processor::share_of_all(LOOK).and_then(busy)
    {
        eprintln!("doubtful: {busy}");
    }
    let provenance = provenance(provenance::here);
    if output.format == Format::Json {
        print_lines([Line::Meta(provenance.clone())])?;
    }
    let progress = Progress::new(steps.len());
    let mut records = Vec::new();
    for step in &steps {
        let name = describe(step);
        progress.step(&name);
        let record = take(step).map_err(|failure| failure.in_step(&name))?;
        if output.format == Format::Json {
            progress.aside(|| print_lines([line(record.clone())]))?;
        }
        records.push(record);
        progress.done();
    }
    drop(progress);
    if output.format == Format::Table {
        print(&table(&records, &provenance, width()))?;
    }
    Ok(records)
}
