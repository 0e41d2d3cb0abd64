//! Where numbers come from: they mean little without.

use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Machine, source and command of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The processor's model.
    pub machine: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// The operating system's kernel.
    pub kernel: String,
    /// The commit that was built; with `-dirty` if the sources differ from it.
    pub commit: String,
    /// The command, without the path of the program.
    pub command: String,
    /// Seconds since 1970 when the report was begun; of simulated runs `None`: they are the same at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
}

const UNKNOWN: &str = "unknown";

impl Provenance {
    /// Of this process, here and now, for a command with these arguments.
    #[must_use]
    pub fn here(arguments: impl IntoIterator<Item = String>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            time: since.ok().map(|since| since.as_secs()),
            ..Self::at_any_time(arguments)
        }
    }

    /// The same, for what is the same at any time.
    #[must_use]
    pub fn at_any_time(arguments: impl IntoIterator<Item = String>) -> Self {
        let words = std::iter::once("spanlock".to_owned()).chain(arguments);
        Self {
            machine: processor_model().unwrap_or_else(|| UNKNOWN.to_owned()),
            cores: cores(),
            kernel: kernel(),
            commit: env!("SPANLOCK_COMMIT").to_owned(),
            command: words.collect::<Vec<_>>().join(" "),
            time: None,
        }
    }
}

/// Processors that this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    let release = release.as_deref().map_or(UNKNOWN, str::trim);
    format!("{} {release}", std::env::consts::OS)
}

fn processor_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
