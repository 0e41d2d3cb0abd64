//! Why a command ended early, and with which exit code.

use std::fmt::{self, Display};
use std::io;
use std::process::ExitCode;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments contradict each other.
    Arguments(String),
    /// A lock did not do what it promises.
    Check(String),
    /// A process of our own, started to measure, did not.
    Probe(String),
    /// The output could not be written.
    Output(io::Error),
    /// A file could not be written.
    File(String, io::Error),
    /// A file cannot be read, or has another content than it must.
    Input(String),
    /// A program cannot be run as asked.
    Program {
        /// Why not.
        why: String,
        /// The exit code of a shell in that case.
        code: u8,
    },
}

impl Failure {
    /// A lock failed its check.
    pub(crate) fn check(what: impl Display) -> Self {
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

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(what) => f.write_str(what),
            Self::Check(what) => write!(f, "check failed: {what}"),
            Self::Probe(what) => write!(f, "cannot measure in a process of its own: {what}"),
            Self::Output(error) => write!(f, "cannot write: {error}"),
            Self::File(name, error) => write!(f, "cannot write {name}: {error}"),
            Self::Input(what) => write!(f, "cannot use {what}"),
            Self::Program { why, .. } => f.write_str(why),
        }
    }
}

/// How a command ends.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;
