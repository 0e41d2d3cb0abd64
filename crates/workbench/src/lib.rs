//! The locks that Spanlock's are compared with, and the workloads that locks are measured with, each once.
//!
//! This source is compiled twice: as `spanlock-workbench` for hardware, and as `spanlock-workbench-sim` against the
//! simulated machine. So it says `prim` for atomics, threads, time and the cost of plain work, and `spanlock` for the
//! library on the same platform. It knows no process, no counter and no report: `bench` has those. What a run is asked
//! for and what it yields is in `spanlock-records`, which is compiled once.
//!
//! The workloads are a feature: the library's own tests compile the comparison locks alone.
//!
//! | module | what it is |
//! |---|---|
//! | [`by_owners`] | a lock whose ranges owners hold |
//! | [`baseline`] | the comparison locks. The loom models compile this module alone |
//! | [`crew`] | threads that start, warm up, are measured and stop together |
//! | [`target`] | what a range lock under measurement offers |
//! | [`raw`] | a raw range lock of any type, under what is built on range locks |
//! | [`workload`] | the table of workloads: to add one, add its file and a row
//! | [`arr`] | ArrBench (P1 §7.1): throughput and latency over an array, with a check of its content |
//! | [`batch`] | W1 and W2 (P4 §4.3): ranges held one at a time or in batches, with a check of what was written |
//! | [`blob`] | reads of large objects from an aliasing area (P4 §4.4) |
//! | [`latency`] | how long acquisitions take, first and later ones (P3 §VI-B1) |
//! | [`pattern`] | what users do and papers do not measure, and what hurts a lock that adapts |
//! | [`locks`] | the table of range locks: to add one, add a row |
//! | [`set`] | ordered sets (P1 §7.1) |
//! | [`keys`] | locks over keys that are byte strings |
//! | [`store`] | files that many threads read and write (P3 §VI) |
//! | [`rw`] | reader-writer locks under the workloads of P2 §5 |
//! | [`vm`] | traffic of address spaces (P1 §7.2) |
//! | [`lines`] | memory that workloads read and write |
//! | [`micro`] | contended words, and the simplest locks on them |

#[cfg(feature = "workloads")]
pub mod arr;
pub mod baseline;
#[cfg(feature = "workloads")]
pub mod batch;
#[cfg(feature = "workloads")]
pub mod blob;
pub mod by_owners;
#[cfg(feature = "workloads")]
pub mod crew;
#[cfg(feature = "workloads")]
pub mod keys;
#[cfg(feature = "workloads")]
pub mod latency;
#[cfg(feature = "workloads")]
pub mod lines;
#[cfg(feature = "workloads")]
pub mod locks;
#[cfg(feature = "workloads")]
pub mod micro;
#[cfg(feature = "workloads")]
pub mod pattern;
#[cfg(feature = "workloads")]
pub mod raw;
#[cfg(feature = "workloads")]
pub mod rw;
#[cfg(feature = "workloads")]
pub mod set;
#[cfg(feature = "workloads")]
pub mod store;
#[cfg(feature = "workloads")]
pub mod target;
#[cfg(feature = "workloads")]
pub mod vm;
#[cfg(feature = "workloads")]
pub mod workload;

#[cfg(feature = "workloads")]
use prim::clock::{Duration, Instant};

/// The result of `acquire`, and how long it took: two readings of the clock.
#[cfg(feature = "workloads")]
#[inline]
pub fn timed<G>(acquire: impl FnOnce() -> G) -> (G, Duration) {
    let start = Instant::now();
    let held = acquire();
    (held, start.elapsed())
}
