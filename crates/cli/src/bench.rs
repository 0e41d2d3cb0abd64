//! `spanlock bench`.

use crate::Failure;
use crate::args::{
    Arr, Batch, Bench, Cli, Format, Latency, Runs, Sampling, Uncontended, Waiting, Workload,
};
use crate::progress::Progress;
use crate::terminal;
use crate::values::{Locks, Sweep};
use clap::CommandFactory;
use clap::error::ErrorKind;
use spanlock_bench::arr::{self, LostUpdates, Pauses, Timing, Trial};
use spanlock_bench::compare::{Field, Point, plural};
use spanlock_bench::counters::Event;
use spanlock_bench::crew::Schedule;
use spanlock_bench::provenance::{Provenance, cores};
use spanlock_bench::registry::{FLOORS, LOCKS, Lock};
use spanlock_bench::report::{self, Line, Width};
use spanlock_bench::{batch, latency, uncontended, waiting};
use std::io::{self, Write};

mod fresh;
mod memory;
mod micro;
mod preload;
mod rw;
mod soak;

type Result<T = (), E = Failure> = std::result::Result<T, E>;

pub(crate) fn run(command: Bench) -> Result {
    match command.workload {
        Some(Workload::Arr(args)) => run_arr(args),
        Some(Workload::Batch(args)) => run_batch(args),
        Some(Workload::Latency(args)) => run_latency(args),
        Some(Workload::Memory(args)) => memory::run(args),
        Some(Workload::Micro(args)) => micro::run(args),
        Some(Workload::Soak(args)) => soak::run(args),
        Some(Workload::Rw(args)) => rw::run(args),
        Some(Workload::Uncontended(args)) => run_uncontended(args),
        Some(Workload::Waiting(args)) => run_waiting(args),
        None => list(command.output.format),
    }
}

fn list(format: Format) -> Result {
    match format {
        Format::Table => print(&report::locks(terminal::width())),
        Format::Json => print_lines(report::entries().into_iter().map(Line::Lock)),
    }
}

/// Runs all trials of all range locks; in the end, says who wins where.
fn compare<T, R: Clone>(
    runs: Runs,
    trials: impl Fn(Repeat) -> Vec<T>,
    describe: impl Fn(&Lock, &T) -> String,
    take: impl Fn(&Lock, &T) -> Result<R, String>,
    line: impl Fn(R) -> Line,
    table: impl Fn(&[R], &Provenance, Width) -> String,
) -> Result
where
    for<'a> Point: From<&'a R>,
{
    if runs.list {
        return list(runs.sampling.output.format);
    }
    let locks = chosen(runs.locks, LOCKS);
    let events = if runs.counters { Event::HARDWARE } else { &[] };
    let trials = runs.sampling.trials(runs.threads, events, trials);
    let format = runs.sampling.output.format;
    let records = take_turns(&locks, &trials, format, describe, take, line, table)?;
    match format {
        Format::Json => print_lines(report::conclusion_lines(&Field::of(&records), cores())),
        Format::Table => Ok(()),
    }
}

/// Runs all trials: repeats outside and locks inside, so that a drift of the machine hits all locks alike.
fn take_turns<L, T, R: Clone>(
    locks: &[&'static L],
    trials: &[T],
    format: Format,
    describe: impl Fn(&L, &T) -> String,
    take: impl Fn(&L, &T) -> Result<R, String>,
    line: impl Fn(R) -> Line,
    table: impl Fn(&[R], &Provenance, Width) -> String,
) -> Result<Vec<R>> {
    let steps = trials
        .iter()
        .flat_map(|trial| locks.iter().map(move |&lock| (lock, trial)));
    measured(
        format,
        steps,
        |(lock, trial)| describe(lock, trial),
        |(lock, trial)| {
            let failed = |what| Failure::Check(format!("{}: {what}", describe(lock, trial)));
            take(lock, trial).map_err(failed)
        },
        line,
        table,
    )
}

impl Sampling {
    /// What `trials` makes of each repeat.
    fn trials<T>(
        &self,
        threads: Vec<Sweep>,
        events: &'static [Event],
        trials: impl Fn(Repeat) -> Vec<T>,
    ) -> Vec<T> {
        let threads = threads.into_iter().flat_map(|Sweep(numbers)| numbers);
        let threads = distinct(threads, |number| *number);
        let schedule = Schedule {
            warmup: self.warmup,
            measured: self.seconds,
        };
        let repeats = (0..self.repeat).map(|number| Repeat {
            threads: &threads,
            schedule,
            events,
            seed: self.seed,
            number,
        });
        repeats.flat_map(trials).collect()
    }
}

/// One of several equal repeats.
struct Repeat<'a> {
    threads: &'a [usize],
    schedule: Schedule,
    events: &'static [Event],
    seed: u64,
    /// From 0.
    number: u32,
}

fn run_arr(args: Arr) -> Result {
    let variants = distinct(args.variant, |variant| *variant);
    let reads = distinct(args.reads, |reads| *reads);
    let timing = if args.latency {
        Timing::On
    } else {
        Timing::Off
    };
    let trials = |repeat: Repeat<'_>| {
        let mut trials = Vec::new();
        for &variant in &variants {
            for &reads in &reads {
                trials.extend(repeat.threads.iter().map(|&threads| Trial {
                    variant,
                    reads,
                    threads,
                    pauses: Pauses::P1,
                    schedule: repeat.schedule,
                    events: repeat.events,
                    timing,
                    seed: repeat.seed,
                    repeat: repeat.number,
                }));
            }
        }
        trials
    };
    compare(
        args.runs,
        trials,
        describe,
        |lock, trial| arr::Record::measure(lock, trial).map_err(|lost| lost.to_string()),
        Line::Arr,
        report::arr,
    )
}

