//! Workloads and measurement.
//!
//! | module | what it is |
//! |---|---|
//! | [`target`] | what a lock under measurement offers |
//! | [`registry`] | all the locks, by name: to add one, add an entry |
//! | [`setting`] | what a lock is made for, and what users may choose about it |
//! | [`baseline`] | the range locks that P1 and P4 compare with |
//! | [`arr`] | ArrBench (P1 §7.1): throughput and latency over an array, with a check of its content |
//! | [`batch`] | W1 and W2 (P4 §4.3): ranges held one at a time or in batches, with a check of what was written |
//! | [`latency`] | how long acquisitions take, first and later ones (P3 §VI-B1) |
//! | [`memory`] | what locks and holders take of memory |
//! | [`uncontended`] | what one thread pays |
//! | [`rw`] | reader-writer locks under the workloads of P2 §5 |
//! | [`waiting`] | what a waiter costs, and how evenly a lock serves |
//! | [`sim`] | the library's locks and the baselines on simulated machines: workloads and schedule fuzzing |
//! | [`compare`] | who wins where, and whether the papers agree |
//! | [`counters`] | hardware counters, where there are any |
//! | [`crew`] | threads that start, are measured and stop together |
//! | [`processor`] | processor time |
//! | [`soak`] | random work for a long time, checked all along |
//! | [`stats`] | median and spread |
//! | [`times`] | percentiles of acquisition times |
//! | [`provenance`] | where numbers come from |
//! | [`report`] | measurements as tables and as lines of JSON |

pub mod arr;
pub mod batch;
pub mod compare;
pub mod counters;
pub mod crew;
pub mod latency;
pub mod memory;
pub mod processor;
pub mod provenance;
pub mod registry;
pub mod report;
pub mod rw;
pub mod setting;
pub mod sim;
pub mod soak;
pub mod stats;
pub mod target;
pub mod times;
pub mod uncontended;
pub mod waiting;

#[doc(inline)]
pub use spanlock_baseline as baseline;
