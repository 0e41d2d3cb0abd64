//! `spanlock sim`.

mod cache;
mod engine;
mod fuzz;

use crate::failure::Result;
use crate::options::{Locks, seconds};
use crate::output::print;
use crate::workloads::{Place, panels};
use clap::{ArgMatches, Args, Command as Cmd, FromArgMatches, Subcommand};
use engine::Simulated;
use spanlock_bench::known::Known;
use spanlock_bench::sim::{Lock, Machine, RwLock};
use spanlock_bench::workload::{Row, Runs as Of, Simulated as Subject};
use spanlock_records::trial::run::Schedule;
use spanlock_workbench_sim::keys::table::Row as KeyLock;
use spanlock_workbench_sim::micro::Kernel;
use std::time::Duration;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Sim {
    /// List the machines and exit.
    #[arg(long)]
    list_machines: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Random work under random schedules, until one breaks the lock.
    Fuzz(fuzz::Fuzz),
}

pub(crate) fn run(sim: Sim) -> Result {
    match sim.command {
        Some(Command::Fuzz(args)) => fuzz::run(&args),
        None => list_machines(),
    }
}

fn list_machines() -> Result {
    let line = |machine: &Machine| {
        let Machine { name, about, .. } = machine;
        format!("{name:<14} {:>3} threads  {about}\n", machine.contexts())
    };
    print(&Machine::built_in().iter().map(line).collect::<String>())
}

/// What all workloads take on simulated machines.
#[derive(Args)]
struct Runs<L: Known> {
    #[command(flatten)]
    locks: Locks<L>,
    /// Virtual length of each measurement, after as much again for warming up.
    #[arg(long, value_parser = seconds, default_value = "0.001")]
    seconds: Option<Duration>,
    #[command(flatten)]
    simulated: Simulated,
}

/// Calls a generic function for what a workload runs on.
macro_rules! for_subject {
    ($row:expr, $of:ident($($argument:expr),*)) => {
        match $row.runs {
            Of::Ranges(_) | Of::Objects => $of::<&'static Lock>($($argument),*),
            Of::Whole(_) => $of::<&'static RwLock>($($argument),*),
            Of::Keys => $of::<&'static KeyLock>($($argument),*),
            Of::Words => $of::<Kernel>($($argument),*),
            Of::Sets => $of::<&'static spanlock_bench::sets::Simulated>($($argument),*),
            #[cfg(target_os = "linux")]
            Of::Files => $of::<&'static spanlock_bench::store::Simulated>($($argument),*),
            #[cfg(not(target_os = "linux"))]
            Of::Files => unreachable!("there are no such workloads"),
            Of::Spaces => $of::<&'static spanlock_bench::space::Simulated>($($argument),*),
        }
    };
}

fn augmented<L: Known>(command: Cmd) -> Cmd {
    Runs::<L>::augment_args(command)
}

/// The command of a workload, with what all workloads take here.
pub(crate) fn of(row: &'static Row, command: Cmd) -> Cmd {
    let command = for_subject!(row, augmented(command));
    // The papers' machines.
    let machine = match row.runs {
        Of::Whole(_) => "xeon-2x18x2",
        Of::Files | Of::Spaces => "xeon-4x18x2",
        _ => "xeon-2x10x2",
    };
    let command = command.mut_arg("machine", |arg| arg.default_value(machine));
    match row.runs {
        Of::Spaces => command.mut_arg("locks", |locks| locks.alias("lock")),
        _ => command,
    }
}

fn simulated<S: Subject>(row: &'static Row, matches: &ArgMatches) -> Result {
    let panels = panels(row, matches, Place::Simulated)?;
    let Runs::<S> {
        locks,
        seconds,
        simulated,
    } = Runs::from_arg_matches(matches).expect("these are its arguments");
    let schedule = seconds.map_or(Schedule::NONE, Schedule::even);
    simulated.run(&panels, &locks.chosen(), schedule)
}

/// Runs a workload on a simulated machine.
pub(crate) fn on_machine(row: &'static Row, matches: &ArgMatches) -> Result {
    for_subject!(row, simulated(row, matches))
}
