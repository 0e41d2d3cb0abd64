//! Simulated runs of any workload: what they have in common on the command line, and how they are run and told.

use super::cache::Cache;
use crate::Failure;
use crate::args::{Format, Output};
use crate::bench::wrong_arguments;
use crate::progress::Progress;
use crate::terminal;
use crate::values::{Sweep, sweep};
use clap::{Args, ValueEnum};
use spanlock_bench::compare::plural;
use spanlock_bench::provenance::Provenance;
use spanlock_bench::report::{self, Line};
use spanlock_bench::sim::sweep::rankings;
use spanlock_bench::sim::{Machine, Placement, Point, Record, Setup};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What all simulated workloads have.
#[derive(Args)]
pub(crate) struct Simulated {
    /// The machine: `--list-machines` names them. Latencies of it may be others (NAME:key=value:...); a file of one ends
    /// in .toml.
    #[arg(long, value_parser = machine, default_value = "xeon-2x10x2", value_name = "NAME")]
    machine: Machine,
    /// Where threads run.
    #[arg(long, value_enum, default_value_t = Place::Unpinned)]
    placement: Place,
    /// Threads: each a number, a:b or a:b:step.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = sweep, default_value = "1,2,4,8,16", value_name = "N,...")]
    threads: Vec<Sweep>,
    /// What random numbers follow from; with several seeds, the first.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// So many seeds, each a run of its own: tables show the median and the spread.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), default_value_t = 1, value_name = "N")]
    seeds: u64,
    /// Also on machines of which one assumed number each is another: tells which rankings of locks survive that.
    #[arg(long)]
    sweep: bool,
    /// Where results of committed sources are kept for later; unless told, in the user's folder for such things.
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Simulate all of it, and keep nothing.
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,
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

fn machine(text: &str) -> Result<Machine, String> {
    if !text.ends_with(".toml") {
        return Machine::find(text);
    }
    let read = std::fs::read_to_string(text).map_err(|error| error.to_string());
    read.and_then(|text| Machine::parse(&text))
}

impl Simulated {
    /// The numbers of threads, each once. Ends the program if one is more than the machine or the workload has.
    pub(crate) fn threads(&self, most: usize) -> Vec<usize> {
        let most = self.machine.contexts().min(most);
        let mut threads: Vec<usize> = Vec::new();
        for &number in self.threads.iter().flat_map(|Sweep(numbers)| numbers) {
            if number > most {
                let name = &self.machine.name;
                wrong_arguments(&format!(
                    "{} on {name}: expected at most {most}",
                    plural(number)
                ));
            }
            if !threads.contains(&number) {
                threads.push(number);
            }
        }
        threads
    }

    /// Threads that the machine runs at a time.
    pub(crate) fn contexts(&self) -> usize {
        self.machine.contexts()
    }

    /// The machine, and those to compare it with.
    fn machines(&self) -> Vec<Machine> {
        let others = if self.sweep {
            self.machine.varied()
        } else {
            Vec::new()
        };
        std::iter::once(self.machine.clone())
            .chain(others)
            .collect()
    }

    /// A setup for each seed.
    fn setups(&self, machine: &Machine) -> Vec<Setup> {
        let seeds = self.seed..self.seed.saturating_add(self.seeds);
        let setup = |seed| Setup {
            placement: match self.placement {
                Place::Unpinned => Placement::Unpinned,
                Place::Compact => Placement::Compact,
                Place::Scatter => Placement::Scatter,
            },
            seed,
            trace: 50,
            ..Setup::new(machine.clone())
        };
        seeds.map(setup).collect()
    }

    /// Where results are kept, if they are.
    fn cache(&self, commit: &str) -> Option<Cache> {
        let folder = self.cache.clone().or_else(Cache::of_user);
        Cache::new(folder.filter(|_| !self.no_cache)?, commit)
    }
}

/// Runs all points for all machines and seeds, on all of the host's cores, and tells what they yield in their order.
pub(crate) fn simulate<P: Point>(simulated: Simulated, points: &[P]) -> Result<(), Failure> {
    let machines = simulated.machines();
    let arguments = std::env::args_os().skip(1);
    let words = arguments.map(|word| word.to_string_lossy().into_owned());
    let provenance = Provenance::at_any_time(words);
    let cache = simulated.cache(&provenance.commit);
    let setups = machines
        .iter()
        .flat_map(|machine| simulated.setups(machine));
    let setups: Vec<_> = setups.collect();
    let steps: Vec<_> = setups
        .iter()
        .flat_map(|setup| points.iter().map(move |point| (setup, point)))
        .collect();
    let progress = Progress::new(steps.len());
    let records = on_all_cores(&steps, |(setup, point)| {
        let name = format!("{}, {}", setup.machine.name, point.name());
        progress.step(&name);
        let failed = |what| Failure::Check(format!("{name}: {what}"));
        let measure = || point.measure(setup).map_err(failed);
        let record = match &cache {
            Some(cache) => cache.get_or(&follows_from(setup, &name), measure),
            None => measure(),
        };
        progress.done();
        record
    });
    drop(progress);
    let records = records?;
    let text = match simulated.output.format {
        Format::Table => report::sim(&records, &machines, &provenance, terminal::width()),
        Format::Json => lines(provenance, &machines, records),
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// All that a result follows from, besides the source.
fn follows_from(setup: &Setup, name: &str) -> String {
    let Setup {
        machine,
        placement,
        seed,
        ..
    } = setup;
    format!("{name}, {placement:?}, seed {seed}, {machine:?}")
}

/// What `f` makes of each, in their order; or the first failure, after which no more are begun.
fn on_all_cores<T: Sync, R: Send>(
    all: &[T],
    f: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let one = all.get(at).filter(|_| !has_failed.load(Ordering::Relaxed));
        one.map(|one| (at, one))
    };
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((at, one)) = take() {
                    let result = f(one);
                    has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    done.lock().expect("no panic while held").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic while held");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// All of it as JSON: where it comes from, the machines, the records, and what follows from them.
fn lines<R: Record>(provenance: Provenance, machines: &[Machine], records: Vec<R>) -> String {
    let after: Vec<Line> = match machines {
        [machine] => R::conclusions(&records, machine.contexts()).1,
        [machine, ..] => {
            let rankings = rankings(&records, &machine.name).into_iter();
            rankings.map(Line::SimRanking).collect()
        }
        [] => Vec::new(),
    };
    let lines = std::iter::once(Line::Meta(provenance));
    let lines = lines.chain(machines.iter().cloned().map(Line::SimMachine));
    let lines = lines.chain(records.into_iter().map(Into::into));
    lines.chain(after).map(|line| format!("{line}\n")).collect()
}
