//! Parameters and outcomes of the workloads: plain data.
//!
//! | module | what it is |
//! |---|---|
//! | [`arr`], [`batch`], [`latency`], [`pattern`] | the workloads of range locks |
//! | [`blob`] | reads of large objects from an aliasing area |
//! | [`rw`] | the workloads of reader-writer locks |
//! | [`vm`] | traffic of address spaces |
//! | [`keys`] | locks over keys |
//! | [`micro`] | microbenchmarks of the machine |
//! | [`set`] | the workload of ordered sets |
//! | [`store`] | files that many threads read and write |
//! | [`run`] | the parameters of a run and its outcome |
//! | [`times`] | acquisition times |
//! | [`counters`] | hardware counters |
//! | [`lock`] | the description of a lock |
//! | [`setting`] | the resource that a lock is made for, and the parameters that users choose |

pub mod arr;
pub mod batch;
pub mod blob;
pub mod counters;
pub mod keys;
pub mod latency;
pub mod lock;
pub mod micro;
mod named;
pub mod pattern;
pub mod run;
pub mod rw;
pub mod set;
pub mod setting;
pub mod store;
pub mod times;
pub mod vm;
