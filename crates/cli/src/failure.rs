//! Why a command ended early, and with which exit code.

use derive_more::{Display, From};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command ended early.
#[derive(Debug, Display, From)]
pub(crate) enum Failure {
    /// The arguments contradict each other.
    Arguments(String),
    /// A lock did not do what it promises.
    #[display("check failed: {_0}")]
    Check(String),
    /// A process of our own, started to measure, did not.
    #[display("cannot measure in a process of its own: {_0}")]
    Probe(String),
    /// The output could not be written.
    #[display("cannot write the output: {_0}")]
    #[from]
    Output(io::Error),
    /// A file could not be written.
    #[display("cannot write {_0}: {_1}")]
    File(String, io::Error),
    /// A file cannot be read, or has another content than it must.
    #[display("cannot use {_0}")]
    Input(String),
    /// A program cannot be run as asked.
    #[display("{why}")]
    Program {
        /// Why not.
        why: String,
        /// The exit code of a shell in that case.
        code: u8,
    },
}

impl Failure {
    /// A lock failed its check.
    pub(crate) fn check(what: impl std::fmt::Display) -> Self {
        Self::Check(what.to_string())
    }

    /// No library can be preloaded into a program.
    pub(crate) fn cannot_preload(why: impl Into<String>) -> Self {
        let why = why.into();
        Self::Program { why, code: 126 }
    }

    /// The same, with the step that failed.
    pub(crate) fn in_step(self, step: &str) -> Self {
        match self {
            Self::Check(what) => Self::Check(format!("{step}: {what}")),
            Self::Probe(what) => Self::Probe(format!("{step}: {what}")),
            other => other,
        }
    }

    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::Arguments(_) => ExitCode::from(2),
            Self::Program { code, .. } => ExitCode::from(*code),
            _ => ExitCode::FAILURE,
        }
    }
}

/// How a command ends.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// What was done with a file or folder.
pub(crate) trait At<T> {
    /// Names it if that failed.
    fn at(self, path: &Path) -> Result<T>;
}

impl<T, E: std::fmt::Display> At<T> for Result<T, E> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
    }
}
