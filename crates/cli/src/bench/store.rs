//! `spanlock bench store`.

use super::measure::{Sampling, measured};
use crate::failure::{Failure, Result};
use crate::options::{Format, Threads, chosen};
use crate::output::print_lines;
use crate::workloads::{Files, turns};
use clap::Args;
use spanlock_bench::counters::Event;
use spanlock_bench::named::Named;
use spanlock_bench::provenance::cores;
use spanlock_bench::store::Subject;
use spanlock_bench::workload::measure;
use spanlock_judge::compare::Dataset;
use spanlock_judge::record::{Line, plural};
use spanlock_judge::table;

#[derive(Args)]
#[command(mut_arg("threads", |threads| threads.default_value("1,2,4,8")))]
pub(super) struct Store {
    #[command(flatten)]
    workload: Files,
    /// Locks of the store's files, by name, and plain-file: files of the kernel's, on tmpfs as the store is. All of
    /// them by default.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = Subject::find, value_name = "NAME,...")]
    locks: Vec<&'static Subject>,
    #[command(flatten)]
    threads: Threads,
    /// Count cycles, instructions and L1 data misses per operation, if the machine can; this costs a little.
    #[arg(long)]
    counters: bool,
    #[command(flatten)]
    sampling: Sampling,
}

pub(super) fn run(args: Store) -> Result {
    let events = if args.counters { Event::HARDWARE } else { &[] };
    let trials = args.sampling.trials(&args.workload, &args.threads, events);
    let subjects = chosen(args.locks, Subject::all(), |subject| subject.name());
    let records = measured(
        &args.sampling.output,
        turns(trials, &subjects),
        |(subject, trial)| {
            let (kernel, threads) = (trial.load.kernel, plural(trial.threads));
            format!("{}, {kernel}, {threads}", subject.name())
        },
        |(subject, trial)| measure(*trial, *subject).map_err(Failure::Check),
        Line::from,
        table::store,
    )?;
    match args.sampling.output.format {
        Format::Json => print_lines(table::conclusions(&Dataset::of(&records), cores())),
        Format::Table => Ok(()),
    }
}
