//! Measurements in fresh processes, which are this program again: where code, stacks and locks lie is drawn anew there,
//! and can make a tenth.

use spanlock_bench::rw::harm;
use spanlock_records::record::{Line, Panel, Record};
use spanlock_records::trial::run::Trial;
use std::process::Command;
use std::time::Duration;

/// The least warm-up of a process: to register for `membarrier`, which the first fast reader does,
/// takes the kernel tens of milliseconds, once.
const WARMUP: Duration = Duration::from_millis(50);

/// How the process is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Plain,
    /// With the preload library.
    Preloaded,
}

/// This program.
///
/// # Errors
/// When its file is not known.
pub(super) fn own() -> Result<Command, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(Command::new(own))
}

/// The output of a process that succeeds, as lines of JSON.
///
/// # Errors
/// When it cannot be started, fails, or writes something else: its output, or why not.
pub(super) fn lines(command: &mut Command) -> Result<Vec<Line>, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(str::parse).collect::<Result<Vec<_>, _>>();
    match lines {
        Ok(lines) if output.status.success() => Ok(lines),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{}: {text}{errors}", output.status))
        }
    }
}

/// Measures the reader-writer lock of that name, with a warm-up of 50 milliseconds if not longer.
///
/// # Errors
/// As of [`lines`].
pub(super) fn measure(lock: &str, start: Start, trial: &Trial<Panel>) -> Result<Record, String> {
    let mut command = own()?;
    if start == Start::Preloaded {
        let program = command.get_program().to_owned();
        command.args(["run", "--"]).arg(program);
    }
    let number = |name: &str, number: &dyn ToString| format!("--{name}={}", number.to_string());
    let warmup = trial.schedule.warmup.max(WARMUP);
    command
        .args(["bench", "rw"])
        .args(words(trial.load))
        .args(["--locks", lock, "--format", "json", "--repeat", "1"])
        .arg(number("threads", &trial.threads))
        .arg(number("seed", &trial.seed))
        .arg(number("seconds", &trial.schedule.measured.as_secs_f64()))
        .arg(number("warmup", &warmup.as_secs_f64()));
    let before = harm::handoff();
    let lines = lines(&mut command)?;
    let handoff_ns = before.zip(harm::handoff()).map(<[f64; 2]>::from);
    let record = lines.into_iter().find_map(|line| match line {
        Line::Run(record) => Some(*record),
        _ => None,
    });
    Ok(Record {
        repeat: trial.repeat,
        handoff_ns,
        ..record.ok_or("it measured nothing")?
    })
}

/// The words of the command that runs this: its name, and its settings.
fn words(panel: Panel) -> impl Iterator<Item = String> {
    let settings = panel.settings();
    let settings = settings.map(|(name, value)| format!("--{name}={value}"));
    [panel.workload().to_owned()].into_iter().chain(settings)
}
