//! `spanlock bench`.

use crate::Failure;
use crate::args::{Arr, Bench, Format, Uncontended, Waiting, Workload};
use crate::progress::Progress;
use crate::values::Sweep;
use spanlock_bench::arr::{self, LostUpdates, Pauses, Timing, Trial};
use spanlock_bench::crew::Schedule;
use spanlock_bench::provenance::Provenance;
use spanlock_bench::registry::{FLOORS, LOCKS, Lock};
use spanlock_bench::report::{self, Line};
use spanlock_bench::{uncontended, waiting};
use std::io::{self, Write};

type Result<T = (), E = Failure> = std::result::Result<T, E>;

pub(crate) fn run(command: Bench) -> Result {
    match command.workload {
        Some(Workload::Arr(args)) if !args.list => run_arr(args),
        Some(Workload::Uncontended(args)) => run_uncontended(args),
        Some(Workload::Waiting(args)) => run_waiting(args),
        Some(Workload::Arr(_)) | None => print(&report::locks()),
    }
}

fn run_arr(args: Arr) -> Result {
    let locks = chosen(args.locks, LOCKS);
    let variants = distinct(args.variant, |variant| *variant);
    let reads = distinct(args.reads, |reads| *reads);
    let threads = args.threads.into_iter().flat_map(|Sweep(numbers)| numbers);
    let threads = distinct(threads, |number| *number);
    let mut trials = Vec::new();
    // Repeats outside and locks inside, so that a drift of the machine hits all locks alike.
    for repeat in 0..args.repeat {
        for &variant in &variants {
            for &reads in &reads {
                for &threads in &threads {
                    trials.push(Trial {
                        variant,
                        reads,
                        threads,
                        pauses: Pauses::P1,
                        schedule: Schedule {
                            warmup: args.warmup,
                            measured: args.seconds,
                        },
                        timing: if args.latency {
                            Timing::On
                        } else {
                            Timing::Off
                        },
                        seed: args.seed,
                        repeat,
                    });
                }
            }
        }
    }
    let steps = trials
        .iter()
        .flat_map(|trial| locks.iter().map(move |&lock| (lock, trial)));
    measure(
        args.output.format,
        steps,
        |(lock, trial)| describe(lock, trial),
        |(lock, trial)| arr::Record::measure(lock, trial).map_err(|lost| failed(lock, trial, lost)),
        Line::Arr,
        report::arr,
    )
}

fn run_uncontended(args: Uncontended) -> Result {
    let locks = chosen(args.locks, LOCKS.iter().chain(FLOORS));
    let subjects: Vec<_> = locks
        .into_iter()
        .flat_map(uncontended::Subject::all_of)
        .collect();
    let steps =
        (0..args.repeat).flat_map(|round| subjects.iter().map(move |&subject| (subject, round)));
    measure(
        args.output.format,
        steps,
        |(subject, round)| format!("{}, round {}", subject.lock.name, round + 1),
        |(subject, round)| Ok(subject.measure(args.pairs, *round)),
        Line::Uncontended,
        report::uncontended,
    )
}

fn run_waiting(args: Waiting) -> Result {
    let schedule = Schedule {
        warmup: args.seconds / 10,
        measured: args.seconds,
    };
    let trial = waiting::contention(args.threads, schedule, 1);
    measure(
        args.output.format,
        chosen(args.locks, LOCKS).into_iter(),
        |lock| lock.name.to_owned(),
        |lock| waiting::Record::measure(lock, &trial).map_err(|lost| failed(lock, &trial, lost)),
        Line::Waiting,
        report::waiting,
    )
}

/// Takes all steps, and reports each as it is done (JSON) or all in the end (table).
fn measure<S, R>(
    format: Format,
    steps: impl Iterator<Item = S> + Clone,
    describe: impl Fn(&S) -> String,
    take: impl Fn(&S) -> Result<R>,
    line: impl Fn(R) -> Line,
    table: impl Fn(&[R], &Provenance) -> String,
) -> Result {
    let provenance = Provenance::here(std::env::args_os().skip(1).map(|word| {
        // An argument that is no text was refused before.
        word.to_string_lossy().into_owned()
    }));
    if format == Format::Json {
        print(&format!("{}\n", Line::Meta(provenance.clone())))?;
    }
    let progress = Progress::new(steps.clone().count());
    let mut records = Vec::new();
    for step in steps {
        progress.step(describe(&step));
        let record = take(&step)?;
        match format {
            Format::Json => progress.aside(|| print(&format!("{}\n", line(record))))?,
            Format::Table => records.push(record),
        }
        progress.done();
    }
    drop(progress);
    match format {
        Format::Json => Ok(()),
        Format::Table => print(&table(&records, &provenance)),
    }
}

fn describe(lock: &Lock, trial: &Trial) -> String {
    let Trial {
        variant,
        reads,
        threads,
        ..
    } = trial;
    format!(
        "lock {}, variant {variant}, {} % reads, {threads} threads",
        lock.name,
        reads.get()
    )
}

fn failed(lock: &Lock, trial: &Trial, lost: LostUpdates) -> Failure {
    Failure::Check(format!("{}: {lost}", describe(lock, trial)))
}

/// The locks named, or else all.
fn chosen(
    named: Vec<&'static Lock>,
    all: impl IntoIterator<Item = &'static Lock>,
) -> Vec<&'static Lock> {
    if named.is_empty() {
        all.into_iter().collect()
    } else {
        distinct(named, |lock| lock.name)
    }
}

/// Each once, in order of first mention.
fn distinct<T, K: PartialEq>(values: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for value in values {
        if kept.iter().all(|other| key(other) != key(&value)) {
            kept.push(value);
        }
    }
    kept
}

fn print(text: &str) -> Result {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
