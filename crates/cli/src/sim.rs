//! `spanlock sim`.

use crate::Failure;
use crate::args::{Format, Output};
use crate::bench::wrong_arguments;
use crate::progress::Progress;
use crate::values::{Sweep, seconds, sweep};
use clap::{Args, Subcommand, ValueEnum};
use spanlock_bench::arr::{MAX_THREADS, Percent, Variant};
use spanlock_bench::sim::arr::{self, Record, Trial};
use spanlock_bench::sim::fuzz::{self, Mutant};
use spanlock_bench::sim::{LOCKS, Lock, Machine, Placement, Setup};
use std::io::{self, Write};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Sim {
    /// List the machines and exit.
    #[arg(long)]
    list_machines: bool,
    #[command(subcommand)]
    workload: Option<Workload>,
}

#[derive(Subcommand)]
enum Workload {
    /// Random work under random schedules, until one breaks the lock.
    Fuzz(Fuzz),
    /// ArrBench in virtual time.
    Arr(Box<Arr>),
}

#[derive(Args)]
struct Fuzz {
    /// The lock.
    #[arg(long, value_parser = repeatable, value_name = "NAME")]
    lock: &'static Lock,
    /// How many schedules.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    runs: u64,
    /// The first one's seed. A failure names its own: `--runs 1 --seed` that one replays it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Weaken a named edge of the lock's protocol, to see whether that is found.
    #[arg(long, value_parser = Mutant::find, value_name = "EDGE")]
    mutant: Option<Mutant>,
    /// Search for a mutant in this process, which it may bring down.
    #[arg(long, hide = true, requires = "mutant")]
    here: bool,
}

#[derive(Args)]
struct Arr {
    /// The machine.
    #[arg(long, value_parser = machine, default_value = "xeon-2x10x2", value_name = "NAME")]
    machine: Machine,
    /// Where threads run.
    #[arg(long, value_enum, default_value_t = Place::Unpinned)]
    placement: Place,
    /// Locks, by name; all of them unless told. Not those whose runs do not repeat in this program: segment locks.
    #[arg(long, value_delimiter = ',', value_parser = repeatable, value_name = "NAME,...")]
    locks: Vec<&'static Lock>,
    /// Threads: each a number, a:b or a:b:step.
    #[arg(long, value_delimiter = ',', value_parser = sweep, default_value = "1,2,4,8,16", value_name = "N,...")]
    threads: Vec<Sweep>,
    /// Ranges: full, disjoint, random.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "full,disjoint,random",
        value_name = "NAME,..."
    )]
    variant: Vec<Variant>,
    /// Of a hundred operations, those that read.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "100,60",
        value_name = "PERCENT,..."
    )]
    reads: Vec<Percent>,
    /// Virtual length of each measurement.
    #[arg(long, value_parser = seconds, default_value = "0.001")]
    seconds: Duration,
    /// What random numbers follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// Idle cores of all sockets in turn, in random order; then their siblings.
    Unpinned,
    /// Core by core with its siblings, socket by socket.
    Compact,
    /// Sockets in turn, one thread a core; then their siblings.
    Scatter,
}

/// The lock of that name, if its runs repeat in this program, which leaves memory where the host puts it.
fn repeatable(name: &str) -> Result<&'static Lock, String> {
    let lock = Lock::find(name)?;
    if lock.is_on_lines {
        return Ok(lock);
    }
    Err("its runs would not repeat: expected a list or skip-list lock".to_owned())
}

fn machine(name: &str) -> Result<Machine, String> {
    Machine::find(name).ok_or_else(|| {
        let names: Vec<_> = Machine::built_in()
            .into_iter()
            .map(|machine| machine.name)
            .collect();
        format!("expected one of {}", names.join(", "))
    })
}

pub(crate) fn run(command: Sim) -> Result<(), Failure> {
    match command.workload {
        Some(Workload::Fuzz(args)) => run_fuzz(&args),
        Some(Workload::Arr(args)) => run_arr(*args),
        None => {
            let mut out = io::stdout().lock();
            for machine in Machine::built_in() {
                writeln!(
                    out,
                    "{:<14} {:>3} threads  {}",
                    machine.name,
                    machine.contexts(),
                    machine.about
                )?;
            }
            Ok(())
        }
    }
}

