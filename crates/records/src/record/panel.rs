//! Panels: a workload and its parameters. Runs of one panel can be compared with each other.

use crate::trial::arr::{self, Variant};
use crate::trial::pattern::{self, Pattern};
use crate::trial::set::Mix;
use crate::trial::store::Kernel;
use crate::trial::vm::{self, Name, Pace, Traffic};
use crate::trial::{batch, blob, keys, latency, micro, rw, set, store};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A workload and its parameters, as one panel of a figure shows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "lowercase")]
pub enum Panel {
    /// ArrBench (P1 §7.1).
    #[serde(alias = "sim-arr")]
    Arr {
        /// The ranges that are locked.
        variant: Variant,
        /// Of a hundred operations, those that read.
        reads: u8,
    },
    /// W1 and W2 (P4 §4.3): ranges held one at a time, or in batches.
    #[serde(alias = "sim-batch")]
    Batch(batch::Load),
    /// Reads of large objects from an aliasing area (P4 §4.4).
    #[serde(alias = "sim-blob")]
    Blob(blob::Load),
    /// Acquisition times (P3 §VI-B1).
    #[serde(alias = "sim-latency")]
    Latency {
        /// Parts of the resource.
        parts: usize,
    },
    /// The longest acquisition of a latency run, in nanoseconds. No line has it: it follows from lines of `Latency`.
    Longest {
        /// Which.
        phase: Phase,
    },
    /// What users do and no paper measures, and what hurts a lock that adapts.
    #[serde(alias = "sim-pattern")]
    Pattern {
        /// What threads do.
        pattern: Pattern,
        /// Of a hundred operations that are left to chance, those that read.
        reads: u8,
        /// Threads that exist meanwhile and sleep.
        bystanders: usize,
    },
    /// Microbenchmarks: each kernel takes the place of a lock.
    #[default]
    #[serde(alias = "sim-micro")]
    Micro,
    /// A workload of reader-writer locks (P2 §5).
    #[serde(alias = "sim-rw")]
    Rw(rw::Load),
    /// Ordered sets (P1 §7.1).
    #[serde(alias = "sim-set")]
    Set(set::Load),
    /// Locks over keys.
    #[serde(alias = "sim-keys")]
    Keys(keys::Load),
    /// Files that many threads read and write (P3 §VI).
    #[serde(alias = "sim-store")]
    Store(store::Load),
    /// Traffic of an address space (P1 §7.2).
    #[serde(alias = "sim-vm")]
    Vm {
        /// The trace, or the program whose pattern it is.
        traffic: Name,
        /// What threads do in between.
        pace: Pace,
        /// Growths of heaps; 0 of a recorded trace.
        growths: usize,
    },
    /// How long acquisitions of an address space's lock waited, in nanoseconds on average, or how many of a hundred
    /// calls of `mprotect` succeeded speculatively. No line has it: it follows from lines of `Vm`.
    #[serde(rename = "vm-stat")]
    VmStat {
        /// The trace, or the program whose pattern it is.
        traffic: Name,
        /// What threads do in between.
        pace: Pace,
        /// What is meant.
        of: VmStat,
    },
    /// The cost of waiting: all threads write the whole array of ArrBench.
    Waiting {
        /// The ranges that are locked.
        variant: Variant,
        /// Of a hundred operations, those that read.
        reads: u8,
    },
}

/// The acquisitions of a part of a resource that are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The first of each part.
    First,
    /// The later ones.
    Again,
}

/// What lines about an address space say beside its throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmStat {
    /// The wait of an acquisition in shared mode.
    ReadWait,
    /// The wait of an acquisition in exclusive mode.
    WriteWait,
    /// The share of `mprotect` that succeeds speculatively.
    Speculated,
    /// The wait of a request for the spin lock of a tree lock.
    TreeWait,
    /// The share that this has in the waits of the tree lock.
    TreeShare,
    /// The rest: waits for conflicting requests.
    RangeShare,
}

impl VmStat {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ReadWait,
        Self::WriteWait,
        Self::Speculated,
        Self::TreeWait,
        Self::TreeShare,
        Self::RangeShare,
    ];

    /// It, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadWait => "waits of readers",
            Self::WriteWait => "waits of writers",
            Self::Speculated => "percent of mprotect that succeed speculatively",
            Self::TreeWait => "waits for the tree's spin lock",
            Self::TreeShare => "percent of waits that are for the tree's spin lock",
            Self::RangeShare => "percent of waits that are for other requests",
        }
    }
}

