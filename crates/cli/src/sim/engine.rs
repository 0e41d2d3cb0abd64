//! Simulated runs of any workload: what they have in common on the command line, and how they are run and told.

use crate::Failure;
use crate::args::{Format, Output};
use crate::bench::wrong_arguments;
use crate::progress::Progress;
use crate::values::{Sweep, sweep};
use clap::{Args, ValueEnum};
use spanlock_bench::provenance::Provenance;
use spanlock_bench::report::{self, Line};
use spanlock_bench::sim::{Machine, Placement, Point, Record, Setup};
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What all simulated workloads have.
#[derive(Args)]
pub(crate) struct Simulated {
    /// The machine: `--list-machines` names them.
    #[arg(long, value_parser = machine, default_value = "xeon-2x10x2", value_name = "NAME")]
    machine: Machine,
    /// Where threads run.
    #[arg(long, value_enum, default_value_t = Place::Unpinned)]
    placement: Place,
    /// Threads: each a number, a:b or a:b:step.
    #[arg(long, value_delimiter = ',', value_parser = sweep, default_value = "1,2,4,8,16", value_name = "N,...")]
    threads: Vec<Sweep>,
    /// What random numbers follow from; with several seeds, the first.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// So many seeds, each a run of its own: tables show the median and the spread.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), default_value_t = 1, value_name = "N")]
    seeds: u64,
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

fn machine(name: &str) -> Result<Machine, String> {
    Machine::find(name).ok_or_else(|| {
        let names: Vec<_> = Machine::built_in()
            .into_iter()
            .map(|machine| machine.name)
            .collect();
        format!("expected one of {}", names.join(", "))
    })
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
                    "{number} threads on {name}: expected at most {most}"
                ));
            }
            if !threads.contains(&number) {
                threads.push(number);
            }
        }
        threads
    }

    /// A setup for each seed.
    fn setups(&self) -> Vec<Setup> {
        let seeds = self.seed..self.seed.saturating_add(self.seeds);
        let setup = |seed| Setup {
            placement: match self.placement {
                Place::Unpinned => Placement::Unpinned,
                Place::Compact => Placement::Compact,
                Place::Scatter => Placement::Scatter,
            },
            seed,
            trace: 50,
            ..Setup::new(self.machine.clone())
        };
        seeds.map(setup).collect()
    }
}

/// Runs all points for all seeds, on all of the host's cores, and tells what they yield in their order.
pub(crate) fn simulate<P: Point>(simulated: Simulated, points: &[P]) -> Result<(), Failure> {
    let setups = simulated.setups();
    let steps: Vec<_> = setups
        .iter()
        .flat_map(|setup| points.iter().map(move |point| (setup, point)))
        .collect();
    let progress = Progress::new(steps.len());
    let records = on_all_cores(&steps, |(setup, point)| {
        progress.step(point.name());
        let record = point.measure(setup);
        progress.done();
        record.map_err(|what| Failure::Check(format!("{}: {what}", point.name())))
    });
    drop(progress);
    tell(simulated.output.format, &simulated.machine, &records?)
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

fn tell<R: Record>(format: Format, machine: &Machine, records: &[R]) -> Result<(), Failure> {
    let arguments = std::env::args_os().skip(1);
    let words = arguments.map(|word| word.to_string_lossy().into_owned());
    let provenance = Provenance::at_any_time(words);
    let text = match format {
        Format::Table => report::sim(records, machine, &provenance),
        Format::Json => {
            let before = [Line::Meta(provenance), Line::SimMachine(machine.clone())];
            let (_, after) = R::conclusions(records, machine.contexts());
            let lines = before.into_iter();
            let lines = lines.chain(records.iter().cloned().map(Into::into));
            lines.chain(after).map(|line| format!("{line}\n")).collect()
        }
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
