//! `spanlock bench blob`.

use super::measure::{Sampling, measured};
use crate::failure::{Failure, Result};
use crate::options::{Format, Threads, chosen};
use crate::output::print_lines;
use crate::workloads::{StoredBlob, turns};
use clap::Args;
use spanlock_bench::blob::Subject;
use spanlock_bench::counters::Event;
use spanlock_bench::provenance::cores;
use spanlock_bench::workload::{Workload, measure};
use spanlock_judge::compare::Dataset;
use spanlock_judge::record::{Line, plural};
use spanlock_judge::table;

#[derive(Args)]
#[command(mut_arg("threads", |threads| threads.default_value("1,2,4,8")))]
#[command(mut_arg("seconds", |seconds| seconds.default_value("0.2")))] // a read takes long
pub(super) struct Blob {
    #[command(flatten)]
    workload: StoredBlob,
    /// Who reads, by name: copy (extent by extent, without an alias), own-area (an area for each thread, without a
    /// lock), and range locks that give out ranges of a shared area. By default these two, the thesis' locks, a bitmap
    /// with several bits for each record, and the library's defaults.
    #[arg(long, num_args = 1.., value_parser = subjects, value_name = "NAME,...")]
    locks: Vec<Subjects>,
    #[command(flatten)]
    threads: Threads,
    /// Count cycles, instructions and L1 data misses per operation, if the machine can; this costs a little.
    #[arg(long)]
    counters: bool,
    #[command(flatten)]
    sampling: Sampling,
}

/// Those that one word of an argument names.
#[derive(Clone)]
struct Subjects(Vec<Subject>);

fn subjects(text: &str) -> Result<Subjects, String> {
    Subject::parse(text).map(Subjects)
}

pub(super) fn run(args: Blob) -> Result {
    let events = if args.counters { Event::HARDWARE } else { &[] };
    let trials = args.sampling.trials(&args.workload, &args.threads, events);
    let named = args.locks.into_iter().flat_map(|Subjects(named)| named);
    let subjects = chosen(named.collect(), Subject::usual(), |subject| subject.name());
    let records = measured(
        &args.sampling.output,
        turns(trials, &subjects),
        |(subject, trial)| {
            let (panel, threads) = (trial.load.panel(), plural(trial.threads));
            format!("{}, {panel}, {threads}", subject.name())
        },
        |(subject, trial)| measure(*trial, *subject).map_err(Failure::Check),
        Line::from,
        table::blob,
    )?;
    match args.sampling.output.format {
        Format::Json => print_lines(table::conclusions(&Dataset::of(&records), cores())),
        Format::Table => Ok(()),
    }
}