impl Phase {
    /// The phase, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first acquisitions",
            Self::Again => "later acquisitions",
        }
    }
}

impl Panel {
    /// What throughput is a multiple of in tables, and its name: operations of some workloads take long.
    #[must_use]
    pub const fn unit(self) -> (f64, &'static str) {
        match self {
            Self::Blob(_)
            | Self::Store(store::Load {
                kernel: Kernel::Hacc,
                ..
            }) => (1e3, "thousand"),
            _ => (1e6, "million"),
        }
    }

    /// Threads that run beside those that are counted.
    #[must_use]
    pub const fn more_threads(self) -> usize {
        match self {
            Self::Rw(load) => load.more_threads(),
            _ => 0,
        }
    }
}

impl fmt::Display for Panel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arr { variant, reads } | Self::Waiting { variant, reads } => {
                write!(f, "{variant} range, {reads} % reads")
            }
            Self::Batch(batch::Load { hold: 1, .. }) => {
                f.write_str("W1, ranges held one at a time")
            }
            Self::Batch(batch::Load { hold, .. }) => write!(f, "W2, {hold} ranges held together"),
            Self::Blob(blob::Load {
                draw,
                payload,
                cache,
                ..
            }) => {
                write!(f, "BLOBs, {draw}, {payload} read, ")?;
                match cache {
                    0 => f.write_str("no cache"),
                    cache => write!(f, "caches of {cache}"),
                }
            }
            Self::Latency { parts } => write!(f, "one part of {parts}"),
            Self::Longest { phase } => write!(f, "the longest of {}", phase.name()),
            Self::Pattern {
                pattern,
                reads,
                bystanders,
            } => {
                write!(f, "{pattern}, {reads} % reads")?;
                match bystanders {
                    0 => Ok(()),
                    some => write!(f, ", beside {some} threads"),
                }
            }
            Self::Micro => f.write_str("microbenchmarks"),
            Self::Rw(load) => load.fmt(f),
            Self::Set(set::Load {
                keys,
                chosen,
                mix,
                stall,
            }) => {
                let mix = match mix {
                    Mix::Updates => "80 % searches",
                    Mix::Scans => "70 % searches, 10 % scans",
                };
                write!(f, "set of {keys} {chosen} keys, {mix}")?;
                if *stall > 0 {
                    write!(f, ", {stall} cycles more each")?;
                }
                Ok(())
            }
            Self::Keys(keys::Load {
                keys,
                length,
                chosen,
                access,
                writes,
            }) => write!(
                f,
                "{}, {chosen}, of {keys} keys of {length} bytes, {writes} % writes",
                access.about()
            ),
            Self::Store(store::Load { kernel, .. }) => f.write_str(kernel.about()),
            Self::Vm {
                traffic,
                pace,
                growths: 0,
            } => write!(f, "traffic of {traffic}, {pace}"),
            Self::Vm {
                traffic,
                pace,
                growths,
            } => write!(f, "pattern of {traffic}, {growths} growths, {pace}"),
            Self::VmStat { traffic, pace, of } => write!(f, "{}, {traffic}, {pace}", of.name()),
        }
    }
}

/// The panels of workloads.
macro_rules! from_loads {
    ($($load:ty => |$value:pat_param| $panel:expr;)+) => {$(
        impl From<$load> for Panel {
            fn from($value: $load) -> Self {
                $panel
            }
        }
    )+};
}

from_loads! {
    arr::Load => |load| Self::Arr { variant: load.variant, reads: load.reads.get() };
    batch::Load => |load| Self::Batch(load);
    blob::Load => |load| Self::Blob(load);
    latency::Load => |load| Self::Latency { parts: load.parts };
    pattern::Load => |load| Self::Pattern {
        pattern: load.pattern, reads: load.reads.get(), bystanders: load.bystanders,
    };
    micro::Load => |micro::Load| Self::Micro;
    rw::Load => |load| Self::Rw(load);
    set::Load => |load| Self::Set(load);
    keys::Load => |load| Self::Keys(load);
    store::Load => |load| Self::Store(load);
    vm::Load => |load| Self::Vm {
        traffic: load.traffic.name(),
        pace: load.pace,
        growths: match load.traffic {
            Traffic::Recorded(..) => 0,
            Traffic::Pattern(_, growths) => growths,
        },
    };
}
