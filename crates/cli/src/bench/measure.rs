//! Measurements step by step, and how often and how long each is.

use crate::failure::{Failure, Result};
use crate::options::{Format, Locks, Output, Seed, Threads, seconds, seconds_or_none, times};
use crate::output::{print, print_lines, provenance, width};
use crate::progress::Progress;
use crate::workloads::{Workload, turns};
use clap::Args;
use spanlock_bench::provenance::{self, cores};
use spanlock_bench::workload::{Workload as Measured, measure, name};
use spanlock_records::record::provenance::Provenance;
use spanlock_records::record::{Line, SetMemory};
use spanlock_records::trial::counters::Event;
use spanlock_records::trial::run::{Schedule, Trial};
use spanlock_report::table::{self, Width};
use std::time::Duration;

/// How a workload is sampled, and how the results are written.
pub(crate) trait Sampled: Args {
    fn repeated(&self) -> &Repeated;

    fn schedule(&self) -> Schedule {
        Schedule::NONE
    }

    fn events(&self) -> &'static [Event] {
        &[]
    }

    fn output(&self) -> &Output {
        &self.repeated().output
    }

    /// The numbers of threads, each once.
    fn threads(&self) -> Vec<usize> {
        self.repeated().threads.numbers()
    }

    /// All trials of a workload: repeats outside, numbers and threads inside.
    fn trials<W: Workload>(&self, workload: &W) -> Vec<Trial<W::Load>> {
        let Repeated { repeat, seed, .. } = self.repeated();
        let threads = self.threads();
        let trials = (0..*repeat).flat_map(|repeat| {
            let run = Trial {
                events: self.events(),
                repeat,
                ..Trial::new(self.schedule(), seed.seed)
            };
            workload.trials(&threads, run)
        });
        trials.collect()
    }
}

/// Numbers of threads, and how often. What ends by itself needs no more.
#[derive(Args)]
pub(crate) struct Repeated {
    #[command(flatten)]
    threads: Threads,
    /// Measurements of each point; they take turns over the locks.
    #[arg(long, value_parser = times(), default_value_t = 3, value_name = "N")]
    pub(super) repeat: u32,
    #[command(flatten)]
    seed: Seed,
    #[command(flatten)]
    output: Output,
}

impl Sampled for Repeated {
    fn repeated(&self) -> &Repeated {
        self
    }
}

/// The same, and how long.
#[derive(Args)]
pub(super) struct Sampling {
    #[command(flatten)]
    repeated: Repeated,
    /// Length of each measurement.
    #[arg(long, value_parser = seconds, default_value = "0.05")]
    seconds: Duration,
    /// Time that threads already work before each measurement.
    #[arg(long, value_parser = seconds_or_none, default_value = "0.01", value_name = "SECONDS")]
    warmup: Duration,
}

impl Sampled for Sampling {
    fn repeated(&self) -> &Repeated {
        &self.repeated
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            warmup: self.warmup,
            measured: self.seconds,
        }
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

impl Sampled for Counted {
    fn repeated(&self) -> &Repeated {
        &self.sampling.repeated
    }

    fn schedule(&self) -> Schedule {
        self.sampling.schedule()
    }

    fn events(&self) -> &'static [Event] {
        if self.counters { Event::HARDWARE } else { &[] }
    }
}

/// A workload on locks, or on what takes their place.
#[derive(Args)]
pub(crate) struct Compared<W, S = Counted>
where
    W: Args + Workload<Load: Measured>,
    S: Sampled,
{
    #[command(flatten)]
    pub(super) workload: W,
    #[command(flatten)]
    pub(super) locks: Locks<<W::Load as Measured>::Lock>,
    #[command(flatten)]
    pub(super) sampled: S,
}

impl<W: Args + Workload<Load: Measured>, S: Sampled> Compared<W, S> {
    pub(crate) fn run(self) -> Result {
        compared(&self.workload, &self.locks.chosen(), &self.sampled, &[])
    }
}

/// Takes all trials of a workload on all locks, and reports them beside the `memory` of some; in the end, says what
/// they show.
pub(super) fn compared<W: Workload<Load: Measured>, S: Sampled>(
    workload: &W,
    locks: &[<W::Load as Measured>::Lock],
    sampled: &S,
    memory: &[SetMemory],
) -> Result {
    if let Some(what) = workload.contradiction(&sampled.threads()) {
        return Err(Failure::Arguments(what));
    }
    let beside = |width| match memory {
        [] => String::new(),
        memory => table::set_bytes(memory, width),
    };
    let records = measured(
        sampled.output(),
        turns(sampled.trials(workload), locks),
        |(lock, trial)| name(trial, *lock),
        |(lock, trial)| measure(*trial, *lock).map_err(Failure::Check),
        Line::from,
        |records, provenance, width| table::runs(records, &beside(width), provenance, width),
    )?;
    match sampled.output().format {
        Format::Json => {
            let memory = memory.iter().cloned().map(Line::SetMemory);
            print_lines(memory.chain(table::conclusions(&records, cores())))
        }
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
