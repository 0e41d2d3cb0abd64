//! The traffic of address spaces.

use super::{Workload, all, each, turns};
use crate::options::number;
use clap::Args;
use spanlock_records::record::plural;
use spanlock_records::trial::vm::{self, Name, Pace, Traffic};
use spanlock_records::vm_trace::metis::{GROWTHS, MAX_GROWTHS, Program};
use spanlock_records::vm_trace::{samples, text};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

#[derive(Args)]
pub(crate) struct Space {
    /// What to replay: wc, wr or wrmem (the patterns of these Metis programs, for any number of threads), a recorded
    /// trace (`vm list` names them), or the file of a trace.
    #[arg(required = true, value_parser = traffic, value_name = "TRACE")]
    traffic: Vec<Traffic>,
    /// What threads do between calls and faults.
    #[arg(long, default_values_t = [Pace::FlatOut], value_name = "NAME,...")]
    pace: Vec<Pace>,
    /// How often the heaps in a pattern grow, all threads together.
    #[arg(long, value_parser = number(1..=MAX_GROWTHS), default_value_t = GROWTHS, value_name = "N")]
    growths: usize,
}

/// A trace or a pattern. Traces are kept: the command runs once.
fn traffic(text: &str) -> Result<Traffic, String> {
    if let Ok(program) = text.parse::<Program>() {
        return Ok(Traffic::Pattern(program, GROWTHS));
    }
    let recorded = |name: &str, trace| {
        let trace: &'static _ = Box::leak(Box::new(trace));
        Traffic::Recorded(Name::new(name), trace)
    };
    let sample = samples::ALL.iter().find(|sample| sample.name == text);
    if let Some(sample) = sample {
        let trace = sample.read().map_err(|error| error.to_string())?;
        return Ok(recorded(text, trace));
    }
    let file = File::open(text).map_err(|error| {
        format!("{error}, and no recorded trace has that name: `spanlock vm list` lists them")
    })?;
    let trace = text::read(BufReader::new(file)).map_err(|error| error.to_string())?;
    if trace.events.is_empty() {
        return Err("the trace has no events".to_owned());
    }
    let name = Path::new(text)
        .file_stem()
        .map_or(text.into(), |name| name.to_string_lossy());
    Ok(recorded(&name, trace))
}

impl Workload for Space {
    type Load = vm::Load;

    fn loads(&self) -> Vec<vm::Load> {
        let traffic = self.traffic.iter().map(|&traffic| match traffic {
            Traffic::Pattern(program, _) => Traffic::Pattern(program, self.growths),
            recorded @ Traffic::Recorded(..) => recorded,
        });
        let loads = turns(traffic, &each(&self.pace));
        all(loads, |(pace, traffic)| vm::Load { traffic, pace })
    }

    /// Why some of these numbers of threads are too many.
    fn contradiction(&self, threads: &[usize]) -> Option<String> {
        let most = threads.iter().max()?;
        let short = self
            .traffic
            .iter()
            .find(|traffic| traffic.most_threads() < *most)?;
        Some(format!(
            "{} on {most}: the trace has {}; the patterns wc, wr and wrmem have as many as are asked for",
            short.name(),
            plural(short.most_threads())
        ))
    }
}
