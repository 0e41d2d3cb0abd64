//! The commands of workloads: what each of them takes follows from its row.

use crate::bench::measure::{Counted, compared};
use crate::failure::Result;
use crate::options::{Locks, without_seconds};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;
use spanlock_bench::blob;
use spanlock_bench::known::Known;
use spanlock_bench::registry;
use spanlock_bench::rw::locks::{FLOORS, LOCKS, Lock as RwLock};
use spanlock_bench::sets::Stock;
use spanlock_bench::space::Variant;
use spanlock_bench::workload::{Ends, Row, Runs, Subject, WORKLOADS, find};
use spanlock_records::record::Panel;
use spanlock_records::stats::distinct;
use spanlock_records::trial::argument::{Argument, On, Takes, combined};
use spanlock_records::trial::run::Trial;
use spanlock_workbench::keys::table::Row as KeyLock;
use spanlock_workbench::micro::Kernel;

/// Where workloads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Hardware,
    #[cfg(feature = "sim")]
    Simulated,
}

impl Place {
    fn has(self, argument: &Argument) -> bool {
        argument.on == On::Both || (argument.on == On::Hardware) == (self == Self::Hardware)
    }

    fn usual(self, usual: [&'static str; 2]) -> &'static str {
        match self {
            Self::Hardware => usual[0],
            #[cfg(feature = "sim")]
            Self::Simulated => usual[1],
        }
    }
}

/// The command that workloads belong to: `rw` has those of reader-writer locks.
pub(crate) fn is_in(row: &Row, command: &str) -> bool {
    match row.runs {
        Runs::Whole(_) => command == "rw",
        // On hardware, this is `vm replay`.
        Runs::Spaces => ["sim", "vm"].contains(&command),
        _ => ["bench", "sim"].contains(&command),
    }
}

/// The command of a workload there: its own arguments, and those that all have.
pub(crate) fn command(row: &'static Row, place: Place) -> Command {
    let name = if is_in(row, "vm") && place == Place::Hardware {
        "replay"
    } else {
        row.name
    };
    let own = row.arguments.iter().filter(|argument| place.has(argument));
    let command = Command::new(name).args(own.map(|argument| arg(argument, place)));
    let command = match place {
        Place::Hardware => hardware(row, command),
        #[cfg(feature = "sim")]
        Place::Simulated => crate::sim::of(row, command),
    };
    let command = command.about(row.about);
    match row.ends {
        Ends::InTime => {
            command.mut_arg("seconds", |arg| arg.default_value(place.usual(row.seconds)))
        }
        Ends::ByItself(how) => {
            let command = command.mut_arg("seconds", |_| without_seconds(how));
            match place {
                Place::Hardware => command.mut_arg("warmup", |warmup| warmup.hide(true)),
                #[cfg(feature = "sim")]
                Place::Simulated => command,
            }
        }
    }
}

/// An option for a setting; without a usual value, an argument that is needed.
fn arg(argument: &'static Argument, place: Place) -> Arg {
    let arg = Arg::new(argument.name).help(argument.about);
    let usual = place.usual(argument.usual);
    let parser = move |text: &str| argument.parse(text);
    match (argument.takes, usual) {
        (Takes::Flag, _) => arg.long(argument.name).action(ArgAction::SetTrue),
        (_, "") => arg
            .required(true)
            .num_args(1..)
            .value_parser(parser)
            .value_name("TRACE"),
        _ => {
            let name = match argument.takes {
                Takes::Whole(..) => "N,...",
                Takes::Part => "PART,...",
                Takes::Words(_) | Takes::Flag => "NAME,...",
            };
            let arg = arg.long(argument.name).action(ArgAction::Append);
            arg.value_parser(parser)
                .value_name(name)
                .default_values(usual.split(','))
        }
    }
}

/// The panels that users chose: each combination of values, each value once.
pub(crate) fn panels(row: &Row, matches: &ArgMatches, place: Place) -> Result<Vec<Panel>> {
    let values = |argument: &Argument| {
        let name = argument.name;
        let usual = || {
            let words = place.usual(argument.usual).split(',');
            words.filter_map(|word| argument.parse(word).ok()).collect()
        };
        let values: Vec<Value> = match argument.takes {
            _ if !place.has(argument) => usual(),
            Takes::Flag => vec![matches.get_flag(name).into()],
            _ => matches
                .get_many(name)
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
        };
        (name, distinct(values))
    };
    let all: Vec<_> = row.arguments.iter().map(values).collect();
    Ok(panels_of(row, &all))
}

/// The panels of a workload with what is usual on hardware.
pub(crate) fn usual(row: &Row) -> Vec<Panel> {
    let values = |argument: &Argument| {
        let words = argument.usual[0].split(',');
        let values = words.filter_map(|word| argument.parse(word).ok());
        (argument.name, values.collect::<Vec<_>>())
    };
    panels_of(row, &row.arguments.iter().map(values).collect::<Vec<_>>())
}

fn panels_of(row: &Row, all: &[(&'static str, Vec<Value>)]) -> Vec<Panel> {
    let panel = |settings| {
        let settings = Panel::new(row.name, row.kind, "", &Value::Object(settings));
        (row.panel)(settings).expect("arguments are settings")
    };
    combined(all).into_iter().map(panel).collect()
}

/// A trial for each panel, and for each number of threads.
pub(crate) fn trials(panels: &[Panel], threads: &[usize], run: Trial<()>) -> Vec<Trial<Panel>> {
    let each = turns(panels.iter().copied(), threads).into_iter();
    each.map(|(threads, panel)| run.with(panel, threads))
        .collect()
}

/// Every trial with every lock: locks inside, so that a drift of the machine hits all of them alike.
pub(crate) fn turns<T: Copy, L: Copy>(
    trials: impl IntoIterator<Item = T>,
    locks: &[L],
) -> Vec<(L, T)> {
    let turn = |trial| locks.iter().map(move |&lock| (lock, trial));
    trials.into_iter().flat_map(turn).collect()
}

/// What all workloads take on hardware.
#[derive(Args)]
struct Measured<L: Known> {
    #[command(flatten)]
    locks: Locks<L>,
    #[command(flatten)]
    sampled: Counted,
}

/// Calls a generic function for what a workload runs on.
macro_rules! for_subject {
    ($row:expr, $of:ident($($argument:expr),*)) => {
        match $row.runs {
            Runs::Ranges(_) => $of::<&'static registry::Lock>($($argument),*),
            Runs::Whole(_) => $of::<&'static RwLock>($($argument),*),
            Runs::Objects => $of::<blob::Subject>($($argument),*),
            Runs::Keys => $of::<&'static KeyLock>($($argument),*),
            Runs::Words => $of::<Kernel>($($argument),*),
            Runs::Sets => $of::<&'static Stock>($($argument),*),
            #[cfg(target_os = "linux")]
            Runs::Files => $of::<&'static spanlock_bench::store::Subject>($($argument),*),
            #[cfg(not(target_os = "linux"))]
            Runs::Files => unreachable!("there are no such workloads"),
            Runs::Spaces => $of::<&'static Variant>($($argument),*),
        }
    };
}

fn augmented<L: Known>(command: Command) -> Command {
    Measured::<L>::augment_args(command)
}

fn hardware(row: &'static Row, command: Command) -> Command {
    let command = for_subject!(row, augmented(command));
    let command = command.mut_arg("threads", |arg| {
        let help =
            "Threads: each a number, a:b or a:b:step. Where roles are fixed, those that read";
        let arg = if row.kind == spanlock_records::record::Kind::Whole {
            arg.help(help)
        } else {
            arg
        };
        arg.default_value(row.threads)
    });
    match row.runs {
        // The paper's.
        Runs::Whole(_) => command.mut_arg("repeat", |repeat| repeat.default_value("7")),
        Runs::Spaces => command.mut_arg("locks", |locks| locks.alias("lock")),
        Runs::Sets => command.arg(
            Arg::new("list")
                .long("list")
                .help("List the sets and exit")
                .action(ArgAction::SetTrue),
        ),
        _ => command,
    }
}

/// Takes all trials that users asked for, on hardware.
fn measure<S: Subject>(row: &'static Row, matches: &ArgMatches) -> Result {
    let panels = panels(row, matches, Place::Hardware)?;
    let Measured::<S> { locks, sampled } =
        Measured::from_arg_matches(matches).expect("these are its arguments");
    compared(&panels, &locks.chosen(), &sampled, &[])
}

/// The readers of `bench rw readers` are compared with the floors, too.
fn measure_whole(row: &'static Row, matches: &ArgMatches) -> Result {
    let panels = panels(row, matches, Place::Hardware)?;
    let Measured::<&RwLock> { locks, sampled } =
        Measured::from_arg_matches(matches).expect("these are its arguments");
    let floors = if row.name == "readers" { FLOORS } else { &[] };
    compared(
        &panels,
        &locks.or(LOCKS.iter().chain(floors)),
        &sampled,
        &[],
    )
}

/// Ordered sets have their memory counted.
fn measure_sets(row: &'static Row, matches: &ArgMatches) -> Result {
    if matches.get_flag("list") {
        return crate::bench::set::list();
    }
    let panels = panels(row, matches, Place::Hardware)?;
    let Measured::<&Stock> { locks, sampled } =
        Measured::from_arg_matches(matches).expect("these are its arguments");
    let sets = locks.chosen();
    compared(&panels, &sets, &sampled, &crate::bench::set::memory(&sets))
}

fn on_hardware(row: &'static Row, matches: &ArgMatches) -> Result {
    match row.runs {
        Runs::Whole(_) => measure_whole(row, matches),
        Runs::Sets => measure_sets(row, matches),
        _ => for_subject!(row, measure(row, matches)),
    }
}

/// The commands of workloads, put where they belong.
pub(crate) fn with_workloads(command: Command) -> Command {
    let below = |command: Command, name: &'static str, place| {
        let rows = WORKLOADS.iter().filter(move |row| is_in(row, name));
        rows.fold(command, |command, row| {
            command.subcommand(self::command(row, place))
        })
    };
    let command = command.mut_subcommand("bench", |bench| {
        let bench = below(bench, "bench", Place::Hardware);
        bench.mut_subcommand("rw", |rw| below(rw, "rw", Place::Hardware))
    });
    let command = command.mut_subcommand("vm", |vm| below(vm, "vm", Place::Hardware));
    #[cfg(feature = "sim")]
    let command = command.mut_subcommand("sim", |sim| {
        let rw = Command::new("rw")
            .arg_required_else_help(true)
            .subcommand_required(true);
        let rw = rw.about("Reader-writer locks under the workloads of `bench rw`, in virtual time");
        below(sim, "sim", Place::Simulated).subcommand(below(rw, "rw", Place::Simulated))
    });
    command
}

/// If a workload was asked for, what became of it.
pub(crate) fn asked_for(matches: &ArgMatches) -> Option<Result> {
    let (mut path, mut last) = (Vec::new(), matches);
    while let Some((name, below)) = last.subcommand() {
        path.push(name);
        last = below;
    }
    let row = match path[..] {
        ["vm", "replay"] => find("vm"),
        ["bench" | "sim", .., name] => find(name).filter(|row| is_in(row, path[path.len() - 2])),
        _ => None,
    }?;
    Some(match path[0] {
        #[cfg(feature = "sim")]
        "sim" => crate::sim::on_machine(row, last),
        _ => on_hardware(row, last),
    })
}

#[cfg(test)]
mod tests {
    use super::{Place, WORKLOADS, command};

    #[test]
    fn the_help_of_a_workload_says_what_it_is() {
        for row in WORKLOADS {
            let command = command(row, Place::Hardware);
            let about = command.get_about().map(ToString::to_string);
            assert_eq!(about.as_deref(), Some(row.about));
        }
    }
}
