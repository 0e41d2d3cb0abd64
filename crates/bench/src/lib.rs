//! Measurement: of the workloads on hardware and on simulated machines, and of what else locks cost. What is measured
//! is written as [`spanlock_records`], which `spanlock-report` judges and reports.
//!
//! A workload itself is not written here but in `spanlock-workbench`, once for both. Here are what differs: processes,
//! counters, seeds, machines, and what else locks are compared with.
//!
//! The feature `sim` has what runs on simulated machines: `sim`, `fuzz`, and that half of the other modules. The
//! feature `async` has `tasks`.
//!
//! | module | what it is |
//! |---|---|
//! | [`workload`] | how workloads run on hardware and on a simulated machine, and what is reported of it |
//! | [`costs`] | what locks cost beside throughput, as it is reported |
//! | [`blob`] | reads of large objects from an aliasing area: who reads them, on hardware |
//! | [`registry`] | all range locks, by name: those of the table in `spanlock-workbench`, and peers; to add a peer, add an entry |
//! | [`sets`] | all ordered sets, by name |
//! | [`rw`] | all reader-writer locks, likewise, and what is measured of them on hardware only |
//! | `sim` | the locks that can be simulated |
//! | [`peers`] | the peers, and the floors |
//! | `store` | files in stores, and plain ones, measured and simulated |
//! | [`space`] | the variants of address spaces, measured and simulated |
//! | `fuzz` | random work under random schedules of the simulated machine |
//! | [`known`] | locks as users name them and as records have them |
//! | [`memory`] | what locks and holders take of memory |
//! | [`many_locks`] | what many locks take of memory that each thread uses once |
//! | [`pairs`] | how long acquisitions and releases take one thread |
//! | [`owners`] | the same for what owners hold |
//! | [`among`] | how long a request waits among others that never pause |
//! | `tasks` | what tasks get done under locks that they and threads may wait for |
//! | [`processor`] | processor time, and what waiting takes of it |
//! | [`counters`] | hardware counters, where there are any |
//! | [`provenance`] | where numbers come from |

pub mod among;
pub mod blob;
pub mod costs;
pub mod counters;
#[cfg(feature = "sim")]
pub mod fuzz;
pub mod known;
pub mod many_locks;
pub mod memory;
mod meter;
pub mod owners;
pub mod pairs;
pub mod peers;
pub mod processor;
pub mod provenance;
pub mod registry;
pub mod rw;
pub mod sets;
#[cfg(feature = "sim")]
pub mod sim;
pub mod space;
#[cfg(target_os = "linux")]
pub mod store;
#[cfg(feature = "async")]
pub mod tasks;
pub mod workload;
