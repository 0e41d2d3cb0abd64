//! The origin of measurements.

use serde::{Deserialize, Serialize};

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
