//! Measurements step by step, and how often and how long each is.

use crate::failure::{Failure, Result};
use crate::options::{Format, Output, Seed, Threads, seconds, seconds_or_none, times};
use crate::output::{print, print_lines, provenance, width};
use crate::progress::Progress;
use crate::workloads::Workload;
use clap::Args;
use spanlock_bench::counters::Event;
use spanlock_bench::provenance::{self, Provenance, cores};
use spanlock_bench::run::{Schedule, Trial};
use spanlock_judge::compare::Dataset;
use spanlock_judge::record::{Line, Record};
use spanlock_judge::table::{self, Width};
use std::time::Duration;

/// How long and how often, and how results are written.
#[derive(Args)]
pub(super) struct Sampling {
    /// Length of each measurement.
    #[arg(long, value_parser = seconds, default_value = "0.05", allow_negative_numbers = true)]
    seconds: Duration,
    /// Time that threads already work before each measurement.
    #[arg(long, value_parser = seconds_or_none, default_value = "0.01", value_name = "SECONDS", allow_negative_numbers = true)]
    warmup: Duration,
    /// Measurements of each point; they take turns over the locks.
    #[arg(long, value_parser = times(), default_value_t = 3, value_name = "N", allow_negative_numbers = true)]
    repeat: u32,
    #[command(flatten)]
    seed: Seed,
    #[command(flatten)]
    pub(super) output: Output,
}

impl Sampling {
    /// All trials of a workload: repeats outside, numbers and threads inside.
    pub(super) fn trials<W: Workload>(
        &self,
        workload: &W,
        threads: &Threads,
        events: &'static [Event],
    ) -> Vec<Trial<W::Load>> {
        let threads = threads.numbers();
        let schedule = Schedule {
            warmup: self.warmup,
            measured: self.seconds,
        };
        let repeats = (0..self.repeat).map(|repeat| Trial {
            events,
            repeat,
            ..Trial::new(schedule, self.seed.seed)
        });
        repeats
            .flat_map(|run| workload.trials(&threads, run))
            .collect()
    }
}

/// Numbers of threads, and what is counted and how often.
#[derive(Args)]
pub(super) struct Counted {
    #[command(flatten)]
    threads: Threads,
    /// Count cycles, instructions and L1 data misses per operation, if the machine can; this costs a little.
    #[arg(long)]
    counters: bool,
    #[command(flatten)]
    pub(super) sampling: Sampling,
}

impl Counted {
    /// All trials of a workload, in the order of [`Sampling::trials`].
    pub(super) fn trials<W: Workload>(&self, workload: &W) -> Vec<Trial<W::Load>> {
        let events = if self.counters { Event::HARDWARE } else { &[] };
        self.sampling.trials(workload, &self.threads, events)
    }

    /// As [`measured`], of records; in the end, says what they show.
    pub(super) fn compared<S>(
        &self,
        steps: Vec<S>,
        describe: impl Fn(&S) -> String,
        take: impl Fn(&S) -> std::result::Result<Record, String>,
        table: impl Fn(&[Record], &Provenance, Width) -> String,
    ) -> Result {
        let output = &self.sampling.output;
        let take = |step: &S| take(step).map_err(Failure::Check);
        let records = measured(output, steps, describe, take, Line::from, table)?;
        match output.format {
            Format::Json => print_lines(table::conclusions(&Dataset::of(&records), cores())),
            Format::Table => Ok(()),
        }
    }
}

/// Rounds of so many acquisitions and releases by one thread.
#[derive(Args)]
pub(super) struct Pairs {
    /// Rounds, in which locks take turns.
    #[arg(long, value_parser = times(), default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    pub(super) repeat: u32,
    /// Acquisitions and releases in each round.
    #[arg(long, value_parser = times(), default_value_t = 200_000, value_name = "N", allow_negative_numbers = true)]
    pub(super) pairs: u32,
    #[command(flatten)]
    pub(super) output: Output,
}

/// Takes all steps, and reports each as it is done (JSON) or all in the end (table). Returns what was measured.
pub(crate) fn measured<S, R: Clone>(
    output: &Output,
    steps: Vec<S>,
    describe: impl Fn(&S) -> String,
    mut take: impl FnMut(&S) -> Result<R>,
    line: impl Fn(R) -> Line,
    table: impl Fn(&[R], &Provenance, Width) -> String,
) -> Result<Vec<R>> {
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
