//! `spanlock vm`.

use crate::bench::measure::{Compared, Repeated};
use crate::failure::{At, Failure, Result};
use crate::output::print;
use crate::workloads::Space;
use clap::{Args, Subcommand};
use spanlock_bench::space::MEASURED;
use spanlock_records::record::plural;
use spanlock_records::vm_trace::import::{LeftOut, Recording, import};
use spanlock_records::vm_trace::samples;
use spanlock_records::vm_trace::text::write;
use std::fmt::Write as _;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct Vm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the recorded traces and the variants of the address space.
    List,
    /// Replay calls and faults on each variant of the address space, and check the areas at the end.
    #[command(mut_arg("locks", |locks| locks.alias("lock")))]
    Replay(Compared<Space, Repeated>),
    /// Make a trace of a recording; `scripts/record-trace` records and calls this.
    Import(Import),
}

pub(crate) fn run(Vm { command }: Vm) -> Result {
    match command {
        Command::List => list(),
        Command::Replay(args) => args.run(),
        Command::Import(args) => make(&args),
    }
}

fn list() -> Result {
    let mut text = String::new();
    for sample in samples::ALL {
        let trace = sample
            .read()
            .map_err(|error| Failure::Check(error.to_string()))?;
        let (threads, faults) = (plural(trace.threads()), trace.faults());
        let calls = trace.events.len() - faults;
        let _ = writeln!(
            text,
            "{:<14} {threads}, {calls} calls, {faults} faults: {}",
            sample.name, trace.about
        );
    }
    text.push('\n');
    for variant in MEASURED.iter() {
        let _ = writeln!(text, "{:<14} {}", variant.name, variant.about);
    }
    print(&text)
}

#[derive(Args)]
struct Import {
    /// The output of strace.
    #[arg(long, value_name = "FILE")]
    strace: PathBuf,
    /// The output of `perf script`: process, thread, time and address of each fault.
    #[arg(long, value_name = "FILE")]
    faults: PathBuf,
    /// /proc/PID/smaps when the program begins.
    #[arg(long, value_name = "FILE")]
    before: PathBuf,
    /// /proc/PID/smaps when it is about to end.
    #[arg(long, value_name = "FILE")]
    after: PathBuf,
    /// The process.
    #[arg(long, value_name = "PID")]
    process: u32,
    /// What was recorded, for those who read the trace.
    #[arg(long, value_name = "TEXT", default_value = "")]
    about: String,
    /// The file for the trace.
    trace: PathBuf,
}

fn make(args: &Import) -> Result {
    let read = |path: &Path| read_to_string(path).at(path);
    let (strace, faults) = (read(&args.strace)?, read(&args.faults)?);
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let recording = Recording {
        strace: &strace,
        faults: &faults,
        before: &before,
        after: &after,
        process: args.process,
        about: &args.about,
    };
    let (trace, left_out) =
        import(&recording).map_err(|error| Failure::Input(format!("the recording: {error}")))?;
    let mut file = Vec::new();
    let written = write(&trace, &mut file).and_then(|()| std::fs::write(&args.trace, &file));
    written.map_err(|error| Failure::File(args.trace.display().to_string(), error))?;
    let LeftOut { failed, signals } = left_out;
    let (threads, faults) = (plural(trace.threads()), trace.faults());
    print(&format!(
        "{threads}, {} calls, {faults} faults; left out: {failed} failed calls, {signals} faults that were signals\n",
        trace.events.len() - faults
    ))
}
