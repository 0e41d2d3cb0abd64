//! `spanlock vm`.

use crate::failure::{Failure, Result};
use crate::output::print;
use clap::{Args, Subcommand};
use spanlock_bench::space::MEASURED;
use spanlock_records::record::plural;
use spanlock_records::vm_trace::samples;
use std::fmt::Write as _;

#[derive(Args)]
pub(crate) struct Vm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the recorded traces and the variants of the address space.
    List,
}

pub(crate) fn run(Vm { command }: Vm) -> Result {
    match command {
        Command::List => list(),
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
