//! `spanlock bench blob`.

use super::measure::Counted;
use crate::failure::Result;
use crate::options::chosen;
use crate::workloads::{StoredBlob, turns};
use clap::Args;
use spanlock_bench::blob::Subject;
use spanlock_bench::workload::{Workload, measure};
use spanlock_judge::record::plural;
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
    counted: Counted,
}

/// Those that one word of an argument names.
#[derive(Clone)]
struct Subjects(Vec<Subject>);

fn subjects(text: &str) -> Result<Subjects, String> {
    Subject::parse(text).map(Subjects)
}

pub(super) fn run(args: Blob) -> Result {
    let trials = args.counted.trials(&args.workload);
    let named = args.locks.into_iter().flat_map(|Subjects(named)| named);
    let subjects = chosen(named.collect(), Subject::usual(), |subject| subject.name());
    args.counted.compared(
        turns(trials, &subjects),
        |(subject, trial)| {
            let (panel, threads) = (trial.load.panel(), plural(trial.threads));
            format!("{}, {panel}, {threads}", subject.name())
        },
        |(subject, trial)| measure(*trial, *subject),
        table::blob,
    )
}
