//! `spanlock run` where nothing can be preloaded: it says so.

use crate::Failure;
use crate::args::Run;
use std::fmt;
use std::process::ExitCode;

/// Why a program is not run.
#[derive(Debug)]
pub(crate) struct Refused;

impl Refused {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(126)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`spanlock run` replaces locks of glibc's, so it is for Linux only")
    }
}

pub(crate) fn run(args: Run) -> Result<ExitCode, Failure> {
    let Run {
        lock: _,
        stats: _,
        format: _,
        program: _,
    } = args;
    Err(Failure::Program(Refused))
}
