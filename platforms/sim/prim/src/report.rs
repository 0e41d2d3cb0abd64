//! The report of a run that failed.

use crate::clock::Duration;
use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

/// One operation of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Cycles since the run began.
    pub time: u64,
    /// The thread's number, from 0.
    pub thread: usize,
    /// The kind of operation.
    pub what: Cow<'static, str>,
    /// The cache line and the byte in it. Lines are numbered in the order of their first use.
    pub place: Option<(u32, u8)>,
    /// The value read or written.
    pub value: Option<u64>,
    /// The place in the source code.
    pub at: Option<&'static Location<'static>>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time, thread, what, ..
        } = self;
        write!(f, "{time:>10}  t{thread:<3} {what:<14}")?;
        if let Some((line, byte)) = self.place {
            write!(f, " L{line:<4}+{byte:<3}")?;
        }
        match self.value {
            // The host's addresses differ from run to run, so a report shows their low bits only.
            Some(value) if value > u64::from(u32::MAX) && value != u64::MAX => {
                write!(f, " (address, low bits {})", value & 7)?;
            }
            Some(value) => write!(f, " {value}")?,
            None => {}
        }
        if let Some(at) = self.at {
            let file = at.file().rsplit("src/").next().unwrap_or_default();
            write!(f, "    {file}:{}", at.line())?;
        }
        Ok(())
    }
}

/// The description of a run that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The fault.
    pub what: String,
    /// The virtual time of the fault.
    pub time: Duration,
    /// The seed that reproduces the run.
    pub seed: u64,
    /// What each thread is doing.
    pub threads: Vec<String>,
    /// The last [marks](crate::mark) of all threads, in order. They reach further back than `trace`.
    pub marks: Vec<Trace>,
    /// The last operations of all threads, in order.
    pub trace: Vec<Trace>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} after {:?}, seed {}", self.what, self.time, self.seed)?;
        for (number, doing) in self.threads.iter().enumerate() {
            writeln!(f, "  t{number}: {doing}")?;
            // The common trace may not reach back to the last operation of a thread that has slept for long.
            let last: Vec<_> = self
                .trace
                .iter()
                .filter(|did| did.thread == number)
                .collect();
            for did in last.iter().skip(last.len().saturating_sub(3)) {
                writeln!(f, "    {did}")?;
            }
        }
        if !self.marks.is_empty() {
            writeln!(f, "\nWhat they were about:\n    cycles  thread")?;
        }
        for mark in &self.marks {
            writeln!(f, "{mark}")?;
        }
        writeln!(
            f,
            "\nThe last operations:\n    cycles  thread         line and byte, value, source"
        )?;
        for did in &self.trace {
            writeln!(f, "{did}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
