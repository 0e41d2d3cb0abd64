//! Simulated runs of any workload: what they have in common on the command line, and how they are run and reported.

use super::cache::Cache;
use crate::failure::{Failure, Result};
use crate::options::{Format, Output, Seed, Threads, number};
use crate::output::{print, print_lines, provenance, width};
use crate::progress::Progress;
use crate::workloads::{trials, turns};
use clap::Args;
use rayon::prelude::*;
use spanlock_bench::provenance;
use spanlock_bench::sim::{Machine, Placement, Setup};
use spanlock_bench::workload::{Simulated as Subject, name, of, simulate};
use spanlock_records::record::{Line, Panel, plural};
use spanlock_records::trial::run::{Schedule, Trial};
use spanlock_records::trial::setting::MAX_THREADS;
use spanlock_records::vm_trace::traffic::kept;
use spanlock_report::compare::rankings;
use spanlock_report::table;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// The arguments of all simulated workloads.
#[derive(Args)]
#[command(mut_arg("threads", |threads| threads.default_value("1,2,4,8,16")))]
#[command(mut_arg("seed", |seed| {
    seed.help("The seed of the random numbers; with several seeds, the first one")
}))]
pub(super) struct Simulated {
    /// The machine: `--list-machines` names them. NAME:key=value:... changes latencies; a name that ends in .toml is
    /// the file of a machine.
    #[arg(long, value_parser = machine, default_value = "xeon-2x10x2", value_name = "NAME")]
    machine: Machine,
    /// Where threads run: unpinned (idle cores of all sockets in turn, in random order; then their siblings), compact
    /// (core by core with its siblings, socket by socket) or scatter (sockets in turn, one thread a core; then their
    /// siblings).
    #[arg(long, value_parser = placement, default_value = "unpinned", value_name = "NAME")]
    placement: Placement,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    seed: Seed,
    /// The number of seeds; each seed is a separate run, and tables show the median and the spread.
    #[arg(long, value_parser = number(1..=1000), default_value = "1", value_name = "N")]
    seeds: usize,
    /// Run also on machines that differ in one assumed number each; report which rankings of locks do not change.
    #[arg(long)]
    sweep: bool,
    /// Where results of committed sources are kept for later; by default, in the user's cache folder.
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Ignore kept results and keep none.
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,
    #[command(flatten)]
    output: Output,
}

/// A placement by the name that records have.
fn placement(name: &str) -> Result<Placement, String> {
    serde_json::from_value(name.into())
        .map_err(|_| "expected one of unpinned, compact, scatter".to_owned())
}

fn machine(text: &str) -> Result<Machine, String> {
    if !text.ends_with(".toml") {
        return Machine::find(text);
    }
    let read = std::fs::read_to_string(text).map_err(|error| error.to_string());
    read.and_then(|text| Machine::parse(&text))
}

impl Simulated {
    /// The numbers of threads, each once.
    ///
    /// # Errors
    /// When one is more than the machine or the workload has.
    fn threads(&self, panels: &[Panel]) -> Result<Vec<usize>> {
        // Where roles are fixed, others run beside those that are counted.
        let others = panels.iter().map(|panel| panel.more_threads());
        let contexts = self
            .machine
            .contexts()
            .saturating_sub(others.max().unwrap_or(0));
        let (most, threads) = (contexts.min(MAX_THREADS), self.threads.numbers());
        match threads.iter().find(|number| **number > most) {
            None => Ok(threads),
            Some(number) => Err(Failure::Arguments(format!(
                "{} on {}: expected at most {most}",
                plural(*number),
                self.machine.name
            ))),
        }
    }

    /// The machine, and those to compare it with.
    fn machines(&self) -> Vec<Machine> {
        let mut machines = vec![self.machine.clone()];
        if self.sweep {
            machines.extend(self.machine.varied());
        }
        machines
    }

    /// A setup for each seed.
    fn setups(&self, machine: &Machine) -> impl Iterator<Item = Setup> {
        let first = self.seed.seed;
        let seeds = (0..self.seeds).map(move |nth| first.wrapping_add(nth as u64));
        seeds.map(|seed| Setup {
            placement: self.placement,
            seed,
            trace: 50,
            ..Setup::new(machine.clone())
        })
    }

    /// Where results are kept, if they are.
    fn cache(&self, commit: &str) -> Option<Cache> {
        let folder = self.cache.clone().or_else(Cache::of_user);
        Cache::new(folder.filter(|_| !self.no_cache)?, commit)
    }

    /// Runs these panels on these locks, with each seed and for all machines, on all of the
    /// host's cores. Reports in the order of seeds, of trials and of locks.
    pub(super) fn run<S: Subject>(
        &self,
        panels: &[Panel],
        locks: &[S],
        schedule: Schedule,
    ) -> Result {
        let asked = trials(panels, &self.threads.numbers(), Trial::new(schedule, 0));
        if let Some(what) = asked
            .iter()
            .find_map(|trial| (of(trial.load).refused)(trial))
        {
            return Err(Failure::Arguments(what));
        }
        let threads = self.threads(panels)?;
        let machines = self.machines();
        let provenance = provenance(provenance::at_any_time);
        let cache = self.cache(&provenance.commit);
        let setups = machines.iter().flat_map(|machine| self.setups(machine));
        let setups: Vec<_> = setups.collect();
        let steps = setups.iter().flat_map(|setup| {
            let trials = trials(panels, &threads, Trial::new(schedule, setup.seed));
            let points = turns(trials, locks).into_iter();
            points.map(move |point| (setup, point))
        });
        let steps: Vec<_> = steps.collect();
        let progress = Progress::new(steps.len());
        let records = steps.par_iter().map(|(setup, (lock, trial))| {
            let run = format!("{}, {}", setup.machine.name, name(trial, *lock));
            progress.step(&run);
            let find = || {
                simulate(*trial, *lock, setup)
                    .map_err(|what| Failure::Check(format!("{run}: {what}")))
            };
            let record = match &cache {
                Some(cache) => cache.get_or(&follows_from(setup, trial, &run), find),
                None => find(),
            };
            progress.done();
            record
        });
        let records = records.collect::<Result<Vec<_>>>();
        drop(progress);
        let records = records?;
        match self.output.format {
            Format::Table => print(&table::sim(&records, &machines, &provenance, width())),
            Format::Json => {
                let rankings = match &machines[..] {
                    [machine, _, ..] => rankings(&records, &machine.name),
                    _ => Vec::new(),
                };
                let lines = std::iter::once(Line::Meta(provenance));
                let lines = lines.chain(machines.into_iter().map(Line::SimMachine));
                let lines = lines.chain(records.into_iter().map(Line::from));
                print_lines(lines.chain(rankings.into_iter().map(Line::SimRanking)))
            }
        }
    }
}

/// All that a result follows from, besides the source: a trace is more than its name.
fn follows_from(setup: &Setup, trial: &Trial<Panel>, run: &str) -> String {
    let Setup {
        machine,
        placement,
        seed,
        ..
    } = setup;
    let traffic = trial.load.get("traffic");
    let trace = traffic.and_then(|name| kept(name.as_str()?));
    let mut digest = DefaultHasher::new();
    format!("{trial:?}, {trace:?}").hash(&mut digest);
    let trial = digest.finish();
    format!("{run}, {trial:x}, {placement:?}, seed {seed}, {machine:?}")
}