fn run_batch(args: Batch) -> Result {
    let holds = distinct(args.hold, |hold| *hold);
    if let Some(hold) = holds.iter().find(|hold| **hold > args.ranges) {
        let ranges = args.ranges;
        let what = format!("--hold {hold} is more than there are ranges: --ranges is {ranges}\n");
        wrong_arguments(&what);
    }
    let trials = |repeat: Repeat<'_>| {
        let mut trials = Vec::new();
        for &hold in &holds {
            trials.extend(repeat.threads.iter().map(|&threads| batch::Trial {
                hold,
                ranges: args.ranges,
                threads,
                schedule: repeat.schedule,
                events: repeat.events,
                seed: repeat.seed,
                repeat: repeat.number,
            }));
        }
        trials
    };
    compare(
        args.runs,
        trials,
        |lock, trial| {
            let batch::Trial { hold, threads, .. } = trial;
            let threads = plural(*threads);
            format!("lock {}, hold {hold}, {threads}", lock.name)
        },
        |lock, trial| batch::Record::measure(lock, trial).map_err(|torn| torn.to_string()),
        Line::Batch,
        report::batch,
    )
}

/// Ends the program as a wrong argument does that is seen at once.
pub(crate) fn wrong_arguments(what: &str) -> ! {
    Cli::command()
        .error(ErrorKind::ValueValidation, what)
        .exit()
}

fn run_latency(args: Latency) -> Result {
    let locks = chosen(args.locks, LOCKS);
    let threads = args.threads.into_iter().flat_map(|Sweep(numbers)| numbers);
    let trials = distinct(threads, |number| *number)
        .into_iter()
        .map(|threads| latency::Trial {
            threads,
            parts: args.parts,
            rounds: args.repeat,
            seed: args.seed,
        });
    let steps = trials.flat_map(|trial| locks.iter().map(move |&lock| (lock, trial)));
    measure(
        args.output.format,
        steps,
        |(lock, trial)| format!("lock {}, {}", lock.name, plural(trial.threads)),
        |(lock, trial)| Ok(latency::Record::measure(lock, trial)),
        Line::Latency,
        report::latency,
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
fn measure<S, R: Clone>(
    format: Format,
    steps: impl Iterator<Item = S> + Clone,
    describe: impl Fn(&S) -> String,
    take: impl FnMut(&S) -> Result<R>,
    line: impl Fn(R) -> Line,
    table: impl Fn(&[R], &Provenance, Width) -> String,
) -> Result {
    measured(format, steps, describe, take, line, table).map(drop)
}

/// As [`measure`]; returns what was measured.
fn measured<S, R: Clone>(
    format: Format,
    steps: impl Iterator<Item = S> + Clone,
    describe: impl Fn(&S) -> String,
    mut take: impl FnMut(&S) -> Result<R>,
    line: impl Fn(R) -> Line,
    table: impl Fn(&[R], &Provenance, Width) -> String,
) -> Result<Vec<R>> {
    let provenance = Provenance::here(std::env::args_os().skip(1).map(|word| {
        // An argument that is no text was refused before.
        word.to_string_lossy().into_owned()
    }));
    if format == Format::Json {
        print_lines([Line::Meta(provenance.clone())])?;
    }
    let progress = Progress::new(steps.clone().count());
    let mut records = Vec::new();
    for step in steps {
        progress.step(describe(&step));
        let record = take(&step)?;
        if format == Format::Json {
            progress.aside(|| print_lines([line(record.clone())]))?;
        }
        records.push(record);
        progress.done();
    }
    drop(progress);
    if format == Format::Table {
        print(&table(&records, &provenance, terminal::width()))?;
    }
    Ok(records)
}

fn describe(lock: &Lock, trial: &Trial) -> String {
    let Trial {
        variant,
        reads,
        threads,
        ..
    } = trial;
    format!(
        "lock {}, variant {variant}, {} % reads, {}",
        lock.name,
        reads.get(),
        plural(*threads)
    )
}

fn failed(lock: &Lock, trial: &Trial, lost: LostUpdates) -> Failure {
    Failure::Check(format!("{}: {lost}", describe(lock, trial)))
}

/// The locks named, or else all.
fn chosen(named: Vec<Locks>, all: impl IntoIterator<Item = &'static Lock>) -> Vec<&'static Lock> {
    let named = named.into_iter().flat_map(|Locks(locks)| locks);
    chosen_of(named.collect(), all, |lock| lock.name)
}

/// The same of any locks.
fn chosen_of<L>(
    named: Vec<&'static L>,
    all: impl IntoIterator<Item = &'static L>,
    name: impl Fn(&L) -> &'static str,
) -> Vec<&'static L> {
    if named.is_empty() {
        all.into_iter().collect()
    } else {
        distinct(named, |lock| name(lock))
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

fn print_lines(lines: impl IntoIterator<Item = Line>) -> Result {
    let lines = lines.into_iter().map(|line| format!("{line}\n"));
    print(&lines.collect::<String>())
}

fn print(text: &str) -> Result {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
