//! How a run that went wrong is told.

use crate::clock::Duration;
use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

/// Something a thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Cycles since the run began.
    pub time: u64,
    /// The thread, from 0.
    pub thread: usize,
    /// What it did.
    pub what: Cow<'static, str>,
    /// The line, in order of first use, and the byte in it.
    pub place: Option<(u32, u8)>,
    /// What was read, or written.
    pub value: Option<u64>,
    /// Where the source says so.
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
            // Addresses differ from run to run.
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

/// A run that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub what: String,
    /// When.
    pub time: Duration,
    /// The seed that leads here again.
    pub seed: u64,
    /// What each thread is doing.
    pub threads: Vec<String>,
    /// The last that threads were [about](crate::mark), in order: it reaches further back than `trace`.
    pub marks: Vec<Trace>,
    /// The last that was done, by all threads, in order.
    pub trace: Vec<Trace>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} after {:?}, seed {}", self.what, self.time, self.seed)?;
        for (number, doing) in self.threads.iter().enumerate() {
            writeln!(f, "  t{number}: {doing}")?;
            // The common trace may not reach back to what a thread did that has been asleep for long.
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
