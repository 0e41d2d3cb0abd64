//! Why a command ended early, and with which exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are wrong.
    Arguments(String),
    /// The output could not be written.
    Output(io::Error),
    /// Something else did not work.
    Program {
        /// What.
        why: String,
        /// The exit code of a shell in that case.
        code: u8,
    },
}

impl Failure {
    /// Something that is needed cannot be used.
    pub(crate) fn input(what: impl fmt::Display) -> Self {
        let why = format!("cannot use {what}");
        Self::Program { why, code: 1 }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Arguments(_) => 2,
            Self::Output(_) => 1,
            Self::Program { code, .. } => *code,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(why) | Self::Program { why, .. } => f.write_str(why),
            Self::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// How a command ends.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;