fn run_fuzz(args: &Fuzz) -> Result<(), Failure> {
    if let Some(mutant) = args.mutant.filter(|_| !args.here) {
        return run_mutant(args, mutant);
    }
    let seeds = args.seed..args.seed.saturating_add(args.runs);
    let progress = Progress::new(usize::try_from(args.runs).unwrap_or(usize::MAX));
    progress.step(args.lock.name);
    let found = fuzz::search(args.lock.fuzz, seeds, args.mutant, |_| progress.done());
    drop(progress);
    found.map_err(|failure| Failure::Check(format!("{}: {failure}", args.lock.name)))?;
    writeln!(
        io::stdout(),
        "{}: {} schedules, nothing found",
        args.lock.name,
        args.runs
    )?;
    Ok(())
}

/// In a process of its own: a mutant may free what it has not.
fn run_mutant(args: &Fuzz, mutant: Mutant) -> Result<(), Failure> {
    let (name, mutant) = (args.lock.name, mutant.name());
    let own = std::env::current_exe().map_err(|error| Failure::Probe(error.to_string()))?;
    let output = Command::new(own)
        .args(["sim", "fuzz", "--here", "--lock", name])
        .args(["--runs", &args.runs.to_string()])
        .args(["--seed", &args.seed.to_string()])
        .arg(format!("--mutant={mutant}"))
        .output()
        .map_err(|error| Failure::Probe(error.to_string()))?;
    if output.status.success() {
        io::stdout().write_all(&output.stdout)?;
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let found = told.split_once("check failed: ");
    Err(Failure::Check(match found {
        Some((_, what)) => what.trim_end().to_owned(),
        None => format!(
            "{name}: without {mutant} its process ended: {}",
            output.status
        ),
    }))
}

fn run_arr(args: Arr) -> Result<(), Failure> {
    let most = args.machine.contexts().min(MAX_THREADS);
    let threads: Vec<usize> = args
        .threads
        .into_iter()
        .flat_map(|Sweep(numbers)| numbers)
        .collect();
    if let Some(wrong) = threads.iter().find(|&&number| number > most) {
        let name = &args.machine.name;
        wrong_arguments(&format!(
            "{wrong} threads on {name}: expected at most {most}"
        ));
    }
    let setup = Setup {
        placement: match args.placement {
            Place::Unpinned => Placement::Unpinned,
            Place::Compact => Placement::Compact,
            Place::Scatter => Placement::Scatter,
        },
        seed: args.seed,
        trace: 50,
        ..Setup::new(args.machine)
    };
    let locks = if args.locks.is_empty() {
        LOCKS.iter().filter(|lock| lock.is_on_lines).collect()
    } else {
        args.locks
    };
    let mut points = Vec::new();
    for &variant in &args.variant {
        for &reads in &args.reads {
            for &threads in &threads {
                points.extend(locks.iter().map(|&lock| {
                    let measured = args.seconds;
                    (
                        lock,
                        Trial {
                            variant,
                            reads,
                            threads,
                            measured,
                        },
                    )
                }));
            }
        }
    }
    let progress = Progress::new(points.len());
    progress.step(&setup.machine.name);
    let records = on_all_cores(&points, |(lock, trial)| {
        let record = arr::measure(lock, &setup, *trial);
        progress.done();
        record.map_err(|what| format!("{}, {} threads: {what}", lock.name, trial.threads))
    });
    drop(progress);
    let records: Result<Vec<_>, _> = records.into_iter().collect();
    print(args.output.format, &records.map_err(Failure::Check)?)
}

/// What `f` makes of each, in their order.
fn on_all_cores<T: Sync, R: Send>(all: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((at, one)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    all.get(at).map(|one| (at, one))
                } {
                    let result = f(one);
                    done.lock().expect("no panic while held").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic while held");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn print(format: Format, records: &[Record]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if format == Format::Table {
        writeln!(
            out,
            "variant   reads threads lock                  ops/us  min/max"
        )?;
    }
    for record in records {
        match format {
            Format::Json => writeln!(out, "{}", record.json())?,
            Format::Table => {
                let even = record.min_ops as f64 / record.max_ops.max(1) as f64;
                writeln!(
                    out,
                    "{:<9} {:>4}% {:>7} {:<18} {:>9.3} {:>8.2}",
                    record.variant,
                    record.reads,
                    record.threads,
                    record.lock,
                    record.ops_per_second / 1e6,
                    even
                )?;
            }
        }
    }
    Ok(())
}
