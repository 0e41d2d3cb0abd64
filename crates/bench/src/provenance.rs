//! Where numbers come from: they mean little without.

use spanlock_records::record::provenance::Provenance;
use std::time::{SystemTime, UNIX_EPOCH};

const UNKNOWN: &str = "unknown";

/// Of this process, here and now, for a command with these arguments.
#[must_use]
pub fn here(arguments: impl IntoIterator<Item = String>) -> Provenance {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Provenance {
        time: since.ok().map(|since| since.as_secs()),
        ..at_any_time(arguments)
    }
}

/// The same, for what is the same at any time.
#[must_use]
pub fn at_any_time(arguments: impl IntoIterator<Item = String>) -> Provenance {
    let words = std::iter::once("spanlock".to_owned()).chain(arguments);
    Provenance {
        machine: processor_model().unwrap_or_else(|| UNKNOWN.to_owned()),
        cores: cores(),
        kernel: kernel(),
        commit: env!("SPANLOCK_COMMIT").to_owned(),
        command: words.collect::<Vec<_>>().join(" "),
        time: None,
    }
}

/// Processors that this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes of memory that programs can still get, if the system tells: no more than the limit on this one's group.
#[must_use]
pub fn available_memory() -> Option<usize> {
    let read = |file| std::fs::read_to_string(file).ok();
    let all = read("/proc/meminfo")?;
    let mut lines = all.lines();
    let available = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = available.trim().strip_suffix(" kB")?.parse().ok()?;
    let limit = read("/sys/fs/cgroup/memory.max").and_then(|limit| limit.trim().parse().ok());
    Some((kib << 10).min(limit.unwrap_or(usize::MAX)))
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
