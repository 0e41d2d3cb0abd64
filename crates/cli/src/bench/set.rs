//! Ordered sets: `spanlock bench set`.

use super::measure::{Sampling, measured};
use crate::allocator;
use crate::failure::{Failure, Result};
use crate::options::{Format, Threads, chosen};
use crate::output::{print, print_lines, provenance, width};
use crate::workloads::{Sets, turns};
use clap::Args;
use spanlock_bench::provenance::{self, cores};
use spanlock_bench::sets::{self, Row, Stock};
use spanlock_bench::workload;
use spanlock_judge::compare::Dataset;
use spanlock_judge::record::{Line, plural};
use spanlock_judge::table;

/// The keys from which the sets are filled whose memory is counted.
const COUNTED: usize = 1 << 17;

#[derive(Args)]
pub(super) struct Set {
    #[command(flatten)]
    workload: Sets,
    /// List the sets and exit.
    #[arg(long)]
    list: bool,
    /// Sets, by name; all of them by default.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sets::find, value_name = "NAME,...")]
    sets: Vec<&'static Row>,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    sampling: Sampling,
}

pub(super) fn run(args: Set) -> Result {
    if args.list {
        let all = sets::all().map(|row| (row.described.name, row.described.about));
        return print(&table::rw_locks(&all.collect::<Vec<_>>(), width()));
    }
    let rows = chosen(args.sets, sets::all(), |row| row.described.name);
    // First, because afterwards a peer frees what its runs have left.
    let memory: Vec<_> = allocator::counting(|| {
        let memory = rows.iter();
        memory
            .map(|row| sets::memory(row, COUNTED, &allocator::allocated))
            .collect()
    });
    // They are freed with the process, which takes no time.
    let stocks: &'static [Stock] = rows
        .iter()
        .map(|row| Stock::new(row))
        .collect::<Vec<_>>()
        .leak();
    let stocks: Vec<_> = stocks.iter().collect();
    let trials = args.sampling.trials(&args.workload, &args.threads, &[]);
    let records = measured(
        &args.sampling.output,
        turns(trials, &stocks),
        |(stock, trial)| {
            let (set, threads) = (stock.name(), plural(trial.threads));
            format!("{set}, {} keys, {threads}", trial.load.chosen)
        },
        |(stock, trial)| workload::measure(*trial, *stock).map_err(Failure::Check),
        Line::from,
        |_, _, _| String::new(),
    )?;
    match args.sampling.output.format {
        Format::Json => {
            let conclusions = table::conclusions(&Dataset::of(&records), cores());
            print_lines(memory.into_iter().map(Line::SetMemory).chain(conclusions))
        }
        Format::Table => {
            let provenance = provenance(provenance::here);
            print(&table::set(&records, &memory, &provenance, width()))
        }
    }
}
